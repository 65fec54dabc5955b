package billing_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// logRow is a time entry as stored by any version, or by an import without rules.
type logRow struct {
	user, category, contact, source string
	from                            time.Time
	seconds                         int
}

func (d *fixture) insert(patient string, rows ...logRow) {
	d.t.Helper()
	for _, r := range rows {
		d.planted++
		id := fmt.Sprintf("%015d", 700000+d.planted)
		note, err := collections.Seal("Talked", "time_entries.notes", id)
		if err != nil {
			d.t.Fatal(err)
		}
		d.exec(`INSERT INTO time_entries (id, patient, user, category, contact_method, source, started_at, ended_at, duration_seconds, notes)
			VALUES ({:id}, {:p}, {:u}, {:c}, {:m}, {:s}, {:from}, {:to}, {:n}, {:note})`, dbx.Params{
			"id": id, "p": patient, "u": r.user, "c": r.category, "m": r.contact, "s": r.source, "n": r.seconds, "note": note,
			"from": collections.FormatInstant(r.from), "to": collections.FormatInstant(r.from.Add(time.Duration(r.seconds) * time.Second)),
		})
	}
}

// bitmap is the oracle: one flag for each second of the month and the day before it.
type bitmap struct {
	begin time.Time
	set   []bool
}

func newBitmap(from, to time.Time) bitmap {
	return bitmap{from, make([]bool, int(to.Sub(from)/time.Second))}
}

func (b bitmap) add(r logRow) {
	for i := range r.seconds {
		if at := int(r.from.Sub(b.begin)/time.Second) + i; at >= 0 && at < len(b.set) {
			b.set[at] = true
		}
	}
}

// For random entries of several users for one patient, in any order, every sum counts the seconds of their union.
func TestCountedSecondsAreTheUnion(t *testing.T) {
	for seed := range uint64(25) {
		r := rand.New(rand.NewPCG(seed, 19))
		rule := []string{billing.InteractiveOnly, billing.WithCareManagement}[seed%2]
		d := newFixture(t, func(s *billing.Settings) { s.TimeRule, s.LiveContactFrom = rule, "2026-01-01" })
		people := []string{d.nurse.Id, vigiltest.User(t, d.app, authz.MA).Id, vigiltest.User(t, d.app, authz.Provider).Id}
		month, _ := billing.MonthSpan([]string{"2026-03", "2026-11", "2028-02", "2026-12"}[seed%4]) // both changes of daylight saving time, a leap day, the end of a year
		from, to := d.e.TimeRange(month)
		var rows []logRow
		begin := from.Add(-3 * time.Hour)
		for range 5 + r.IntN(60) {
			row := logRow{
				user: people[r.IntN(3)], category: []string{"interactive", "interactive", "interactive", "care_management", "review", "interpretation"}[r.IntN(6)],
				contact: []string{"phone", "video", "in_person", "message", ""}[r.IntN(5)], source: []string{"manual", "timer", "escalation"}[r.IntN(3)],
				from: begin.Add(time.Duration(r.IntN(int(30*time.Hour/time.Second))) * time.Second), seconds: 1 + r.IntN(5400),
			}
			if r.IntN(3) == 0 { // around the end of the month
				row.from = to.Add(-time.Duration(r.IntN(3*3600)) * time.Second)
			}
			rows = append(rows, row)
		}
		counted, before, live := newBitmap(from, to.Add(24*time.Hour)), newBitmap(from, to.Add(24*time.Hour)), false
		for _, row := range rows {
			isLive := row.category == "interactive" && (row.contact == "phone" || row.contact == "video" || row.contact == "in_person" ||
				row.contact == "" && row.source == "escalation")
			cares := row.category == "care_management" && rule == billing.WithCareManagement
			switch {
			case !isLive && !cares:
			case row.from.Before(from):
				before.add(row)
			case row.from.Before(to):
				counted.add(row)
				live = live || isLive
			}
		}
		want := 0
		for i := range counted.set {
			if counted.set[i] && !before.set[i] && live {
				want++
			}
		}
		r.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		patient := d.patient()
		d.insert(patient, rows...)
		sums, err := d.e.TimeSummary(d.app, month, "", patient, "")
		if err != nil {
			t.Fatal(err)
		}
		if got := sums[0].Counted; got != want/60 {
			t.Errorf("seed %d: the summary counts %d minutes, want %d of %d seconds", seed, got, want/60, want)
		}
		near, err := collections.CountedMinutes(d.app, collections.FormatInstant(from), collections.FormatInstant(to), d.e.RuleForTest(month))
		if err != nil {
			t.Fatal(err)
		}
		got := 0
		if len(near) == 1 {
			got = near[0].Minutes
		}
		if got != want/60 {
			t.Errorf("seed %d: near-billable counts %d minutes, want %d", seed, got, want/60)
		}
		if got := d.e.SecondsForTest(t, d.app, patient, month); got != want {
			t.Errorf("seed %d: the engine counts %d seconds, want %d", seed, got, want)
		}
		if got := d.e.UnbilledSecondsForTest(t, d.app, patient, month); got != want {
			t.Errorf("seed %d: unbilled counts %d seconds, want %d", seed, got, want)
		}
	}
}

// Two users in one call of twelve minutes are twelve minutes, however they are logged; ten more make the first twenty.
func TestTwoStaffOnOneCall(t *testing.T) {
	d := newFixture(t)
	other := vigiltest.User(t, d.app, authz.MA)
	patient := d.patient()
	call := func(user string, start string, minutes int) logRow {
		return logRow{user, "interactive", "phone", "manual", at(start), minutes * 60}
	}
	d.insert(patient, call(d.nurse.Id, "2026-01-10 09:00", 12), call(other.Id, "2026-01-10 09:00", 12))
	d.run(billing.TimeJob, "2026-01-20 09:00")
	d.want("twelve, twice", d.entries(patient), "")
	d.insert(patient, call(other.Id, "2026-01-12 23:56", 8)) // over midnight: it belongs to the day of its start
	d.run(billing.TimeJob, "2026-01-20 10:00")
	d.want("and eight", d.entries(patient), "99457 2026-01-12 1")

	// of two entries for the same time, the one that does not count cannot be changed into one that does
	half := d.patient()
	d.insert(half, call(d.nurse.Id, "2026-01-11 09:00", 12), call(other.Id, "2026-01-11 09:06", 12))
	sums, err := d.e.TimeSummary(d.app, billing.Span{Start: "2026-01-01", End: "2026-01-31"}, "", half, "")
	if err != nil || len(sums) != 1 || sums[0].Counted != 18 || sums[0].Interactive != 18 {
		t.Errorf("half of a call shared counts %+v, %v", sums, err)
	}
}

// Care management counts only under CMS's rule, in a month with live contact, from the day of the contact; an entry keeps the rule it was created
// under.
func TestTwentyMinuteRule(t *testing.T) {
	cms := func(s *billing.Settings) { s.TimeRule = billing.WithCareManagement }
	care := func(d *fixture, start string, minutes int) logRow {
		return logRow{d.nurse.Id, "care_management", "", "manual", at(start), minutes * 60}
	}
	call := func(d *fixture, start string, minutes int) logRow {
		return logRow{d.nurse.Id, "interactive", "phone", "manual", at(start), minutes * 60}
	}
	for name, test := range map[string]struct {
		change func(*billing.Settings)
		rows   func(*fixture) []logRow
		want   string
	}{
		"the contract's": {func(*billing.Settings) {}, func(d *fixture) []logRow {
			return []logRow{care(d, "2026-01-10 09:00", 30), call(d, "2026-01-11 09:00", 2)}
		}, ""},
		"CMS's": {cms, func(d *fixture) []logRow {
			return []logRow{call(d, "2026-01-10 09:00", 2), care(d, "2026-01-11 09:00", 18)}
		}, "99457 2026-01-11 1"},
		"before the contact": {cms, func(d *fixture) []logRow {
			return []logRow{care(d, "2026-01-10 09:00", 30), call(d, "2026-01-14 09:00", 1)}
		}, "99457 2026-01-14 1"},
		"without contact": {cms, func(d *fixture) []logRow { return []logRow{care(d, "2026-01-10 09:00", 90)} }, ""},
		"contact of another month": {cms, func(d *fixture) []logRow {
			return []logRow{call(d, "2025-12-31 09:00", 5), care(d, "2026-01-10 09:00", 90)}
		}, ""},
		"a call at the same time": {cms, func(d *fixture) []logRow {
			return []logRow{call(d, "2026-01-10 09:00", 10), care(d, "2026-01-10 09:00", 19)}
		}, ""},
		"of later months": {
			func(s *billing.Settings) { s.TimeRule, s.TimeRuleFrom = billing.WithCareManagement, "2026-02-01" },
			func(d *fixture) []logRow {
				return []logRow{call(d, "2026-01-10 09:00", 2), care(d, "2026-01-11 09:00", 18), call(d, "2026-02-10 09:00", 2), care(d, "2026-02-11 09:00", 18)}
			}, "99457 2026-02-11 1",
		},
	} {
		d := newFixture(t, test.change)
		patient := d.patient()
		d.insert(patient, test.rows(d)...)
		d.run(billing.TimeJob, "2026-03-03 09:00")
		d.want(name, d.entries(patient), test.want)
	}

	// after the setting is reverted, existing entries stay valid
	d := newFixture(t, cms)
	patient := d.patient()
	d.insert(patient, call(d, "2026-01-10 09:00", 2), care(d, "2026-01-11 09:00", 18))
	d.run(billing.TimeJob, "2026-01-20 09:00")
	entry := d.entry(patient, billing.FirstTwenty)
	d.e.TimeRule = billing.InteractiveOnly
	d.run(billing.TimeJob, "2026-01-21 09:00")
	if c := d.e.CountedForTest(t, d.app, entry); c.Minutes != 20 || c.Against != nil {
		t.Errorf("counted %+v", c)
	}
	byHand := d.made(patient, billing.FirstTwenty, "2026-01-12", 20, "2026-01-21 09:00")
	if c := d.e.CountedForTest(t, d.app, byHand); c.Minutes != 2 {
		t.Errorf("by hand, under today's rule, counted %+v", c)
	}
}

// From the day on which the contact must be recorded, time without it does not count; messages never count.
func TestLiveContact(t *testing.T) {
	d := newFixture(t, func(s *billing.Settings) { s.LiveContactFrom = "2026-02-01" })
	for _, test := range []struct {
		contact, source, start string
		counts                 bool
	}{
		{"phone", "manual", "2026-02-10 09:00", true},
		{"video", "timer", "2026-02-10 09:00", true},
		{"in_person", "manual", "2026-02-10 09:00", true},
		{"message", "manual", "2026-02-10 09:00", false},
		{"", "manual", "2026-02-10 09:00", false},
		{"", "timer", "2026-02-01 00:00", false},
		{"", "escalation", "2026-02-10 09:00", true},
		{"message", "escalation", "2026-02-10 09:00", false},
		{"", "manual", "2026-01-31 23:59", true},
		{"message", "manual", "2026-01-10 09:00", false},
	} {
		name := fmt.Sprint(test.contact, " of ", test.source, " on ", test.start)
		patient := d.patient()
		d.insert(patient, logRow{vigiltest.User(t, d.app, authz.Nurse).Id, "interactive", test.contact, test.source, at(test.start), 1200})
		d.run(billing.TimeJob, "2026-03-03 09:00")
		if made := d.entries(patient) != ""; made != test.counts {
			t.Errorf("%s made %q", name, d.entries(patient))
		}
		if live := d.e.IsLiveContact(d.time(d.times(patient)[0])); live != test.counts {
			t.Errorf("%s is live: %v", name, live)
		}
		byHand := d.made(patient, billing.FirstTwenty, test.start[:10], 20, "2026-03-03 09:00")
		c := d.e.CountedForTest(t, d.app, byHand)
		want := "[]"
		if !test.counts {
			want = "[minutes_below_minimum not_interactive]"
		}
		d.want(name, fmt.Sprint(c.Against), want)
	}
}

// One user in two calls at once: the minutes belong to the patient of the earlier call, and the review of the other entry reports it.
func TestOneUserInTwoCalls(t *testing.T) {
	d := newFixture(t)
	one, two := d.patient(), d.patient()
	call := func(start string) logRow {
		return logRow{d.nurse.Id, "interactive", "phone", "manual", at(start), 1200}
	}
	d.insert(one, call("2026-01-10 09:00"))
	d.insert(two, call("2026-01-10 09:10"))
	d.run(billing.TimeJob, "2026-01-20 09:00")
	first, second := d.entry(one, billing.FirstTwenty), d.entry(two, billing.FirstTwenty)
	if c := d.e.CountedForTest(t, d.app, second); c.Minutes != 10 || c.OfPatient != 20 {
		t.Errorf("counted %+v", c)
	}
	_, got := d.do(first, d.e.Review(d.by, "", "", false, changesTime))
	d.want("the first", got, "")
	_, got = d.do(second, d.e.Review(d.by, "", "", false, changesTime))
	d.want("the second", got, "invalid_state")
	d.insert(two, call("2026-01-11 09:00"))
	_, got = d.do(second, d.e.Review(d.by, "", "", false, changesTime))
	d.want("with separate time", got, "")
}

// Interpretation is billed once in thirty days, in either order, with minutes that no other code counted.
func TestInterpretationOnceInThirtyDays(t *testing.T) {
	d := newFixture(t)
	provider := d.provider()
	patient := d.patient()
	d.exec("UPDATE patients SET primary_provider = {:u} WHERE id = {:p}", dbx.Params{"u": provider.Id, "p": patient})
	review := func(entry *collections.BillingEntry, override string) string {
		_, got := d.do(entry, d.e.Review(d.by, "", override, false, changesTime))
		return got
	}
	read := func(start string, minutes int) {
		d.insert(patient, logRow{provider.Id, "interpretation", "", "manual", at(start), minutes * 60})
	}
	read("2026-01-20 09:00", 30)
	read("2026-02-18 09:00", 30)
	read("2026-02-19 09:00", 30)
	first := d.made(patient, billing.Interpretation, "2026-01-20", 30, "2026-02-20 09:00")
	early := d.made(patient, billing.Interpretation, "2026-02-18", 30, "2026-02-20 09:01") // on the thirtieth day
	d.want("the first", fmt.Sprint(first.Warnings()), "[]")
	d.want("on the thirtieth day", fmt.Sprint(early.Warnings()), "[possible_duplicate]")
	d.want("on the thirtieth day, reviewed", review(early, ""), "duplicate_entry")
	d.want("the first, reviewed", review(first, ""), "")
	d.want("with a reason", review(early, "The payer asked for it"), "duplicate_entry")
	if _, got := d.do(early, d.e.Void("Wrong day", changesTime)); got != "" {
		t.Fatal(got)
	}
	after := d.made(patient, billing.Interpretation, "2026-02-19", 30, "2026-02-20 09:02")
	d.want("thirty days later", fmt.Sprint(after.Warnings())+review(after, ""), "[]")

	// in the other order, the entry created later is the duplicate
	d.exec("UPDATE billing_entries SET lifecycle_status = 'voided'", nil)
	later := d.made(patient, billing.Interpretation, "2026-02-19", 30, "2026-02-20 10:00")
	before := d.made(patient, billing.Interpretation, "2026-01-25", 30, "2026-02-20 10:01")
	d.want("before one that stands", fmt.Sprint(before.Warnings()), "[possible_duplicate]")
	d.want("the one that stands", review(later, ""), "")

	// the part of the provider's interpretation that overlaps the call was counted there
	busy := d.patient()
	d.exec("UPDATE patients SET primary_provider = {:u} WHERE id = {:p}", dbx.Params{"u": provider.Id, "p": busy})
	d.insert(busy, logRow{provider.Id, "interpretation", "", "manual", at("2026-01-10 09:00"), 2400}, logRow{provider.Id, "interactive", "phone", "manual", at("2026-01-10 09:20"), 1200})
	d.run(billing.TimeJob, "2026-01-20 09:00")
	x := d.made(busy, billing.Interpretation, "2026-01-10", 30, "2026-01-20 09:00")
	if c := d.e.CountedForTest(t, d.app, x); c.Minutes != 20 || c.OfPatient != 40 {
		t.Errorf("interpretation counts %+v", c)
	}
	d.want("shared with the phone", review(x, ""), "invalid_state")
	d.insert(busy, logRow{provider.Id, "interpretation", "", "manual", at("2026-01-11 09:00"), 600})
	d.want("with ten minutes more", review(x, ""), "")
}

// One reader's half hour counts for one patient and one entry, for any second reason.
func TestInterpretationTimeCountsOnce(t *testing.T) {
	d := newFixture(t)
	provider := d.provider()
	of := func() string {
		patient := d.patient()
		d.exec("UPDATE patients SET primary_provider = {:u} WHERE id = {:p}", dbx.Params{"u": provider.Id, "p": patient})
		return patient
	}
	read := func(patient, category, start string, minutes int) {
		contact := ""
		if category == "interactive" {
			contact = "phone"
		}
		d.insert(patient, logRow{provider.Id, category, contact, "manual", at(start), minutes * 60})
	}
	ada, bea, cleo := of(), of(), of()
	read(ada, "interpretation", "2026-01-10 09:00", 30)
	read(bea, "interpretation", "2026-01-10 09:10", 30) // ten minutes of it count for Bea alone
	read(cleo, "interpretation", "2026-01-11 09:00", 30)
	read(bea, "interactive", "2026-01-11 09:15", 20) // while reading Cleo's data
	for patient, minutes := range map[string]int{ada: 30, bea: 10, cleo: 15} {
		x := d.made(patient, billing.Interpretation, "2026-01-11", 30, "2026-01-20 09:00")
		if c := d.e.CountedForTest(t, d.app, x); c.Minutes != minutes || c.OfPatient != 30 {
			t.Errorf("counted %+v, want %d", c, minutes)
		}
		want := "invalid_state"
		if minutes == 30 {
			want = ""
		}
		if _, got := d.do(x, d.e.Review(d.by, "", "", false, changesTime)); got != want {
			t.Errorf("%d minutes reviewed with %q", minutes, got)
		}
	}
	if _, err := d.manual(ada, billing.Interpretation, "2026-01-10", 30, "2026-01-20 09:01"); refused(err) != "duplicate_entry" {
		t.Errorf("a second within thirty days of a reviewed one: %v", err)
	}
}

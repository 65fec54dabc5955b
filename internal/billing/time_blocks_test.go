package billing_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/billing"
)

// Which codes a month's interactive time makes, in the practice's calendar.
func TestMinutesToCodes(t *testing.T) {
	d := newFixture(t)
	for name, test := range map[string]struct {
		times []func(*oracleCase)
		when  string
		want  string
	}{
		"nineteen":                      {[]func(*oracleCase){talked("2026-01-10 09:00", 19)}, "2026-02-01 09:00", ""},
		"twenty":                        {[]func(*oracleCase){talked("2026-01-10 09:00", 20)}, "2026-01-11 09:00", "99457 2026-01-10 1"},
		"on the day of the crossing":    {[]func(*oracleCase){talked("2026-01-10 09:00", 10), talked("2026-01-12 23:59", 10)}, "2026-01-20 09:00", "99457 2026-01-12 1"},
		"thirty-nine":                   {[]func(*oracleCase){talked("2026-01-10 09:00", 39)}, "2026-01-20 09:00", "99457 2026-01-10 1"},
		"forty":                         {[]func(*oracleCase){talked("2026-01-10 09:00", 20), talked("2026-01-15 09:00", 20)}, "2026-01-20 09:00", "99457 2026-01-10 1, 99458 2026-01-15 1"},
		"two hours, three at most":      {[]func(*oracleCase){talked("2026-01-10 09:00", 120)}, "2026-01-20 09:00", "99457 2026-01-10 1, 99458 2026-01-10 3"},
		"across the end of a month":     {[]func(*oracleCase){talked("2026-01-31 23:50", 20), talked("2026-02-01 00:15", 19)}, "2026-02-20 09:00", "99457 2026-01-31 1"},
		"nineteen in each of two":       {[]func(*oracleCase){talked("2026-01-31 22:00", 19), talked("2026-02-01 00:00", 19)}, "2026-03-20 09:00", ""},
		"written down in another order": {[]func(*oracleCase){talked("2026-01-15 09:00", 15), talked("2026-01-10 09:00", 15)}, "2026-01-20 09:00", "99457 2026-01-15 1"},
	} {
		patient := d.patient(test.times...)
		d.run(billing.TimeJob, test.when)
		d.want(name, d.entries(patient), test.want)
	}
	for when, want := range map[string]string{"2026-01-31 23:59": "", "2026-02-01 00:00": "99470 2026-01-10 1"} { // only a month that has ended
		d := newFixture(t, newCodes)
		patient := d.patient(talked("2026-01-10 09:00", 10))
		d.run(billing.TimeJob, when)
		d.want("ten minutes at "+when, d.entries(patient), want)
	}
}

// A missing requirement of time-based codes prevents the entry, with a reason.
func TestTimeEntryRequirements(t *testing.T) {
	d := newFixture(t)
	hour := talked("2026-01-10 09:00", 60)
	unnoted := func(c *oracleCase) { c.times[0].noted = false }
	for name, test := range map[string]struct {
		change  func(*oracleCase)
		skipped string
	}{
		"no consent":        {withoutConsent, "99457 missing_consent, 99458 missing_primary_code"},
		"no diagnosis":      {withoutDiagnosis, "99457 missing_diagnosis, 99458 missing_primary_code"},
		"no note":           {unnoted, "99457 missing_note, 99458 missing_primary_code"},
		"archived meantime": {func(c *oracleCase) { c.archived = at("2026-01-09 12:00") }, "99457 not_active, 99458 not_active"},
	} {
		patient := d.patient(hour, test.change)
		d.want(name, skips(d.run(billing.TimeJob, "2026-01-20 09:00"), patient), test.skipped)
		d.want(name, d.entries(patient), "")
	}
	patient := d.patient(talked("2026-01-10 09:00", 20), func(c *oracleCase) {
		c.times = append(c.times, oracleTime{at("2026-01-12 09:00"), 1200, "interactive", "manual", false})
	})
	d.want("the second twenty undocumented", skips(d.run(billing.TimeJob, "2026-01-20 09:00"), patient), "99458 missing_note")
	d.want("the first", d.entries(patient), "99457 2026-01-10 1")
	// documents added later are sufficient
	late := d.patient(talked("2026-01-10 09:00", 20), withoutConsent)
	d.run(billing.TimeJob, "2026-01-21 09:00")
	d.consents(late, "2026-01-10 08:00", "")
	d.run(billing.TimeJob, "2026-02-21 09:00")
	d.want("with consent", d.entries(late), "99457 2026-01-10 1")
	revoked := d.patient(talked("2026-01-10 09:00", 20), withoutConsent)
	d.consents(revoked, "2025-12-01 08:00", "2026-01-09 08:00")
	d.want("consent revoked", skips(d.run(billing.TimeJob, "2026-02-22 09:00"), revoked), "99457 missing_consent")
}

// More time adds units to entries that wait for review only; billed time is fixed.
func TestMoreTimeAddsUnits(t *testing.T) {
	d := newFixture(t)
	patient := d.patient(talked("2026-01-10 09:00", 45))
	more := func(id int, start string, minutes int) {
		d.exec(`INSERT INTO time_entries (id, patient, user, category, source, started_at, ended_at, duration_seconds, notes)
			VALUES ({:id}, {:p}, {:u}, 'interactive', 'manual', {:at}, {:at}, {:s}, 'sealed')`,
			dbx.Params{"id": fmt.Sprintf("%015d", id), "p": patient, "u": d.nurse.Id, "at": collections.FormatInstant(at(start)), "s": minutes * 60})
	}
	billed := func() (n int) {
		if err := d.app.DB().NewQuery("SELECT COUNT(*) FROM time_entries WHERE billing_entry != ''").Row(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	d.run(billing.TimeJob, "2026-01-20 09:00")
	d.want("forty-five", d.entries(patient), "99457 2026-01-10 1, 99458 2026-01-10 1")
	next := d.entry(patient, billing.NextTwenty)
	more(900001, "2026-01-21 09:00", 14)
	if again := d.run(billing.TimeJob, "2026-01-22 09:00"); len(again.Created)+len(again.Skipped) > 0 {
		t.Errorf("what is no more makes %v and leaves out %v", again.Created, again.Skipped)
	}
	d.want("fifty-nine", d.entries(patient), "99457 2026-01-10 1, 99458 2026-01-10 1")
	if n := billed(); n != 1 {
		t.Errorf("%d times are billed", n)
	}
	more(900002, "2026-01-23 09:00", 1)
	d.run(billing.TimeJob, "2026-01-24 09:00")
	d.want("sixty", d.entries(patient), "99457 2026-01-10 1, 99458 2026-01-23 2")
	if raised := d.entry(patient, billing.NextTwenty); raised.Id != next.Id || raised.AmountCents() != 2*3849 || raised.Minutes() != 40 || billed() != 3 {
		t.Errorf("raised to %d cents, %d minutes, %d times", raised.AmountCents(), raised.Minutes(), billed())
	}
	if _, got := d.do(next, d.e.Review(d.by, "", "", false, at("2026-01-25 09:00"))); got != "" {
		t.Fatal(got)
	}
	d.want("reviewed, without more time", skips(d.run(billing.TimeJob, "2026-01-25 10:00"), patient), "")
	more(900003, "2026-01-26 09:00", 20)
	d.want("after review", skips(d.run(billing.TimeJob, "2026-01-27 09:00"), patient), "99458 reviewed_before_more_time")
	if _, got := d.do(next, d.e.ReturnToReview("More came")); got != "" {
		t.Fatal(got)
	}
	d.run(billing.TimeJob, "2026-01-28 09:00")
	d.want("sent back", d.entries(patient), "99457 2026-01-10 1, 99458 2026-01-26 3")
	// after a void its time is free, and the entry is not created again
	if _, got := d.do(next, d.e.Void("Wrong", at("2026-01-29 09:00"))); got != "" {
		t.Fatal(got)
	}
	if n := billed(); n != 1 { // the first stretch stays with the first twenty minutes
		t.Errorf("after voiding %d times are billed", n)
	}
	d.want("voided", skips(d.run(billing.TimeJob, "2026-01-30 09:00"), patient), "99458 voided_before")
}

// A manual first-twenty entry permits the add-on entries; manual add-on entries stay unchanged.
func TestManualTimeEntries(t *testing.T) {
	d := newFixture(t)
	first, next := d.patient(talked("2026-01-10 09:00", 40)), d.patient(talked("2026-01-10 09:00", 60))
	d.made(first, billing.FirstTwenty, "2026-01-05", 20, "2026-01-06 09:00")
	d.made(next, billing.NextTwenty, "2026-01-05", 20, "2026-01-06 09:00")
	result := d.run(billing.TimeJob, "2026-01-20 09:00")
	d.want("the first by hand", skips(result, first), "")
	d.want("the first by hand", d.entries(first), "99457 2026-01-05 1, 99458 2026-01-10 1")
	d.want("the next by hand", skips(result, next), "99458 manual_entry_exists")
	d.want("the next by hand", d.entries(next), "99457 2026-01-10 1, 99458 2026-01-05 1")

	for name, days := range map[string][2]string{"voided first": {"2026-01-05", "2026-01-06"}, "voided last": {"2026-01-06", "2026-01-05"}} {
		both := d.patient(talked("2026-01-10 09:00", 40)) // an active one counts, beside a voided one
		wrong := d.made(both, billing.FirstTwenty, days[0], 20, "2026-01-07 09:00")
		if _, got := d.do(wrong, d.e.Void("Wrong", changesTime)); got != "" {
			t.Fatal(got)
		}
		d.made(both, billing.FirstTwenty, days[1], 20, "2026-01-07 09:00")
		d.want(name, skips(d.run(billing.TimeJob, "2026-01-20 09:00"), both), "")
		d.want(name, d.entries(both), "99457 2026-01-05 1, 99457 2026-01-06 1, 99458 2026-01-10 1")
	}

	d = newFixture(t, newCodes)
	ten := d.patient(talked("2026-01-10 09:00", 12))
	d.run(billing.TimeJob, "2026-02-03 09:00")
	d.exec(`INSERT INTO time_entries (id, patient, user, category, source, started_at, ended_at, duration_seconds, notes)
		VALUES ('000000000900009', {:p}, {:u}, 'interactive', 'manual', {:at}, {:at}, 600, 'sealed')`,
		dbx.Params{"p": ten, "u": d.nurse.Id, "at": collections.FormatInstant(at("2026-01-20 09:00"))})
	d.want("twenty after ten were billed", skips(d.run(billing.TimeJob, "2026-02-04 09:00"), ten), "")
	d.want("it became", d.entries(ten), "99457 2026-01-20 1")
}

// The result does not depend on the order of the time entries, and each second counts once.
func TestPlanIgnoresOrder(t *testing.T) {
	e := newEngine()
	var list []billing.LoggedTime
	for i := range 12 {
		list = append(list, billing.LoggedTime{ID: fmt.Sprintf("%02d", i), StartedAt: at("2026-01-10 09:00").AddDate(0, 0, i/2), Seconds: 400 + 37*i, HasNote: true})
	}
	want := fmt.Sprint(e.PlanMonth(slices.Clone(list), true))
	for turn := range list {
		turned := append(slices.Clone(list[turn:]), list[:turn]...)
		if turn%2 == 1 {
			slices.Reverse(turned)
		}
		if got := fmt.Sprint(e.PlanMonth(turned, true)); got != want {
			t.Errorf("turned by %d: %s, want %s", turn, got, want)
		}
	}
	// 1199 seconds are nineteen minutes; a stretch that ends at a threshold belongs to the block before it only
	blocks := e.PlanMonth([]billing.LoggedTime{
		{ID: "a", StartedAt: at("2026-01-10 09:00"), Seconds: 1200, HasNote: true}, {ID: "b", StartedAt: at("2026-01-11 09:00"), Seconds: 1200, HasNote: true},
	}, false)
	if len(blocks) != 2 || !slices.Equal(blocks[0].TimeEntryIDs, []string{"a"}) || !slices.Equal(blocks[1].TimeEntryIDs, []string{"b"}) {
		t.Errorf("blocks %+v", blocks)
	}
	if blocks := e.PlanMonth([]billing.LoggedTime{{ID: "a", StartedAt: at("2026-01-10 09:00"), Seconds: 1199}}, false); len(blocks) != 0 {
		t.Errorf("1199 seconds make %+v", blocks)
	}
}

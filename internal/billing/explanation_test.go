package billing_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/billing"
)

var january = billing.Span{Start: "2026-01-01", End: "2026-01-31"}

// explained returns the explanation of a patient's month by code: what is billed, the figures, the reasons, and what is missing.
func (d *fixture) explained(patient string, month billing.Span, when string) map[string]string {
	d.t.Helper()
	list, err := d.e.Explain(d.app, patient, month, at(when))
	if err != nil {
		d.t.Fatal(err)
	}
	lines := map[string]string{}
	for _, x := range list {
		line := ""
		if x.Billed {
			line += "billed "
		}
		if x.Days != nil {
			line += fmt.Sprint(*x.Days, "/", *x.DaysNeeded, " ")
		}
		if x.Minutes != nil {
			line += fmt.Sprint(*x.Minutes, "/", *x.Needed, " ")
		}
		line += strings.Join(append(slices.Clone(x.Reasons), x.Missing...), ", ")
		if (x.EntryID == nil) != (x.Status == nil) || x.Billed && x.EntryID == nil {
			d.t.Errorf("%s: an entry without a state, or a bill without one", x.CPTCode)
		}
		if before := lines[x.CPTCode]; before != "" {
			line = before + " | " + line
		}
		lines[x.CPTCode] = strings.TrimSpace(line)
	}
	return lines
}

// What each code still needs, as text, during the month and after it.
func TestExplain(t *testing.T) {
	d := newFixture(t)
	worn := d.patient(wears("2026-01-01", "", "2026-01-02", 14), taught("2026-01-02"), talked("2026-01-10 09:00", 19), withoutConsent)
	none := d.patient(withoutDiagnosis)
	short := d.patient(wears("2026-01-01", "", "2026-01-02", 15), talked("2026-01-10 09:00", 41))
	gone := d.patient(func(c *oracleCase) { c.archived = at("2026-01-10 12:00") })
	for name, test := range map[string]struct {
		patient, when string
		want          map[string]string
	}{
		"running, without consent": {worn, "2026-01-15 12:00", map[string]string{
			"99453": "a first 99454", "99454": "14/16 period_not_complete, 2 more days, no consent", "99457": "19/20 1 more minute, no consent",
			"99458": "19/40 21 more minutes, no consent", "99091": "0/30 billed_by_hand_only, 30 more minutes, no consent",
		}},
		"nothing at all": {none, "2026-01-15 12:00", map[string]string{
			"99453": "a recorded set-up, a first 99454", "99454": "a first reading of an assigned device", "99457": "0/20 20 more minutes, no diagnosis",
			"99458": "0/40 40 more minutes, no diagnosis", "99091": "0/30 billed_by_hand_only, 30 more minutes, no diagnosis",
		}},
		"a day short": {short, "2026-02-10 12:00", map[string]string{
			"99453": "a recorded set-up, a first 99454", "99454": "15/16 1 more day", "99457": "41/20 not_billed_yet", "99458": "41/40 not_billed_yet", "99091": "0/30 billed_by_hand_only, 30 more minutes",
		}},
		"archived": {gone, "2026-01-15 12:00", map[string]string{
			"99453": "a recorded set-up, a first 99454", "99454": "a first reading of an assigned device", "99457": "0/20 20 more minutes, an active enrolment",
			"99458": "0/40 40 more minutes, an active enrolment", "99091": "0/30 billed_by_hand_only, 30 more minutes, an active enrolment",
		}},
	} {
		got := d.explained(test.patient, january, test.when)
		for code, want := range test.want {
			d.want(name+", "+code, got[code], want)
		}
		if len(got) != len(test.want) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A billed code is explained as billed, with the time to the next unit; so are voided codes and codes billed as another one.
func TestExplainBilledCodes(t *testing.T) {
	d := newFixture(t, newCodes)
	patient := d.patient(wears("2025-12-20", "", "2026-01-01", 30), taught("2026-01-02"), talked("2026-01-10 09:00", 45))
	d.run(billing.AllJobs, "2026-02-02 12:00")
	got := d.explained(patient, january, "2026-02-02 12:00")
	for code, want := range map[string]string{
		"99453": "billed", "99454": "billed 30/16", "99445": "30/2 billed_as_99454", "99457": "billed 45/20", "99458": "billed 45/40 15 more minutes for the next unit",
		"99470": "45/10 billed_as_99457",
	} {
		d.want(code, got[code], want)
	}
	if _, refused := d.do(d.entry(patient, billing.DeviceSupply), d.e.Void("Not worn", changesTime)); refused != "" {
		t.Fatal(refused)
	}
	d.want("voided", d.explained(patient, january, "2026-02-02 12:00")["99454"], "30/16 voided_before")
	most := d.patient(talked("2026-01-11 09:00", 85)) // three units, the maximum
	d.run(billing.TimeJob, "2026-02-02 12:00")
	d.want("the most units", d.explained(most, january, "2026-02-02 12:00")["99458"], "billed 85/40")
	last := d.patient(wears("2026-01-01", "", "2026-01-02", 15))
	for when, want := range map[string]string{"2026-01-31 23:59": "15/16 period_not_complete, 1 more day", "2026-02-01 00:00": "15/16 1 more day"} {
		d.want("a period on "+when, d.explained(last, january, when)["99454"], want)
	}
	// the period that includes today and ends in another month is explained beside the one that ends in this month
	d.want("the running period", d.explained(patient, billing.Span{Start: "2026-02-01", End: "2026-02-28"}, "2026-02-02 12:00")["99454"], "0/16 period_not_complete, 16 more days")
	later := d.patient(wears("2026-01-01", "", "2026-01-11", 20))
	d.want("a period that ends next month", d.explained(later, january, "2026-01-31 12:00")["99454"], "20/16 period_not_complete")
	d.want("seen from next month", d.explained(later, january, "2026-02-01 12:00")["99454"], "a first reading of an assigned device")
}

// Each condition of eligibility alone.
func TestEligibility(t *testing.T) {
	d := newFixture(t)
	held := wears("2026-01-01", "", "2026-01-02", 1)
	var ids []string
	want := map[string]bool{}
	for name, test := range map[string]struct {
		change   []func(*oracleCase)
		eligible bool
		against  string
	}{
		"all there":      {[]func(*oracleCase){held, taught("2026-01-02")}, true, ""},
		"untaught":       {[]func(*oracleCase){held}, true, "setup"},
		"no device":      {nil, true, "device setup"},
		"given back":     {[]func(*oracleCase){wears("2026-01-01", "2026-01-10", "2026-01-02", 1), taught("2026-01-02")}, true, "device"},
		"no consent":     {[]func(*oracleCase){held, taught("2026-01-02"), withoutConsent}, false, "consent"},
		"no diagnosis":   {[]func(*oracleCase){held, taught("2026-01-02"), withoutDiagnosis}, false, "diagnosis"},
		"archived":       {[]func(*oracleCase){held, taught("2026-01-02"), func(c *oracleCase) { c.archived = at("2026-01-14 12:00") }}, false, "enrolment"},
		"archived today": {[]func(*oracleCase){held, taught("2026-01-02"), func(c *oracleCase) { c.archived = at("2026-01-15 08:00") }}, true, ""},
	} {
		patient := d.patient(test.change...)
		eligible, checks, err := d.e.Eligibility(d.app, patient, at("2026-01-15 12:00"))
		if err != nil || eligible != test.eligible || len(checks) != 5 {
			t.Errorf("%s: eligible is %v by %d checks, %v", name, eligible, len(checks), err)
		}
		var against []string
		for _, c := range checks {
			if !c.OK {
				against = append(against, c.Name)
			}
			if c.Detail == "" {
				t.Errorf("%s has no text", c.Name)
			}
		}
		d.want(name, strings.Join(against, " "), test.against)
		ids, want[patient] = append(ids, patient), test.eligible
	}
	if got, err := d.e.EligiblePatients(d.app, ids, at("2026-01-15 12:00")); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("of many %v, want %v, %v", got, want, err)
	}
	expired := d.patient(withoutConsent)
	d.consents(expired, "2025-12-01 12:00", "2026-01-14 12:00")
	again := d.patient(withoutConsent)
	d.consents(again, "2025-12-01 12:00", "2026-01-10 12:00")
	d.consents(again, "2026-01-15 08:00", "")
	if got, err := d.e.EligiblePatients(d.app, []string{expired, again}, at("2026-01-15 12:00")); err != nil || got[expired] || !got[again] {
		t.Errorf("consents revoked and granted again: %v, %v", got, err)
	}
}

// The patients closest to a code come first, and those who cannot reach it are omitted.
func TestNearBillable(t *testing.T) {
	d := newFixture(t)
	names := map[string]string{}
	add := func(name string, change ...func(*oracleCase)) string {
		id := d.patient(change...)
		names[id] = name
		return id
	}
	add("two days short", wears("2026-01-01", "", "2026-01-02", 14))
	add("enough", wears("2026-01-01", "", "2026-01-02", 16))
	add("unreachable", wears("2025-12-01", "", "2025-12-21", 5)) // five days are left until the 19th, and eleven are missing
	add("just possible", wears("2025-12-01", "", "2025-12-22", 10))
	add("given back", wears("2026-01-01", "2026-01-10", "2026-01-02", 8))
	add("archived", wears("2026-01-01", "", "2026-01-02", 14), func(c *oracleCase) { c.archived = at("2026-01-14 12:00") })
	add("a minute short", talked("2026-01-10 09:00", 19))
	add("of the next twenty", talked("2026-01-10 09:00", 30))
	add("at the most", talked("2026-01-10 09:00", 80))
	add("of last month", talked("2025-12-31 23:59", 19))
	lines := func(include func(string) bool, limit int) (list []string) {
		near, err := d.e.NearBillable(d.app, at("2026-01-15 12:00"), include, limit)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range near {
			list = append(list, fmt.Sprintf("%s: %s %s %s, %d days left", names[n.PatientID], n.CPTCode, n.MissingText(), n.PeriodEnd, n.DaysLeft))
			if n.Missing() != n.Needed-n.Have || n.Missing() <= 0 {
				t.Errorf("%+v", n)
			}
		}
		return list
	}
	want := []string{
		"a minute short: 99457 1 more minute 2026-01-31, 17 days left",
		"two days short: 99454 2 more days 2026-01-31, 17 days left",
		"just possible: 99454 6 more days 2026-01-20, 6 days left",
		"of the next twenty: 99458 10 more minutes 2026-01-31, 17 days left",
	}
	if got := lines(nil, 100); !slices.Equal(got, want) {
		t.Errorf("near are %q", got)
	}
	if got := lines(nil, 2); !slices.Equal(got, want[:2]) {
		t.Errorf("the two nearest are %q", got)
	}
	if got := lines(func(id string) bool { return names[id] == "just possible" || names[id] == "of the next twenty" }, 100); !slices.Equal(got, want[2:]) {
		t.Errorf("of two %q", got)
	}
	if got := lines(func(string) bool { return false }, 100); len(got) != 0 {
		t.Errorf("of an unknown patient %q", got)
	}
}

// The evidence of an entry: the billed days with the readings that counted, in the patient's calendar, and the documents.
func TestEvidenceOfDays(t *testing.T) {
	d := newFixture(t)
	patient := d.patient(wears("2026-01-01", "", "2026-01-05", 16), taught("2026-01-02"))
	other := d.patient()
	device := fmt.Sprintf("D-%d-0", d.planted-1)
	reading := func(id, patient, device, when, source, status string) {
		d.exec(`INSERT INTO observations (id, patient, observation_type, measured_at, device_id, source, weight_kg, status, reading_key, created_at)
			VALUES ({:id}, {:p}, 'weight', {:at}, {:d}, {:source}, 80, {:status}, {:id}, {:at})`,
			dbx.Params{"id": id, "p": patient, "at": collections.FormatInstant(at(when)), "d": device, "source": source, "status": status})
	}
	reading("counts", patient, device, "2026-01-05 12:00", "gateway", "final")
	reading("late-evening", patient, device, "2026-01-05 23:59", "gateway", "final")
	reading("next-day", patient, device, "2026-01-06 00:00", "gateway", "final")
	reading("last-day", patient, device, "2026-01-20 23:59", "gateway", "final")
	reading("not-assigned", patient, "D-9", "2026-01-05 12:01", "gateway", "final")
	reading("before", patient, device, "2026-01-01 08:59", "gateway", "final")
	reading("after", patient, device, "2026-01-21 00:00", "gateway", "final")
	reading("error", patient, device, "2026-01-05 12:02", "gateway", "entered_in_error")
	reading("portal", patient, device, "2026-01-05 12:03", "patient_portal", "final")
	reading("other device", other, device, "2026-01-05 12:04", "gateway", "final")
	alert := func(id, patient, when string) {
		d.exec(`INSERT INTO alerts (id, patient, type, level, status, created_at) VALUES ({:id}, {:p}, 'weight', 'high', 'active', {:at})`,
			dbx.Params{"id": id, "p": patient, "at": collections.FormatInstant(at(when))})
	}
	alert("000000000000001", patient, "2026-01-05 00:00")
	alert("000000000000002", patient, "2026-02-03 23:59")
	alert("000000000000003", patient, "2026-02-04 00:00")
	alert("000000000000004", patient, "2026-01-04 23:59")
	alert("000000000000005", other, "2026-01-10 00:00")
	d.run(billing.DeviceJob, "2026-02-10 12:00")
	entry := d.entry(patient, billing.DeviceSupply)
	if _, refused := d.do(entry, d.e.Review(d.by, "", "", false, changesTime)); refused != "" {
		t.Fatal(refused)
	}
	v, err := d.e.GatherEvidence(d.app, entry)
	if err != nil {
		t.Fatal(err)
	}
	days := map[string]string{}
	for _, day := range v.Days {
		for _, r := range day.Readings {
			days[day.Day] += r.ID + " "
		}
	}
	if len(v.Days) != 16 || days["2026-01-05"] != "counts late-evening " || days["2026-01-06"] != "next-day " || days["2026-01-20"] != "last-day " || len(days) != 3 {
		t.Errorf("%d days with %v", len(v.Days), days)
	}
	if len(v.Consents) != 1 || v.Consents[0].Method != "written" || len(v.Time) != 0 {
		t.Errorf("consents %v, time %v", v.Consents, v.Time)
	}
	if len(v.Assignments) != 1 || v.Assignments[0].DeviceID != device || v.Assignments[0].SetupAt != collections.FormatInstant(at("2026-01-02 10:00")) {
		t.Errorf("assignments %+v", v.Assignments)
	}
	if len(v.Alerts) != 2 || v.Alerts[0].ID != "000000000000001" || v.Alerts[1].ID != "000000000000002" {
		t.Errorf("alerts %+v", v.Alerts)
	}
	if len(v.Trail) != 2 || v.Trail[0].Event != "billing.create" || v.Trail[1].Event != "billing.review" || v.HeadID != collections.Number(v.Trail[1].ID) || v.HeadHash == "" {
		t.Errorf("trail of %d up to %d %s", len(v.Trail), v.HeadID, v.HeadHash)
	}
}

// Days follow the patient's time zone, not the practice's.
func TestEvidenceInPatientZone(t *testing.T) {
	d := newFixture(t)
	west, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		t.Fatal(err)
	}
	patient := d.patient(wears("2026-01-01", "", "2026-01-05", 16), func(c *oracleCase) { c.zone = west })
	for id, when := range map[string]string{"eve": "2026-01-06 02:59", "morning": "2026-01-06 03:00", "last": "2026-01-21 02:59", "after": "2026-01-21 03:00", "before": "2026-01-05 02:59"} {
		d.exec(`INSERT INTO observations (id, patient, observation_type, measured_at, device_id, source, weight_kg, status, reading_key, created_at)
			VALUES ({:id}, {:p}, 'weight', {:at}, 'D-1-0', 'gateway', 80, 'final', {:id}, {:at})`, dbx.Params{"id": id, "p": patient, "at": collections.FormatInstant(at(when))})
	}
	d.run(billing.DeviceJob, "2026-02-10 12:00")
	v, err := d.e.GatherEvidence(d.app, d.entry(patient, billing.DeviceSupply))
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, day := range v.Days {
		for _, r := range day.Readings {
			got += day.Day + " " + r.ID + ", "
		}
	}
	d.want("readings", got, "2026-01-05 eve, 2026-01-06 morning, 2026-01-20 last, ")
}

// The time of an entry is what it was billed for; for a manual entry it is the month's time of the code's kind.
func TestEvidenceOfTime(t *testing.T) {
	const now = "2026-01-20 18:00"
	d := newFixture(t)
	patient := d.patient()
	body := func(start, category, notes string) billing.TimeBody {
		b := callFor(patient, start)
		b.Category.Value, b.Notes.Value, b.Seconds.Value = category, notes, 1200
		return b
	}
	first := d.logged(d.nurse, body("2026-01-15 09:00", "interactive", "Talked"), now)
	d.logged(d.nurse, body("2026-01-16 09:00", "interactive", "Again"), now)
	d.logged(d.nurse, body("2026-01-17 09:00", "interpretation", "Read"), now)
	d.run(billing.TimeJob, now)
	gather := func(entry *collections.BillingEntry) (notes string) {
		v, err := d.e.GatherEvidence(d.app, entry)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range v.Time {
			notes += x.Notes.Reveal() + " "
			if x.Author != d.nurse.Email() || x.Seconds != 1200 {
				t.Errorf("%+v", x)
			}
		}
		return notes
	}
	entry := d.entry(patient, billing.FirstTwenty)
	d.want("the first twenty", gather(entry), "Talked ")
	d.want("the next", gather(d.entry(patient, billing.NextTwenty)), "Again ")
	d.exec("UPDATE patients SET primary_provider = {:u} WHERE id = {:p}", dbx.Params{"u": d.provider().Id, "p": patient})
	d.want("interpretation, by hand", gather(d.made(patient, billing.Interpretation, "2026-01-18", 30, now)), "Read ")
	d.want("a device, by hand", gather(d.made(patient, billing.DeviceSupply, "2026-01-18", 0, now)), "")
	d.exec("UPDATE time_entries SET notes = 'v1:test:AAAA:BBBB' WHERE id = {:id}", dbx.Params{"id": first.Id})
	d.want("a note that cannot be read", gather(entry), collections.UnreadableText+" ")
	if _, refused := d.do(entry, d.e.Void("Wrong", changesTime)); refused != "" { // it is evidence of the billed entry, although it is free again
		t.Fatal(refused)
	}
	d.want("voided", gather(entry), collections.UnreadableText+" ")
}

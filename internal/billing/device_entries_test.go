package billing_test

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/billing"
)

func newCodes(s *billing.Settings) { s.Enable2026Codes = true }

// Which code a number of days with data makes, and when.
func TestDaysToCodes(t *testing.T) {
	old, modern := newFixture(t), newFixture(t, newCodes)
	for _, test := range []struct {
		days     int
		when     string
		old, new string
	}{
		{0, "2026-03-01 12:00", "", ""},
		{1, "2026-03-01 12:00", "", ""},
		{2, "2026-03-01 12:00", "", "99445 2026-02-03 1"},
		{15, "2026-03-01 12:00", "", "99445 2026-02-03 1"},
		{16, "2026-03-01 12:00", "99454 2026-02-03 1", "99454 2026-02-03 1"},
		{30, "2026-03-01 12:00", "99454 2026-02-03 1", "99454 2026-02-03 1"},
		{31, "2026-03-01 12:00", "99454 2026-02-03 1", "99454 2026-02-03 1"},
		{16, "2026-02-03 23:59", "", ""}, // the last of the thirty days has not ended
		{16, "2026-02-04 00:00", "99454 2026-02-03 1", "99454 2026-02-03 1"},
		{46, "2026-03-06 12:00", "99454 2026-02-03 1, 99454 2026-03-05 1", "99454 2026-02-03 1, 99454 2026-03-05 1"},
	} {
		for d, want := range map[*fixture]string{old: test.old, modern: test.new} {
			patient := d.patient(wears("2026-01-01", "", "2026-01-05", test.days))
			d.run(billing.DeviceJob, test.when)
			d.want(fmt.Sprintf("%d days at %s", test.days, test.when), d.entries(patient), want)
		}
	}
	patient := modern.patient(wears("2025-11-20", "", "2025-12-01", 10)) // a period of 2025
	modern.run(billing.DeviceJob, "2026-01-05 12:00")
	modern.want("the short supply before its year", modern.entries(patient), "")
}

// After ninety days without a device the periods start again with the next reading; before that they continue.
func TestEpisodes(t *testing.T) {
	for again, want := range map[string]string{
		"2026-04-30": "99454 2026-02-03 1",                     // 89 days: the sixteen days are in two periods
		"2026-05-01": "99454 2026-02-03 1, 99454 2026-06-01 1", // 90 days
	} {
		d := newFixture(t)
		patient := d.patient(wears("2026-01-01", "2026-01-31", "2026-01-05", 16), wears(again, "", "2026-05-03", 16))
		d.run(billing.DeviceJob, "2026-07-15 12:00")
		d.want("again on "+again, d.entries(patient), want)
		d.run(billing.SmartJob, "2026-07-16 12:00")
		d.want("again on "+again+", a day later", d.entries(patient), want)
	}
	d := newFixture(t)
	patient := d.patient( // an episode that the next one ends early has no further periods, and one without a reading has none
		wears("2025-11-10", "2025-11-20", "2025-11-10", 0), wears("2026-03-01", "2026-03-31", "2026-03-02", 20))
	d.run(billing.DeviceJob, "2026-07-15 12:00")
	d.want("an episode without readings", d.entries(patient), "99454 2026-03-31 1")
}

// Once a period is billed, a late reading with an earlier date does not move the periods.
func TestBilledPeriodsStay(t *testing.T) {
	d := newFixture(t)
	patient := d.patient(wears("2025-12-01", "", "2026-01-05", 60))
	d.run(billing.DeviceJob, "2026-02-10 12:00")
	d.exec(`INSERT INTO reading_days (patient, day, observation_type, first_observation, readings, device_readings) VALUES ({:p}, '2025-12-20', 'weight', 'x', 1, 1)`,
		dbx.Params{"p": patient})
	d.run(billing.DeviceJob, "2026-03-10 12:00")
	d.want("after the late reading", d.entries(patient), "99454 2026-02-03 1, 99454 2026-03-05 1")
}

// The set-up is billed once, with or after the first supply, for the day of the training.
func TestSetUp(t *testing.T) {
	d := newFixture(t)
	early := d.patient(wears("2026-01-01", "", "2026-01-05", 15), taught("2026-01-02"))
	patient := d.patient(wears("2026-01-01", "", "2026-01-05", 46), taught("2026-01-02"))
	untaught := d.patient(wears("2026-01-01", "", "2026-01-05", 16))
	d.run(billing.DeviceJob, "2026-03-15 12:00")
	d.run(billing.DeviceJob, "2026-03-16 12:00")
	d.want("without a supply", d.entries(early), "")
	d.want("with two", d.entries(patient), "99453 2026-01-02 1, 99454 2026-02-03 1, 99454 2026-03-05 1")
	d.want("untaught", d.entries(untaught), "99454 2026-02-03 1")
	d.exec("UPDATE devices SET setup_completed_at = {:at} WHERE patient = {:p}", dbx.Params{"p": untaught, "at": collections.FormatInstant(at("2026-02-20 22:00"))})
	d.run(billing.DeviceJob, "2026-03-17 12:00")
	d.want("taught later", d.entries(untaught), "99453 2026-02-20 1, 99454 2026-02-03 1")
	setup := d.entry(untaught, billing.Setup)
	if setup.Source() != billing.SourceSetup || setup.PeriodStart() != "2026-02-20" || setup.AmountCents() != 1973 {
		t.Errorf("%s %s %d", setup.Source(), setup.PeriodStart(), setup.AmountCents())
	}
}

// A missing requirement is a warning in a nightly run, and prevents the entry in a manual run; former patients are not billed.
func TestDeviceEntryRequirements(t *testing.T) {
	d := newFixture(t)
	worn := wears("2026-01-01", "", "2026-01-05", 16)
	archivedAt := func(day string) func(*oracleCase) { return func(c *oracleCase) { c.archived = at(day + " 12:00") } }
	late := func(day string) func(*oracleCase) { return func(c *oracleCase) { c.consent = at(day + " 12:00") } }
	for name, test := range map[string]struct {
		change   func(*oracleCase)
		warnings string // of the entry of a lenient run; "none" for no entry
		skipped  string // by a strict run
	}{
		"all there":                       {func(*oracleCase) {}, "[]", ""},
		"no consent":                      {withoutConsent, "[missing_consent]", "99454 missing_consent"},
		"no diagnosis":                    {withoutDiagnosis, "[missing_diagnosis]", "99454 missing_diagnosis"},
		"neither":                         {func(c *oracleCase) { withoutConsent(c); withoutDiagnosis(c) }, "[missing_consent missing_diagnosis]", "99454 missing_consent"},
		"consent after the first five":    {late("2026-01-10"), "none", "99454 missing_consent"},
		"consent on the last day":         {late("2026-02-03"), "none", "99454 missing_consent"},
		"consent a day later":             {late("2026-02-04"), "[missing_consent]", "99454 missing_consent"},
		"archived on the last day":        {archivedAt("2026-02-03"), "[]", ""},
		"archived before the period ends": {archivedAt("2026-02-02"), "none", ""},
	} {
		patient := d.patient(worn, test.change)
		d.want(name+", strict", skips(d.run(billing.SmartJob, "2026-02-10 12:00"), patient), test.skipped)
		if strict := d.entries(patient); (strict == "") != (test.skipped != "" || test.warnings == "none") {
			t.Errorf("%s: a strict run made %q", name, strict)
		}
		d.run(billing.DeviceJob, "2026-02-11 12:00")
		got := "none"
		if list := d.list(patient); len(list) > 0 {
			got = fmt.Sprint(list[0].Warnings())
		}
		d.want(name, got, test.warnings)
	}
	d = newFixture(t, func(s *billing.Settings) { s.RequireConsent = false })
	patient := d.patient(worn, withoutConsent)
	d.want("where consent is not asked for", skips(d.run(billing.SmartJob, "2026-02-10 12:00"), patient)+d.entries(patient), "99454 2026-02-03 1")
}

// The engine does not create an entry again that a user voided or created, and creates one of two codes for a period.
func TestManualEntriesPrecedeEngine(t *testing.T) {
	d := newFixture(t)
	voided, byHand := d.patient(wears("2026-01-01", "", "2026-01-05", 16)), d.patient(wears("2026-01-01", "", "2026-01-05", 16))
	d.run(billing.DeviceJob, "2026-02-10 12:00")
	_, got := d.do(d.entry(voided, billing.DeviceSupply), d.e.Void("Not worn", at("2026-02-11 12:00")))
	d.want("voiding", got, "")
	d.exec("DELETE FROM billing_entries WHERE patient = {:p}", dbx.Params{"p": byHand})
	d.made(byHand, billing.DeviceSupply, "2026-02-01", 0, "2026-02-11 12:00")
	result := d.run(billing.DeviceJob, "2026-02-12 12:00")
	d.want("voided", skips(result, voided), "99454 voided_before")
	d.want("by hand", skips(result, byHand), "99454 manual_entry_exists")
	if len(result.Created) > 0 {
		t.Errorf("made %v", result.Created)
	}

	d = newFixture(t, newCodes)
	patient := d.patient(wears("2026-01-01", "", "2026-01-05", 15))
	d.run(billing.DeviceJob, "2026-02-10 12:00")
	d.exec(`INSERT INTO reading_days (patient, day, observation_type, first_observation, readings, device_readings) VALUES ({:p}, '2026-01-25', 'weight', 'x', 1, 1)`,
		dbx.Params{"p": patient})
	d.want("a sixteenth day, late", skips(d.run(billing.DeviceJob, "2026-02-11 12:00"), patient), "")
	d.want("the entry", d.entries(patient), "99454 2026-02-03 1")
	if x := d.list(patient)[0]; *x.TransmissionDays() != 16 || x.AmountCents() != 4302 || x.ChargeCents() != 4302 {
		t.Errorf("it has %v days and %d cents", *x.TransmissionDays(), x.AmountCents())
	}
}

// A run covers forty-five days before the last successful run, so that a run after a downtime creates the missing entries.
func TestRunsCatchUp(t *testing.T) {
	d := newFixture(t)
	patient := d.patient(wears("2026-01-01", "", "2026-01-05", 90))
	d.run(billing.DeviceJob, "2026-01-10 12:00")
	d.want("months later", fmt.Sprint(len(d.run(billing.DeviceJob, "2026-09-01 12:00").Created)), "3")
	d.exec("DELETE FROM billing_entries WHERE patient = {:p}", dbx.Params{"p": patient})
	if again := d.run(billing.DeviceJob, "2026-09-02 12:00"); len(again.Created) != 0 {
		t.Errorf("long ago was looked at again: %v", again.Created)
	}
	// of the last weeks, late readings are billed
	d.exec(`INSERT INTO reading_days (patient, day, observation_type, first_observation, readings, device_readings)
		WITH RECURSIVE d(day) AS (SELECT '2026-07-05' UNION ALL SELECT date(day, '+1 day') FROM d WHERE day < '2026-07-25')
		SELECT {:p}, day, 'weight', 'x', 1, 1 FROM d`, dbx.Params{"p": patient})
	d.run(billing.DeviceJob, "2026-09-10 12:00")
	d.want("late data", d.entries(patient), "99454 2026-08-02 1")
	result := billing.Result{Created: make([]billing.CreatedEntry, 3), Skipped: make([]billing.SkippedEntry, 2)}
	if counts := result.Counts(); counts["created"] != 3 || counts["skipped"] != 2 || len(counts) != 2 {
		t.Errorf("counts %v", counts)
	}
}

// A late result of a period that ended and was checked long ago is still billed; its pending 99445 becomes a 99454.
func TestLateReadingsAreBilled(t *testing.T) {
	d := newFixture(t, newCodes)
	patient := d.patient(wears("2026-01-01", "", "2026-01-05", 15))
	other := d.patient(wears("2026-01-01", "", "2026-01-05", 1))
	d.run(billing.DeviceJob, "2026-06-01 12:00")
	d.want("fifteen days", d.entries(patient), "99445 2026-02-03 1")
	d.want("one day", d.entries(other), "")
	stored := func(patient, key, day, when, status string) {
		d.exec(`INSERT INTO reading_days (patient, day, observation_type, first_observation, readings, device_readings) VALUES ({:p}, {:day}, 'weight', 'x', 1, 1)`,
			dbx.Params{"p": patient, "day": day})
		d.exec(`INSERT INTO observations (id, patient, observation_type, measured_at, device_id, source, weight_kg, status, reading_key, created_at)
			VALUES ({:key}, {:p}, 'weight', {:measured}, 'D', 'gateway', 80, {:status}, {:key}, {:at})`,
			dbx.Params{"key": key, "p": patient, "measured": collections.FormatInstant(at(day + " 12:00")), "status": status, "at": collections.FormatInstant(at(when))})
	}
	stored(patient, "late", "2026-01-28", "2026-06-01 15:00", "final")
	stored(other, "withdrawn", "2026-01-29", "2026-06-01 15:00", "entered-in-error") // recorded on its day too, if not planted
	d.run(billing.DeviceJob, "2026-06-02 12:00")
	d.want("the sixteenth, months late", d.entries(patient), "99454 2026-02-03 1")
	d.want("withdrawn", d.entries(other), "")
	stored(other, "second", "2026-01-30", "2026-06-02 11:00", "final") // before the last run began: that run covered it
	d.run(billing.SmartJob, "2026-06-03 12:00")
	d.want("known to the last run", d.entries(other), "")
	stored(other, "third", "2026-01-31", "2026-06-03 12:00", "final")
	d.run(billing.SmartJob, "2026-06-03 16:00")
	d.want("by the other run", d.entries(other), "99445 2026-02-03 1")
}

// An entry is charged at its payer's latest rate in force on the service date, else at the code's rate.
func TestRates(t *testing.T) {
	d := newFixture(t)
	for i, rate := range []string{"5100 2026-02-04", "5000 2026-02-03", "9900 2026-12-01"} {
		var cents int
		var day string
		if _, err := fmt.Sscan(rate, &cents, &day); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			d.exec("INSERT INTO payers (id, name, payer_code, is_active) VALUES ('000000000000001', 'Acme', 'AC', TRUE)", nil)
		}
		d.exec("INSERT INTO payer_rates (payer, cpt_code, rate_cents, effective_date) VALUES ('000000000000001', '99454', {:c}, {:d})", dbx.Params{"c": cents, "d": day})
	}
	insured := func(c *oracleCase) { c.payer = true }
	acme, self := d.patient(wears("2026-01-01", "", "2026-01-05", 60), insured), d.patient(wears("2026-01-01", "", "2026-01-05", 60))
	day := d.patient(wears("2026-01-01", "", "2026-01-04", 60), insured) // its first period ends a day before the first rate
	d.run(billing.DeviceJob, "2026-03-10 12:00")
	cents := func(patient string) (list []int64) {
		for _, x := range d.list(patient) {
			list = append(list, x.AmountCents())
		}
		return list
	}
	if got := cents(acme); !slices.Equal(got, []int64{5000, 5100}) {
		t.Errorf("insured %v", got)
	}
	if got := cents(day); !slices.Equal(got, []int64{4302, 5100}) {
		t.Errorf("insured, a day earlier %v", got)
	}
	if got := cents(self); !slices.Equal(got, []int64{4302, 4302}) {
		t.Errorf("self-pay %v", got)
	}
	if x := d.list(acme)[0]; x.GetString("payer") != "000000000000001" || x.GetString("payer_name") != "Acme" || d.list(self)[0].GetString("payer_name") != "Self-pay" {
		t.Errorf("paid by %s", x.GetString("payer_name"))
	}
}

// The month's end reads the days of all set-ups together: as many queries for six patients as for two.
func TestSetUpsAreReadTogether(t *testing.T) {
	queries := func(patients int) (count int) {
		d := newFixture(t)
		for range patients {
			d.patient(wears("2026-01-01", "", "2026-01-05", 20), taught("2026-01-02"))
		}
		d.run(billing.DeviceJob, "2026-02-10 12:00")
		db := d.app.ConcurrentDB().(*dbx.DB)
		db.QueryLogFunc = func(context.Context, time.Duration, string, *sql.Rows, error) { count++ }
		defer func() { db.QueryLogFunc = nil }()
		list, _, err := d.e.CheckMonthEnd(d.app, billing.Span{Start: "2026-01-01", End: "2026-01-31"}, nil, d.by, at("2026-02-11 12:00"))
		if err != nil || len(list) != patients {
			t.Fatalf("%d entries of %d patients (%v)", len(list), patients, err)
		}
		return count
	}
	if two, six := queries(2), queries(6); two != six {
		t.Errorf("%d queries for two patients, %d for six", two, six)
	}
}

package billing_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// stillEarned computes from the rules alone whether a device entry may be reviewed: enough days with data under consent, and the documents exist on
// the period's last day.
func stillEarned(c oracleCase, start, end string, least int) bool {
	on := func(day string) bool {
		granted := !c.consent.IsZero() && c.consent.In(c.practice).Format(oracleDay) <= day
		return granted && (c.revoked.IsZero() || day <= c.revoked.In(c.practice).Format(oracleDay))
	}
	days := map[string]bool{}
	for _, r := range c.readings {
		day := r.at.In(c.zone).Format(oracleDay)
		for _, h := range c.held {
			if r.counts() && day >= start && day <= end && on(day) && !r.at.Before(h[0]) && (h[1].IsZero() || r.at.Before(h[1])) {
				days[day] = true
			}
		}
	}
	active := c.archived.IsZero() || end <= c.archived.In(c.practice).Format(oracleDay)
	return len(days) >= least && on(end) && c.diagnosis && active
}

// After readings of random practices are retracted, review refuses exactly the entries that are no longer supported, and exactly those submitted
// before are marked.
func TestRecountOracle(t *testing.T) {
	p := plantPractice(t, 9000, vigiltest.Rounds(60, 20))
	p.run(t, billing.AllJobs, p.end)
	dice := rand.New(rand.NewPCG(3, 4))
	if _, err := p.app.DB().NewQuery("UPDATE patients SET primary_provider = (SELECT id FROM users LIMIT 1)").Execute(); err != nil {
		t.Fatal(err)
	}
	type supply struct {
		ID      string `db:"id"`
		Patient string `db:"patient"`
		Code    string `db:"cpt_code"`
		Start   string `db:"billing_period_start"`
		End     string `db:"billing_period_end"`
	}
	var entries []supply
	err := p.app.DB().Select("id", "patient", "cpt_code", "billing_period_start", "billing_period_end").From("billing_entries").
		Where(dbx.HashExp{"source": billing.SourceDevice}).OrderBy("id").All(&entries)
	if err != nil {
		t.Fatal(err)
	}
	by := audit.User(9, "biller@vigil.test", "data_monitor", audit.Origin{})
	earned := func(x supply) bool { return stillEarned(p.cases[x.Patient], x.Start, x.End, earns(x.Code)) }
	sent := map[string]bool{} // every second one is submitted while it is supported
	for i, x := range entries {
		_, err := p.engine.ApplyTransition(p.app, x.ID, p.engine.Review(by, "", "", false, p.end), by, p.end)
		if (err == nil) != earned(x) {
			t.Fatalf("review of %+v: %v", x, err)
		}
		if err == nil && i%2 == 0 {
			if _, err := p.engine.ApplyTransition(p.app, x.ID, p.engine.Submit("", p.end, p.end), by, p.end); err != nil {
				t.Fatal(err)
			}
			sent[x.ID] = true
		} else if err == nil {
			if _, err := p.engine.ApplyTransition(p.app, x.ID, p.engine.ReturnToReview("Wait"), by, p.end); err != nil {
				t.Fatal(err)
			}
		}
	}
	p.withdraw(t, dice)
	if _, _, err := p.engine.RecheckAll(t.Context(), p.app, p.end); err != nil {
		t.Fatal(err)
	}
	refused, marked := 0, 0
	for _, x := range entries {
		if sent[x.ID] {
			var changed bool
			if err := p.app.DB().NewQuery("SELECT evidence_changed_at != '' FROM billing_entries WHERE id = {:id}").Bind(dbx.Params{"id": x.ID}).Row(&changed); err != nil {
				t.Fatal(err)
			}
			if changed == earned(x) {
				t.Errorf("sent %+v is marked %t", x, changed)
			}
			if changed {
				marked++
			}
			continue
		}
		_, err := p.engine.ApplyTransition(p.app, x.ID, p.engine.Review(by, "", "", false, p.end), by, p.end)
		if (err == nil) != earned(x) {
			t.Errorf("review of %+v after days were withdrawn: %v", x, err)
		}
		if err != nil {
			refused++
		}
	}
	if refused == 0 || marked == 0 || len(sent) == marked {
		t.Errorf("%d were refused, %d of %d marked", refused, marked, len(sent))
	}
}

// withdraw retracts every fourth reading of the cases, and recomputes the days with data.
func (p oraclePractice) withdraw(t *testing.T, dice *rand.Rand) {
	t.Helper()
	for patient, c := range p.cases {
		var left []oracleReading
		for _, r := range c.readings {
			if dice.IntN(4) > 0 {
				left = append(left, r)
			}
		}
		c.readings = left
		p.cases[patient] = c
		if _, err := p.app.DB().NewQuery("DELETE FROM reading_days WHERE patient = {:p}").Bind(dbx.Params{"p": patient}).Execute(); err != nil {
			t.Fatal(err)
		}
		plantDays(t, p.app, patient, c)
	}
}

// A reviewed entry stays as reviewed; after a void, the code that the facts support is created instead.
func TestLateSixteenthDay(t *testing.T) {
	d := newFixture(t, newCodes)
	patient := d.patient(wears("2026-01-01", "", "2026-01-05", 15))
	d.run(billing.DeviceJob, "2026-02-10 12:00")
	short := d.entry(patient, billing.ShortSupply)
	if _, got := d.do(short, d.e.Review(d.by, "", "", false, changesTime)); got != "" {
		t.Fatal(got)
	}
	d.exec(`INSERT INTO reading_days (patient, day, observation_type, first_observation, readings, device_readings) VALUES ({:p}, '2026-01-25', 'weight', 'x', 1, 1)`,
		dbx.Params{"p": patient})
	d.want("reviewed", skips(d.run(billing.DeviceJob, "2026-02-11 12:00"), patient), "99454 billed_as_99445")
	if _, got := d.do(short, d.e.Void("Sixteen days", changesTime)); got != "" {
		t.Fatal(got)
	}
	d.run(billing.DeviceJob, "2026-02-12 12:00")
	d.want("voided", d.entries(patient), "99445 2026-02-03 1, 99454 2026-02-03 1")

	grown := d.patient(talked("2026-01-10 09:00", 12))
	d.run(billing.TimeJob, "2026-02-03 09:00")
	ten := d.entry(grown, billing.FirstTen)
	d.exec("UPDATE time_entries SET duration_seconds = 1200 WHERE patient = {:p}", dbx.Params{"p": grown})
	reviewed, got := d.do(ten, d.e.Review(d.by, "", "", false, changesTime))
	if got != "" || reviewed.CPTCode() != billing.FirstTwenty || reviewed.Minutes() != 20 || reviewed.AmountCents() != 4787 {
		t.Errorf("ten minutes that became twenty are reviewed as %s, %d minutes, %d cents: %s", reviewed.CPTCode(), reviewed.Minutes(), reviewed.AmountCents(), got)
	}
}

// Days after the service date were not furnished by then, and what is beyond the code's maximum is not below its minimum.
func TestDaysUpToServiceDate(t *testing.T) {
	d := newFixture(t)
	patient := d.patient(wears("2026-01-01", "", "2026-01-05", 20))
	d.exec(`INSERT INTO reading_days (patient, day, observation_type, first_observation, readings, device_readings) VALUES
		({:p}, '2026-02-04', 'weight', 'x', 1, 1), ({:p}, '2026-02-06', 'weight', 'y', 1, 1)`, dbx.Params{"p": patient})
	for _, c := range []struct{ code, service, want string }{
		{"99445", "2026-01-05", "[days_above_maximum]"}, // one day by then, twenty in the period
		{"99445", "2026-02-04", "[days_below_minimum]"},
		{"99454", "2026-01-19", "[days_below_minimum]"},
		{"99454", "2026-01-20", "[]"},
	} {
		entry := d.made(patient, c.code, c.service, 0, "2026-02-10 12:00")
		_, err := d.e.ApplyTransition(d.app, entry.Id, d.e.Review(d.by, "", "", false, at("2026-02-10 12:00")), d.by, at("2026-02-10 12:00"))
		got := "[]"
		if f, ok := errors.AsType[*fault.Error](err); ok {
			got = fmt.Sprint(f.Extra["warnings"])
		}
		d.want(c.code+" of "+c.service, got, c.want)
		d.exec("UPDATE billing_entries SET lifecycle_status = 'voided' WHERE id = '"+entry.Id+"'", nil)
	}
}

package alerts_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// populate stores patients, each with so many readings of 150/80 in the days before now.
func populate(t testing.TB, app core.App, patients, readings int) {
	t.Helper()
	for _, sql := range []string{
		`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {:patients})
			INSERT INTO patients (id, mrn, active, deleted_at) SELECT printf('00000000-0000-7000-8000-%012d', i), printf('M-%d', i), TRUE, '' FROM n`,
		`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {:readings})
			INSERT INTO observations (id, patient, observation_type, systolic, diastolic, status, measured_at)
			SELECT p.id || '-' || i, p.id, 'blood_pressure', 150, 80, 'final', strftime('%Y-%m-%dT%H:%M:%S.000000Z', {:now}, printf('-%d hours', i)) FROM patients p, n`,
	} {
		params := dbx.Params{"patients": patients, "readings": readings, "now": now.Format(time.DateTime)}
		if _, err := app.DB().NewQuery(sql).Bind(params).Execute(); err != nil {
			t.Fatal(err)
		}
	}
}

func propose(t testing.TB, text string) alerts.Proposal {
	t.Helper()
	var body alerts.ThresholdChangeBody
	if err := json.Unmarshal([]byte(text), &body); err != nil {
		t.Fatal(err)
	}
	checks := validate.NewChecks()
	proposal := body.ReadProposal(checks)
	if err := checks.Err(); err != nil {
		t.Fatal(err)
	}
	return proposal
}

// Of many patients every nth is evaluated, and the result states n.
func TestSimulateSamples(t *testing.T) {
	app := vigiltest.NewApp(t)
	populate(t, app, 10_001, 1)
	outcome, err := alerts.Simulate(t.Context(), app, propose(t, `{}`), time.UTC, now)
	if err != nil || outcome.PatientsTotal != 10_001 || outcome.SampleEvery != 2 || outcome.Patients != 5001 || outcome.Readings != 5001 ||
		outcome.Simulated != (alerts.Tally{Warning: 5001}) || !outcome.Complete {
		t.Errorf("%d of %d patients, one in %d, %d readings, %+v (%v)", outcome.Patients, outcome.PatientsTotal, outcome.SampleEvery, outcome.Readings, outcome.Simulated, err)
	}
	if _, err := app.DB().Insert("daily_counts", dbx.Params{
		"day": now.Format(time.DateOnly), "observation_type": "weight", "status": collections.StatusFinal, "readings": 900_001,
	}).Execute(); err != nil {
		t.Fatal(err)
	}
	if outcome, err = alerts.Simulate(t.Context(), app, propose(t, `{}`), time.UTC, now); err != nil || outcome.SampleEvery != 4 || outcome.Patients != 2501 {
		t.Errorf("of many readings one patient in %d (%v)", outcome.SampleEvery, err)
	}
	one := propose(t, `{"patient_id":"00000000-0000-7000-8000-000000000002","blood_pressure":{"systolic_high":160}}`)
	if outcome, err = alerts.Simulate(t.Context(), app, one, time.UTC, now); err != nil || outcome.Patients != 1 || outcome.Simulated != (alerts.Tally{}) {
		t.Errorf("of one patient: %d, %+v (%v)", outcome.Patients, outcome.Simulated, err)
	}
	late, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	if outcome, err = alerts.Simulate(late, app, propose(t, `{}`), time.UTC, now); err != nil || outcome.Complete || outcome.Patients != 0 {
		t.Errorf("without time: complete %t after %d patients (%v)", outcome.Complete, outcome.Patients, err)
	}
}

func BenchmarkSimulate(b *testing.B) {
	app := vigiltest.NewApp(b)
	populate(b, app, 2000, 90)
	proposal := propose(b, `{"blood_pressure":{"systolic_high":160}}`)
	for b.Loop() {
		outcome, err := alerts.Simulate(b.Context(), app, proposal, time.UTC, now)
		if err != nil || outcome.Readings != 180_000 {
			b.Fatal(outcome.Readings, err)
		}
	}
}

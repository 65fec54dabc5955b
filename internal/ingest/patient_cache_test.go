package ingest_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// After any change by others, the writer's cache equals the database.
func TestWriterCacheMatchesDatabase(t *testing.T) {
	withOrder := rules
	withOrder.LateAfter, withOrder.IrregularHeartbeats = 24*time.Hour, 3
	app, engine := newApp(t, withOrder)
	w := startWriter(t, app, engine)
	var people []string
	for range 4 {
		people = append(people, vigiltest.Patient(t, app, nil))
	}
	nurse := audit.Actor{Type: audit.ByUser, ID: "1", Email: "nurse@vigil.test", Role: "nurse"}
	random := rand.New(rand.NewPCG(7, 7))
	inTransaction := func(work func(tx core.App) error) error { return app.RunInTransaction(work) }
	var stored []ingest.Observation
	others := []func(patient string) error{
		func(patient string) error { return acknowledgeOne(app, patient, nurse) },
		func(patient string) error { return triage.Review(app, patient, "", nurse, now) },
		func(patient string) error {
			return inTransaction(func(tx core.App) error {
				_, err := alerts.StartSnooze(tx, patient, alerts.SnoozeDraft{
					Snooze: alerts.Snooze{Type: "blood_pressure", EndsAt: now.Add(time.Hour)}, Reason: "at the dentist",
				}, nurse, now)
				return err
			})
		},
		func(string) error {
			o := stored[random.IntN(len(stored))]
			_, err := engine.Retract(app, o.ID, "typed wrongly", nurse, now)
			return err
		},
		func(string) error { // a sign-in changes no patient
			return audit.Append(app, audit.Entry{Event: audit.Login, Actor: nurse, ResourceType: "User", ResourceID: "1"}, now)
		},
	}
	remembered, readings := 0, vigiltest.Rounds(300, 100)
	for i := range readings {
		patient := people[random.IntN(len(people))]
		when := now.Add(time.Duration(i-300) * time.Minute)
		if random.IntN(4) == 0 { // out of order, and partly late
			when = now.Add(-time.Duration(random.IntN(40*60)) * time.Minute)
		}
		s := gatewaySubmission(patient, anyReading(random, when))
		s.Origin = vitals.Origin(vitals.Origins[random.IntN(len(vitals.Origins))])
		outcome, err := w.Submit(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		stored = append(stored, outcome.Observation)
		if random.IntN(3) == 0 {
			if err := others[random.IntN(len(others))](people[random.IntN(len(people))]); err != nil {
				t.Fatal(err)
			}
		}
		snapshots, differences, err := w.VerifyCache(app, now)
		if err != nil || differences != "" {
			t.Fatalf("after %d readings: %v\n%s", i+1, err, differences)
		}
		remembered += snapshots
	}
	if remembered < readings {
		t.Errorf("remembered %d pictures in all: what is the memory for?", remembered)
	}
}

func anyReading(random *rand.Rand, when time.Time) vitals.Reading {
	switch random.IntN(4) {
	case 0:
		return at(weight(80+float64(random.IntN(6))), when)
	case 1:
		return at(withPulse(bloodPressure(141+float64(random.IntN(20)), 85), 70), when)
	case 2:
		return at(irregular(bloodPressure(150+float64(random.IntN(29)), 85)), when)
	default:
		return at(withPulse(bloodPressure(110+float64(random.IntN(20)), 75), 60+float64(random.IntN(60))), when)
	}
}

// acknowledgeOne acknowledges an open alert of the patient, if any.
func acknowledgeOne(app core.App, patient string, by audit.Actor) error {
	alert, err := app.FindFirstRecordByFilter(collections.Alerts, "patient = {:patient} && acknowledged = false", map[string]any{"patient": patient})
	if err != nil {
		return nil //nolint:nilerr // none is open
	}
	_, err = triage.ActOnAlert(app, collections.Number(alert.Id), alerts.Action{Move: alerts.Acknowledge}, by, now)
	return err
}

package ingest_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// While severe pressures are held and snoozes begin, break through and end, the writer's cache equals the database. At the end no hold is
// left, and every remaining critical alert has an escalation.
func TestWriterCacheMatchesHolds(t *testing.T) {
	pending := rules
	pending.ConfirmReadings = 10 * time.Minute
	app, engine := newApp(t, pending)
	moment := now
	w := ingest.NewWriter(engine, func() time.Time { return moment }, quiet, func([]ingest.Outcome) {})
	ctx, cancel := context.WithCancel(context.Background())
	var run sync.WaitGroup
	run.Go(func() { w.Run(ctx, app) })
	t.Cleanup(func() { cancel(); run.Wait() })
	var people []string
	for range 4 {
		people = append(people, vigiltest.Patient(t, app, nil))
	}
	nurse := audit.Actor{Type: audit.ByUser, ID: "1", Email: "nurse@vigil.test", Role: "nurse"}
	random := rand.New(rand.NewPCG(18, 9))
	others := []func(patient string) error{
		func(patient string) error { return acknowledgeOne(app, patient, nurse) },
		func(patient string) error {
			length := time.Duration(1+random.IntN(90)) * time.Minute
			_, err := triage.StartSnooze(app, patient, alerts.SnoozeDraft{
				Snooze: alerts.Snooze{Type: "blood_pressure", IncludeCritical: random.IntN(2) == 0, EndsAt: moment.Add(length)}, Reason: "known",
			}, nurse, moment)
			if vigiltest.Code(err) == "validation_error" {
				return nil // too many in a row
			}
			return err
		},
		func(string) error {
			_, _, err := triage.EndDueSnoozes(t.Context(), app, moment)
			return err
		},
		func(string) error {
			_, err := engine.ResolveHolds(t.Context(), app, moment)
			return err
		},
	}
	for i := range vigiltest.Rounds(300, 100) {
		moment = moment.Add(time.Duration(random.IntN(6)) * time.Minute)
		reading := at(bloodPressure(float64(110+random.IntN(110)), float64(60+random.IntN(50))), moment.Add(time.Duration(i)*time.Second/1000))
		if _, err := w.Submit(t.Context(), gatewaySubmission(people[random.IntN(len(people))], reading)); err != nil {
			t.Fatal(err)
		}
		if random.IntN(2) == 0 {
			if err := others[random.IntN(len(others))](people[random.IntN(len(people))]); err != nil {
				t.Fatal(err)
			}
		}
		if _, differences, err := w.VerifyCache(app, moment); err != nil || differences != "" {
			t.Fatalf("after %d readings: %v\n%s", i+1, err, differences)
		}
	}
	moment = moment.Add(5 * time.Hour)
	for _, sweep := range others[2:] {
		if err := sweep(""); err != nil {
			t.Fatal(err)
		}
	}
	for what, query := range map[string]string{
		"waits":                         "SELECT COUNT(*) FROM alerts WHERE held_until != ''",
		"is snoozed":                    "SELECT COUNT(*) FROM snoozes WHERE ended_at = ''",
		"is critical and unanswered":    "SELECT COUNT(*) FROM alerts WHERE level = 'critical' AND acknowledged = FALSE AND escalation = ''",
		"has two escalations at a time": "SELECT COUNT(*) FROM (SELECT 1 FROM escalations WHERE status IN ('open', 'in_progress') GROUP BY patient HAVING COUNT(*) > 1)",
	} {
		var n int
		if err := app.DB().NewQuery(query).Row(&n); err != nil || n != 0 {
			t.Errorf("%d: %s (%v)", n, what, err)
		}
	}
	var critical, warned int
	err := app.DB().NewQuery(`SELECT COUNT(*) FROM alerts WHERE level = 'critical' AND snoozed = TRUE`).Row(&critical)
	if err == nil {
		err = app.DB().NewQuery(`SELECT COUNT(*) FROM audit_log WHERE event = 'snooze.end'`).Row(&warned)
	}
	if err != nil || critical == 0 || warned == 0 {
		t.Errorf("%d snoozed critical alerts, %d ends of snoozes: what was tried? (%v)", critical, warned, err)
	}
}

// A hold that cannot be resolved does not stop the others.
func TestResolveHoldsContinuesAfterFailure(t *testing.T) {
	pending := rules
	pending.ConfirmReadings = 10 * time.Minute
	app, engine := newApp(t, pending)
	for range 3 {
		storeReading(t, app, engine, gatewaySubmission(vigiltest.Patient(t, app, nil), at(bloodPressure(190, 100), now)))
	}
	rows, err := app.FindAllRecords(collections.Alerts)
	if err != nil || len(rows) != 3 {
		t.Fatalf("%d alerts (%v)", len(rows), err)
	}
	if _, err := app.DB().NewQuery("DELETE FROM triage_scores WHERE patient = '" + rows[0].GetString("patient") + "'").Execute(); err != nil {
		t.Fatal(err)
	}
	decided, err := engine.ResolveHolds(t.Context(), app, now.Add(11*time.Minute))
	if err == nil || decided != 2 {
		t.Errorf("%d resolved (%v)", decided, err)
	}
	var stats int
	if err := app.DB().NewQuery("SELECT COUNT(*) FROM escalations WHERE priority = 'stat'").Row(&stats); err != nil || stats != 2 {
		t.Errorf("%d escalations (%v)", stats, err)
	}
}

// A patient's manual reading confirms a manual reading.
func TestManualReadingsConfirmManualReadings(t *testing.T) {
	pending := rules
	pending.ConfirmReadings = 10 * time.Minute
	app, engine := newApp(t, pending)
	patient := vigiltest.Patient(t, app, nil)
	for i, systolic := range []float64{185, 131, 126} {
		s := gatewaySubmission(patient, at(bloodPressure(systolic, 80), now.Add(time.Duration(i-10)*time.Minute)))
		s.Source = vitals.SourcePortal
		storeReading(t, app, engine, s)
	}
	if _, err := engine.ResolveHolds(t.Context(), app, now); err != nil { // two repeat readings are enough
		t.Fatal(err)
	}
	var value float64
	err := app.DB().NewQuery("SELECT value FROM alerts WHERE level = 'warning'").Row(&value)
	if err != nil || value != 128.5 {
		t.Errorf("the average is %v (%v)", value, err)
	}
}

// An alert that is resolved during its hold joins no escalation.
func TestClosedAlertJoinsNoEscalation(t *testing.T) {
	for status, joined := range map[string]string{"active": "190,205", "acknowledged": "190,205", "resolved": "205", "auto_resolved": "205"} {
		pending := rules
		pending.ConfirmReadings = 10 * time.Minute
		app, engine := newApp(t, pending)
		patient := vigiltest.Patient(t, app, nil)
		storeReading(t, app, engine, gatewaySubmission(patient, at(bloodPressure(190, 80), now.Add(-2*time.Minute))))
		if held := texts(t, app, "SELECT held_until FROM alerts WHERE held_until != ''"); len(held) != 1 {
			t.Fatalf("held: %q", held)
		}
		if _, err := app.DB().NewQuery("UPDATE alerts SET acknowledged = ('" + status + "' != 'active'), status = '" + status + "'").Execute(); err != nil {
			t.Fatal(err)
		}
		storeReading(t, app, engine, gatewaySubmission(patient, at(bloodPressure(205, 80), now.Add(-time.Minute))))
		if _, err := engine.ResolveHolds(t.Context(), app, now.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		got := texts(t, app, "SELECT group_concat(CAST(value AS INTEGER)) FROM (SELECT value FROM alerts WHERE escalation != '' ORDER BY id)")
		if len(got) != 1 || got[0] != joined {
			t.Errorf("%s: %q joined, want %q", status, got, joined)
		}
		if held := texts(t, app, "SELECT held_until FROM alerts WHERE held_until != ''"); len(held) != 0 {
			t.Errorf("%s: it waits on: %q", status, held)
		}
	}
}

package ingest_test

import (
	"testing"
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// The alert of 181/160 names the systolic, but the critical band comes from the diastolic, also after later readings. The writer's cache
// ranks as the database does.
func TestCriticalBandUsesAllValues(t *testing.T) {
	pending := rules
	pending.ConfirmReadings = time.Hour // opens no escalation, which the cache would not store
	app, engine := newApp(t, pending)
	w := startWriter(t, app, engine)
	patient := vigiltest.Patient(t, app, nil)
	for i, reading := range []struct{ systolic, diastolic float64 }{{181, 160}, {120, 80}} {
		if _, err := w.Submit(t.Context(), gatewaySubmission(patient, at(bloodPressure(reading.systolic, reading.diastolic), now.Add(time.Duration(i-10)*time.Minute)))); err != nil {
			t.Fatal(err)
		}
		if snapshots, differences, err := w.VerifyCache(app, now); err != nil || differences != "" || snapshots != 1 {
			t.Errorf("%d pictures (%v): %s", snapshots, err, differences)
		}
		check(t, find(t, app, collections.TriageScores, ""), map[string]any{"risk_score": 94.0}) // 86 + 14 × (0.2 + 0.8 × (40 ÷ 80)^1.2)
		if row, err := triage.Rescore(app, patient, now); err != nil || row.Score.Value != 94 {
			t.Errorf("ranked again: %d (%v)", row.Score.Value, err)
		}
	}
}

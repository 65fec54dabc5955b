package ingest_test

import (
	"slices"
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// In any order of arrival, a replay evaluates in order of measurement, and a late reading is superseded by a newer one.
func TestReplayInOrderOfMeasurement(t *testing.T) {
	const hour = 60
	for name, list := range map[string][][2]int{ // systolic and minutes ago, in order of arrival
		"in order":       {{188, 240 * hour}, {124, 239 * hour}, {190, 30 * hour}, {122, 3 * hour}, {121, 2 * hour}},
		"the other way":  {{121, 2 * hour}, {122, 3 * hour}, {190, 30 * hour}, {124, 239 * hour}, {188, 240 * hour}},
		"worst in midst": {{122, 3 * hour}, {188, 240 * hour}, {121, 2 * hour}, {124, 239 * hour}, {190, 30 * hour}},
	} {
		t.Run(name, func(t *testing.T) {
			app, engine := newPipelineApp(t)
			for _, r := range list {
				quarantined(t, app, cuff("BP-1", "gw-1", r[0], r[1]), ingest.ReasonUnknownPatient)
			}
			vigiltest.Patient(t, app, dbx.Params{"gateway_patient_id": "gw-1"})
			done, err := engine.Replay(t.Context(), app, func() time.Time { return pipelineNow.Add(time.Hour) }, func(int, int) {})
			if err != nil || done != (ingest.ReplayResult{Stored: len(list)}) {
				t.Fatalf("%+v (%v)", done, err)
			}
			if order := alertTexts(t, app, `SELECT measured_at FROM observations ORDER BY rowid`); !slices.IsSorted(order) {
				t.Errorf("stored in the order %q", order)
			}
			got := alertTexts(t, app, `SELECT late || ' ' || status || ' ' || resolution_reason FROM alerts WHERE level = 'critical'`)
			if want := []string{"1 auto_resolved superseded", "1 auto_resolved superseded"}; !slices.Equal(got, want) {
				t.Errorf("alerts: %q", got)
			}
			if notified := alertTexts(t, app, `SELECT DISTINCT kind FROM announcements WHERE alert != ''`); !slices.Equal(notified, []string{"reading_superseded"}) {
				t.Errorf("announced: %q", notified)
			}
		})
	}
}

// A newer reading that is not stored supersedes nothing.
func TestReplayWithoutNewerReading(t *testing.T) {
	app, engine := newPipelineApp(t)
	quarantined(t, app, cuff("BP-1", "gw-1", 188, 240*60), ingest.ReasonUnknownPatient)
	quarantined(t, app, cuff("BP-2", "gw-1", 121, 60), ingest.ReasonUnknownPatient)
	patient := vigiltest.Patient(t, app, dbx.Params{"gateway_patient_id": "gw-1"})
	vigiltest.Assign(t, app, "BP-2", vigiltest.Patient(t, app, nil), pipelineNow.AddDate(0, 0, -1)) // assigned to another patient
	done, err := engine.Replay(t.Context(), app, pipelineClock, func(int, int) {})
	if err != nil || done != (ingest.ReplayResult{Stored: 1, Pending: 1}) {
		t.Fatalf("%+v (%v)", done, err)
	}
	if got := alertTexts(t, app, `SELECT late || ' ' || status FROM alerts WHERE patient = '`+patient+`' AND level = 'critical'`); !slices.Equal(got, []string{"1 active"}) {
		t.Errorf("alerts: %q", got)
	}
}

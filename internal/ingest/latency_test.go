package ingest_test

import (
	"testing"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// Every stored reading counts once in its 15 minutes, from any source; duplicates and rejections do not.
func TestRecordLatencies(t *testing.T) {
	app, engine := newApp(t, ingest.Rules{PracticeZone: newYork})
	patient := vigiltest.Patient(t, app, nil)
	w := startWriter(t, app, engine)
	take := func(minutesAgo int, took time.Duration, source string) {
		s := gatewaySubmission(source, vitals.Reading{Kind: vitals.Weight, MeasuredAt: now.Add(-time.Duration(minutesAgo) * time.Minute)}.With(vitals.WeightKg, 80.0))
		s.ReceivedAt = now.Add(-took)
		_, _ = w.Submit(t.Context(), s) // rejections are part of the test
	}
	take(1, 4*time.Millisecond, patient)
	take(2, 4400*time.Microsecond, patient)
	take(3, 1234*time.Millisecond, patient)
	take(3, 1234*time.Millisecond, patient)
	take(4, time.Millisecond, "0194c5a8-0000-7000-8000-00000000dead")
	s := gatewaySubmission(patient, vitals.Reading{Kind: vitals.Weight, MeasuredAt: now.Add(-time.Hour)}.With(vitals.WeightKg, 81.0))
	err := app.RunInTransaction(func(tx core.App) error {
		_, err := engine.Ingest(tx, s, now)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct {
		Bucket   string `db:"bucket"`
		MS       int    `db:"ms"`
		Readings int    `db:"readings"`
		TotalUS  int    `db:"total_us"`
	}
	if err := app.DB().NewQuery(`SELECT * FROM processing_times ORDER BY bucket, ms`).All(&rows); err != nil {
		t.Fatal(err)
	}
	want := [][3]int{{0, 1, 0}, {4, 2, 8400}, {1200, 1, 1_234_000}}
	if len(rows) != len(want) {
		t.Fatalf("%+v", rows)
	}
	for i, row := range rows {
		if got := [3]int{row.MS, row.Readings, row.TotalUS}; got != want[i] || row.Bucket != rows[0].Bucket {
			t.Errorf("%v, want %v", got, want[i])
		}
	}
}

package vitalsummary_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/internal/vitalsummary"
)

func measure(t testing.TB, app core.App, patient string, at time.Time, systolic, diastolic float64) {
	t.Helper()
	_, err := app.DB().Insert(collections.Observations, dbx.Params{
		"id": collections.NewUUID(), "patient": patient, "observation_type": "blood_pressure", "measured_at": collections.FormatInstant(at),
		"systolic": systolic, "diastolic": diastolic, "status": "final", "source": "gateway",
	}).Execute()
	if err != nil {
		t.Fatal(err)
	}
}

// A week ends with Sunday in the patient's time zone, and its mean needs twelve readings on three days.
func TestEachWeek(t *testing.T) {
	app := vigiltest.NewApp(t)
	york, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	full := vigiltest.Patient(t, app, dbx.Params{"mrn": "1", "external_id": "e-1", "time_zone": "America/New_York"})
	few := vigiltest.Patient(t, app, dbx.Params{"mrn": "2", "external_id": "e-2", "time_zone": "Pacific/Kiritimati"})
	vigiltest.Patient(t, app, dbx.Params{"mrn": "3", "external_id": "e-3"})
	elsewhere := vigiltest.Patient(t, app, dbx.Params{"mrn": "4"})
	for i := range 12 { // Monday 2 March to Wednesday, four a day, and the change to summer time on the Sunday after
		at := time.Date(2026, 3, 2+i/4, 8+i%4, 0, 0, 0, york)
		measure(t, app, full, at, 130+float64(i%2), 80)
		measure(t, app, elsewhere, at, 130, 80)
		measure(t, app, few, at.AddDate(0, 0, -i/4), 130, 80) // as many, on one day
	}
	measure(t, app, full, time.Date(2026, 3, 8, 23, 59, 0, 0, york), 190, 110) // the last minute of the week
	measure(t, app, full, time.Date(2026, 3, 9, 0, 0, 0, 0, york), 90, 50)     // the first minute of the next
	weeks := func(now time.Time) (list []vitalsummary.Week) {
		t.Helper()
		err := vitalsummary.NewReader(york).EachWeek(t.Context(), app, now, func(w vitalsummary.Week) error {
			list = append(list, w)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	got := map[string]bool{}
	for _, w := range weeks(time.Date(2026, 3, 9, 4, 0, 0, 0, time.UTC)) { // midnight in New York: Monday
		got[w.PatientID+" "+w.From+" "+w.To] = w.HasEnough
	}
	want := map[string]bool{
		full + " 2026-03-02 2026-03-08": true, full + " 2026-02-23 2026-03-01": false,
		few + " 2026-03-02 2026-03-08": false, few + " 2026-02-23 2026-03-01": false,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, w := range weeks(time.Date(2026, 3, 9, 3, 59, 0, 0, time.UTC)) { // still Sunday there
		if w.PatientID == full && w.From == "2026-03-02" {
			t.Error("the week is over before its Sunday is")
		}
	}
	mean, err := vitalsummary.NewReader(york).LoadMean(app, full, "2026-03-02", "2026-03-08")
	// 6 of 130, 6 of 131 and one of 190 are 1756 of 13, which is 135.08; 12 of 80 and one of 110 are 1070 of 13, which is 82.31.
	if err != nil || mean.Readings != 13 || mean.Systolic != 135.1 || mean.Diastolic != 82.3 {
		t.Errorf("%+v (%v)", mean, err)
	}
	if hours := mean.To.Sub(mean.From).Hours(); hours != 7*24-1 {
		t.Errorf("the week has %v hours", hours)
	}
}

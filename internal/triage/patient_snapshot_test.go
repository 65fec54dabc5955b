package triage_test

import (
	"encoding/json/v2"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pocketbase/dbx"
	"pgregory.net/rapid"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/escalations"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/internal/vitals"
)

func TestLatestWith(t *testing.T) {
	at := func(r vitals.Reading, ago time.Duration) vitals.Reading { r.MeasuredAt = now.Add(-ago); return r }
	glucose := func(mgDL float64, meal string) vitals.Reading {
		return vitals.Reading{Kind: vitals.BloodGlucose, MeasuredAt: now}.With(vitals.GlucoseMgDL, mgDL).WithQualifier(vitals.MealContext, meal)
	}
	var latest triage.Latest
	if !latest.MeasuredAt().IsZero() {
		t.Error("nothing was measured")
	}
	for _, r := range []vitals.Reading{
		at(pressureAndPulse(130, 85, 75), 2*time.Hour), at(pressure(120, 80), time.Hour),
		at(pressureAndPulse(200, 100, 140), 3*time.Hour), // older than what is there
		at(weighing(80), 5*time.Hour), at(oximetry(97), 4*time.Hour), at(glucose(110, "fasting"), 6*time.Hour),
	} {
		latest = latest.With(r, vitals.OriginDevice)
	}
	// The stored form, byte for byte.
	const want = `{"blood_pressure":{"systolic":120,"diastolic":80,"pulse":null,"measured_at":"2026-01-15T12:45:00Z"},` +
		`"weight":{"weight_kg":80,"measured_at":"2026-01-15T08:45:00Z"},` +
		`"pulse_oximetry":{"spo2":97,"pulse":null,"measured_at":"2026-01-15T09:45:00Z"},` +
		`"blood_glucose":{"glucose_mg_dl":110,"meal_context":"fasting","measured_at":"2026-01-15T07:45:00Z"},` +
		`"pulse":{"pulse":75,"measured_at":"2026-01-15T11:45:00Z"}}`
	if got := latest.MeasuredAt(); !got.Equal(now.Add(-time.Hour)) {
		t.Errorf("newest at %s", got)
	}
	if again := latest.With(at(pressure(121, 81), time.Hour), vitals.OriginDevice); *value(again, vitals.Systolic) != 121 {
		t.Error("of two readings of one moment the later-stored one counts")
	}
	stored, err := json.Marshal(latest)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(stored)); diff != "" {
		t.Error(diff)
	}
	read, err := triage.ParseLatest(string(stored))
	if err != nil || !reflect.DeepEqual(latest, read) {
		t.Errorf("%v is read as %v (%v)", latest, read, err)
	}
	for _, empty := range []string{"", "null", "{}"} {
		if read, err := triage.ParseLatest(empty); err != nil || !reflect.DeepEqual(read, triage.Latest{}) {
			t.Errorf("%q is %v (%v)", empty, read, err)
		}
	}
	for _, damaged := range []string{`[`, `{"weight":{"weight_kg":80}}`, `{"weight":1}`, `{"weight":{"measured_at":"noon"}}`} {
		if _, err := triage.ParseLatest(damaged); err == nil {
			t.Errorf("%s was read", damaged)
		}
	}
}

func value(l triage.Latest, p *vitals.Parameter) *float64 {
	v, _ := l.Value(p)
	return v
}

// In any order of arrival the latest reading is the same.
func TestLatestIgnoresArrivalOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		minutes := rapid.SliceOfNDistinct(rapid.IntRange(0, 1000), 1, 8, rapid.ID[int]).Draw(t, "minutes")
		newest := 0
		var latest triage.Latest
		for _, minute := range minutes {
			r := pressureAndPulse(100+float64(minute), 80, 60)
			r.MeasuredAt = now.Add(time.Duration(minute) * time.Minute)
			latest, newest = latest.With(r, vitals.OriginDevice), max(newest, minute)
		}
		if *value(latest, vitals.Systolic) != 100+float64(newest) {
			t.Fatalf("%v", *value(latest, vitals.Systolic))
		}
	})
}

func TestRowNeedsReview(t *testing.T) {
	reading := func(ago time.Duration) triage.Latest {
		r := pressure(120, 80)
		r.MeasuredAt = now.Add(-ago)
		return triage.Latest{}.With(r, vitals.OriginDevice)
	}
	open := func(alertType string, level alerts.Level) []alerts.OpenAlert {
		return []alerts.OpenAlert{{Type: alertType, Level: level, CreatedAt: now.Add(-time.Hour)}}
	}
	reviewed := now.Add(-time.Hour)
	tests := []struct {
		name    string
		picture triage.PatientSnapshot
		want    bool
	}{
		{"nothing at all", triage.PatientSnapshot{}, false},
		{"reviewed since the last reading", triage.PatientSnapshot{Latest: reading(2 * time.Hour), LastReviewedAt: reviewed}, false},
		{"a reading since, reviewed this week", triage.PatientSnapshot{Latest: reading(time.Minute), LastReviewedAt: now.Add(-7 * day)}, false},
		{"a reading since, reviewed longer ago", triage.PatientSnapshot{Latest: reading(time.Minute), LastReviewedAt: now.Add(-7*day - 1)}, true},
		{"no reading since, reviewed longer ago", triage.PatientSnapshot{Latest: reading(9 * day), LastReviewedAt: now.Add(-8 * day)}, false},
		{"a reading, never reviewed", triage.PatientSnapshot{Latest: reading(20 * day), EnrolledAt: now.Add(-21 * day)}, true},
		{"an open alert of a reading", triage.PatientSnapshot{Open: open("pulse", alerts.Warning), LastReviewedAt: reviewed}, true},
		{"an open alert for want of data", triage.PatientSnapshot{Open: open("missed_reading", alerts.NoData), LastReviewedAt: reviewed}, true},
		{"a routine escalation", triage.PatientSnapshot{Escalations: []escalations.ActiveEscalation{{Priority: escalations.Routine}}, LastReviewedAt: reviewed}, true},
		{"a score of 51", triage.PatientSnapshot{Latest: triage.Latest{}.With(pressure(190, 125), vitals.OriginDevice), LastReviewedAt: reviewed}, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.picture.Thresholds = defaults
			if got := test.picture.ComputeRow(now).NeedsReview; got != test.want {
				t.Errorf("needs review: %t", got)
			}
		})
	}
}

func TestRowCounts(t *testing.T) {
	snapshot := triage.PatientSnapshot{
		Thresholds: defaults, LastReviewedAt: now, Latest: triage.Latest{}.With(pressure(120, 80), vitals.OriginDevice),
		Open: []alerts.OpenAlert{
			{Type: "device_battery", Level: alerts.Critical, CreatedAt: now.Add(-time.Hour)},
			{Type: "missed_reading", Level: alerts.NoData, CreatedAt: now.Add(-3 * time.Hour)},
		},
		Escalations: []escalations.ActiveEscalation{{Priority: escalations.Routine}},
	}
	s := snapshot.ComputeRow(now)
	if s.Unacknowledged != 2 || s.UnacknowledgedCritical != 1 || s.ActiveEscalations != 1 || !s.OldestUnacknowledgedAt.Equal(now.Add(-3*time.Hour)) {
		t.Errorf("%+v", s)
	}
	if s.Score.Value != 1 {
		t.Errorf("a critical battery is no danger to the patient: %d", s.Score.Value)
	}
	snapshot.Open = append(snapshot.Open, alerts.OpenAlert{Type: "pulse", Level: alerts.Warning, CreatedAt: now})
	if got := snapshot.ComputeRow(now).Score.Value; got != 51 {
		t.Errorf("with an open warning: %d", got)
	}
	snapshot.Escalations[0].Priority = escalations.Stat
	if got := snapshot.ComputeRow(now).Score.Value; got != 86 {
		t.Errorf("with a stat escalation: %d", got)
	}
	snapshot.Escalations[0].Priority, snapshot.Open = escalations.Urgent, nil
	if got := snapshot.ComputeRow(now).Score.Value; got != 51 {
		t.Errorf("with an urgent escalation: %d", got)
	}
}

// Without a review the time counts from the patient's creation.
func TestRowNeverReviewed(t *testing.T) {
	snapshot := triage.PatientSnapshot{Thresholds: defaults, Latest: triage.Latest{}.With(pressure(120, 80), vitals.OriginDevice), EnrolledAt: now.Add(-72 * time.Hour)}
	if got := snapshot.ComputeRow(now).Score.Value; got != 6 {
		t.Errorf("score %d, want 6", got)
	}
}

// A patient's own bounds precede the practice's, which apply to a patient without any.
func TestSnapshotThresholds(t *testing.T) {
	app := vigiltest.NewApp(t)
	const own = `{"blood_pressure":{"systolic_low":80},"pulse":null}`
	if _, err := app.DB().Insert(collections.Thresholds, dbx.Params{"patient": "ada", "bounds": own}).Execute(); err != nil {
		t.Fatal(err)
	}
	practice, _, err := collections.FindThresholds(app, "")
	if err != nil {
		t.Fatal(err)
	}
	parse := func(text string) alerts.Bounds {
		bounds, err := alerts.ParseBounds(text)
		if err != nil {
			t.Fatal(err)
		}
		return bounds
	}
	for patient, own := range map[string]alerts.Bounds{"ada": parse(own), "newborn": nil} {
		if err := triage.AddRow(app, patient, now); err != nil {
			t.Fatal(err)
		}
		snapshot, err := triage.ReadSnapshot(app, patient, nil, now)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(alerts.InForce(parse(practice.Bounds), own), snapshot.Thresholds, cmp.AllowUnexported(alerts.Thresholds{})); diff != "" {
			t.Errorf("%s: %s", patient, diff)
		}
	}
}

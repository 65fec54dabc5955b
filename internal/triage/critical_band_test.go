package triage_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/internal/vitals"
)

func glucose(mgDL float64) vitals.Reading {
	return vitals.Reading{Kind: vitals.BloodGlucose, MeasuredAt: now.Add(-time.Hour)}.With(vitals.GlucoseMgDL, mgDL)
}

// The examples of docs/decisions/triage.md, "Critical bands": the points of danger of one latest value while a stat escalation is open.
func TestDangerExamples(t *testing.T) {
	gained := patient(weighing(89.2))
	gained.Baseline = []alerts.BaselineValue{{Parameter: vitals.WeightKg, Value: 80, MeasuredAt: now.Add(-2 * day)}}
	atEnd := patient(pressure(300, 80))
	atEnd.Thresholds = alerts.InForce(practice, alerts.Bounds{"blood_pressure": {"systolic_critical": new(300.0)}})
	off := patient(pressure(200, 80))
	off.Thresholds = alerts.InForce(practice, alerts.Bounds{"blood_pressure": nil})
	for name, test := range map[string]struct {
		c      triage.ScoreInput
		score  int
		detail string
	}{
		"no critical value":              {patient(pressure(179, 81)), 86, ""},
		"at the bound":                   {patient(pressure(180, 80)), 89, "Systolic 180, critical at 180, measured 2026-01-15T12:45:00Z."},
		"at the end of the range":        {patient(pressure(300, 80)), 100, "Systolic 300, critical at 180, measured 2026-01-15T12:45:00Z."},
		"beyond the range":               {patient(pressure(120, 10)), 100, "Diastolic 10, critical at 40, measured 2026-01-15T12:45:00Z."},
		"SpO2 70":                        {patient(oximetry(70)), 98, "SpO2 70, critical at 88, measured 2026-01-15T12:45:00Z."},
		"SpO2 70 of a day ago":           {patient(old(oximetry(70), day)), 92, "SpO2 70, critical at 88, measured 2026-01-14T13:45:00Z."},
		"SpO2 70 of half a day ago":      {patient(old(oximetry(70), 12*time.Hour+30*time.Minute)), 95, "SpO2 70, critical at 88, measured 2026-01-15T01:15:00Z."},
		"SpO2 70 of a week ago":          {patient(old(oximetry(70), 7*day)), 89, "SpO2 70, critical at 88, measured 2026-01-08T13:45:00Z."},
		"SpO2 70 of two months ago":      {patient(old(oximetry(70), 60*day)), 89, "SpO2 70, critical at 88, measured 2025-11-16T13:45:00Z."},
		"the worst counts":               {patient(pressureAndPulse(185, 130, 150), oximetry(87)), 94, "SpO2 87, critical at 88, measured 2026-01-15T12:45:00Z."},
		"worse, but old":                 {patient(old(glucose(20), 10*day), oximetry(80)), 96, "SpO2 80, critical at 88, measured 2026-01-15T12:45:00Z."},
		"a gain of twice the critical":   {gained, 94, "Weight gain 9.2, critical at 4.6, measured 2026-01-15T12:45:00Z."},
		"a bound at the end":             {atEnd, 100, "Systolic 300, critical at 300, measured 2026-01-15T12:45:00Z."},
		"bounds that are switched off":   {off, 86, ""},
		"a half is rounded up":           {patient(pressure(120, 39.375)), 90, "Diastolic 39.375, critical at 40, measured 2026-01-15T12:45:00Z."},
		"a time in the future is no age": {patient(old(oximetry(70), -time.Minute)), 98, "SpO2 70, critical at 88, measured 2026-01-15T13:46:00Z."},
	} {
		test.c.StatEscalation = true
		score := triage.ComputeScore(test.c, now)
		detail := ""
		for _, factor := range score.Factors {
			if factor.Factor == "danger" {
				detail = factor.Detail
			}
		}
		if score.Value != test.score || detail != test.detail {
			t.Errorf("%s: %d %q, want %d %q", name, score.Value, detail, test.score, test.detail)
		}
	}
}

// With nothing open a critical value keeps its patient in the critical band for a day.
func TestRecentCriticalStaysInBand(t *testing.T) {
	for age, want := range map[time.Duration]int{0: 84, time.Hour: 84, day: 80, day + time.Microsecond: 50, 8 * day: 1} {
		if got := triage.ComputeScore(patient(old(oximetry(70), age)), now); got.Value != want {
			t.Errorf("SpO2 70 of %s ago, answered: %d, want %d", age, got.Value, want)
		}
	}
	c := patient(pressure(180, 80), old(oximetry(60), 3*day)) // the newer sets the band, the older is more dangerous
	if got := pointsOf(triage.ComputeScore(c, now)); got["floor"] != 76 || got["danger"] != 3 {
		t.Errorf("%v", got)
	}
	for score, want := range map[int]triage.CriticalStatus{100: "unanswered", 86: "unanswered", 85: "handled", 76: "handled", 75: "", 0: ""} {
		if got := triage.CriticalStatusFor(score); got != want {
			t.Errorf("%d is %q, want %q", score, got, want)
		}
	}
}

// An alert has all values of its reading, or all reported values if there is none.
func TestSnapshotHasReportedValues(t *testing.T) {
	app := vigiltest.NewApp(t)
	store := func(patient, alertType, observation string, level alerts.Level, reported string) {
		t.Helper()
		id, err := alerts.Store(app, alerts.Draft{
			PatientID: patient, ObservationID: observation, MeasuredAt: now.Add(-time.Hour),
			Finding: alerts.Finding{Type: alertType, Level: level, Parameter: "systolic", Value: 181},
		}, now)
		if err != nil {
			t.Fatal(err)
		}
		if reported == "" {
			return
		}
		if strings.HasPrefix(reported, "{") {
			if reported, err = collections.Seal(reported, "alerts.reported_values", id); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := app.DB().Update(collections.Alerts, dbx.Params{"reported_values": reported}, dbx.HashExp{"id": id}).Execute(); err != nil {
			t.Fatal(err)
		}
	}
	of := func(systolic, diastolic, pulse any) string {
		id := collections.NewUUID()
		insert(t, app, collections.Observations, dbx.Params{
			"id": id, "patient": "p", "observation_type": "blood_pressure", "systolic": systolic, "diastolic": diastolic, "pulse": pulse, "status": "final",
		})
		return id
	}
	const implausible = alerts.TypeImplausibleReading
	for name, test := range map[string]struct {
		prepare func(patient string)
		score   int
	}{
		"both pressures":              {func(p string) { store(p, "blood_pressure", of(181, 160, 240), alerts.Critical, "") }, 94},
		"a reading that is not there": {func(p string) { store(p, "blood_pressure", "", alerts.Critical, "") }, 89},
		"a warning has no danger":     {func(p string) { store(p, "blood_pressure", of(181, 160, nil), alerts.Warning, "") }, 52},
		"an implausible pulse": {func(p string) {
			store(p, implausible, "", alerts.Critical, `{"systolic":104,"diastolic":58,"pulse":28}`)
		}, 100},
		"too much is no danger":       {func(p string) { store(p, implausible, "", alerts.Critical, `{"spo2":120}`) }, 86},
		"with a critical value":       {func(p string) { store(p, implausible, "", alerts.Critical, `{"spo2":120,"pulse":35}`) }, 93},
		"in another unit":             {func(p string) { store(p, implausible, "", alerts.Critical, `{"glucose_mmol_l":36.1}`) }, 100},
		"by the word of the gateway":  {func(p string) { store(p, implausible, "", alerts.Critical, `{"glucose":650,"meal_context":"fasting"}`) }, 100},
		"a weight is no change":       {func(p string) { store(p, implausible, "", alerts.Critical, `{"weight_kg":700}`) }, 86},
		"one that cannot be opened":   {func(p string) { store(p, implausible, "", alerts.Critical, "v2:nobody:x") }, 86},
		"one without values":          {func(p string) { store(p, implausible, "", alerts.Critical, "") }, 86},
		"an irregular heartbeat":      {func(p string) { store(p, alerts.TypeIrregularHeartbeat, "", alerts.Warning, "") }, 52},
		"another person on the scale": {func(p string) { store(p, alerts.TypeSuspectReading, "", alerts.Warning, "") }, 52},
		"a clock that is wrong":       {func(p string) { store(p, alerts.TypeDeviceClock, "", alerts.Warning, "") }, 52},
	} {
		if err := triage.AddRow(app, name, now); err != nil {
			t.Fatal(err)
		}
		test.prepare(name)
		place, err := triage.Rescore(app, name, now)
		if err != nil || place.Score.Value != test.score {
			t.Errorf("%s: %d, want %d (%v)", name, place.Score.Value, test.score, err)
		}
	}
}

// SpO2 48, not yet a reading, is no better than 52, which is one, also after its alert is acknowledged: until it is confirmed or discarded,
// or a later value was measured.
func TestUndecided(t *testing.T) {
	app := vigiltest.NewApp(t)
	const patient = "0194c5a8-0000-7000-8000-000000000001"
	if err := triage.AddRow(app, patient, now); err != nil {
		t.Fatal(err)
	}
	id, err := alerts.Store(app, alerts.Draft{
		PatientID: patient, MeasuredAt: now, Finding: alerts.Finding{Type: alerts.TypeImplausibleReading, Level: alerts.Critical},
	}, now)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := collections.Seal(`{"spo2":48,"pulse":80}`, "alerts.reported_values", id)
	if err != nil {
		t.Fatal(err)
	}
	latest := triage.Latest{}.With(old(oximetry(97), time.Hour).With(vitals.Pulse, 120), vitals.OriginDevice)
	for _, step := range []struct {
		name   string
		alert  dbx.Params
		latest triage.Latest
		at     time.Time
		score  int
	}{
		{"unanswered", dbx.Params{"reported_values": sealed}, latest, now, 100},
		{"acknowledged", dbx.Params{"acknowledged": true, "status": "acknowledged"}, latest, now, 85},
		{"after a day", dbx.Params{}, latest, now.Add(day), 81},
		{"after two days", dbx.Params{}, latest, now.Add(2 * day), 68}, // 50 and 5 for pulse and saturation, 8.3 for the alert, 4.3 for the time
		{"without any reading", dbx.Params{}, triage.Latest{}, now.Add(2 * time.Hour), 85},
		{"without any reading, after two days", dbx.Params{}, triage.Latest{}, now.Add(2 * day), 63},
		{"typed later", dbx.Params{}, triage.Latest{}.With(old(oximetry(97), -time.Hour), vitals.OriginPatient), now.Add(2 * time.Hour), 85},
		{"measured later", dbx.Params{}, triage.Latest{}.With(old(oximetry(97), -time.Hour), vitals.OriginDevice), now.Add(2 * time.Hour), 9},
		{"discarded", dbx.Params{"status": "resolved"}, triage.Latest{}.With(oximetry(97), vitals.OriginDevice), now, 8},
	} {
		if _, err := app.DB().Update(collections.Alerts, step.alert, dbx.HashExp{"id": id}).Execute(); len(step.alert) > 0 && err != nil {
			t.Fatal(err)
		}
		if err := triage.ReplaceLatest(app, patient, step.latest); err != nil {
			t.Fatal(err)
		}
		if place, err := triage.Rescore(app, patient, step.at); err != nil || place.Score.Value != step.score {
			t.Errorf("%s: %d, want %d (%v)", step.name, place.Score.Value, step.score, err)
		}
	}
}

// An unanswered critical sinks with its age, hour by hour, but never out of its band; a newer one passes it.
func TestScoreFallsWithAge(t *testing.T) {
	app := vigiltest.NewApp(t)
	for _, id := range []string{"answered", "unanswered", "fresh"} {
		if err := triage.AddRow(app, id, now); err != nil {
			t.Fatal(err)
		}
	}
	critical := func(patient string, at time.Time, spo2 float64) {
		t.Helper()
		r := oximetry(spo2)
		r.MeasuredAt = at
		if err := triage.ReplaceLatest(app, patient, triage.Latest{}.With(r, vitals.OriginDevice)); err != nil {
			t.Fatal(err)
		}
		if patient == "answered" {
			return
		}
		_, err := alerts.Store(app, alerts.Draft{
			PatientID: patient, MeasuredAt: at,
			Finding: alerts.Finding{Type: "pulse_oximetry", Level: alerts.Critical, Parameter: "spo2", Value: spo2},
		}, at)
		if err != nil {
			t.Fatal(err)
		}
	}
	critical("answered", now, 60)
	critical("unanswered", now, 70)
	for _, step := range []struct {
		after time.Duration
		want  string
	}{
		{0, "unanswered 98, answered 84, fresh 0"},
		{13 * time.Hour, "unanswered 95, answered 82, fresh 0"},
		{24 * time.Hour, "unanswered 92, answered 80, fresh 0"},
		{25 * time.Hour, "unanswered 92, answered 52, fresh 0"},
		{4 * day, "fresh 96, unanswered 90, answered 59"},
		{8 * day, "fresh 90, unanswered 89, answered 15"},
	} {
		if step.after == 4*day {
			critical("fresh", now.Add(step.after), 80)
		}
		at := now.Add(step.after)
		if _, _, err := triage.RescoreAll(t.Context(), app, at, func([]string) {}); err != nil {
			t.Fatal(err)
		}
		page, _, err := triage.List(app, triage.Filter{}, 0, 20)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, row := range page {
			got = append(got, row.PatientID+" "+strconv.Itoa(row.RiskScore))
		}
		if strings.Join(got, ", ") != step.want {
			t.Errorf("after %s: %s, want %s", step.after, strings.Join(got, ", "), step.want)
		}
	}
}

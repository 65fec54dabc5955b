package ingest_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/templates"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// alertMonthDays is the length of the simulated month, and maxWarningPushes the pushes of warnings per day for 100 patients that
// docs/clinical.md, "Alert volume", promises.
const (
	alertMonthDays   = 29
	maxWarningPushes = 5.0
	// diastolicShare is how far a diastolic pressure follows the systolic one, between patients and from day to day.
	diastolicShare = 0.4
)

// monthPatient is one of the 100 invented patients: 55 with hypertension, 20 with heart failure, 10 with COPD and 15 with diabetes.
type monthPatient struct {
	id, template                string
	systolic, diastolic, pulse  float64
	weight, saturation, glucose float64
	takesPressure               func(day int) bool
}

func monthPatients(random *rand.Rand) (list []monthPatient) {
	near := func(mean, deviation float64) float64 { return mean + deviation*random.NormFloat64() }
	never := func(int) bool { return false }
	for i := range 100 {
		p := monthPatient{takesPressure: never, pulse: near(74, 8)}
		switch {
		case i < 55:
			p.systolic, p.takesPressure = near(138, 12), func(int) bool { return true }
			p.diastolic = near(80+diastolicShare*(p.systolic-138), 6)
		case i < 75:
			p.template, p.weight, p.systolic = "heart_failure", near(82, 14), near(122, 11)
			p.diastolic = near(72+diastolicShare*(p.systolic-122), 6)
			p.takesPressure = func(day int) bool { // three days a week, and eight of them on the last day
				return day%7 < 5 && day%7%2 == 0 && (day < alertMonthDays-1 || i < 63)
			}
		case i < 85:
			p.template, p.saturation = "copd", near(91.5, 1.5)
		default:
			p.glucose = near(150, 30)
		}
		list = append(list, p)
	}
	return list
}

// readings returns what the patient measures on a day.
func (p monthPatient) readings(random *rand.Rand, day int, at time.Time) (list []vitals.Reading) {
	near := func(mean, deviation float64) float64 { return math.Round(mean + deviation*random.NormFloat64()) }
	within := func(value float64, of *vitals.Parameter) float64 { return min(max(value, of.Range.Min), of.Range.Max) }
	reading := func(kind vitals.Kind, minutes int) vitals.Reading {
		return vitals.Reading{Kind: kind, MeasuredAt: at.Add(time.Duration(minutes) * time.Minute)}
	}
	if p.takesPressure(day) {
		systolic := within(near(p.systolic, 9), vitals.Systolic)
		diastolic := within(min(near(p.diastolic+diastolicShare*(systolic-p.systolic), 4), systolic-10), vitals.Diastolic)
		list = append(list, reading(vitals.BloodPressure, 0).With(vitals.Systolic, systolic).With(vitals.Diastolic, diastolic).
			With(vitals.Pulse, within(near(p.pulse, 6), vitals.Pulse)))
	}
	if p.weight > 0 {
		kg := p.weight + 0.4*random.NormFloat64()
		list = append(list, reading(vitals.Weight, 3).With(vitals.WeightKg, math.Round(10*kg)/10))
	}
	if p.saturation > 0 {
		list = append(list, reading(vitals.PulseOximetry, 5).With(vitals.SpO2, within(min(near(p.saturation, 1.3), 100), vitals.SpO2)).
			With(vitals.Pulse, within(near(p.pulse+8, 6), vitals.Pulse)))
	}
	if p.glucose > 0 {
		list = append(list, reading(vitals.BloodGlucose, 7).With(vitals.GlucoseMgDL, within(near(p.glucose, 35), vitals.GlucoseMgDL)))
	}
	return list
}

// alertMonth is what the rules make of a simulated month.
type alertMonth struct{ readings, criticals, warnings, earlyWarnings, warningPushes, pages, criticalsNotPushed int }

// simulateAlertMonth stores the readings of a month, each at its own time, by the code that stores a device's readings.
func simulateAlertMonth(t *testing.T, seed uint64, choice alerts.WarningPush) (month alertMonth) {
	t.Helper()
	rules := pipelineRules
	rules.WarningPush, rules.IrregularHeartbeats, rules.Suspect = choice, 3, vitals.Tolerance{Percent: 10, Amount: 10}
	rules.EarlyWarning = true
	app, engine := newApp(t, rules)
	random := rand.New(rand.NewPCG(seed, 2026)) // invented patients, the same for each seed
	start := time.Date(2026, time.January, 1, 13, 0, 0, 0, time.UTC)
	patients := monthPatients(random)
	for i := range patients {
		patients[i].id = vigiltest.Patient(t, app, dbx.Params{"created_at": "2025-12-01T00:00:00.000000Z"})
		if patients[i].template != "" {
			applyTemplate(t, app, patients[i].id, patients[i].template)
		}
	}
	for day := range alertMonthDays {
		var today []ingest.Submission
		for _, p := range patients {
			at := start.AddDate(0, 0, day).Add(time.Duration(random.IntN(180)) * time.Minute)
			for _, r := range p.readings(random, day, at) {
				s := gatewaySubmission(p.id, r)
				s.ReceivedAt = r.MeasuredAt.Add(time.Minute)
				today = append(today, s)
			}
		}
		slices.SortStableFunc(today, func(a, b ingest.Submission) int { return cmp.Compare(a.ReceivedAt.UnixNano(), b.ReceivedAt.UnixNano()) })
		err := app.RunInTransaction(func(tx core.App) error {
			for _, s := range today {
				if _, err := engine.Ingest(tx, s, s.ReceivedAt); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		month.readings += len(today)
	}
	count := func(into *int, condition string) {
		t.Helper()
		if err := app.DB().NewQuery("SELECT COUNT(*) FROM alerts WHERE " + condition).Row(into); err != nil {
			t.Fatal(err)
		}
	}
	count(&month.criticals, "level = 'critical'")
	count(&month.warnings, "level = 'warning'")
	count(&month.earlyWarnings, "level = 'warning' AND type = 'early_warning'")
	count(&month.warningPushes, "level = 'warning' AND push_rule NOT IN ('trend', 'never', 'snoozed', 'ended')")
	// An alert and the escalation it opens are one push.
	err := app.DB().NewQuery(`SELECT COUNT(DISTINCT n.patient || n.created_at) FROM announcements n LEFT JOIN alerts a ON a.id = n.alert
		WHERE n.kind LIKE 'escalation%' OR n.kind LIKE '%raised' AND COALESCE(a.push_rule, '') NOT IN ('trend', 'never', 'snoozed', 'ended')`).
		Row(&month.pages)
	if err != nil {
		t.Fatal(err)
	}
	count(&month.criticalsNotPushed, "level = 'critical' AND (push_rule != 'critical' OR id NOT IN (SELECT alert FROM announcements))")
	return month
}

func applyTemplate(t *testing.T, app core.App, patientID, key string) {
	t.Helper()
	var id string
	if err := app.DB().NewQuery("SELECT id FROM threshold_templates WHERE key = {:key}").Bind(dbx.Params{"key": key}).Row(&id); err != nil {
		t.Fatal(err)
	}
	number := int64(0)
	for _, digit := range id {
		number = 10*number + int64(digit-'0')
	}
	if _, err := templates.Apply(app, patientID, templates.ApplyRequest{Number: number}, nurseActor, now); err != nil {
		t.Fatal(err)
	}
}

// A month of 100 patients pages a clinician at most five times a day for warnings, and for every critical value. The figures are in
// docs/clinical.md, "Alert volume"; -v prints them.
func TestAlertMonth(t *testing.T) {
	for seed := range uint64(vigiltest.Rounds(6, 1)) {
		month := simulateAlertMonth(t, seed+1, alerts.PushTrend)
		perDay := func(n int) float64 { return float64(n) / alertMonthDays }
		t.Logf("seed %d: %d readings; a day: %.2f critical, %.1f warnings, %.1f pushes of warnings, %.2f early warnings, %.1f pushes in all", seed+1, month.readings,
			perDay(month.criticals), perDay(month.warnings), perDay(month.warningPushes), perDay(month.earlyWarnings), perDay(month.pages))
		if month.readings != 3148 {
			t.Errorf("seed %d: %d readings", seed+1, month.readings)
		}
		if perDay(month.warningPushes) > maxWarningPushes || month.warningPushes == 0 {
			t.Errorf("seed %d: %.1f pushes of warnings a day", seed+1, perDay(month.warningPushes))
		}
		if month.criticals == 0 || month.criticalsNotPushed > 0 {
			t.Errorf("seed %d: %d of %d critical alerts are not pushed", seed+1, month.criticalsNotPushed, month.criticals)
		}
	}
}

package ingest_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/escalations"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vitals"
)

var (
	now     = time.Date(2026, time.January, 15, 13, 45, 0, 0, time.UTC)
	newYork = zone("America/New_York")
	rules   = ingest.Rules{
		PracticeZone: newYork, NormalReadingsNeeded: alerts.NormalReadingsRequired{Warning: 1, Critical: 2},
		AutoTransform: true, MaxFuture: 5 * time.Minute,
	}
)

func zone(name string) *time.Location {
	location, err := time.LoadLocation(name)
	if err != nil {
		panic(err)
	}
	return location
}

func bloodPressure(systolic, diastolic float64) vitals.Reading {
	return vitals.Reading{Kind: vitals.BloodPressure, MeasuredAt: now.Add(-time.Minute)}.With(vitals.Systolic, systolic).With(vitals.Diastolic, diastolic)
}

func withPulse(r vitals.Reading, pulse float64) vitals.Reading {
	return r.With(vitals.Pulse, pulse)
}

func weight(kg float64) vitals.Reading {
	return vitals.Reading{Kind: vitals.Weight, MeasuredAt: now.Add(-time.Minute)}.With(vitals.WeightKg, kg)
}

func at(r vitals.Reading, when time.Time) vitals.Reading {
	r.MeasuredAt = when
	return r
}

func thresholds(own string) alerts.Thresholds {
	bounds := func(stored string) alerts.Bounds {
		b, err := alerts.ParseBounds(stored)
		if err != nil {
			panic(err)
		}
		return b
	}
	return alerts.InForce(bounds(`{"blood_pressure":{"systolic_low":90,"systolic_high":140,"systolic_critical":180,"diastolic_high":90,
		"diastolic_critical":120},"pulse":{"low":50,"high":110,"critical":130},"weight":{"change_threshold_kg":2.3}}`), bounds(own))
}

// healthyPatient is a patient without open alerts.
func healthyPatient() ingest.AssessInput {
	return ingest.AssessInput{PatientZone: newYork, Snapshot: triage.PatientSnapshot{PatientID: "p1", Thresholds: thresholds(""), LastReviewedAt: now}}
}

func TestAssess(t *testing.T) {
	type raised struct {
		Type, Level, Message string
		Informative          bool
	}
	type effects struct {
		Alerts       []raised
		Progressed   int
		Opens        *escalations.Draft
		Joins        string
		Score        int
		Open, Active int // after the reading
	}
	const high, higher = "Systolic 150 mmHg is at or above the warning limit 140.", "Systolic 185 mmHg is at or above the critical limit 180."
	critical := raised{"blood_pressure", "critical", higher, false}
	open := func(alertType string, level alerts.Level, normal int) []alerts.OpenAlert {
		return []alerts.OpenAlert{{ID: "a1", Type: alertType, Level: level, MeasuredAt: now.Add(-time.Hour), CreatedAt: now.Add(-time.Hour), NormalReadings: normal}}
	}
	tests := []struct {
		name    string
		reading vitals.Reading
		prepare func(*ingest.AssessInput)
		want    effects
	}{
		{"all is well", bloodPressure(120, 80), nil, effects{Score: 1}},
		{
			"a warning", bloodPressure(150, 80), nil,
			effects{Alerts: []raised{{"blood_pressure", "warning", high, false}}, Score: 61, Open: 1},
		},
		{
			"a critical reading opens an escalation for the primary provider", bloodPressure(185, 80),
			func(s *ingest.AssessInput) { s.PrimaryProvider = "provider@vigil.test" },
			effects{
				Alerts: []raised{critical}, Score: 89, Open: 1, Active: 1,
				Opens: &escalations.Draft{PatientID: "p1", Priority: escalations.Stat, Reason: higher, AssignedTo: "provider@vigil.test"},
			},
		},
		{
			"unassigned when there is none", bloodPressure(185, 80), nil,
			effects{Alerts: []raised{critical}, Score: 89, Open: 1, Active: 1, Opens: &escalations.Draft{PatientID: "p1", Priority: escalations.Stat, Reason: higher}},
		},
		{
			"the first critical alert is the reason", withPulse(bloodPressure(150, 80), 135), nil,
			effects{
				Alerts: []raised{
					{"blood_pressure", "warning", high, false},
					{"pulse", "critical", "Pulse 135 bpm is at or above the critical limit 130.", false},
				}, Score: 91, Open: 2, Active: 1,
				Opens: &escalations.Draft{PatientID: "p1", Priority: escalations.Stat, Reason: "Pulse 135 bpm is at or above the critical limit 130."},
			},
		},
		{
			"a critical alert joins the system's open escalation, which is stat again", bloodPressure(185, 80),
			func(s *ingest.AssessInput) {
				s.Snapshot.Escalations = []escalations.ActiveEscalation{{ID: "e1", Priority: escalations.Routine}, {ID: "e2", Priority: escalations.Urgent, BySystem: true}}
			},
			effects{Alerts: []raised{critical}, Score: 89, Open: 1, Active: 2, Joins: "e2"},
		},
		{
			"a person's escalation is not joined", bloodPressure(185, 80),
			func(s *ingest.AssessInput) {
				s.Snapshot.Escalations = []escalations.ActiveEscalation{{ID: "e1", Priority: escalations.Stat}}
			},
			effects{Alerts: []raised{critical}, Score: 89, Open: 1, Active: 2, Opens: &escalations.Draft{PatientID: "p1", Priority: escalations.Stat, Reason: higher}},
		},
		{
			"an irregular heartbeat only informs", irregular(bloodPressure(120, 80)), nil,
			effects{Alerts: []raised{{"device_info", "normal", "The device reported an irregular heartbeat.", true}}, Score: 1},
		},
		{
			"a normal reading resolves a warning", bloodPressure(120, 80),
			func(s *ingest.AssessInput) { s.Snapshot.Open = open("blood_pressure", alerts.Warning, 0) },
			effects{Progressed: 1, Score: 1},
		},
		{
			"but not yet a critical alert", bloodPressure(120, 80),
			func(s *ingest.AssessInput) { s.Snapshot.Open = open("blood_pressure", alerts.Critical, 0) },
			effects{Progressed: 1, Score: 86, Open: 1},
		},
		{
			"the second one does, and the escalation stays for a person", bloodPressure(120, 80),
			func(s *ingest.AssessInput) {
				s.Snapshot.Open = open("blood_pressure", alerts.Critical, 1)
				s.Snapshot.Escalations = []escalations.ActiveEscalation{{ID: "e1", Priority: escalations.Stat, BySystem: true}}
			},
			effects{Progressed: 1, Score: 86, Active: 1},
		},
		{
			"a missed reading that comes", bloodPressure(120, 80),
			func(s *ingest.AssessInput) {
				s.Snapshot.Open = []alerts.OpenAlert{{ID: "a1", Type: alerts.TypeMissedReading, Level: alerts.NoData, CreatedAt: now.Add(-90 * time.Hour)}}
			},
			effects{Progressed: 1, Score: 1},
		},
		{
			"the patient's own bounds", bloodPressure(185, 80),
			func(s *ingest.AssessInput) { s.Snapshot.Thresholds = thresholds(`{"blood_pressure":null}`) },
			effects{Score: 1},
		},
		{
			"weight is compared with other weights", weight(85),
			func(s *ingest.AssessInput) {
				s.Snapshot.Baseline = []alerts.BaselineValue{{Parameter: vitals.WeightKg, Value: 80, MeasuredAt: now.Add(-time.Hour)}}
			},
			effects{
				Alerts: []raised{{"weight", "critical", "Weight gain of 5 kg within 7 days is at or above the critical limit 4.6 kg.", false}},
				Score:  88, Open: 1, Active: 1,
				Opens: &escalations.Draft{PatientID: "p1", Priority: escalations.Stat, Reason: "Weight gain of 5 kg within 7 days is at or above the critical limit 4.6 kg."},
			},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			input := healthyPatient()
			if test.prepare != nil {
				test.prepare(&input)
			}
			before := input.Snapshot.ComputeRow(now)
			e := ingest.Assess(ingest.Observation{ID: "o1", PatientID: "p1", Reading: test.reading}, input, rules, now)
			got := effects{
				Progressed: len(e.Progress), Score: e.TriageRow.Score.Value,
				Open: e.TriageRow.Unacknowledged, Active: e.TriageRow.ActiveEscalations,
			}
			if d := e.Escalation; d != nil && d.Join == "" {
				got.Opens = &d.Open
			} else if d != nil {
				got.Joins = d.Join
			}
			for _, a := range e.Alerts {
				got.Alerts = append(got.Alerts, raised{a.Finding.Type, string(a.Finding.Level), a.Finding.Message, a.Informative})
				if a.PatientID != "p1" || a.ObservationID != "o1" || !a.MeasuredAt.Equal(test.reading.MeasuredAt) {
					t.Errorf("alert of another reading: %+v", a)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(before, input.Snapshot.ComputeRow(now), ingest.ByValue); diff != "" {
				t.Errorf("assessing changed the situation: %s", diff)
			}
		})
	}
}

func irregular(r vitals.Reading) vitals.Reading {
	r.SetQualifier(vitals.IrregularHeartbeat, vitals.Yes)
	return r
}

// Assess returns the triage row after its effects: with the new alert, without a resolved one, and with the reading as the latest.
func TestAssessTriageRow(t *testing.T) {
	input := healthyPatient()
	input.Snapshot.Recent = []triage.RecentAlert{{Level: alerts.Critical, CreatedAt: now}}
	e := ingest.Assess(ingest.Observation{ID: "o1", Reading: bloodPressure(150, 80)}, input, rules, now)
	points := map[string]float64{}
	for _, factor := range e.TriageRow.Score.Factors {
		points[factor.Factor] = factor.Points
	}
	if diff := cmp.Diff(map[string]float64{"vitals": 24.4, "alerts": 12.5, "floor": 51, "danger": 12}, points); diff != "" {
		t.Error(diff)
	}
	if latest, _ := e.TriageRow.Latest.Value(vitals.Systolic); latest == nil || *latest != 150 || !e.TriageRow.NeedsReview {
		t.Errorf("%+v", e.TriageRow)
	}
	older := healthyPatient()
	older.Snapshot.Latest = triage.Latest{}.With(bloodPressure(120, 80), vitals.OriginDevice)
	e = ingest.Assess(ingest.Observation{Reading: at(bloodPressure(150, 80), now.Add(-48*time.Hour))}, older, rules, now)
	if latest, _ := e.TriageRow.Latest.Value(vitals.Systolic); *latest != 120 || len(e.Alerts) != 1 {
		t.Error("a late reading raises its alert, but is not the latest")
	}
}

// Days begin at the patient's midnight, also across daylight saving changes; totals use the practice's days.
func TestAssessDays(t *testing.T) {
	for _, test := range []struct{ measured, zone, patientDay, countDay string }{
		{"2026-01-15T04:59:59Z", "America/New_York", "2026-01-14", "2026-01-14"},
		{"2026-01-15T05:00:00Z", "America/New_York", "2026-01-15", "2026-01-15"},
		{"2026-01-15T05:00:00Z", "America/Los_Angeles", "2026-01-14", "2026-01-15"},
		{"2026-01-15T13:00:00Z", "Pacific/Auckland", "2026-01-16", "2026-01-15"},
		// The clocks of New York go forward on 8 March 2026 and back on 1 November.
		{"2026-03-08T04:59:59Z", "America/New_York", "2026-03-07", "2026-03-07"},
		{"2026-03-09T03:59:59Z", "America/New_York", "2026-03-08", "2026-03-08"},
		{"2026-03-09T04:00:00Z", "America/New_York", "2026-03-09", "2026-03-09"},
		{"2026-11-01T03:59:59Z", "America/New_York", "2026-10-31", "2026-10-31"},
		{"2026-11-02T04:59:59Z", "America/New_York", "2026-11-01", "2026-11-01"},
		{"2026-11-02T05:00:00Z", "America/New_York", "2026-11-02", "2026-11-02"},
	} {
		measured, err := time.Parse(time.RFC3339, test.measured)
		if err != nil {
			t.Fatal(err)
		}
		input := healthyPatient()
		input.PatientZone = zone(test.zone)
		e := ingest.Assess(ingest.Observation{Reading: at(bloodPressure(120, 80), measured)}, input, rules, now)
		if e.PatientDay != test.patientDay || e.CountDay != test.countDay {
			t.Errorf("%s in %s: day %s, count %s", test.measured, test.zone, e.PatientDay, e.CountDay)
		}
	}
}

func TestAssessDeliveryAndBilling(t *testing.T) {
	for _, test := range []struct {
		source           vitals.Source
		origin           vitals.Origin
		assigned, counts bool
		fhirStatus       string
		transmits        bool
	}{
		{vitals.SourceGateway, "", true, true, collections.FHIRPending, true},
		{vitals.SourceGateway, vitals.OriginImport, true, true, "", false},
		{vitals.SourceAPI, vitals.OriginMachine, true, true, "", false},
		{vitals.SourceAPI, vitals.OriginMachine, false, false, "", false},
		{vitals.SourceAPI, "", true, false, "", false}, // entered by staff, with a device named
		{vitals.SourceGateway, vitals.OriginStaff, true, false, "", false},
		{vitals.SourceGateway, "", false, false, "", false},
		{vitals.SourcePortal, "", true, false, "", false}, // entered by the patient, not sent by a device
	} {
		input := healthyPatient()
		input.DeviceAssigned = test.assigned
		e := ingest.Assess(ingest.Observation{Reading: bloodPressure(120, 80), Source: test.source, Origin: test.origin, FHIRStatus: test.fhirStatus},
			input, rules, now)
		if e.DeviceReading != test.counts || e.Transmit != test.transmits {
			t.Errorf("%+v: counts %t, transmits %t", test, e.DeviceReading, e.Transmit)
		}
	}
}

// The message of a late reading states when it was measured; the message of any other reading does not.
func TestLateReadingIsDated(t *testing.T) {
	const message = "Systolic 185 mmHg is at or above the critical limit 180."
	for _, test := range []struct {
		after, age time.Duration
		want       string
	}{
		{24 * time.Hour, 24 * time.Hour, message},
		{24 * time.Hour, 24*time.Hour + time.Microsecond, message + " Measured 2026-01-14T13:44:59.999999Z."},
		{24 * time.Hour, 90 * 24 * time.Hour, message + " Measured 2025-10-17T13:45:00Z."},
		{6 * time.Hour, 6*time.Hour + time.Second, message + " Measured 2026-01-15T07:44:59Z."},
		{72 * time.Hour, 72 * time.Hour, message},
		{0, 90 * 24 * time.Hour, message},
	} {
		by := rules
		by.LateAfter = test.after
		effects := ingest.Assess(ingest.Observation{Reading: at(bloodPressure(185, 80), now.Add(-test.age))}, healthyPatient(), by, now)
		if len(effects.Alerts) != 1 {
			t.Fatalf("%s old: %+v", test.age, effects.Alerts)
		}
		raised := effects.Alerts[0]
		if dated := raised.Finding.Message != message; raised.Finding.Message != test.want || raised.Late != dated {
			t.Errorf("%s old, late after %s: %q, late %t", test.age, test.after, raised.Finding.Message, raised.Late)
		}
	}
}

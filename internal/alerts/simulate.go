package alerts

import (
	"context"
	"errors"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// Limits of a simulation. Beyond them it samples every nth patient and reports the n.
// Source: docs/decisions/alerts.md, "Threshold what-if".
const (
	SimulatedDays     = 90
	simulatedPatients = 10_000
	simulatedReadings = 300_000
	simulatedPage     = 500
	maxWindowDays     = 30 + 2 // days a weight rule may look back, plus the partial ones
)

// Proposal is what a simulation tests.
type Proposal struct {
	PatientID string // "" for all patients
	// CareTeamOf limits the patients to the care teams of this user (record id); "" for all.
	CareTeamOf string
	Change     ThresholdChange
}

// ReadProposal checks the body of a simulation: thresholds as for a change, an optional patient and no reason, since nothing is changed.
func (b ThresholdChangeBody) ReadProposal(c *validate.Checks) Proposal {
	return Proposal{PatientID: c.UUID("patient_id", member[string](b, "patient_id"), false), Change: b.readGroups(c, answerMembers...)}
}

// SimulationResult is the outcome of a simulation.
type SimulationResult struct {
	*Simulation
	From, To time.Time
	// One in SampleEvery of PatientsTotal patients was evaluated.
	PatientsTotal, SampleEvery int
	// Complete is false if the time limit ended the simulation early.
	Complete bool
}

// Simulate compares the alerts of the last 90 days with those that proposed thresholds would have raised. For one patient the proposal
// replaces the patient's own bounds; for all it replaces the practice's defaults, and patients keep bounds of their own. It reads patient
// by patient in bounded memory, and stops when ctx ends.
func Simulate(ctx context.Context, app core.App, p Proposal, zone *time.Location, now time.Time) (SimulationResult, error) {
	outcome := SimulationResult{From: now.AddDate(0, 0, -SimulatedDays), To: now, SampleEvery: 1, Complete: true}
	outcome.Simulation = NewSimulation(outcome.From, now, zone)
	practice, own, err := collections.FindThresholds(app, p.PatientID)
	if err != nil {
		return outcome, err
	}
	before, _, err := parseConfiguration(p.PatientID, practice, own)
	if err != nil {
		return outcome, err
	}
	after := p.Change.applyTo(before.own)
	checks := validate.NewChecks()
	after.check(checks, p.PatientID, p.Change.names)
	before.checkInherited(checks, p.PatientID, after)
	if err := checks.Err(); err != nil {
		return outcome, err
	}
	patients := collections.BoundedPatients{PatientID: p.PatientID, CareTeamOf: p.CareTeamOf}
	s := simulator{app: app, outcome: &outcome, patients: patients, zone: zone}
	s.inForce = func(own Bounds, ageGroup string, proposed []ProposedTemplate) Thresholds {
		if p.PatientID != "" {
			return inForceWith(before.practice, after, proposed)
		}
		return inForceWith(defaultsOf(after, ageGroup), own, proposed)
	}
	err = s.run(ctx)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		outcome.Complete, err = false, nil
	}
	return outcome, err
}

// watchedColumns are the columns of the meal marker and of the parameters that have thresholds.
var watchedColumns = vitals.MealContext.Name + ", " + vitals.Columns(vitals.ThresholdParameters)

type simulator struct {
	app      core.App
	outcome  *SimulationResult
	patients collections.BoundedPatients
	zone     *time.Location
	inForce  func(own Bounds, ageGroup string, proposed []ProposedTemplate) Thresholds
}

func (s *simulator) run(ctx context.Context) error {
	o := s.outcome
	var err error
	if o.PatientsTotal, err = s.patients.Count(ctx, s.app); err != nil {
		return err
	}
	readings, err := collections.TotalReadings(s.app, o.From.Format(time.DateOnly), "~", "")
	if err != nil {
		return err
	}
	if o.PatientsTotal > 1 {
		o.SampleEvery = max(1, (o.PatientsTotal+simulatedPatients-1)/simulatedPatients, (readings+simulatedReadings-1)/simulatedReadings)
	}
	for after, seen := "", 0; ; {
		page, err := s.patients.Page(ctx, s.app, after, simulatedPage)
		if err != nil {
			return err
		}
		for _, patient := range page {
			after = patient.PatientID
			if seen++; (seen-1)%o.SampleEvery != 0 {
				continue
			}
			own, err := ParseBounds(patient.Bounds)
			if err != nil {
				return err
			}
			templates, err := parseProposed(patient.Proposed)
			if err != nil {
				return err
			}
			proposed := s.inForce(own, patient.AgeGroup, templates).In(collections.Zone(patient.TimeZone, s.zone))
			if err := s.addPatient(ctx, patient.PatientID, proposed); err != nil {
				return err
			}
		}
		if len(page) < simulatedPage {
			return nil
		}
	}
}

// addPatient evaluates all readings of one patient.
func (s *simulator) addPatient(ctx context.Context, patientID string, proposed Thresholds) error {
	raised, err := s.raised(ctx, patientID)
	if err != nil {
		return err
	}
	var baseline []BaselineValue
	since := s.outcome.From.AddDate(0, 0, -maxWindowDays)
	err = collections.EachReading(ctx, s.app, patientID, since, watchedColumns, func(rows *dbx.Rows) error {
		var id, kind, measuredAt, meal string
		var r vitals.Reading
		columns := []any{&id, &kind, &measuredAt, &meal}
		for _, p := range vitals.ThresholdParameters {
			columns = append(columns, r.ValuePtr(p))
		}
		if err := rows.Scan(columns...); err != nil {
			return err
		}
		r.Kind, r.MeasuredAt = vitals.Kind(kind), collections.ParseInstant(measuredAt)
		r.SetQualifier(vitals.MealContext, meal)
		s.outcome.Add(id, patientID, r, proposed, baseline, raised[id])
		for _, p := range vitals.ChangeParameters {
			if value := r.Value(p); value != nil {
				for len(baseline) > 0 && baseline[0].MeasuredAt.Before(r.MeasuredAt.AddDate(0, 0, -maxWindowDays)) {
					baseline = baseline[1:]
				}
				baseline = append(baseline, BaselineValue{Parameter: p, Value: *value, MeasuredAt: r.MeasuredAt})
			}
		}
		return nil
	})
	s.outcome.Patients++
	return err
}

// raised returns the alerts that the patient's readings raised, by observation.
func (s *simulator) raised(ctx context.Context, patientID string) (map[string][]PastAlert, error) {
	rows, err := collections.RaisedAlerts(ctx, s.app, patientID, s.outcome.From.AddDate(0, 0, -1))
	if err != nil {
		return nil, err
	}
	raised := map[string][]PastAlert{}
	for _, row := range rows {
		raised[row.Observation] = append(raised[row.Observation], PastAlert{row.Type, row.Parameter, Level(row.Level), row.Value, row.Threshold})
	}
	return raised, nil
}

// Tally counts alerts by level.
type Tally struct {
	Critical int `json:"critical"`
	Warning  int `json:"warning"`
}

func (t *Tally) add(level Level) {
	switch level {
	case Critical:
		t.Critical++
	case Warning:
		t.Warning++
	}
}

// DayTally is one day of a simulation: alerts raised, and alerts that the proposal would raise.
type DayTally struct {
	Day               string // YYYY-MM-DD
	Actual, Simulated Tally
}

// PastAlert is an alert that a reading raised.
type PastAlert struct {
	Type, Parameter  string
	Level            Level
	Value, Threshold *float64
}

// MissedAlert is a reading that raised a critical alert and would not under the proposed thresholds.
type MissedAlert struct {
	ObservationID, PatientID string
	MeasuredAt               time.Time
	Raised                   PastAlert
	// Simulated is the level that would be raised instead; "" for none.
	Simulated Level
}

// maxMissedListed limits the missed alerts that a simulation lists; all are counted.
const maxMissedListed = 100

// Simulation compares, over many readings, the alerts raised with those that the proposed thresholds would raise.
type Simulation struct {
	Patients, Readings int
	Actual, Simulated  Tally
	Days               []DayTally // every day of the span, in order
	MissedCount        int
	Missed             []MissedAlert // the first 100

	zone *time.Location
	from time.Time
	days map[string]int
}

// NewSimulation covers the calendar days between two times in a zone.
func NewSimulation(from, to time.Time, zone *time.Location) *Simulation {
	s := &Simulation{zone: zone, from: from, days: map[string]int{}, Days: []DayTally{}, Missed: []MissedAlert{}}
	last := to.In(zone).Format(time.DateOnly)
	for day := from.In(zone); ; day = day.AddDate(0, 0, 1) {
		name := day.Format(time.DateOnly)
		if name > last {
			return s
		}
		s.days[name] = len(s.Days)
		s.Days = append(s.Days, DayTally{Day: name})
	}
}

// Add adds one reading: the alerts it raised, and those under the proposed thresholds. baseline holds the patient's earlier weights.
func (s *Simulation) Add(
	observationID, patientID string, r vitals.Reading, proposed Thresholds, baseline []BaselineValue, raised []PastAlert,
) {
	at, counted := s.days[r.MeasuredAt.In(s.zone).Format(time.DateOnly)]
	if !counted || r.MeasuredAt.Before(s.from) {
		return
	}
	day := &s.Days[at]
	s.Readings++
	findings := Evaluate(r, proposed, baseline)
	for _, finding := range findings {
		day.Simulated.add(finding.Level)
		s.Simulated.add(finding.Level)
	}
	for _, alert := range raised {
		if !FromReading(alert.Type) {
			continue // no threshold raised it
		}
		day.Actual.add(alert.Level)
		s.Actual.add(alert.Level)
		if finding, _ := FindingByType(findings, alert.Type); alert.Level == Critical && finding.Level != Critical {
			s.MissedCount++
			if len(s.Missed) < maxMissedListed {
				s.Missed = append(s.Missed, MissedAlert{observationID, patientID, r.MeasuredAt, alert, finding.Level})
			}
		}
	}
}

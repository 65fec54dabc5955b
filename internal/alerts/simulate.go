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

// What a simulation looks at. Of more patients or readings it takes every nth patient, and says so.
// Source: docs/decisions/alerts.md, "Threshold what-if".
const (
	SimulatedDays     = 90
	simulatedPatients = 10_000
	simulatedReadings = 300_000
	simulatedPage     = 500
	longestWindow     = 30 + 2 // days a weight rule may look back, the first of them whole wherever it begins
)

// Proposal is what a simulation tries.
type Proposal struct {
	PatientID string // "" for everybody
	// CareTeamOf keeps the patients whose care team this user (record id) belongs to; "" for all.
	CareTeamOf string
	Change     Change
}

// ReadProposal checks the body of a simulation: thresholds as for a change, perhaps a patient, and no reason, since nothing
// is changed.
func (b ChangeBody) ReadProposal(c *validate.Checks) Proposal {
	return Proposal{PatientID: c.UUID("patient_id", member[string](b, "patient_id"), false), Change: b.readGroups(c)}
}

// Simulated is the outcome of a simulation.
type Simulated struct {
	*Simulation
	From, To time.Time
	// PatientsTotal is how many patients it is about; it looked at one in SampleEvery of them.
	PatientsTotal, SampleEvery int
	// Complete: the time sufficed for all it meant to look at.
	Complete bool
}

// Simulate compares the alerts of the last 90 days with those that proposed thresholds would have raised. For one patient the
// proposal stands in for the patient's own bounds, for all in for the practice's defaults: who has bounds of their own keeps
// them. It reads patient by patient, in bounded memory, and ends early when the time of ctx is up.
func Simulate(ctx context.Context, app core.App, p Proposal, zone *time.Location, now time.Time) (Simulated, error) {
	outcome := Simulated{From: now.AddDate(0, 0, -SimulatedDays), To: now, SampleEvery: 1, Complete: true}
	outcome.Simulation = NewSimulation(outcome.From, now, zone)
	practice, own, err := collections.FindThresholds(app, p.PatientID)
	if err != nil {
		return outcome, err
	}
	before, _, err := configured(p.PatientID, practice, own)
	if err != nil {
		return outcome, err
	}
	after := p.Change.applyTo(before.own)
	checks := validate.NewChecks()
	after.check(checks, p.PatientID, p.Change.names)
	if err := checks.Err(); err != nil {
		return outcome, err
	}
	patients := collections.BoundedPatients{PatientID: p.PatientID, CareTeamOf: p.CareTeamOf}
	s := simulator{app: app, outcome: &outcome, patients: patients, zone: zone, inForce: func(own Bounds, minor bool) Thresholds { return InForce(defaultsOf(after, minor), own) }}
	if p.PatientID != "" {
		s.inForce = func(Bounds, bool) Thresholds { return InForce(before.practice, after) }
	}
	err = s.run(ctx)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		outcome.Complete, err = false, nil
	}
	return outcome, err
}

// watchedColumns are the columns of what has thresholds.
var watchedColumns = vitals.Columns(vitals.Watched)

type simulator struct {
	app      core.App
	outcome  *Simulated
	patients collections.BoundedPatients
	zone     *time.Location
	inForce  func(own Bounds, minor bool) Thresholds
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
			if err := s.judge(ctx, patient.PatientID, s.inForce(own, patient.Minor).In(collections.Zone(patient.TimeZone, s.zone))); err != nil {
				return err
			}
		}
		if len(page) < simulatedPage {
			return nil
		}
	}
}

// judge adds all readings of one patient.
func (s *simulator) judge(ctx context.Context, patientID string, proposed Thresholds) error {
	raised, err := s.raised(ctx, patientID)
	if err != nil {
		return err
	}
	var weighings []Weighing
	since := s.outcome.From.AddDate(0, 0, -longestWindow)
	err = collections.EachReading(ctx, s.app, patientID, since, watchedColumns, func(rows *dbx.Rows) error {
		var id, kind, measuredAt string
		var r vitals.Reading
		columns := []any{&id, &kind, &measuredAt}
		for _, p := range vitals.Watched {
			columns = append(columns, r.Slot(p))
		}
		if err := rows.Scan(columns...); err != nil {
			return err
		}
		r.Kind, r.MeasuredAt = vitals.Kind(kind), collections.ParseInstant(measuredAt)
		s.outcome.Judge(id, patientID, r, proposed, weighings, raised[id])
		for _, p := range vitals.Changing {
			if value := r.Value(p); value != nil {
				for len(weighings) > 0 && weighings[0].MeasuredAt.Before(r.MeasuredAt.AddDate(0, 0, -longestWindow)) {
					weighings = weighings[1:]
				}
				weighings = append(weighings, Weighing{Of: p, Value: *value, MeasuredAt: r.MeasuredAt})
			}
		}
		return nil
	})
	s.outcome.Patients++
	return err
}

// raised are the alerts that the patient's readings really raised, by observation.
func (s *simulator) raised(ctx context.Context, patientID string) (map[string][]Raised, error) {
	rows, err := collections.RaisedAlerts(ctx, s.app, patientID, s.outcome.From.AddDate(0, 0, -1))
	if err != nil {
		return nil, err
	}
	raised := map[string][]Raised{}
	for _, row := range rows {
		raised[row.Observation] = append(raised[row.Observation], Raised{row.Type, row.Parameter, Level(row.Level), row.Value, row.Threshold})
	}
	return raised, nil
}

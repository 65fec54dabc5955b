package routes

import (
	"context"
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/input"
	"github.com/vigilhealth/vigil/routes/web"
)

// simulationTime bounds the reading of a what-if; it answers with what it has seen by then.
const simulationTime = 20 * time.Second

// simulationView is what proposed thresholds would have raised in the last 90 days, beside what was raised.
type simulationView struct {
	PatientID      *string       `json:"patient_id"`
	From           string        `json:"from"`
	To             string        `json:"to"`
	PatientsTotal  int           `json:"patients_total"`
	PatientsSeen   int           `json:"patients_seen"`
	SampleEvery    int           `json:"sample_every"`
	Complete       bool          `json:"complete"`
	Readings       int           `json:"readings"`
	Actual         tallyView     `json:"actual"`
	Simulated      tallyView     `json:"simulated"`
	PerDay         []dayView     `json:"per_day"`
	MissedCritical missedSumView `json:"missed_critical"`
}

type tallyView struct {
	Total    int `json:"total"`
	Critical int `json:"critical"`
	Warning  int `json:"warning"`
}

type dayView struct {
	Date      string    `json:"date"`
	Actual    tallyView `json:"actual"`
	Simulated tallyView `json:"simulated"`
}

type missedSumView struct {
	Count    int          `json:"count"`
	Readings []missedView `json:"readings"`
}

type missedView struct {
	ObservationID string   `json:"observation_id"`
	PatientID     string   `json:"patient_id"`
	MeasuredAt    string   `json:"measured_at"`
	Type          string   `json:"type"`
	Parameter     *string  `json:"parameter"`
	Value         *float64 `json:"value"`
	Threshold     *float64 `json:"threshold"`
	Simulated     *string  `json:"simulated_level"`
}

func viewTally(t alerts.Tally) tallyView {
	return tallyView{Total: t.Critical + t.Warning, Critical: t.Critical, Warning: t.Warning}
}

func viewSimulation(p alerts.Proposal, s alerts.Simulated) simulationView {
	view := simulationView{
		PatientID: orNull(p.PatientID), From: input.FormatInstant(s.From), To: input.FormatInstant(s.To), PatientsTotal: s.PatientsTotal,
		PatientsSeen: s.Patients, SampleEvery: s.SampleEvery, Complete: s.Complete, Readings: s.Readings,
		Actual: viewTally(s.Actual), Simulated: viewTally(s.Simulated), PerDay: []dayView{},
		MissedCritical: missedSumView{Count: s.MissedCount, Readings: []missedView{}},
	}
	for _, day := range s.Days {
		view.PerDay = append(view.PerDay, dayView{day.Day, viewTally(day.Actual), viewTally(day.Simulated)})
	}
	for _, m := range s.Missed {
		view.MissedCritical.Readings = append(view.MissedCritical.Readings, missedView{
			m.ObservationID, m.PatientID, input.FormatInstant(m.MeasuredAt), m.Raised.Type, orNull(m.Raised.Parameter), m.Raised.Value,
			m.Raised.Threshold, orNull(string(m.Simulated)),
		})
	}
	return view
}

func (a *api) simulateThresholds(c *web.Call) error {
	var body alerts.ChangeBody
	if err := c.Decode(&body); err != nil {
		return err
	}
	checks := input.NewChecks()
	proposal := body.ReadProposal(checks)
	if err := checks.Err(); err != nil {
		return err
	}
	if proposal.PatientID != "" {
		if _, err := collections.FindPatient(c.App, proposal.PatientID); err != nil {
			return fault.IfMissing(err)
		}
	}
	var err error
	if proposal.CareTeamOf, err = a.team(c, proposal.PatientID); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), simulationTime)
	defer cancel()
	simulated, err := alerts.Simulate(ctx, c.App, proposal, a.Zone, c.Now)
	if err != nil {
		return err
	}
	err = audit.Append(c.App, audit.Entry{
		Event: audit.ThresholdWhatIf, Actor: c.Actor(), ResourceType: audit.ResourceThresholds, ResourceID: proposal.PatientID, PatientID: proposal.PatientID,
	}, c.Now)
	if err != nil {
		return err
	}
	return c.OK(viewSimulation(proposal, simulated))
}

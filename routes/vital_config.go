package routes

import (
	"context"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vitals"
	"github.com/vigilhealth/vigil/routes/web"
)

// thresholdsView holds the bounds in force. A disabled group is null.
type thresholdsView = validate.OrderedObject

// shownSides is the order of the bounds.
var shownSides = []vitals.Bound{vitals.High, vitals.FastingHigh, vitals.Critical, vitals.Low, vitals.CriticalLow}

// thresholdsFor renders a threshold set; the portal does not show which user changed it.
func thresholdsFor(c *web.Call) func(alerts.Configuration) thresholdsView {
	return func(configured alerts.Configuration) (view thresholdsView) {
		view.Add("patient_id", orNull(configured.PatientID))
		for _, group := range alerts.Groups {
			if slices.Contains(configured.Off, group) {
				view.Add(group, nil)
				continue
			}
			view.Add(group, viewGroup(group, configured.InForce))
		}
		if c.Caller.Role == authz.Patient {
			configured.UpdatedBy = ""
		}
		view.Add("updated_at", instantOrNull(configured.UpdatedAt))
		view.Add("updated_by", orNull(configured.UpdatedBy))
		view.Add("is_default", configured.Default)
		view.Add("templates", viewApplied(c, configured.Templates))
		view.Add("provisional", append([]alerts.ProvisionalBound{}, configured.Provisional...))
		return view
	}
}

// viewApplied lists the templates applied to a patient, without their bounds, and without names of staff for portal users.
func viewApplied(c *web.Call, applied []collections.AppliedTemplate) []collections.AppliedTemplate {
	shown := append([]collections.AppliedTemplate{}, applied...)
	for i := range shown {
		shown[i].Bounds = nil
		if c.Caller.Role == authz.Patient {
			shown[i].By = ""
		}
	}
	return shown
}

func viewGroup(group string, t alerts.Thresholds) (view validate.OrderedObject) {
	for _, p := range vitals.ThresholdParameters {
		switch rule := t.Change(p); {
		case p.Group != group:
		case p.Change != nil:
			view.Add(p.Change.Threshold, rule.Change)
			view.Add(p.Change.Window, rule.WindowDays)
			view.Add(p.Change.Critical, rule.CriticalChange)
			view.Add(p.Change.Daily, rule.Daily)
			view.Add(p.Change.Target, rule.Target)
			view.Add(p.Change.Over, rule.Over)
			view.Add(p.Change.SlowGain, rule.SlowGain)
			view.Add(p.Change.SlowCritical, rule.SlowCritical)
			for _, loss := range p.Change.Losses {
				view.Add(loss.Field, rule.Loss(loss.Days))
			}
		default:
			for _, side := range shownSides {
				if slices.Contains(p.Bounds, side) {
					view.Add(p.Prefix+string(side), t.Limits(p).Bound(side))
				}
			}
		}
	}
	return view
}

func (a *api) readThresholds(c *web.Call, patient *collections.Patient) error {
	configured, err := alerts.Configured(c.App, patient.Id)
	if err == nil {
		err = c.RecordRead(audit.PatientRead, audit.ResourceThresholds, patient.Id, patient.Id)
	}
	return web.RespondWith(c.OK, thresholdsFor(c))(configured, err)
}

func (a *api) updateThresholds(c *web.Call, patient *collections.Patient) error {
	return a.setThresholds(c, patient.Id)
}

func (a *api) readDefaultThresholds(c *web.Call) error {
	return web.RespondWith(c.OK, thresholdsFor(c))(alerts.Configured(c.App, ""))
}

func (a *api) updateDefaultThresholds(c *web.Call) error {
	err := a.setThresholds(c, "")
	if err == nil && a.DefaultsChanged != nil {
		a.DefaultsChanged()
	}
	return err
}

func (a *api) setThresholds(c *web.Call, patientID string) error {
	set := withAlerts(a.ReadingStore, triage.SetThresholds)
	if patientID == "" {
		set = triage.SetThresholds
	}
	return change(c, patientID, fromBody(alerts.ThresholdChangeBody.Read), set, web.RespondWith(c.OK, thresholdsFor(c)))
}

// withAlerts wraps a change of a patient's bounds: its transaction also raises the alerts about
// values that the new bounds make critical.
func withAlerts[T any](
	readings *ingest.ReadingStore, set func(core.App, string, T, audit.Actor, time.Time) (alerts.Configuration, error),
) func(core.App, string, T, audit.Actor, time.Time) (alerts.Configuration, error) {
	return func(app core.App, patientID string, wanted T, by audit.Actor, now time.Time) (c alerts.Configuration, err error) {
		err = app.RunInTransaction(func(tx core.App) error {
			if c, err = set(tx, patientID, wanted, by, now); err != nil {
				return err
			}
			return readings.AlertByNewBounds(tx, patientID, by, now)
		})
		return c, err
	}
}

// thresholdChangeView is an entry of the threshold change log; patient_id is null for the practice's defaults.
type thresholdChangeView struct {
	ID        int64    `json:"id"`
	PatientID *string  `json:"patient_id"`
	ChangedBy string   `json:"changed_by"`
	ChangedAt *string  `json:"changed_at"`
	Field     string   `json:"field"`
	OldValue  *float64 `json:"old_value"`
	NewValue  *float64 `json:"new_value"`
	Reason    *string  `json:"reason"`
}

func viewThresholdChange(change *collections.ThresholdChange) thresholdChangeView {
	return thresholdChangeView{
		ID: change.Number(), PatientID: orNull(change.PatientID()), ChangedBy: change.ChangedBy(), ChangedAt: instantOrNull(change.ChangedAt()),
		Field: change.Field(), OldValue: change.OldValue(), NewValue: change.NewValue(), Reason: orNull(change.Reason().Reveal()),
	}
}

func (a *api) listThresholdChanges(c *web.Call) (err error) {
	q, p := c.Listing()
	between := q.Between()
	filter := collections.ThresholdChangeFilter{
		PatientID: q.PatientID(), Field: q.OneOf("field", alerts.ChangeLogFields()...),
		ChangedBy: q.Text("changed_by", 254), From: between.From, To: between.To,
	}
	if filter.CareTeamOf, err = a.careTeamFilterAfter(c, q, filter.PatientID); err != nil {
		return err
	}
	return list(c, p, audit.ResourceThresholds, eachWithoutLookup(viewThresholdChange))(collections.PageOfThresholdChanges(c.App, filter, p.Offset(), p.Size))
}

// simulationTime limits how long a simulation reads; it answers with the data read by then.
const simulationTime = 20 * time.Second

// simulationView compares the alerts that proposed thresholds would have raised in the last 90 days with those raised.
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

func viewSimulation(p alerts.Proposal, s alerts.SimulationResult) simulationView {
	view := simulationView{
		PatientID: orNull(p.PatientID), From: validate.FormatInstant(s.From), To: validate.FormatInstant(s.To), PatientsTotal: s.PatientsTotal,
		PatientsSeen: s.Patients, SampleEvery: s.SampleEvery, Complete: s.Complete, Readings: s.Readings,
		Actual: viewTally(s.Actual), Simulated: viewTally(s.Simulated), PerDay: []dayView{},
		MissedCritical: missedSumView{Count: s.MissedCount, Readings: []missedView{}},
	}
	for _, day := range s.Days {
		view.PerDay = append(view.PerDay, dayView{day.Day, viewTally(day.Actual), viewTally(day.Simulated)})
	}
	for _, m := range s.Missed {
		view.MissedCritical.Readings = append(view.MissedCritical.Readings, missedView{
			m.ObservationID, m.PatientID, validate.FormatInstant(m.MeasuredAt), m.Raised.Type, orNull(m.Raised.Parameter), m.Raised.Value,
			m.Raised.Threshold, orNull(string(m.Simulated)),
		})
	}
	return view
}

func (a *api) simulateThresholds(c *web.Call) error {
	proposal, err := web.Read(c, alerts.ThresholdChangeBody.ReadProposal)
	if err != nil {
		return err
	}
	if proposal.PatientID != "" {
		if _, err := collections.FindPatient(c.App, proposal.PatientID); err != nil {
			return fault.OrMissing(err)
		}
	}
	if proposal.CareTeamOf, err = a.careTeamFilter(c, proposal.PatientID); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), simulationTime)
	defer cancel()
	simulated, err := alerts.Simulate(ctx, c.App, proposal, a.Zone, c.Now)
	if err != nil {
		return err
	}
	err = audit.Append(c.App, audit.Entry{
		Event: audit.ThresholdSimulate, Actor: c.Actor(), ResourceType: audit.ResourceThresholds, ResourceID: proposal.PatientID, PatientID: proposal.PatientID,
	}, c.Now)
	return c.Respond(viewSimulation(proposal, simulated), err)
}

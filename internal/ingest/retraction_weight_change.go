package ingest

import (
	"slices"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// correctComparisons corrects alerts of later readings that were compared with the retracted one, such as a weight gain over another
// person's weight.
func (w *retraction) correctComparisons() error {
	var groups [][]*vitals.Parameter
	for _, group := range groupsPresent(w.observation.Reading) {
		if group[0].Change != nil {
			groups = append(groups, group)
		}
	}
	if len(groups) == 0 {
		return nil
	}
	others, err := measuredAfter(w.tx, w.observation.PatientID, groups, w.observation.Reading.MeasuredAt, w.observation.ID)
	if err != nil || len(others) == 0 {
		return err
	}
	ids := make([]string, len(others))
	for i, o := range others {
		ids[i] = o.ID
	}
	raised, err := collections.AlertsOfObservations(w.tx, ids...)
	if err != nil || len(raised) == 0 {
		return err
	}
	sequence, err := w.sequence(groups, w.observation.Reading.MeasuredAt)
	if err != nil {
		return err
	}
	for i, o := range others {
		for _, alert := range raised[o.ID] {
			if err := w.correctChangeAlert(o, alert, sequence[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// correctChangeAlert retracts a change alert that no longer holds, and raises the corrected one.
func (w *retraction) correctChangeAlert(o Observation, alert *collections.Alert, r alerts.Evaluated) error {
	changes := slices.ContainsFunc(vitals.ChangeWatched, func(p *vitals.Parameter) bool { return p.Group == alert.Type() })
	if _, err := alerts.Next(alerts.Status(alert.Status()), alerts.Resolve); err != nil || !changes {
		return nil //nolint:nilerr // closed already
	}
	finding, _ := alerts.FindingOf(r.Findings, alert.Type())
	if value := alert.Value(); finding.Breached() && (alert.Acknowledged() || value != nil && *value == finding.Value) {
		return nil // an acknowledged alert stays while any breach remains
	}
	action := alerts.Action{Move: alerts.Resolve, Notes: "The reading it was compared with was entered in error."}
	if err := alerts.Act(w.tx, alert, action, w.by, w.now); err != nil {
		return err
	}
	if err := alert.Retract(w.tx, alerts.ReasonRetracted, w.now); err != nil {
		return err
	}
	w.raised = append(w.raised, alert) // for its escalation
	if !finding.Breached() {
		return nil
	}
	corrected := alertDraft(o, finding, false)
	corrected.Late, corrected.Snoozed = alert.Late(), alert.Snoozed()
	if w.readings.rules.isLate(corrected.MeasuredAt, w.now) {
		corrected.Finding.AddMeasuredAt(corrected.MeasuredAt)
	}
	if finding.Level == alerts.Critical {
		corrected.EscalationID = alert.EscalationID()
	}
	return raiseAndAnnounce(w.tx, corrected, w.now)
}

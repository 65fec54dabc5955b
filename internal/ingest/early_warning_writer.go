package ingest

import (
	"strconv"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/escalations"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// earlyWarningWriter writes the early warnings of one patient.
type earlyWarningWriter struct {
	tx        core.App
	batch     *writeBatch
	patientID string
	row       patientRow
	by        audit.Actor
	now       time.Time
	changed   bool
	lowered   alerts.EarlyWarning // what a withdrawn critical alert should have been; its level is "" for none
}

// correct lowers the sum of an active alert after an older value arrived, and retracts one that is
// no longer critical. isThere: the alert stays. history must cover the hour before the alert.
func (w *earlyWarningWriter) correct(alert *collections.Alert, rules alerts.EarlyWarningRules, history []alerts.ScoredValue) (isThere bool, err error) {
	isKnown := alert.MeasuredAt().After(w.now.Add(time.Hour - earlyWarningHistory))
	if alerts.Status(alert.Status()) != alerts.StatusActive || !isKnown || alert.Value() == nil {
		return true, nil
	}
	found := rules.ScoreAt(history, alert.MeasuredAt())
	switch {
	case alert.Level() == string(alerts.Critical) && found.Level != alerts.Critical:
		w.lowered = found
		return false, w.end(alert, alerts.ReasonRetracted)
	case alert.Level() == string(found.Level) && float64(found.Sum) < *alert.Value():
		return true, w.show(alert, found)
	}
	return true, nil
}

// raise stores an alert unless one of its run has at least its level; that one is updated.
func (w *earlyWarningWriter) raise(worst alerts.EarlyWarning, covering []*collections.Alert) error {
	for _, alert := range covering {
		if alert.Level() != string(worst.Level) && alert.Level() != string(alerts.Critical) {
			continue
		}
		return w.refresh(alert, worst)
	}
	for _, alert := range covering { // a warning of the run: the patient is worse
		if alerts.Status(alert.Status()) == alerts.StatusActive {
			if err := w.end(alert, alerts.ReasonSuperseded); err != nil {
				return err
			}
		}
	}
	return w.store(worst, len(covering) > 0)
}

// refresh stores a greater sum in the run's alert, or after an acknowledgment the newest time.
func (w *earlyWarningWriter) refresh(alert *collections.Alert, worst alerts.EarlyWarning) error {
	if !alert.HeldUntil().IsZero() && worst.WaitsUntil.IsZero() { // a repeat confirms it, or other values call for it as well
		if err := w.endHold(alert); err != nil {
			return err
		}
	}
	value, status := alert.Value(), alerts.Status(alert.Status())
	isWorse := value == nil || float64(worst.Sum) > *value
	isNewer := status == alerts.StatusAcknowledged && alert.Level() == string(worst.Level) && worst.At.After(alert.MeasuredAt())
	if status != alerts.StatusActive && status != alerts.StatusAcknowledged || alert.Level() != string(worst.Level) || !isWorse && !isNewer {
		return nil
	}
	return w.show(alert, worst)
}

// endHold escalates a held alert.
func (w *earlyWarningWriter) endHold(alert *collections.Alert) error {
	w.changed = true
	if err := alert.EndHold(w.tx); err != nil {
		return err
	}
	snapshot, err := triage.ReadSnapshot(w.tx, w.patientID, nil, w.now)
	if err != nil {
		return err
	}
	return w.batch.appendDirectly(w.tx, func() error { return endEarlyWarningHold(w.tx, alert, snapshot, w.now) })
}

// show stores another score in an open alert.
func (w *earlyWarningWriter) show(alert *collections.Alert, score alerts.EarlyWarning) error {
	reported, err := score.Reported()
	if err != nil {
		return err
	}
	finding, before := score.Finding(), alert.Value()
	w.changed = true
	if err := alert.StoreFinding(w.tx, finding.Value, phi.Text(finding.Message), reported, score.ObservationID, score.At, w.now); err != nil {
		return err
	}
	changes := audit.Changes{}
	changes.Record("value", formatOptional(before), vitals.FormatNumber(finding.Value))
	return w.audit(audit.AlertNote, alert.Id, changes)
}

func formatOptional(value *float64) string {
	if value == nil {
		return ""
	}
	return vitals.FormatNumber(*value)
}

// end resolves an alert, because its run is over or a graver alert replaces it.
func (w *earlyWarningWriter) end(alert *collections.Alert, reason string) error {
	w.changed = true
	if ended, err := collections.ResolveAlert(w.tx, alert.Id, string(alerts.StatusAutoResolved), alerts.System, w.now); err != nil || !ended {
		return err
	}
	if reason != "" {
		if err := alert.Retract(w.tx, reason, w.now); err != nil {
			return err
		}
	}
	return w.audit(audit.AlertAutoResolve, alert.Id, nil)
}

func (w *earlyWarningWriter) audit(event audit.Event, alertID string, changes audit.Changes) error {
	return w.batch.trail.Add(audit.Entry{
		Event: event, Actor: systemActor(w.by), ResourceType: audit.ResourceAlert, ResourceID: strconv.FormatInt(collections.Number(alertID), 10),
		PatientID: w.patientID, Changes: changes,
	}, w.now)
}

// store raises an alert: an emergency joins or opens a stat escalation, any other score an urgent one.
func (w *earlyWarningWriter) store(worst alerts.EarlyWarning, isWorse bool) error {
	snapshot, err := triage.ReadSnapshot(w.tx, w.patientID, nil, w.now)
	if err != nil {
		return err
	}
	reported, err := worst.Reported()
	if err != nil {
		return err
	}
	w.changed = true
	o := Observation{ID: worst.ObservationID, PatientID: w.patientID}
	draft := alerts.Draft{
		PatientID: w.patientID, ObservationID: o.ID, Finding: worst.Finding(), MeasuredAt: worst.At, Origin: worst.Origin(), ReportedValues: reported,
		WorseThanNotified: isWorse, Urgent: worst.Level != alerts.Critical,
	}
	active, open := snapshot.SystemEscalation()
	effects := Effects{Observation: o, PatientLabel: w.row.label(w.patientID)}
	switch {
	case !open && worst.WaitsUntil.After(w.now):
		draft.Urgent, draft.HeldUntil = false, worst.WaitsUntil
	case draft.Urgent && open:
		draft.Urgent, draft.EscalationID = false, active.ID
	case draft.Urgent:
		effects.Escalation = &escalations.Decision{Open: escalations.Draft{
			PatientID: w.patientID, Priority: escalations.Urgent, Reason: phi.Text(draft.Finding.Message), AssignedTo: w.row.PrimaryProvider,
		}}
	case open && active.Priority != escalations.Stat:
		draft.WorseThanNotified = true
	}
	effects.Alerts = []alerts.Draft{draft}
	if worst.Level == alerts.Critical && draft.HeldUntil.IsZero() {
		effects.decideEscalation(snapshot, w.row.PrimaryProvider, w.now)
	}
	a := effectsWriter{tx: w.tx, batch: w.batch, effects: effects, by: w.by, now: w.now}
	return a.storeAlerts()
}

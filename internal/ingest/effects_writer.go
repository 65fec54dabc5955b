package ingest

import (
	"strconv"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/emr"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/validate"
)

// applyEffects writes the effects of a reading in the caller's transaction, or adds them to its write batch. The observation itself is stored
// already, by the writer or by PocketBase.
func applyEffects(tx core.App, b *writeBatch, e Effects, by audit.Actor, now time.Time) (Outcome, error) {
	a := effectsWriter{tx: tx, batch: b, effects: e, by: by, now: now, outcome: Outcome{Observation: e.Observation}}
	for _, step := range []func() error{a.auditObservation, a.storeAlerts, a.saveProgress, a.saveTriageRow, a.queueDeliveries} {
		if err := step(); err != nil {
			return Outcome{}, err
		}
	}
	b.bounds = append(b.bounds, e.Observation)
	if e.Observation.mergedPart != nil { // counted when it was stored
		a.outcome.Merged = true
		return a.outcome, nil
	}
	b.countReading(e)
	if e.Observation.newlyConfirmed { // counted when it was stored
		return a.outcome, nil
	}
	b.processing = append(b.processing, a.outcome)
	return a.outcome, nil
}

// effectsWriter writes one reading's effects.
type effectsWriter struct {
	tx      core.App
	batch   *writeBatch
	effects Effects
	by      audit.Actor
	now     time.Time
	outcome Outcome
}

// auditObservation records that the observation was created, completed or confirmed.
func (w *effectsWriter) auditObservation() error {
	o, event := w.effects.Observation, audit.ObservationCreate
	var changes audit.Changes
	if !o.reportedAt.IsZero() {
		changes = audit.Changes{collections.ObservationMeasuredAt: {Old: validate.FormatInstant(o.reportedAt), New: validate.FormatInstant(o.Reading.MeasuredAt)}}
	}
	switch {
	case o.mergedPart != nil:
		event = audit.ObservationUpdate
	case o.newlyConfirmed:
		event = audit.ObservationConfirm
	}
	return w.batch.trail.Add(audit.Entry{
		Event: event, Actor: w.by, ResourceType: audit.ResourceObservation, ResourceID: o.ID, PatientID: o.PatientID, Reason: o.confirmNotes, Changes: changes,
	}, w.now)
}

// auditConsequence records an effect in the system's name, with the request id of the caller. id is a numbered record id.
func (w *effectsWriter) auditConsequence(event audit.Event, resource, id string) error {
	return w.batch.trail.Add(audit.Entry{
		Event: event, Actor: systemActor(w.by), ResourceType: resource,
		ResourceID: strconv.FormatInt(collections.Number(id), 10), PatientID: w.effects.Observation.PatientID,
	}, w.now)
}

// storeAlerts stores the alerts and the escalation of the critical and urgent ones. Each refers to the other, so the escalation's number is taken
// first and its row is stored last.
func (w *effectsWriter) storeAlerts() (err error) {
	escalation := ""
	if decision := w.effects.Escalation; decision != nil && decision.Join != "" {
		escalation = decision.Join
	} else if decision != nil {
		if escalation, err = collections.NextID(w.tx, collections.Escalations); err != nil {
			return err
		}
	}
	first := ""
	for _, draft := range w.effects.Alerts {
		escalated := escalates(draft) || draft.Urgent
		if escalated {
			draft.EscalationID = escalation
		}
		id, err := alerts.Store(w.tx, draft, w.now)
		if err != nil {
			return err
		}
		if escalated && !draft.Snoozed && first == "" {
			first = id
		}
		w.outcome.Alerts = append(w.outcome.Alerts,
			RaisedAlert{ID: id, Level: string(draft.Finding.Level), Type: draft.Finding.Type, Message: draft.Finding.Message})
		if err := w.auditConsequence(audit.AlertCreate, audit.ResourceAlert, id); err != nil {
			return err
		}
		if draft.Superseded || draft.ResolvedByLater {
			if err := w.auditConsequence(audit.AlertAutoResolve, audit.ResourceAlert, id); err != nil {
				return err
			}
		}
		if err := w.announceAlert(draft, id); err != nil {
			return err
		}
		if err := w.promptRemeasure(draft); err != nil {
			return err
		}
	}
	w.outcome.EscalationID = escalation
	return w.writeEscalation(escalation, first)
}

// saveProgress stores the reading's effect on earlier alerts.
func (w *effectsWriter) saveProgress() error {
	for _, progress := range w.effects.Progress {
		if err := alerts.SaveProgress(w.tx, progress, w.now); err != nil {
			return err
		}
		if !progress.Resolved {
			continue
		}
		if err := w.auditConsequence(audit.AlertAutoResolve, audit.ResourceAlert, progress.Alert.ID); err != nil {
			return err
		}
	}
	return nil
}

// saveTriageRow stores the patient's new row in the triage list.
func (w *effectsWriter) saveTriageRow() error {
	return triage.SaveRow(w.tx, w.effects.Observation.PatientID, w.effects.TriageRow, w.now)
}

// queueDeliveries queues the observation for the EMR.
func (w *effectsWriter) queueDeliveries() (err error) {
	o := w.effects.Observation
	draft := emr.Draft{ObservationID: o.ID, PatientID: o.PatientID, ObservationType: string(o.Reading.Kind)}
	if o.isQueued {
		return emr.Correct(w.tx, o.ID, w.now)
	}
	if w.effects.Transmit {
		if w.outcome.TransmissionID, err = w.batch.queue.Add(w.tx, draft, w.now); err != nil {
			return err
		}
	}
	if draft.Form = collections.FormHeartRate; w.effects.TransmitHeartRate {
		_, err = w.batch.queue.Add(w.tx, draft, w.now)
	}
	return err
}

// announceAlert announces an alert, unless it is informative, its kind is snoozed, or it replaces one that was announced.
func (w *effectsWriter) announceAlert(draft alerts.Draft, id string) error {
	if draft.Informative || draft.Snoozed || draft.Announced {
		return nil
	}
	return notifications.Announce(w.tx, draft.Announcement(id, w.effects.PatientLabel), w.now)
}

// systemActor returns the system as an actor, with the request id of another actor.
func systemActor(by audit.Actor) audit.Actor {
	system := audit.System()
	system.Origin.RequestID = by.Origin.RequestID
	return system
}

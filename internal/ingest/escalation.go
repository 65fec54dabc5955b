package ingest

import (
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

// escalates reports whether an alert needs immediate attention. A late one is announced and opens no escalation, unless nothing proves its
// device's clock and no newer reading of that device exists.
func escalates(alert alerts.Draft) bool {
	return alert.Finding.Level == alerts.Critical && (!alert.Late || alert.ClockUnproven && !alert.Superseded)
}

// escalateReopened lets a reopened critical alert without an escalation open or join the stat escalation.
func escalateReopened(tx core.App, alert *collections.Alert, now time.Time) error {
	draft := alerts.Draft{
		Finding: alerts.Finding{Level: alerts.Level(alert.Level())}, Late: alert.Late(), ClockUnproven: alert.ClockUnproven(),
	}
	if !escalates(draft) || alert.EscalationID() != "" || !alerts.AboutReading(alert.Type()) {
		return nil
	}
	snapshot, err := triage.ReadSnapshot(tx, alert.PatientID(), nil, now)
	if err != nil {
		return err
	}
	_, _, err = escalations.JoinOrOpen(tx, snapshot.StatTrigger(alert.Id, phi.Text(alert.DisplayMessage())), now)
	return err
}

// decideEscalation decides whether the critical alerts join the patient's escalation by the system, or the first that is not snoozed opens
// one. Source: docs/decisions/alerts.md, "STAT-severity alert" and "Snooze".
func (e *Effects) decideEscalation(snapshot triage.PatientSnapshot, primaryProvider string, now time.Time) {
	active, open := snapshot.SystemEscalation()
	var d *escalations.Decision
	for _, alert := range e.Alerts {
		if !escalates(alert) {
			continue
		}
		if d == nil && (open || !alert.Snoozed) {
			d = &escalations.Decision{Join: active.ID, Open: escalations.Draft{
				PatientID: e.Observation.PatientID, Priority: escalations.Stat, Reason: phi.Text(alert.Finding.Message), AssignedTo: primaryProvider,
			}}
		}
		if open && !alert.Snoozed {
			d.Renotify = d.Renotify || alert.WorseThanNotified || active.NeedsRenotify(now)
			if alert.WorseThanNotified && d.WorseMessage == "" {
				d.WorseMessage = phi.Text(alert.Finding.Message)
			}
		}
	}
	e.Escalation = d
}

// writeEscalation stores the decided escalation with its record id, audits and announces it.
func (w *effectsWriter) writeEscalation(id, alertID string) error {
	if w.effects.Escalation == nil {
		return nil
	}
	d, event := *w.effects.Escalation, audit.EscalationCreate
	if d.Join != "" {
		event = audit.EscalationUpdate
	}
	d.Open.AlertID = alertID
	if err := d.Write(w.tx, id, w.effects.PatientLabel, w.now); err != nil {
		return err
	}
	return w.auditConsequence(event, audit.ResourceEscalation, id)
}

// LastNotified holds the critical values in the most recent announcements.
type LastNotified struct{ Values []alerts.WorstValue }

// loadLastNotified reads the last announced critical values. It queries only if the reading may be critical and the patient has, or
// recently had, an escalation. Source: docs/decisions/alerts.md, "Worse than last notified".
func loadLastNotified(tx core.App, r vitals.Reading, snapshot triage.PatientSnapshot, now time.Time) (*LastNotified, error) {
	if !alerts.MayBeCritical(r, snapshot.Thresholds) || !snapshot.NotifiedOfCritical(now) {
		return nil, nil
	}
	values, err := triage.LastNotified(tx, snapshot, now)
	if _, open := snapshot.SystemEscalation(); err != nil || !open && len(values) == 0 {
		return nil, err
	}
	return &LastNotified{values}, nil
}

// isWorse reports whether an open alert that escalates is worse than the last announced values.
func (ai AssessInput) isWorse(alert alerts.Draft, r vitals.Reading) bool {
	return ai.LastNotified != nil && escalates(alert) && !alert.Snoozed && !alert.IsClosed() && alerts.IsWorse(alert.Finding, r, ai.Snapshot.Thresholds, ai.LastNotified.Values)
}

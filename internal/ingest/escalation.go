package ingest

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/escalations"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// escalates reports whether an alert needs immediate attention. A late one is announced and opens no escalation.
func escalates(alert alerts.Draft) bool { return alert.Finding.Level == alerts.Critical && !alert.Late }

// escalate joins the critical alerts to the patient's open escalation by the system, or opens one for the first that is not snoozed.
// Source: docs/decisions/alerts.md, "STAT-severity alert" and "Snooze".
func (e *Effects) escalate(snapshot triage.PatientSnapshot, primaryProvider string, now time.Time) {
	for _, alert := range e.Alerts {
		if !escalates(alert) {
			continue
		}
		for _, open := range snapshot.Escalations {
			if open.BySystem {
				e.JoinEscalation = open.ID
				e.Renotify = e.Renotify || (!alert.Snoozed && (alert.WorseThanNotified || open.NeedsRenotify(now)))
				if alert.WorseThanNotified && !alert.Snoozed && e.WorseThanNotified == "" {
					e.WorseThanNotified = phi.Text(alert.Finding.Message)
				}
			}
		}
		if e.JoinEscalation == "" && e.OpenEscalation == nil && !alert.Snoozed {
			e.OpenEscalation = &escalations.Draft{
				PatientID: e.Observation.PatientID, Priority: escalations.Stat, Reason: phi.Text(alert.Finding.Message), AssignedTo: primaryProvider,
			}
		}
	}
}

func (a *effectsWriter) escalate(id, alertID string) error {
	switch {
	case a.effects.OpenEscalation != nil:
		draft := *a.effects.OpenEscalation
		draft.AlertID = alertID
		if err := escalations.Store(a.tx, id, draft, a.now); err != nil {
			return err
		}
		if err := a.announceEscalation(id, alertID, "escalation "+id, draft.Reason.Reveal()); err != nil {
			return err
		}
		return a.auditConsequence(audit.EscalationCreate, audit.ResourceEscalation, id)
	case a.effects.JoinEscalation != "":
		reason := escalations.JoinReason(a.effects.WorseThanNotified)
		if err := escalations.Join(a.tx, id, a.effects.Renotify, reason, a.now); err != nil {
			return err
		}
		if a.effects.Renotify {
			key := "escalation " + id + " joined " + collections.Instant(a.now)
			if err := a.announceEscalation(id, alertID, key, reason.Reveal()); err != nil {
				return err
			}
		}
		return a.auditConsequence(audit.EscalationUpdate, audit.ResourceEscalation, id)
	}
	return nil
}

// announceEscalation announces the escalation of the critical alerts.
func (a *effectsWriter) announceEscalation(id, alertID, key, reason string) error {
	return notifications.Announce(a.tx, notifications.Announcement{
		Kind: notifications.EscalationOpened, Severity: string(alerts.Critical), PatientID: a.effects.Observation.PatientID,
		EscalationID: id, AlertID: alertID, Body: a.effects.PatientLabel + ", stat: " + reason, Key: key,
	}, a.now)
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
func (s AssessInput) isWorse(alert alerts.Draft, r vitals.Reading) bool {
	return s.LastNotified != nil && escalates(alert) && !alert.Snoozed && !alert.Closed() && alerts.IsWorse(alert.Finding, r, s.Snapshot.Thresholds, s.LastNotified.Values)
}

package ingest

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/escalations"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// raiseAlert stores and announces the alert of an implausible reading, or merges it into an open one, and opens or joins the stat
// escalation.
func (e *Pipeline) raiseAlert(tx core.App, c quarantinedReading, now time.Time) (err error) {
	late, superseded := e.Readings.IsLate(c.Reading.MeasuredAt, now), false
	if late {
		if superseded, err = c.isSuperseded(tx); err != nil {
			return err
		}
	}
	n := c.decideAlert(late, superseded)
	if merged, err := e.mergeIntoAlert(tx, c, n, now); err != nil || merged {
		return err
	}
	id, err := alerts.Raise(tx, n.draft, now)
	if err != nil {
		return err
	}
	if n.draft.Superseded {
		if err := alerts.AuditAutoResolved(tx, collections.ResolvedAlert{ID: id, PatientID: c.patientID}, now); err != nil {
			return err
		}
	}
	label, err := collections.PatientLabel(tx, c.patientID)
	if err != nil {
		return err
	}
	if n.stat {
		if n.draft.WorseThanNotified, err = c.isWorse(tx, now); err != nil {
			return err
		}
		if err := n.escalate(tx, c.snapshot, id, now); err != nil {
			return err
		}
	}
	return notifications.Announce(tx, n.draft.Announcement(id, label), now)
}

// isWorse reports whether the reading is worse than the last announced critical values.
func (r quarantinedReading) isWorse(tx core.App, now time.Time) (bool, error) {
	lastNotified, err := triage.LastNotified(tx, r.snapshot, now)
	if _, open := r.snapshot.SystemEscalation(); err != nil || !open && len(lastNotified) == 0 {
		return false, err
	}
	var values []alerts.ReportedValue
	for _, p := range vitals.ThresholdParameters {
		if value := r.Reading.Value(p); value != nil {
			values = append(values, alerts.ReportedValue{Parameter: p, Value: *value})
		}
	}
	change, found := r.criticalChange()
	return found && alerts.IsChangeWorse(change, lastNotified) || alerts.IsReportedWorse(values, r.snapshot.Thresholds, lastNotified), nil
}

// renotify announces an alert again.
func (d alertDecision) renotify(tx core.App, snapshot triage.PatientSnapshot, alertID string, now time.Time) error {
	if d.stat {
		if err := d.escalate(tx, snapshot, alertID, now); err != nil {
			return err
		}
	}
	label, err := collections.PatientLabel(tx, d.draft.PatientID)
	if err != nil {
		return err
	}
	announcement := d.draft.Announcement(alertID, label)
	announcement.Key = alerts.RenotifyKey(alertID, collections.FormatInstant(now))
	return notifications.Announce(tx, announcement, now)
}

// escalate joins or opens the stat escalation of the alert.
func (d alertDecision) escalate(tx core.App, snapshot triage.PatientSnapshot, alertID string, now time.Time) error {
	trigger := snapshot.StatTrigger(alertID, phi.Text(d.draft.Finding.Message))
	trigger.IsWorse = d.draft.WorseThanNotified
	_, _, err := escalations.JoinOrOpen(tx, trigger, now)
	return err
}

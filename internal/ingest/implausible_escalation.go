package ingest

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/devices"
	"github.com/vigilhealth/vigil/internal/escalations"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// raiseAlert stores and announces the alert of an implausible reading, or merges it into an open one, and opens or joins the stat
// escalation.
func (e *Pipeline) raiseAlert(tx core.App, c implausibleReading, snapshot triage.PatientSnapshot, now time.Time) (err error) {
	late, superseded := e.Evaluator.IsLate(c.Reading.MeasuredAt, now), false
	if late && !c.wrongClock {
		if superseded, err = c.isSuperseded(tx, snapshot.Thresholds); err != nil {
			return err
		}
	}
	n := c.decideAlert(snapshot, late, superseded)
	if merged, err := e.mergeIntoAlert(tx, c, n, snapshot, now); err != nil || merged {
		return err
	}
	id, err := alerts.Raise(tx, n.draft, now)
	if err != nil {
		return err
	}
	if n.superseded {
		if err := alerts.AuditAutoResolved(tx, collections.ResolvedAlert{ID: id, PatientID: c.patientID}, now); err != nil {
			return err
		}
	}
	if c.wrongClock { // only the clock is reported
		return devices.NoteWrongClock(tx, c.Reading, c.patientID, now)
	}
	label, err := collections.PatientLabel(tx, c.patientID)
	if err != nil {
		return err
	}
	if n.stat {
		if n.draft.WorseThanNotified, err = c.isWorse(tx, snapshot, now); err != nil {
			return err
		}
		if err := openOrJoinEscalation(tx, snapshot, n.draft, id, label, now); err != nil {
			return err
		}
	}
	return n.announce(tx, id, label, now)
}

// isWorse reports whether the reading is worse than the last announced critical values.
func (c implausibleReading) isWorse(tx core.App, snapshot triage.PatientSnapshot, now time.Time) (bool, error) {
	lastNotified, err := triage.LastNotified(tx, snapshot, now)
	if _, open := snapshot.SystemEscalation(); err != nil || !open && len(lastNotified) == 0 {
		return false, err
	}
	var values []alerts.Reported
	for _, p := range vitals.Watched {
		if value := c.Reading.Value(p); value != nil {
			values = append(values, alerts.Reported{Of: p, Value: *value})
		}
	}
	change, found := c.criticalChange(snapshot)
	return found && alerts.IsChangeWorse(change, lastNotified) || alerts.IsReportedWorse(values, snapshot.Thresholds, lastNotified), nil
}

// announce announces the alert; a superseded one only in the app.
func (n alertDecision) announce(tx core.App, alertID, label string, now time.Time) error {
	announcement := notifications.Announcement{
		Kind: notifications.AlertRaised, Severity: string(n.draft.Finding.Level), PatientID: n.draft.PatientID, AlertID: alertID,
		Body: label + ": " + n.draft.Finding.Message, Key: alerts.AnnouncementKey(alertID), AtOnce: n.draft.WorseThanNotified,
	}
	if n.superseded {
		announcement.Kind, announcement.Key = notifications.ReadingSuperseded, announcement.Key+" superseded"
	}
	return notifications.Announce(tx, announcement, now)
}

// renotify announces an alert again.
func (n alertDecision) renotify(tx core.App, snapshot triage.PatientSnapshot, alertID string, now time.Time) error {
	label, err := collections.PatientLabel(tx, n.draft.PatientID)
	if err != nil {
		return err
	}
	if n.stat {
		if err := openOrJoinEscalation(tx, snapshot, n.draft, alertID, label, now); err != nil {
			return err
		}
	}
	return notifications.Announce(tx, notifications.Announcement{
		Kind: notifications.AlertRaised, Severity: string(n.draft.Finding.Level), PatientID: n.draft.PatientID, AlertID: alertID,
		Body: label + ": " + n.draft.Finding.Message, Key: alerts.RenotifyKey(alertID, collections.Instant(now)), AtOnce: n.draft.WorseThanNotified,
	}, now)
}

// openOrJoinEscalation opens the stat escalation of an alert, or joins the alert to the one that the system has open, as for a critical
// reading. Source: docs/decisions/alerts.md, "STAT-severity alert".
func openOrJoinEscalation(tx core.App, snapshot triage.PatientSnapshot, draft alerts.Draft, alertID, label string, now time.Time) error {
	assignee, err := collections.ActiveProviderEmail(tx, draft.PatientID)
	if err != nil {
		return err
	}
	id, opened, err := escalations.OpenOrJoin(tx, escalations.Draft{
		PatientID: draft.PatientID, Priority: escalations.Stat, Reason: phi.Text(draft.Finding.Message), AssignedTo: assignee, AlertID: alertID,
	}, now)
	if err != nil {
		return err
	}
	key, reason := "escalation "+id, draft.Finding.Message
	if !opened {
		again, worse := draft.WorseThanNotified, phi.Text("")
		if draft.WorseThanNotified {
			worse = phi.Text(draft.Finding.Message)
		}
		for _, active := range snapshot.Escalations {
			again = again || (active.ID == id && active.NeedsRenotify(now))
		}
		joined := escalations.JoinReason(worse)
		if err := escalations.Join(tx, id, again, joined, now); err != nil || !again {
			return err
		}
		key, reason = key+" joined "+collections.Instant(now), joined.Reveal()
	}
	return notifications.Announce(tx, notifications.Announcement{
		Kind: notifications.EscalationOpened, Severity: string(alerts.Critical), PatientID: draft.PatientID, EscalationID: id, AlertID: alertID,
		Body: label + ", stat: " + reason, Key: key,
	}, now)
}

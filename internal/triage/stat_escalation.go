package triage

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/escalations"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/phi"
)

// EscalateCritical escalates a critical alert as its reading would have done without a snooze or a hold: the alert joins the system's open
// escalation, which becomes at least stat, or opens one. Users are notified of a joined one now, or when a renotification is due. The
// caller rescores the patient. Source: docs/decisions/alerts.md, "STAT-severity alert".
func EscalateCritical(tx core.App, snapshot PatientSnapshot, alert *collections.Alert, atOnce bool, now time.Time) error {
	patient := alert.PatientID()
	assignee, err := collections.ActiveProviderEmail(tx, patient)
	if err != nil {
		return err
	}
	id, opened, err := escalations.OpenOrJoin(tx, escalations.Draft{
		PatientID: patient, Priority: escalations.Stat, Reason: phi.Text(alert.DisplayMessage()), AssignedTo: assignee, AlertID: alert.Id,
	}, now)
	if err != nil {
		return err
	}
	key, why := "escalation "+id, alert.DisplayMessage()
	if !opened {
		active, _ := snapshot.SystemEscalation()
		again := atOnce || active.NeedsRenotify(now)
		if err := escalations.Join(tx, id, again, escalations.JoinReason(""), now); err != nil || !again {
			return err
		}
		key, why = key+" joined "+collections.Instant(now), escalations.JoinReason("").Reveal()
	}
	label, err := collections.PatientLabel(tx, patient)
	if err != nil {
		return err
	}
	return notifications.Announce(tx, notifications.Announcement{
		Kind: notifications.EscalationOpened, Severity: string(alerts.Critical), PatientID: patient, EscalationID: id, AlertID: alert.Id,
		Body: label + ", stat: " + why, Key: key,
	}, now)
}

// IsMonitored reports whether a patient is neither archived nor deleted.
func IsMonitored(app core.App, patientID string) (bool, error) {
	patient, err := collections.FindPatient(app, patientID)
	if collections.IsNotFound(err) {
		return false, nil
	}
	return err == nil && patient.Active(), err
}

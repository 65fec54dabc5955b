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

// EscalateCritical does for a critical alert what its reading would have done, had it not been snoozed or waited for another one: the alert
// joins the escalation that the system has open for the patient, which is then at least stat, or opens one. People hear anew of one that is
// joined, at once or not before they may. It is part of a change that ranks the patient anew. Source: docs/decisions/alerts.md, "STAT-severity alert".
func EscalateCritical(tx core.App, picture Picture, alert *collections.Alert, atOnce bool, now time.Time) error {
	patient := alert.PatientID()
	assignee, err := collections.ActiveProviderEmail(tx, patient)
	if err != nil {
		return err
	}
	id, opened, err := escalations.OpenBySystem(tx, escalations.Draft{
		PatientID: patient, Priority: escalations.Stat, Reason: phi.Text(alert.MessageShown()), AssignedTo: assignee, AlertID: alert.Id,
	}, now)
	if err != nil {
		return err
	}
	key, why := "escalation "+id, alert.MessageShown()
	if !opened {
		active, _ := picture.OpenBySystem()
		again := atOnce || active.Renotify(now)
		if err := escalations.Join(tx, id, again, escalations.JoinedBy(""), now); err != nil || !again {
			return err
		}
		key, why = key+" joined "+collections.Instant(now), escalations.JoinedBy("").Reveal()
	}
	whom, err := collections.PatientLabel(tx, patient)
	if err != nil {
		return err
	}
	return notifications.Announce(tx, notifications.Announcement{
		Kind: notifications.EscalationOpened, Severity: string(alerts.Critical), PatientID: patient, EscalationID: id, AlertID: alert.Id,
		Body: whom + ", stat: " + why, Key: key,
	}, now)
}

// Watched reports whether a patient is there to be watched over: not archived, not deleted.
func Watched(app core.App, patientID string) (bool, error) {
	patient, err := collections.FindPatient(app, patientID)
	if collections.Missing(err) {
		return false, nil
	}
	return err == nil && patient.Active(), err
}

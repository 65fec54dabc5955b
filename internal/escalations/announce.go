package escalations

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/notifications"
)

// severities of announcements, by priority.
var severities = map[Priority]string{Routine: "info", Urgent: "warning", Stat: "critical"}

// announce tells of an escalation. The text names the patient and why, since it is read away from the list.
func announce(tx core.App, e *collections.Escalation, kind notifications.Kind, userID, key string, now time.Time) error {
	whom, err := collections.PatientLabel(tx, e.PatientID())
	if err != nil {
		return err
	}
	return notifications.Announce(tx, notifications.Announcement{
		Kind: kind, Severity: severities[Priority(e.Priority())], PatientID: e.PatientID(), EscalationID: e.Id, AlertID: e.AlertID(), UserID: userID,
		Key: "escalation " + e.Id + key, Body: whom + ", " + e.Priority() + ": " + e.ReasonShown(),
	}, now)
}

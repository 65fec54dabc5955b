package escalations

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/triage"
)

// severities of announcements, by priority.
var severities = map[triage.Priority]string{triage.Routine: "info", triage.Urgent: "warning", triage.Stat: "critical"}

func announceOpened(tx core.App, record *core.Record, now time.Time) error {
	return announce(tx, record, notifications.EscalationOpened, "", "escalation "+record.Id, now)
}

func announceAssigned(tx core.App, record *core.Record, assignee *collections.User, now time.Time) error {
	key := "escalation " + record.Id + " assigned " + assignee.Id + " " + collections.Instant(now)
	return announce(tx, record, notifications.EscalationAssigned, assignee.Id, key, now)
}

// announce tells of an escalation. The text names the patient and why, since it is read away from the list.
func announce(tx core.App, record *core.Record, kind notifications.Kind, userID, key string, now time.Time) error {
	patientID := record.GetString("patient")
	names, err := patients.Names(tx, []string{patientID})
	if err != nil {
		return err
	}
	priority := record.GetString("priority")
	return notifications.Announce(tx, notifications.Announcement{
		Kind: kind, Severity: severities[triage.Priority(priority)], PatientID: patientID, EscalationID: record.Id,
		AlertID: record.GetString("alert"), UserID: userID, Key: key,
		Body: names[patientID].FirstLast() + " (" + names[patientID].MRN + "), " + priority + ": " + collections.TextOf(record, "reason"),
	}, now)
}

package observations

import (
	"strings"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/notifications"
)

// label names the patient as people do, by the medical record number alone when the name cannot be opened: the alert matters more.
func (h holder) label(patientID string) string {
	first, err := collections.OpenValue(h.FirstName, collections.Patients, collections.PatientFirstName, patientID)
	last, again := collections.OpenValue(h.LastName, collections.Patients, collections.PatientLastName, patientID)
	if err != nil || again != nil {
		first, last = "", collections.UnreadableText
	}
	return strings.TrimSpace(first+" "+last) + " (" + h.MRN + ")"
}

// announceAlert has people told of an alert, unless it only informs or its kind is snoozed.
func (a *application) announceAlert(draft alerts.Draft, id string) error {
	if draft.Informative || draft.Snoozed {
		return nil
	}
	return notifications.Announce(a.tx, notifications.Announcement{
		Kind: notifications.AlertRaised, Severity: string(draft.Finding.Level), PatientID: draft.PatientID, AlertID: id,
		Body: a.effects.PatientLabel + ": " + draft.Finding.Message, Key: alerts.AnnouncementKey(id),
	}, a.now)
}

// announceEscalation has people told of the escalation that critical alerts belong to.
func (a *application) announceEscalation(id, alertID, key, why string) error {
	return notifications.Announce(a.tx, notifications.Announcement{
		Kind: notifications.EscalationOpened, Severity: string(alerts.Critical), PatientID: a.effects.Observation.PatientID,
		EscalationID: id, AlertID: alertID, Body: a.effects.PatientLabel + ", stat: " + why, Key: key,
	}, a.now)
}

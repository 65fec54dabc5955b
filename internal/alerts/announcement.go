package alerts

import (
	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/notifications"
)

// AnnouncementKey makes the announcement of an alert unique; [Trail] finds notifications by it.
func AnnouncementKey(alertID string) string { return "alert " + alertID }

const renotifyInfix = " again "

// RenotifyKey makes the announcement unique that an alert is still open when a snooze ends. [Trail] finds it by the common prefix.
func RenotifyKey(alertID, snoozeID string) string {
	return AnnouncementKey(alertID) + renotifyInfix + snoozeID
}

// Announcement returns the announcement of a raised alert to the care team; a superseded one appears only in the app.
func (d Draft) Announcement(id, patientLabel string) notifications.Announcement {
	a := announcement(id, patientLabel, d.PatientID, string(d.Finding.Level), d.Finding.Message)
	a.AtOnce = d.WorseThanNotified || d.Push.Rule == PushedWorse
	if d.Finding.Type == TypeDeviceClock {
		a.Kind, a.Body, a.Key = notifications.DeviceAlertRaised, d.Finding.Message, TypeDeviceClock+"/"+id
	}
	if d.Superseded {
		a.Kind, a.Key = notifications.ReadingSuperseded, a.Key+" superseded"
	}
	return a
}

// Reannouncement returns the announcement of a stored alert for the reason that the key names.
func Reannouncement(alert *collections.Alert, patientLabel, key string) notifications.Announcement {
	a := announcement(alert.Id, patientLabel, alert.PatientID(), alert.Level(), alert.DisplayMessage())
	a.Key = key
	if alert.Type() == TypeMissedReading {
		a.Kind = notifications.ReadingMissed
	}
	return a
}

func announcement(id, patientLabel, patientID, level, message string) notifications.Announcement {
	return notifications.Announcement{
		Kind: notifications.AlertRaised, Severity: level, PatientID: patientID, AlertID: id, Body: patientLabel + ": " + message, Key: AnnouncementKey(id),
	}
}

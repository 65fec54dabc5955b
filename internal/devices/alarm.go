package devices

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/ranking"
)

// alarm is an alert about a device, to be stored with all that goes with it.
type alarm struct {
	draft alerts.Draft
	kind  notifications.Kind // "" tells nobody
	key   string             // makes telling people one event; the alert's number when empty
}

// raise stores an alert with its audit entry, tells people and ranks the patient anew, in the caller's transaction.
func raise(tx core.App, a alarm, now time.Time) (alertID string, err error) {
	err = ranking.Change(tx, now, func(tx core.App) (string, error) {
		if alertID, err = alerts.Raise(tx, a.draft, now); err != nil || a.kind == "" {
			return a.draft.PatientID, err
		}
		return a.draft.PatientID, notifications.Announce(tx, a.announcement(alertID), now)
	})
	return alertID, err
}

func (a alarm) announcement(alertID string) notifications.Announcement {
	severity := "warning"
	if a.draft.Finding.Level == alerts.Critical {
		severity = "critical"
	}
	key := a.key
	if key == "" {
		key = a.draft.Finding.Type + "/" + alertID
	}
	return notifications.Announcement{
		Kind: a.kind, Severity: severity, PatientID: a.draft.PatientID, AlertID: alertID, Body: a.draft.Finding.Message, Key: key,
	}
}

// resolveAlerts resolves the active alerts of a type about a device or hub; about one patient's only unless patientID is "". Where
// there were any and recovery says how, that is noted for each patient as a piece of information.
func resolveAlerts(tx core.App, deviceID, alertType, patientID, recovery string, now time.Time) error {
	resolved, err := alerts.ResolveAbout(tx, deviceID, alertType, patientID, now)
	if err != nil {
		return err
	}
	for _, alert := range resolved {
		err := ranking.Change(tx, now, func(tx core.App) (string, error) {
			if err := alerts.NoteAutoResolved(tx, alert, now); err != nil || recovery == "" {
				return alert.PatientID, err
			}
			_, err := alerts.Raise(tx, alerts.Draft{
				PatientID: alert.PatientID, DeviceID: deviceID, MeasuredAt: now, Informative: true,
				Finding: alerts.Finding{Type: alerts.TypeDeviceInfo, Level: alerts.Normal, Message: recovery},
			}, now)
			return alert.PatientID, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// monitored reports whether a patient is there to be watched over: not archived, not deleted.
func monitored(app core.App, patientID string) (bool, error) {
	if patientID == "" {
		return false, nil
	}
	patient, err := collections.FindPatient(app, patientID)
	if collections.Missing(err) {
		return false, nil
	}
	return err == nil && patient.Active(), err
}

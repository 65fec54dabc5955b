package devices

import (
	"strconv"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/triage"
)

// alarm is an alert about a device, to be stored with all that goes with it.
type alarm struct {
	draft alerts.Draft
	kind  notifications.Kind // "" tells nobody
	key   string             // makes telling people one event; the alert's number when empty
}

// raise stores an alert with its audit entry, tells people and ranks the patient anew, in the caller's transaction.
func raise(tx core.App, a alarm, now time.Time) (alertID string, err error) {
	if alertID, err = alerts.Store(tx, a.draft, now); err != nil {
		return "", err
	}
	if err := note(tx, audit.AlertCreate, audit.ResourceAlert, alertID, a.draft.PatientID, now); err != nil {
		return "", err
	}
	if a.kind != "" {
		if err := notifications.Announce(tx, a.announcement(alertID), now); err != nil {
			return "", err
		}
	}
	_, err = triage.Rescore(tx, a.draft.PatientID, now)
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
	resolved, err := alerts.AutoResolveAbout(tx, deviceID, alertType, patientID, now)
	if err != nil {
		return err
	}
	for _, alert := range resolved {
		if err := note(tx, audit.AlertAutoResolve, audit.ResourceAlert, alert.ID, alert.PatientID, now); err != nil {
			return err
		}
		if recovery == "" {
			if _, err := triage.Rescore(tx, alert.PatientID, now); err != nil {
				return err
			}
			continue
		}
		info := alerts.Draft{
			PatientID: alert.PatientID, DeviceID: deviceID, MeasuredAt: now, Informative: true,
			Finding: alerts.Finding{Type: alerts.TypeDeviceInfo, Level: alerts.Normal, Message: recovery},
		}
		if _, err := raise(tx, alarm{draft: info}, now); err != nil {
			return err
		}
	}
	return nil
}

// note records what the service did by its rules. id is a numbered record id.
func note(tx core.App, event audit.Event, resource, id, patientID string, now time.Time) error {
	return audit.Append(tx, audit.Entry{
		Event: event, Actor: audit.System(), ResourceType: resource,
		ResourceID: strconv.FormatInt(collections.Number(id), 10), PatientID: patientID,
	}, now)
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

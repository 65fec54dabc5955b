// Package devices manages measuring devices and their hubs: registry, assignment, battery and connection state, and the alerts for silence,
// missed days and stale readings. Its rules are pure functions of events, stored readings and the given time, so a check that runs late or
// twice gives the same result. It does not evaluate readings (alerts), choose recipients (notifications) or call the gateway. Rules:
// docs/decisions/devices.md.
package devices

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// Rules are the settings of the practice.
type Rules struct {
	PracticeZone *time.Location
	// ManagedMode: the practice ships devices, so they are ordered and have an expected date.
	ManagedMode bool
	// DeliveryWorkingDays is the duration of a shipment.
	DeliveryWorkingDays int
	// MissedDaysBeforeEscalation is the number of missed days in a row that opens an escalation.
	MissedDaysBeforeEscalation int
}

// Engine applies the rules.
type Engine struct {
	rules Rules
}

// NewEngine returns an engine with the given rules.
func NewEngine(rules Rules) *Engine { return &Engine{rules: rules} }

var slugForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,49}$`)

// ParseType parses a device type: a kind, a device name of one, or any other slug, which is kept. kind is what the device measures, "" if
// unknown. ok is false for an invalid slug. Source: docs/decisions/devices.md, "Device assignment".
func ParseType(text string) (deviceType string, kind vitals.Kind, ok bool) {
	word := strings.ToLower(text)
	if kind := vitals.Kind(word); kind.Valid() {
		return word, kind, true
	}
	for _, d := range vitals.Definitions {
		if slices.Contains(d.Devices, word) {
			return string(d.Kind), d.Kind, true
		}
	}
	return text, "", slugForm.MatchString(text)
}

// Find returns a device, or a not-found fault.
func Find(app core.App, deviceID string) (*collections.Device, error) {
	device, err := collections.FindDevice(app, deviceID)
	if err != nil {
		return nil, fault.OrMissing(err)
	}
	return device, collections.Readable(device.ProxyRecord())
}

func save(tx core.App, model core.Model) error {
	if err := tx.Save(model); err != nil {
		return fmt.Errorf("store %T: %w", model, err)
	}
	return nil
}

// deviceAlert is an alert about a device, with its notification.
type deviceAlert struct {
	draft           alerts.Draft
	kind            notifications.Kind // "" for no notification
	notificationKey string             // deduplicates the notification; the alert's number if empty
}

// raise stores an alert with its audit entry, announces it and ranks the patient again, in the caller's transaction.
func raise(tx core.App, a deviceAlert, now time.Time) (alertID string, err error) {
	err = triage.UpdateAndRescore(tx, now, func(tx core.App) (string, error) {
		if alertID, err = alerts.Raise(tx, a.draft, now); err != nil || a.kind == "" {
			return a.draft.PatientID, err
		}
		return a.draft.PatientID, notifications.Announce(tx, a.announcement(alertID), now)
	})
	return alertID, err
}

func (a deviceAlert) announcement(alertID string) notifications.Announcement {
	severity := "warning"
	if a.draft.Finding.Level == alerts.Critical {
		severity = "critical"
	}
	return notifications.Announcement{
		Kind: a.kind, Severity: severity, PatientID: a.draft.PatientID, AlertID: alertID, Body: a.draft.Finding.Message,
		Key: cmp.Or(a.notificationKey, a.draft.Finding.Type+"/"+alertID),
	}
}

// resolveAlerts resolves the active alerts of a type about a device or hub; with a patientID, only that patient's. A recovery text is
// stored as an informative alert for each patient.
func resolveAlerts(tx core.App, deviceID, alertType, patientID, recovery string, now time.Time) error {
	resolved, err := alerts.ResolveAbout(tx, deviceID, alertType, patientID, now)
	if err != nil {
		return err
	}
	return noteResolved(tx, resolved, deviceID, recovery, now)
}

// noteResolved records that alerts about a device or hub are resolved, and why.
func noteResolved(tx core.App, resolved []collections.ResolvedAlert, deviceID, recovery string, now time.Time) error {
	for _, alert := range resolved {
		err := triage.UpdateAndRescore(tx, now, func(tx core.App) (string, error) {
			if err := alerts.AuditAutoResolved(tx, alert, now); err != nil || recovery == "" {
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

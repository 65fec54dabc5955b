// Package devices knows the measuring devices and their hubs: who holds which device and since when, how batteries and
// connections stand, and when silence, missed days or readings that never change deserve an alert. What happened is
// told by the gateway's events and by stored readings; the rules are plain functions of that and of the time they are
// handed, so a check that runs late, or twice, comes to the same end. It refuses to judge the values of a reading (see
// alerts), to say who is told and how (see notifications), and to call the gateway.
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
	// ManagedMode: the practice ships devices, so they are ordered and expected at a date.
	ManagedMode bool
	// DeliveryWorkingDays is how long a shipment takes.
	DeliveryWorkingDays int
	// MissedDaysBeforeEscalation is the run of missed days that makes an escalation.
	MissedDaysBeforeEscalation int
}

// Engine applies the rules.
type Engine struct {
	rules Rules
}

// NewEvaluator returns an engine with the given rules.
func NewEngine(rules Rules) *Engine { return &Engine{rules: rules} }

var slugForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,49}$`)

// ParseType reads a device type: a kind, another word for the device of one, or any other slug, kept as sent. kind is what such a
// device measures, "" for the others. ok is false for what is no slug.
// Source: docs/decisions/devices.md, "Device assignment".
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

// Find finds a device, or a not-found fault.
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

// OnHubs returns the devices on the given hubs, by hub.
func OnHubs(app core.App, hubs []collections.Hub, careTeamOf string) (map[string][]*collections.Device, error) {
	on := map[string][]*collections.Device{}
	if len(hubs) == 0 {
		return on, nil
	}
	ids := make([]string, len(hubs))
	for i, hub := range hubs {
		ids[i] = hub.HubID
	}
	found, err := collections.DevicesOnHubs(app, ids, careTeamOf)
	for _, device := range found {
		on[device.HubID()] = append(on[device.HubID()], device)
	}
	return on, err
}

// alarm is an alert about a device, to be stored with all that goes with it.
type alarm struct {
	draft alerts.Draft
	kind  notifications.Kind // "" tells nobody
	key   string             // makes telling people one event; the alert's number when empty
}

// raise stores an alert with its audit entry, tells people and ranks the patient anew, in the caller's transaction.
func raise(tx core.App, a alarm, now time.Time) (alertID string, err error) {
	err = triage.UpdateAndRescore(tx, now, func(tx core.App) (string, error) {
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
	return notifications.Announcement{
		Kind: a.kind, Severity: severity, PatientID: a.draft.PatientID, AlertID: alertID, Body: a.draft.Finding.Message,
		Key: cmp.Or(a.key, a.draft.Finding.Type+"/"+alertID),
	}
}

// resolveAlerts resolves the active alerts of a type about a device or hub; about one patient's only unless patientID is "". Where
// there were any and recovery says how, that is noted for each patient as a piece of information.
func resolveAlerts(tx core.App, deviceID, alertType, patientID, recovery string, now time.Time) error {
	resolved, err := alerts.ResolveAbout(tx, deviceID, alertType, patientID, now)
	if err != nil {
		return err
	}
	return tellResolved(tx, resolved, deviceID, recovery, now)
}

// tellResolved records that alerts about a device or hub are over, and why.
func tellResolved(tx core.App, resolved []collections.EndedAlert, deviceID, recovery string, now time.Time) error {
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

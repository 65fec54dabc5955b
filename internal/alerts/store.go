package alerts

import (
	"cmp"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// Status is the state of an alert.
type Status string

// The alert states. Source: docs/decisions/alerts.md, "Alert status".
const (
	StatusActive       Status = "active"
	StatusAcknowledged Status = "acknowledged"
	StatusResolved     Status = "resolved"
	StatusAutoResolved Status = "auto_resolved"
)

// Statuses lists all states.
var Statuses = []string{string(StatusActive), string(StatusAcknowledged), string(StatusResolved), string(StatusAutoResolved)}

// System is the actor of automatic actions.
const System = "system"

// Draft is an alert to be stored.
type Draft struct {
	PatientID     string
	ObservationID string
	Finding       Finding
	EscalationID  string
	MeasuredAt    time.Time
	Origin        vitals.Origin // forLevel the reading behind it
	// ReportedValues are the values of a quarantined measurement or of an early warning, JSON by field; QuarantineID is the event of the former.
	ReportedValues phi.Text
	QuarantineID   string
	// DeviceID is the device or hub the alert is about; "" if it is about a reading's values.
	DeviceID string
	// OmitsValue alerts leave value and threshold null.
	OmitsValue bool
	// Informative alerts are stored resolved: no action is needed.
	Informative bool
	// Snoozed alerts are stored without a notification. Announced: an alert of the same reading and of this level or a higher one, which it
	// replaces, was announced.
	Snoozed, Announced bool
	// Late: the reading arrived long after it was measured. Superseded: a newer one of its kind was stored first, so the alert is closed at
	// once.
	Late, Superseded bool
	// ClockUnproven: nothing proves the clock of the device, so that a late alert may be about the patient's present state: a critical one
	// escalates, and only readings of the same device supersede it.
	ClockUnproven bool
	// TimeInDoubt: the reading is dated by receipt, and no other reading ends the alert.
	TimeInDoubt bool
	// NormalReadings were measured after the reading but arrived before it; ResolvedByLater: they resolve the alert at once.
	NormalReadings  int
	ResolvedByLater bool
	// WorseThanNotified alerts are notified even right after another notification.
	WorseThanNotified bool
	// Urgent: a warning that opens an urgent escalation.
	Urgent bool
	// HeldUntil is how long the escalation waits for a confirming reading; zero for no hold.
	HeldUntil time.Time
	// Push is whether the alert is pushed, and why.
	Push PushDecision
}

// IsClosed reports whether the alert is stored as needing no action.
func (d Draft) IsClosed() bool { return d.Informative || d.Superseded || d.ResolvedByLater }

// ReasonSuperseded and ReasonRetracted are why the service ended an alert: a newer reading was stored first, or its reading was entered in
// error.
const (
	ReasonSuperseded = "superseded"
	ReasonRetracted  = "withdrawn"
)

// ReasonArchived and ReasonPatientHold are why an alert was resolved with its patient's state.
const (
	ReasonArchived    = "archived"
	ReasonPatientHold = "patient_hold"
)

// Store inserts an alert in the caller's transaction and returns its record id.
func Store(tx core.App, draft Draft, now time.Time) (string, error) {
	id, err := collections.NextID(tx, collections.Alerts)
	if err != nil {
		return "", err
	}
	message, err := collections.Seal(draft.Finding.Message, "alerts.message", id)
	if err != nil {
		return "", fmt.Errorf("seal alert message: %w", err)
	}
	stored := collections.FormatInstant(now)
	row := dbx.Params{
		"id": id, "patient": draft.PatientID, "level": string(draft.Finding.Level), "type": draft.Finding.Type,
		"observation": draft.ObservationID, "parameter": draft.Finding.Parameter, "message": message,
		"status": string(StatusActive), "acknowledged": false, "snoozed": draft.Snoozed, "escalation": draft.EscalationID,
		"device_id": draft.DeviceID, "origin": string(draft.Origin), "measured_at": collections.FormatInstant(draft.MeasuredAt), "created_at": stored, "updated_at": stored,
	}
	if draft.ReportedValues != "" || draft.QuarantineID != "" {
		sealed, err := collections.Seal(draft.ReportedValues.Reveal(), "alerts.reported_values", id)
		if err != nil {
			return "", fmt.Errorf("seal reported values: %w", err)
		}
		row["reported_values"], row["quarantine_id"] = sealed, draft.QuarantineID
	}
	if draft.TimeInDoubt {
		row["time_in_doubt"] = true
	}
	if draft.ClockUnproven {
		row["escalates_late"] = true
	}
	if !draft.HeldUntil.IsZero() {
		row["held_until"] = collections.FormatInstant(draft.HeldUntil)
	}
	if draft.Push.Rule != "" {
		reason, err := collections.Seal(draft.Push.Reason, "alerts.push_reason", id)
		if err != nil {
			return "", fmt.Errorf("seal push reason: %w", err)
		}
		row["push_rule"], row["push_reason"] = string(draft.Push.Rule), reason
	}
	if draft.Informative {
		setClosed(row, StatusResolved, stored)
	} else if !draft.OmitsValue {
		row["value"], row["threshold"] = draft.Finding.Value, draft.Finding.Threshold
	}
	if draft.Late || draft.NormalReadings > 0 || draft.Superseded {
		draft.setLateColumns(row, stored)
	}
	if err := collections.InsertRow(tx, collections.Alerts, row); err != nil {
		return "", fmt.Errorf("store alert: %w", err)
	}
	return id, nil
}

// setLateColumns completes the row of an alert about a reading that is not the newest.
func (d Draft) setLateColumns(row dbx.Params, at string) {
	row["late"], row["normal_readings"] = d.Late, d.NormalReadings
	if d.Superseded {
		row["resolution_reason"] = ReasonSuperseded
	}
	if d.Superseded || d.ResolvedByLater {
		setClosed(row, StatusAutoResolved, at)
	}
}

// setClosed sets the columns of an alert that the system closes.
func setClosed(row dbx.Params, status Status, at string) {
	row["status"], row["acknowledged"] = string(status), true
	row["acknowledged_by"], row["acknowledged_at"] = System, at
	row["resolved_by"], row["resolved_at"] = System, at
}

// SaveProgress stores the effect of a reading on an open alert.
func SaveProgress(tx core.App, s Progress, now time.Time) error {
	at := collections.FormatInstant(now)
	changes := dbx.Params{"normal_readings": s.NormalReadings, "updated_at": at}
	if s.Resolved {
		setClosed(changes, StatusAutoResolved, at)
	}
	if s.Superseded {
		changes["resolution_reason"] = ReasonSuperseded
	}
	_, err := tx.DB().Update(collections.Alerts, changes, dbx.HashExp{"id": s.Alert.ID, "status": string(StatusActive)}).Execute()
	if err != nil {
		return fmt.Errorf("store progress of alert: %w", err)
	}
	return nil
}

// Raise stores an alert that the service raises, with its audit entry, in the caller's transaction.
func Raise(tx core.App, draft Draft, now time.Time) (string, error) {
	id, err := Store(tx, draft, now)
	if err != nil {
		return "", err
	}
	return id, auditAlert(tx, audit.AlertCreate, id, draft.PatientID, nil, audit.System(), now)
}

// ResolveAbout resolves, as the system, the active alerts of a type about a device or hub, of one patient unless patientID is "", in the
// caller's transaction. The caller audits each, see [AuditAutoResolved].
func ResolveAbout(tx core.App, deviceID, alertType, patientID string, now time.Time) ([]collections.ResolvedAlert, error) {
	return collections.ResolveDeviceAlerts(tx, deviceID, alertType, patientID, string(StatusAutoResolved), System, now)
}

// AuditAutoResolved appends the audit entry of an alert that the system resolved.
func AuditAutoResolved(tx core.App, alert collections.ResolvedAlert, now time.Time) error {
	return auditAlert(tx, audit.AlertAutoResolve, alert.ID, alert.PatientID, nil, audit.System(), now)
}

// ResolveOpen resolves all open alerts of a patient, as the system, in the caller's transaction, and returns their record ids.
func ResolveOpen(tx core.App, patientID string, now time.Time) (ids []string, err error) {
	ended, err := collections.ResolvePatientAlerts(tx, patientID, string(StatusResolved), System, now)
	for _, alert := range ended {
		ids = append(ids, alert.ID)
	}
	return ids, err
}

// CloseOpen resolves a patient's open alerts of some types, all for nil, for a reason and with a note, in the caller's transaction. A note that
// would be too long is left out. The caller rescores the patient.
func CloseOpen(tx core.App, patientID string, types []string, reason string, note phi.Text, by audit.Actor, now time.Time) (closed int, err error) {
	open, err := collections.OpenAlertsOfTypes(tx, patientID, types)
	if err != nil {
		return 0, err
	}
	for _, alert := range open {
		action := Action{Move: Resolve, Notes: note}
		if utf8.RuneCountInString(alert.GetString(collections.AlertNotes)+note.Reveal()) >= maxNotes {
			action.Notes = ""
		}
		if err := Act(tx, alert, action, by, now); err != nil {
			return 0, err
		}
		if err := alert.Retract(tx, reason, now); err != nil {
			return 0, err
		}
	}
	return len(open), nil
}

// FromReading reports whether alerts of this type are raised by measured values.
func FromReading(alertType string) bool {
	return alertType == TypeImplausibleReading || alertType == TypeIrregularHeartbeat || slices.Contains(ReadingTypes, alertType)
}

// ActorName returns the name of an actor that is stored with a change: the e-mail address, or system.
func ActorName(by audit.Actor) string { return cmp.Or(by.Email, by.Name, System) }

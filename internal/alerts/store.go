package alerts

import (
	"fmt"
	"slices"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// Status is where an alert stands.
type Status string

// The alert states. Source: docs/decisions/alerts.md, "Alert status".
const (
	StatusActive       Status = "active"
	StatusAcknowledged Status = "acknowledged"
	StatusResolved     Status = "resolved"
	StatusAutoResolved Status = "auto_resolved"
)

// Statuses are all there are.
var Statuses = []string{string(StatusActive), string(StatusAcknowledged), string(StatusResolved), string(StatusAutoResolved)}

// System is the actor of what no person did.
const System = "system"

// Draft is an alert about to be stored.
type Draft struct {
	PatientID     string
	ObservationID string
	Finding       Finding
	EscalationID  string
	MeasuredAt    time.Time
	Origin        vitals.Origin // of the reading behind it
	// ReportedValues are what is no reading yet, as JSON by field, and QuarantineID the event that holds it.
	ReportedValues phi.Text
	QuarantineID   string
	// DeviceID is the device or hub the alert is about; "" when it is about a reading's values.
	DeviceID string
	// Unmeasured alerts are about no value: value and threshold stay null.
	Unmeasured bool
	// Informative alerts are stored resolved: nobody has to act on them.
	Informative bool
	// Snoozed alerts are known: nobody is told of them.
	Snoozed bool
	// Late: the reading came long after it was measured. Superseded: something newer of its kind was there by then, so that the alert
	// is over at once.
	Late, Superseded bool
	// NormalReadings were measured after it and came before it; Settled: they are enough to resolve it at once.
	NormalReadings int
	Settled        bool
	// Worse than what people know: it is told whatever was told just before.
	Worse bool
	// HeldUntil is until when its escalation waits for the reading to be confirmed; zero for not at all.
	HeldUntil time.Time
}

// Over reports whether the alert is stored as one that nobody has to act on.
func (d Draft) Over() bool { return d.Informative || d.Superseded || d.Settled }

// ReasonSuperseded and ReasonWithdrawn are why the service ended an alert: something newer was measured, or the reading behind it was
// entered in error.
const (
	ReasonSuperseded = "superseded"
	ReasonWithdrawn  = "withdrawn"
)

// Store inserts an alert inside the caller's transaction and returns its record id.
func Store(tx core.App, draft Draft, now time.Time) (string, error) {
	id, err := collections.NextID(tx, collections.Alerts)
	if err != nil {
		return "", err
	}
	message, err := collections.Seal(draft.Finding.Message, "alerts.message", id)
	if err != nil {
		return "", fmt.Errorf("seal alert message: %w", err)
	}
	stored := collections.Instant(now)
	row := dbx.Params{
		"id": id, "patient": draft.PatientID, "level": string(draft.Finding.Level), "type": draft.Finding.Type,
		"observation": draft.ObservationID, "parameter": draft.Finding.Parameter, "message": message,
		"status": string(StatusActive), "acknowledged": false, "snoozed": draft.Snoozed, "escalation": draft.EscalationID,
		"device_id": draft.DeviceID, "origin": string(draft.Origin), "measured_at": collections.Instant(draft.MeasuredAt), "created_at": stored, "updated_at": stored,
	}
	if draft.QuarantineID != "" {
		sealed, err := collections.Seal(draft.ReportedValues.Reveal(), "alerts.reported_values", id)
		if err != nil {
			return "", fmt.Errorf("seal reported values: %w", err)
		}
		row["reported_values"], row["quarantine_id"] = sealed, draft.QuarantineID
	}
	if !draft.HeldUntil.IsZero() {
		row["held_until"] = collections.Instant(draft.HeldUntil)
	}
	if draft.Informative {
		row["status"], row["acknowledged"] = string(StatusResolved), true
		row["acknowledged_by"], row["acknowledged_at"] = System, stored
		row["resolved_by"], row["resolved_at"] = System, stored
	} else if !draft.Unmeasured {
		row["value"], row["threshold"] = draft.Finding.Value, draft.Finding.Threshold
	}
	if draft.Late || draft.NormalReadings > 0 || draft.Superseded {
		draft.completeLate(row, stored)
	}
	if err := collections.InsertRow(tx, collections.Alerts, row); err != nil {
		return "", fmt.Errorf("store alert: %w", err)
	}
	return id, nil
}

// completeLate completes the row of an alert whose reading is not the newest there is.
func (d Draft) completeLate(row dbx.Params, at string) {
	row["late"], row["normal_readings"] = d.Late, d.NormalReadings
	if d.Superseded {
		row["resolution_reason"] = ReasonSuperseded
	}
	if d.Superseded || d.Settled {
		autoResolved(row, at)
	}
}

func autoResolved(row dbx.Params, at string) {
	row["status"], row["acknowledged"] = string(StatusAutoResolved), true
	row["acknowledged_by"], row["acknowledged_at"] = System, at
	row["resolved_by"], row["resolved_at"] = System, at
}

// SaveProgress writes what a reading did to an open alert.
func SaveProgress(tx core.App, s Progress, now time.Time) error {
	at := collections.Instant(now)
	changes := dbx.Params{"normal_readings": s.NormalReadings, "updated_at": at}
	if s.Resolved {
		autoResolved(changes, at)
	}
	_, err := tx.DB().Update(collections.Alerts, changes, dbx.HashExp{"id": s.Alert.ID, "status": string(StatusActive)}).Execute()
	if err != nil {
		return fmt.Errorf("store progress of alert: %w", err)
	}
	return nil
}

// Raise stores an alert that the service raises by its rules, with its audit entry, inside the caller's transaction.
func Raise(tx core.App, draft Draft, now time.Time) (string, error) {
	id, err := Store(tx, draft, now)
	if err != nil {
		return "", err
	}
	return id, note(tx, audit.AlertCreate, id, draft.PatientID, nil, audit.System(), now)
}

// ResolveAbout resolves, as the system, the active alerts of a type about a device or hub, inside the caller's transaction;
// about one patient only unless patientID is "". Recording each is the caller's, see [NoteAutoResolved].
func ResolveAbout(tx core.App, deviceID, alertType, patientID string, now time.Time) ([]collections.EndedAlert, error) {
	return collections.EndAlertsAbout(tx, deviceID, alertType, patientID, string(StatusAutoResolved), System, now)
}

// NoteAutoResolved appends the audit entry of an alert that the system resolved.
func NoteAutoResolved(tx core.App, alert collections.EndedAlert, now time.Time) error {
	return note(tx, audit.AlertAutoResolve, alert.ID, alert.PatientID, nil, audit.System(), now)
}

// ResolveOpen resolves every alert of a patient that is not over, as the system, inside the caller's transaction, and returns
// their record ids.
func ResolveOpen(tx core.App, patientID string, now time.Time) (ids []string, err error) {
	ended, err := collections.EndAlertsOf(tx, patientID, string(StatusResolved), System, now)
	for _, alert := range ended {
		ids = append(ids, alert.ID)
	}
	return ids, err
}

// FromReading reports whether alerts of this type are raised by what was measured.
func FromReading(alertType string) bool {
	return alertType == TypeImplausibleReading || alertType == TypeIrregularHeartbeat || slices.Contains(ReadingTypes, alertType)
}

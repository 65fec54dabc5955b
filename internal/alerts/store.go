package alerts

import (
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
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

// System is the actor of what no person did.
const System = "system"

// Draft is an alert about to be stored.
type Draft struct {
	PatientID     string
	ObservationID string
	Finding       Finding
	EscalationID  string
	MeasuredAt    time.Time
	// DeviceID is the device or hub the alert is about; "" when it is about a reading's values.
	DeviceID string
	// Unmeasured alerts are about no value: value and threshold stay null.
	Unmeasured bool
	// Informative alerts are stored resolved: nobody has to act on them.
	Informative bool
	// Snoozed alerts are known: nobody is told of them.
	Snoozed bool
}

// LoadThresholds returns the bounds in force for a patient.
func LoadThresholds(app core.App, patientID string) (Thresholds, error) {
	rows := []struct {
		Patient string `db:"patient"`
		Bounds  string `db:"bounds"`
	}{}
	err := app.DB().NewQuery(`SELECT patient, COALESCE(bounds, '') AS bounds FROM thresholds WHERE patient IN ('', {:patient})`).
		Bind(dbx.Params{"patient": patientID}).All(&rows)
	if err != nil {
		return Thresholds{}, fmt.Errorf("load thresholds: %w", err)
	}
	var defaults, own Bounds
	for _, row := range rows {
		bounds, err := ParseBounds(row.Bounds)
		if err != nil {
			return Thresholds{}, err
		}
		if row.Patient == "" {
			defaults = bounds
		} else {
			own = bounds
		}
	}
	return InForce(defaults, own), nil
}

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
		"device_id": draft.DeviceID, "measured_at": collections.Instant(draft.MeasuredAt), "created_at": stored, "updated_at": stored,
	}
	if draft.Informative {
		row["status"], row["acknowledged"] = string(StatusResolved), true
		row["acknowledged_by"], row["acknowledged_at"] = System, stored
		row["resolved_by"], row["resolved_at"] = System, stored
	} else if !draft.Unmeasured {
		row["value"], row["threshold"] = draft.Finding.Value, draft.Finding.Threshold
	}
	if _, err := tx.DB().Insert(collections.Alerts, row).Execute(); err != nil {
		return "", fmt.Errorf("store alert: %w", err)
	}
	return id, nil
}

// ApplySettlement writes what a reading did to an open alert.
func ApplySettlement(tx core.App, s Settlement, now time.Time) error {
	at := collections.Instant(now)
	changes := dbx.Params{"normal_readings": s.NormalReadings, "updated_at": at}
	if s.Resolved {
		changes["status"], changes["acknowledged"] = string(StatusAutoResolved), true
		changes["acknowledged_by"], changes["acknowledged_at"] = System, at
		changes["resolved_by"], changes["resolved_at"] = System, at
	}
	_, err := tx.DB().Update(collections.Alerts, changes, dbx.HashExp{"id": s.Alert.ID, "status": string(StatusActive)}).Execute()
	if err != nil {
		return fmt.Errorf("settle alert: %w", err)
	}
	return nil
}

// OpenAlerts are the patient's unacknowledged alerts, oldest first.
func OpenAlerts(app core.App, patientID string) ([]Open, error) {
	rows := []struct {
		ID             string `db:"id"`
		Type           string `db:"type"`
		Level          string `db:"level"`
		DeviceID       string `db:"device_id"`
		MeasuredAt     string `db:"measured_at"`
		CreatedAt      string `db:"created_at"`
		NormalReadings int    `db:"normal_readings"`
	}{}
	err := app.DB().NewQuery(`SELECT id, type, level, device_id, measured_at, created_at, normal_readings FROM alerts
		WHERE patient = {:patient} AND acknowledged = FALSE ORDER BY created_at`).
		Bind(dbx.Params{"patient": patientID}).All(&rows)
	if err != nil {
		return nil, fmt.Errorf("load open alerts: %w", err)
	}
	open := make([]Open, len(rows))
	for i, row := range rows {
		open[i] = Open{
			ID: row.ID, Type: row.Type, Level: Level(row.Level), DeviceID: row.DeviceID, NormalReadings: row.NormalReadings,
			MeasuredAt: collections.ParseInstant(row.MeasuredAt), CreatedAt: collections.ParseInstant(row.CreatedAt),
		}
	}
	return open, nil
}

// FromReading reports whether alerts of this type are raised by readings.
func FromReading(alertType string) bool {
	switch alertType {
	case TypeBloodPressure, TypePulse, TypeWeight, TypePulseOximetry, TypeBloodGlucose:
		return true
	}
	return false
}

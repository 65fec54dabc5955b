package ingest

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// parseImplausible parses the implausible measurement of a stored event.
func (e *Pipeline) parseImplausible(stored *collections.GatewayEvent) (gateway.Event, error) {
	nothing := fault.State("invalid_state", "The event has no implausible measurement.")
	if isManualSource(stored.Source()) {
		event, err := decodeManualReading(stored.Payload())
		if err != nil {
			return event, nothing.Because(err)
		}
		return event, nil
	}
	event, err := e.reparse(stored)
	if isConflict(stored.Reason(), event) {
		return event.AsConflicting(), nil
	}
	if event.Implausible == nil {
		return event, nothing.Because(err)
	}
	return event, nil
}

// manualReading is the stored form of an implausible measurement that a person entered.
type manualReading struct {
	PatientID       string             `json:"patient_id"`
	ObservationType vitals.Kind        `json:"observation_type"`
	MeasuredAt      time.Time          `json:"measured_at"`
	DeviceID        string             `json:"device_id,omitempty"`
	Values          map[string]float64 `json:"values"`
	Marks           map[string]string  `json:"marks,omitempty"`
	Outside         []string           `json:"outside"`
	OriginalValue   *float64           `json:"original_value,omitempty"`
	OriginalUnit    string             `json:"original_unit,omitempty"`
}

func encodeManualReading(patientID string, i gateway.Implausible) ([]byte, error) {
	r := i.Reading
	k := manualReading{
		PatientID: patientID, ObservationType: r.Kind, MeasuredAt: r.MeasuredAt, DeviceID: r.DeviceID, Values: r.ByColumn(),
		Marks: map[string]string{}, OriginalValue: r.OriginalValue, OriginalUnit: r.OriginalUnit,
	}
	for _, m := range vitals.Qualifiers {
		if word := r.Qualifier(m); word != "" {
			k.Marks[m.Name] = word
		}
	}
	for _, p := range i.OutOfRange {
		k.Outside = append(k.Outside, p.Column)
	}
	return json.Marshal(k)
}

func decodeManualReading(payload phi.Text) (gateway.Event, error) {
	var k manualReading
	if err := json.Unmarshal([]byte(payload.Reveal()), &k); err != nil {
		return gateway.Event{}, fmt.Errorf("decode a quarantined measurement: %w", err)
	}
	i := gateway.Implausible{Reading: vitals.Reading{
		Kind: k.ObservationType, MeasuredAt: k.MeasuredAt.UTC(), DeviceID: k.DeviceID, OriginalValue: k.OriginalValue, OriginalUnit: k.OriginalUnit,
	}}
	i.Reading = i.Reading.WithColumns(k.Values)
	for _, m := range vitals.Qualifiers {
		i.Reading.SetQualifier(m, k.Marks[m.Name])
	}
	for _, column := range k.Outside {
		for _, p := range vitals.Parameters {
			if p.Column == column {
				i.OutOfRange = append(i.OutOfRange, p)
			}
		}
	}
	return gateway.Event{
		Type: gateway.MeasurementCreated, DeviceID: k.DeviceID, At: i.Reading.MeasuredAt, MeasurementType: string(k.ObservationType), Implausible: &i,
	}, nil
}

// ImplausibleReport is an implausible measurement that a caller sent for a patient they may access.
type ImplausibleReport struct {
	PatientID  string
	Source     string
	Reading    vitals.Reading
	OutOfRange vitals.OutOfRange
	// FieldErrors are the errors that the caller received.
	FieldErrors fault.Fields
}

// ReportImplausible quarantines an implausible measurement and notifies the care team, unless the patient typed it: that one is held for a
// correction, see [Pipeline.AlertUncorrected]. A repeat changes nothing. It stores nothing if the patient does not exist, is archived, or did
// not have the device at the time.
func (e *Pipeline) ReportImplausible(app core.App, r ImplausibleReport, by audit.Actor, now time.Time) error {
	i := gateway.Implausible{Reading: r.Reading, OutOfRange: r.OutOfRange}
	body, err := encodeManualReading(r.PatientID, i)
	if err != nil {
		return fmt.Errorf("store an implausible measurement: %w", err)
	}
	event := gateway.Event{
		Type: gateway.MeasurementCreated, DeviceID: r.Reading.DeviceID, At: r.Reading.MeasuredAt, MeasurementType: string(r.Reading.Kind), Implausible: &i,
	}
	return app.RunInTransaction(func(tx core.App) error {
		patient, err := collections.FindPatientMatch(tx, r.PatientID)
		if err != nil || patient.ID == "" || !patient.Active || patient.DeletedAt != "" {
			return err
		}
		holder, err := collections.DeviceHolder(tx, r.Reading.DeviceID, r.Reading.MeasuredAt)
		if err != nil || holder != "" && holder != r.PatientID {
			return err
		}
		entry := EventEntry{
			ID: gateway.BodyID(gateway.Vendor(r.Source), body), Source: r.Source, Event: event, Payload: body, FieldErrors: r.FieldErrors,
		}
		if sourceOrigin(r.Source) == vitals.OriginPatient {
			return holdTyped(tx, entry, r.PatientID, by, now)
		}
		return e.quarantineImplausible(tx, entry, r.PatientID, by, now)
	})
}

// quarantineImportLine quarantines an implausible import line if its patient is identified. Others are not kept, since the file is.
func (e *Pipeline) quarantineImportLine(app core.App, event gateway.Event, body []byte, refusal fault.Fields, now time.Time) error {
	return app.RunInTransaction(func(tx core.App) error {
		patient, reason, err := MatchPatient(tx, event)
		if err != nil || reason != "" {
			return err
		}
		return e.quarantineImplausible(tx, EventEntry{
			ID: gateway.BodyID(gateway.Contract, body), Source: SourceImport, Event: event, Payload: body, FieldErrors: refusal,
		}, patient, audit.System(), now)
	})
}

// quarantineImplausible stores an implausible measurement once and raises its alert.
func (e *Pipeline) quarantineImplausible(tx core.App, entry EventEntry, patientID string, by audit.Actor, now time.Time) error {
	entry.Status, entry.Reason = collections.EventRejected, "validation_error"
	id, duplicate, err := StoreEvent(tx, entry, by, now)
	if err != nil || duplicate {
		return err
	}
	stored, err := FindQuarantined(tx, id)
	if err != nil {
		return err
	}
	return e.alertImplausible(tx, stored, entry.Event, patientID, now)
}

// ReportImplausibleRecord reports the implausible measurement in a record that was rejected, if there is one.
func (e *Pipeline) ReportImplausibleRecord(app core.App, record *core.Record, by audit.Actor, now time.Time) error {
	o, fields := ObservationFromRecord(record), validate.NewChecks()
	o.Reading.MeasuredAt = e.Readings.ParseMeasuredAt(fields, record, now)
	outside, ok := o.Reading.OutOfRange()
	if !ok || len(fields.Fields) > 0 || o.PatientID == "" {
		return nil
	}
	o.Reading.Check(fields)
	return e.ReportImplausible(app, ImplausibleReport{
		PatientID: o.PatientID, Source: SourceDashboard, Reading: o.Reading, OutOfRange: outside, FieldErrors: fields.Fields,
	}, by, now)
}

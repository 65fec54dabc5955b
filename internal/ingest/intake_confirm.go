package ingest

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/devices"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/internal/validate"

	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// ConfirmImplausible makes an observation of an implausible measurement: a person vouches for all of its values, also for those that no device should
// report, and they are stored as they are. Its alert is over, and it is judged like any reading. Faults: not_found, invalid_state for an
// event that has been dealt with, is of nobody yet or is implausible in nothing, and what refuses a reading.
func (e *Pipeline) ConfirmImplausible(app core.App, id string, notes phi.Text, by audit.Actor, now time.Time) (outcome Outcome, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		pending, err := FindQuarantined(tx, id)
		if err != nil {
			return err
		}
		if err := checkPending(pending); err != nil {
			return err
		}
		patient, err := collections.PatientOfQuarantine(tx, id)
		if err != nil {
			return err
		}
		if patient == "" {
			return fault.State("invalid_state", "Nothing of this event is waiting to be confirmed for a patient.")
		}
		event, err := e.parseImplausible(pending)
		if err != nil {
			return err
		}
		if err := checkCoherent(event.Implausible.Reading); err != nil {
			return err
		}
		match := patientMatch{patient: patient, manual: true}
		s, err := e.confirmedSubmission(tx, pending, &event, match, by, now)
		if err != nil {
			return err
		}
		if err := e.resolveConfirmedAlerts(tx, pending, notes, by, now); err != nil {
			return err
		}
		outcome, err = e.Evaluator.Ingest(tx, s, now)
		if err == nil && outcome.Conflict { // the gateway has said something else under this key: a person's word weighs more
			if s.Addition {
				return fault.State("invalid_state", "The reading that this belongs to says otherwise.")
			}
			s.GatewayKey, match.readingSnapshot = "", true
			outcome, err = e.Evaluator.Ingest(tx, s, now)
		}
		if err != nil {
			return err
		}
		if err := collections.NoteReadingOf(tx, id, outcome.Observation.ID); err != nil {
			return err
		}
		ended := closure{status: collections.EventReleased, observation: outcome.Observation.ID, patient: match.patient, reason: notes}
		if err := closeEvent(tx, pending, ended, by, now); err != nil || isManualSource(pending.Source()) {
			return err
		}
		if err := e.alertNextPending(tx, event, patient, now); err != nil {
			return err
		}
		return e.addPendingParts(tx, event, outcome.Observation, match, by, now)
	})
	return outcome, err
}

// checkCoherent: nobody can vouch for values that contradict each other.
func checkCoherent(r vitals.Reading) error {
	c := validate.NewChecks()
	if check := r.Kind.Definition().Coherent; check != nil {
		check(r, c)
	}
	return c.Err()
}

// resolveConfirmedAlerts ends the alerts about an event whose values are true: from now on the reading speaks for itself.
func (e *Pipeline) resolveConfirmedAlerts(tx core.App, event *collections.GatewayEvent, notes phi.Text, by audit.Actor, now time.Time) error {
	raised, err := collections.AlertsOfQuarantine(tx, event.Id)
	if err != nil {
		return err
	}
	for _, alert := range raised {
		if kept, err := e.removeFromAlert(tx, alert, event.Id, now); err != nil {
			return err
		} else if kept {
			continue
		}
		if _, err := resolveAlert(tx, alert, "confirmed", notes, by, now); err != nil {
			return err
		}
	}
	return nil
}

// parseImplausible reads what is implausible in an event, in the words of whoever reported it.
func (e *Pipeline) parseImplausible(stored *collections.GatewayEvent) (gateway.Event, error) {
	nothing := fault.State("invalid_state", "The event holds no implausible measurement.")
	if isManualSource(stored.Source()) {
		event, err := decodeManualReading(stored.Payload())
		if err != nil {
			return event, nothing.Because(err)
		}
		return event, nil
	}
	event, err := e.reparse(stored)
	if event.Implausible == nil {
		return event, nothing.Because(err)
	}
	return event, nil
}

// confirmedSubmission is a confirmed measurement on its way in.
func (e *Pipeline) confirmedSubmission(
	tx core.App, stored *collections.GatewayEvent, event *gateway.Event, match patientMatch, by audit.Actor, now time.Time,
) (s Submission, err error) {
	source := EventSource(stored)
	reading, asReceived := event.Implausible.Reading, !event.Implausible.Ahead.IsZero()
	switch {
	case isManualSource(source):
		s = Submission{PatientID: match.patient, Reading: reading, Source: vitals.Source(source), By: by, ReceivedAt: now}
		if source == SourceDashboard || source == SourceClient {
			s.Source = vitals.SourceAPI
		}
	case event.Completes(): // the rest is a reading already
		part := reading // where nothing is out of range all of it waits, because of the clock
		if len(event.Implausible.Outside) > 0 {
			part = reading.Only(event.Implausible.Outside)
		}
		event.Reading = &part
		s = gatewaySubmission(*event, match.patient, by, now)
		s.Addition = true
		if s.WrongClock, err = isClockWrong(tx, *event, match.patient); err != nil {
			return s, err
		}
	default:
		rest, missing, err := completesStored(tx, *event, match.patient)
		if err != nil {
			return s, err
		}
		if rest {
			event.Reading, asReceived = &missing, false // it has the time of what it joins
			s = gatewaySubmission(*event, match.patient, by, now)
			s.Addition = true
			break
		}
		event.Reading, event.Additions = &reading, event.Implausible.Additions
		if s, err = e.matchedSubmission(tx, *event, match, by, now); err != nil {
			return s, err
		}
	}
	if source == SourceImport {
		s.Device = devices.Envelope{Model: event.DeviceModel}
	}
	s.Origin, s.ConfirmedBy, s.UsesReceiptTime = sourceOrigin(source), by.Email, asReceived
	return s, nil
}

// manualReading is how a measurement that a person typed is stored while it is implausible.
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
		PatientID: patientID, ObservationType: r.Kind, MeasuredAt: r.MeasuredAt, DeviceID: r.DeviceID, Values: map[string]float64{},
		Marks: map[string]string{}, OriginalValue: r.OriginalValue, OriginalUnit: r.OriginalUnit,
	}
	for _, p := range vitals.Parameters {
		if value := r.Value(p); value != nil {
			k.Values[p.Column] = *value
		}
	}
	for _, m := range vitals.Marks {
		if word := r.Says(m); word != "" {
			k.Marks[m.Name] = word
		}
	}
	for _, p := range i.Outside {
		k.Outside = append(k.Outside, p.Column)
	}
	return json.Marshal(k)
}

func decodeManualReading(payload phi.Text) (gateway.Event, error) {
	var k manualReading
	if err := json.Unmarshal([]byte(payload.Reveal()), &k); err != nil {
		return gateway.Event{}, fmt.Errorf("read a stored measurement: %w", err)
	}
	i := gateway.Implausible{Reading: vitals.Reading{
		Kind: k.ObservationType, MeasuredAt: k.MeasuredAt.UTC(), DeviceID: k.DeviceID, OriginalValue: k.OriginalValue, OriginalUnit: k.OriginalUnit,
	}}
	for _, p := range vitals.Parameters {
		if value, measured := k.Values[p.Column]; measured {
			i.Reading = i.Reading.With(p, value)
		}
	}
	for _, m := range vitals.Marks {
		i.Reading.Say(m, k.Marks[m.Name])
	}
	for _, column := range k.Outside {
		for _, p := range vitals.Parameters {
			if p.Column == column {
				i.Outside = append(i.Outside, p)
			}
		}
	}
	return gateway.Event{
		Type: gateway.MeasurementCreated, DeviceID: k.DeviceID, At: i.Reading.MeasuredAt, MeasurementType: string(k.ObservationType), Implausible: &i,
	}, nil
}

// ImplausibleReport is an implausible measurement that a person typed, about a patient they may act on.
type ImplausibleReport struct {
	PatientID  string
	Source     string
	Reading    vitals.Reading
	OutOfRange vitals.Outside
	// Refusal is what they were answered.
	FieldErrors fault.Fields
}

// ReportImplausible puts an implausible measurement into the quarantine and has the patient's people told of it. Sent again it is known. Nothing is stored about a patient
// who does not exist, is not being looked after, or did not have the device then.
func (e *Pipeline) ReportImplausible(app core.App, r ImplausibleReport, by audit.Actor, now time.Time) error {
	i := gateway.Implausible{Reading: r.Reading, Outside: r.OutOfRange}
	body, err := encodeManualReading(r.PatientID, i)
	if err != nil {
		return fmt.Errorf("store an implausible measurement: %w", err)
	}
	event := gateway.Event{
		Type: gateway.MeasurementCreated, DeviceID: r.Reading.DeviceID, At: r.Reading.MeasuredAt, MeasurementType: string(r.Reading.Kind), Implausible: &i,
	}
	return app.RunInTransaction(func(tx core.App) error {
		patient, err := collections.FindReceivingPatient(tx, r.PatientID)
		if err != nil || patient.ID == "" || !patient.Active || patient.DeletedAt != "" {
			return err
		}
		holder, err := collections.DeviceHolder(tx, r.Reading.DeviceID, r.Reading.MeasuredAt)
		if err != nil || holder != "" && holder != r.PatientID {
			return err
		}
		return e.quarantineImplausible(tx, EventEntry{
			ID: gateway.BodyID(gateway.Vendor(r.Source), body), Source: r.Source, Event: event, Payload: body, FieldErrors: r.FieldErrors,
		}, r.PatientID, by, now)
	})
}

// quarantineImportLine stores an implausible line of a table whose patient is known. Of any other the file is still there.
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

// quarantineImplausible stores an implausible measurement, unless it is there already, and tells of it.
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

// ReportImplausibleRecord reports the implausible measurement in a record that somebody tried to create, if there is one.
func (e *Pipeline) ReportImplausibleRecord(app core.App, record *core.Record, by audit.Actor, now time.Time) error {
	o, fields := ObservationFromRecord(record), validate.NewChecks()
	o.Reading.MeasuredAt = e.Evaluator.ParseMeasuredAt(fields, record, now)
	outside, ok := o.Reading.Outside()
	if !ok || len(fields.Fields) > 0 || o.PatientID == "" {
		return nil
	}
	o.Reading.Check(fields)
	return e.ReportImplausible(app, ImplausibleReport{
		PatientID: o.PatientID, Source: SourceDashboard, Reading: o.Reading, OutOfRange: outside, FieldErrors: fields.Fields,
	}, by, now)
}

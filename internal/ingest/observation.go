package ingest

import (
	"cmp"
	"strings"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/fhir"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// Observation is a stored reading.
type Observation struct {
	ID        string
	PatientID string
	Reading   vitals.Reading
	Source    vitals.Source
	Origin    vitals.Origin
	// Review is the review state; SuspectReason is why the reading is, or was, suspect.
	Review        ReviewState
	SuspectReason string
	ConfirmedBy   string
	ConfirmedAt   time.Time
	// EnteredInError readings no longer count.
	EnteredInError bool
	// FHIRStatus is "" without a FHIR form.
	FHIRStatus    string
	FHIRVersion   int
	TransformedAt time.Time
	EMRResourceID string
	// Bounds are those by which its values were evaluated; nil for a reading that was not, or before they were stored.
	Bounds       alerts.EvaluatedBounds
	ProcessingMS float64
	CreatedAt    time.Time
	UpdatedAt    time.Time
	// LeftOut are the fields of its event that could not be read.
	LeftOut []string
	// ReceivedAt is when its event was received, if a person or a replay stored it later.
	ReceivedAt time.Time

	readingKey, gatewayKey string
	// partial: other parts of the reading may arrive separately. addition is the part that was just merged.
	partial  bool
	addition *vitals.Reading
	// newlyConfirmed: it was stored as suspect and counts from now on.
	newlyConfirmed bool
	// isQueued: it counted before it was suspect, and has a delivery.
	isQueued     bool
	confirmNotes phi.Text
	// reportedAt is the time that a confirmed one replaced; zero for none.
	reportedAt time.Time
	// suspicionDecided: whether it is suspect is decided already.
	suspicionDecided bool
}

// ReviewState is whether the values of a reading are accepted.
type ReviewState string

// The review states. A suspect reading is stored and shown, and does not count until it is confirmed.
const (
	Accepted  ReviewState = "accepted"
	Suspect   ReviewState = "suspect"
	Confirmed ReviewState = "confirmed"
)

// ObservationFromRecord converts a record to an observation.
func ObservationFromRecord(record *core.Record) Observation {
	source := vitals.Source(record.GetString("source"))
	return Observation{
		ID: record.Id, PatientID: record.GetString("patient"), Reading: readingFromRecord(record),
		Source: source, Origin: cmp.Or(vitals.Origin(record.GetString("origin")), source.Origin()),
		Review:        cmp.Or(ReviewState(record.GetString("review_state")), Accepted),
		SuspectReason: record.GetString("suspect_reason"),
		ConfirmedBy:   record.GetString("confirmed_by"), ConfirmedAt: collections.ParseInstant(record.GetString("confirmed_at")),
		EnteredInError: record.GetString("status") == collections.StatusEnteredInError,
		FHIRStatus:     record.GetString("fhir_status"), FHIRVersion: record.GetInt("fhir_version"),
		TransformedAt: collections.ParseInstant(record.GetString("transformed_at")),
		EMRResourceID: record.GetString("emr_resource_id"), Bounds: alerts.ParseEvaluatedBounds(record.GetString(collections.ObservationEvaluatedBounds)),
		CreatedAt: collections.ParseInstant(record.GetString("created_at")),
		UpdatedAt: collections.ParseInstant(record.GetString("updated_at")), ReceivedAt: collections.ParseInstant(record.GetString("received_at")),
		LeftOut: strings.Fields(record.GetString("left_out")),
	}
}

// Received returns when the reading was received.
func (o Observation) Received() time.Time {
	if o.ReceivedAt.IsZero() {
		return o.CreatedAt
	}
	return o.ReceivedAt
}

func readingFromRecord(record *core.Record) vitals.Reading {
	reading := vitals.Reading{
		Kind: vitals.Kind(record.GetString("observation_type")), MeasuredAt: collections.ParseInstant(record.GetString("measured_at")),
		DeviceID:      record.GetString("device_id"),
		OriginalValue: collections.Optional(record, "original_value"), OriginalUnit: record.GetString("original_unit"),
	}
	for _, p := range vitals.Parameters {
		*reading.Slot(p) = collections.Optional(record, p.Column)
	}
	for _, m := range vitals.Qualifiers {
		reading.SetQualifier(m, record.GetString(m.Name))
	}
	return reading
}

// status returns the stored status.
func (o Observation) status() string {
	switch {
	case o.EnteredInError:
		return collections.StatusEnteredInError
	case o.Review == Suspect:
		return collections.StatusSuspect
	}
	return collections.StatusFinal
}

// cell is one column's value.
type cell struct {
	column string
	value  any
}

// cells returns the stored values, always in the same order.
func (o Observation) cells() []cell {
	r := o.Reading
	review := o.Review
	if review == Accepted {
		review = "" // stored as empty, like older rows
	}
	cells := make([]cell, 0, 25+len(vitals.Parameters)+len(vitals.Qualifiers))
	cells = append(cells,
		cell{"id", o.ID}, cell{"patient", o.PatientID}, cell{"observation_type", string(r.Kind)}, cell{"measured_at", collections.Instant(r.MeasuredAt)},
		cell{"device_id", r.DeviceID}, cell{"source", string(o.Source)}, cell{"origin", string(o.Origin)}, cell{"review_state", string(review)},
		cell{"suspect_reason", o.SuspectReason}, cell{"confirmed_by", o.ConfirmedBy}, cell{"confirmed_at", collections.Instant(o.ConfirmedAt)},
		cell{"original_value", r.OriginalValue}, cell{"original_unit", r.OriginalUnit}, cell{"status", o.status()}, cell{"fhir_status", o.FHIRStatus},
		cell{"fhir_version", o.FHIRVersion}, cell{"transformed_at", collections.Instant(o.TransformedAt)}, cell{"reading_key", o.readingKey},
		cell{"gateway_key", o.gatewayKey}, cell{"processing_ms", o.ProcessingMS}, cell{"created_at", collections.Instant(o.CreatedAt)},
		cell{"updated_at", collections.Instant(o.UpdatedAt)}, cell{"received_at", collections.Instant(o.ReceivedAt)},
		cell{"left_out", strings.Join(o.LeftOut, " ")},
	)
	for _, p := range vitals.Parameters {
		cells = append(cells, cell{p.Column, r.Value(p)})
	}
	for _, m := range vitals.Qualifiers {
		cells = append(cells, cell{m.Name, r.Qualifier(m)})
	}
	return cells
}

// columns returns the cells by column.
func (o Observation) columns() dbx.Params {
	columns := dbx.Params{}
	for _, c := range o.cells() {
		columns[c.column] = c.value
	}
	return columns
}

// FHIR returns the input of the FHIR form, without data of the patient and device.
func (o Observation) FHIR() fhir.StoredObservation {
	return fhir.StoredObservation{
		ID: o.ID, PatientID: o.PatientID, Reading: o.Reading, Origin: o.Origin, EnteredInError: o.EnteredInError, Suspect: o.Review == Suspect,
		Bounds: o.Bounds, Version: o.FHIRVersion, CreatedAt: o.CreatedAt, UpdatedAt: o.UpdatedAt,
	}
}

// ListObservations returns a page of observations and the total.
func ListObservations(app core.App, f collections.ObservationFilter, offset, limit int) (page []Observation, total int, err error) {
	records, total, err := collections.PageOfObservations(app, f, offset, limit)
	for _, record := range records {
		page = append(page, ObservationFromRecord(record))
	}
	return page, total, err
}

// FindObservation returns one observation, or a not-found fault.
func FindObservation(app core.App, id string) (Observation, error) {
	record, err := collections.FindObservation(app, id)
	if err != nil {
		return Observation{}, fault.OrMissing(err)
	}
	return ObservationFromRecord(record), nil
}

// LoadFHIR reads the input of an observation's FHIR form: the reading, the patient's time zone and, if enabled, the device.
func (rs *ReadingStore) LoadFHIR(app core.App, id string) (fhir.StoredObservation, error) {
	o, err := FindObservation(app, id)
	if err != nil {
		return fhir.StoredObservation{}, err
	}
	stored, deviceID := o.FHIR(), ""
	stored.WithoutInterpretation = !rs.rules.SendInterpretation
	if rs.rules.SendDevice {
		deviceID = o.Reading.DeviceID
	}
	from, err := collections.ReadingContextOf(app, o.PatientID, deviceID)
	if err != nil {
		return fhir.StoredObservation{}, err
	}
	stored.ExternalID = from.ExternalID
	stored.Zone = collections.Zone(from.TimeZone, rs.rules.PracticeZone)
	if deviceID != "" { // an unregistered device has an id and a kind only
		stored.Device = &fhir.Device{Manufacturer: from.Manufacturer, Model: from.Model, SerialNumber: from.SerialNumber, UDI: from.UDI}
	}
	return stored, nil
}

// setConfirmation sets who confirmed the values.
func (o *Observation) setConfirmation(s Submission, now time.Time) {
	if s.ConfirmedBy != "" {
		o.Review, o.ConfirmedBy, o.ConfirmedAt = Confirmed, s.ConfirmedBy, now
		if s.UsesReceiptTime {
			o.SuspectReason = ReasonDeviceClock // it is evaluated, and its time is not the device's
		}
	}
}

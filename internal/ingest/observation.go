package ingest

import (
	"cmp"
	"strings"
	"sync"
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
	awaitsParts bool
	mergedPart  *vitals.Reading
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
	o := observationFromRow(record)
	o.Bounds = alerts.ParseEvaluatedBounds(record.GetString(collections.ObservationEvaluatedBounds))
	return o
}

// observationFromRow converts a row to an observation, without the evaluated bounds, which are sealed.
func observationFromRow(row collections.Row) Observation {
	source := vitals.Source(row.GetString("source"))
	return Observation{
		ID: row.GetString("id"), PatientID: row.GetString("patient"), Reading: readingFromRow(row),
		Source: source, Origin: cmp.Or(vitals.Origin(row.GetString("origin")), source.Origin()),
		Review:        cmp.Or(ReviewState(row.GetString("review_state")), Accepted),
		SuspectReason: row.GetString("suspect_reason"),
		ConfirmedBy:   row.GetString("confirmed_by"), ConfirmedAt: collections.ParseInstant(row.GetString("confirmed_at")),
		EnteredInError: row.GetString("status") == collections.StatusEnteredInError,
		FHIRStatus:     row.GetString("fhir_status"), FHIRVersion: row.GetInt("fhir_version"),
		TransformedAt: collections.ParseInstant(row.GetString("transformed_at")),
		EMRResourceID: row.GetString("emr_resource_id"),
		CreatedAt:     collections.ParseInstant(row.GetString("created_at")),
		UpdatedAt:     collections.ParseInstant(row.GetString("updated_at")), ReceivedAt: collections.ParseInstant(row.GetString("received_at")),
		LeftOut: strings.Fields(row.GetString("left_out")),
	}
}

// Received returns when the reading was received.
func (o Observation) Received() time.Time {
	if o.ReceivedAt.IsZero() {
		return o.CreatedAt
	}
	return o.ReceivedAt
}

func readingFromRow(row collections.Row) vitals.Reading {
	reading := vitals.Reading{
		Kind: vitals.Kind(row.GetString("observation_type")), MeasuredAt: collections.ParseInstant(row.GetString("measured_at")),
		DeviceID:      row.GetString("device_id"),
		OriginalValue: collections.Optional(row, "original_value"), OriginalUnit: row.GetString("original_unit"),
	}
	for _, p := range vitals.Parameters {
		*reading.ValuePtr(p) = collections.Optional(row, p.Column)
	}
	for _, m := range vitals.Qualifiers {
		reading.SetQualifier(m, row.GetString(m.Name))
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
		cell{"id", o.ID}, cell{"patient", o.PatientID}, cell{"observation_type", string(r.Kind)}, cell{"measured_at", collections.FormatInstant(r.MeasuredAt)},
		cell{"device_id", r.DeviceID}, cell{"source", string(o.Source)}, cell{"origin", string(o.Origin)}, cell{"review_state", string(review)},
		cell{"suspect_reason", o.SuspectReason}, cell{"confirmed_by", o.ConfirmedBy}, cell{"confirmed_at", collections.FormatInstant(o.ConfirmedAt)},
		cell{"original_value", r.OriginalValue}, cell{"original_unit", r.OriginalUnit}, cell{"status", o.status()}, cell{"fhir_status", o.FHIRStatus},
		cell{"fhir_version", o.FHIRVersion}, cell{"transformed_at", collections.FormatInstant(o.TransformedAt)}, cell{"reading_key", o.readingKey},
		cell{"gateway_key", o.gatewayKey}, cell{"processing_ms", o.ProcessingMS}, cell{"created_at", collections.FormatInstant(o.CreatedAt)},
		cell{"updated_at", collections.FormatInstant(o.UpdatedAt)}, cell{"received_at", collections.FormatInstant(o.ReceivedAt)},
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

// ListObservations returns a page of observations, without their evaluated bounds, and the total.
func ListObservations(app core.App, f collections.ObservationFilter, offset, limit int) (page []Observation, total int, err error) {
	rows, total, err := collections.PageOfObservations(app, f, listedColumns(), offset, limit)
	for _, row := range rows {
		page = append(page, observationFromRow(row))
	}
	return page, total, err
}

// listedColumns are the columns of an observation in a list.
var listedColumns = sync.OnceValue(func() []string {
	columns := []string{"emr_resource_id"}
	for _, c := range (Observation{}).cells() {
		columns = append(columns, c.column)
	}
	return columns
})

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

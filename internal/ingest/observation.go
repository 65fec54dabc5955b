// Package observations takes a checked reading and makes it an observation with all its consequences, exactly once:
// duplicate check, alerts, score, escalation, FHIR transmission, day and count, audit trail. Assess decides with
// plain values, Apply writes inside one transaction, and the Writer commits many readings together. It knows no
// HTTP, no gateway format and no network.
package ingest

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
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
	// Review says whether the values are believed; SuspectReason why they are, or were, not.
	Review        ReviewState
	SuspectReason string
	ConfirmedBy   string
	ConfirmedAt   time.Time
	// EnteredInError readings count for nothing any more.
	EnteredInError bool
	// FHIRStatus is "" while there is no FHIR form.
	FHIRStatus    string
	FHIRVersion   int
	TransformedAt time.Time
	EMRResourceID string
	ProcessingMS  float64
	CreatedAt     time.Time
	UpdatedAt     time.Time

	readingKey, gatewayKey string
	// partial: what is not in it may have come by itself, or will. addition is what has just been added to it.
	partial  bool
	addition *vitals.Reading
	// confirmed: it was stored before, as suspect, and counts from now on.
	newlyConfirmed bool
	confirmNotes   phi.Text
	// undoubted: whether it may be somebody else's is decided.
	suspicionDecided bool
}

// ReviewState says whether the values of a reading are believed.
type ReviewState string

// The review states. A suspect reading is stored and shown, and counts for nothing until somebody confirms it.
const (
	Accepted  ReviewState = "accepted"
	Suspect   ReviewState = "suspect"
	Confirmed ReviewState = "confirmed"
)

// ObservationFromRecord reads an observation from its record.
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
		EMRResourceID: record.GetString("emr_resource_id"),
		CreatedAt:     collections.ParseInstant(record.GetString("created_at")),
		UpdatedAt:     collections.ParseInstant(record.GetString("updated_at")),
	}
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
	for _, m := range vitals.Marks {
		reading.Say(m, record.GetString(m.Name))
	}
	return reading
}

// status is how it is stored: what is suspect is not among the readings that hold.
func (o Observation) status() string {
	switch {
	case o.EnteredInError:
		return collections.StatusEnteredInError
	case o.Review == Suspect:
		return collections.StatusSuspect
	}
	return collections.StatusFinal
}

// cell is a value of a row.
type cell struct {
	column string
	value  any
}

// cells are the observation's values as they are stored, in the same order for all.
func (o Observation) cells() []cell {
	r := o.Reading
	review := o.Review
	if review == Accepted {
		review = "" // as of all that were stored before there was a word for it
	}
	cells := make([]cell, 0, 24+len(vitals.Parameters)+len(vitals.Marks))
	cells = append(cells,
		cell{"id", o.ID}, cell{"patient", o.PatientID}, cell{"observation_type", string(r.Kind)}, cell{"measured_at", collections.Instant(r.MeasuredAt)},
		cell{"device_id", r.DeviceID}, cell{"source", string(o.Source)}, cell{"origin", string(o.Origin)}, cell{"review_state", string(review)},
		cell{"suspect_reason", o.SuspectReason}, cell{"confirmed_by", o.ConfirmedBy}, cell{"confirmed_at", collections.Instant(o.ConfirmedAt)},
		cell{"original_value", r.OriginalValue}, cell{"original_unit", r.OriginalUnit}, cell{"status", o.status()}, cell{"fhir_status", o.FHIRStatus},
		cell{"fhir_version", o.FHIRVersion}, cell{"transformed_at", collections.Instant(o.TransformedAt)}, cell{"reading_key", o.readingKey},
		cell{"gateway_key", o.gatewayKey}, cell{"processing_ms", o.ProcessingMS}, cell{"created_at", collections.Instant(o.CreatedAt)},
		cell{"updated_at", collections.Instant(o.UpdatedAt)},
	)
	for _, p := range vitals.Parameters {
		cells = append(cells, cell{p.Column, r.Value(p)})
	}
	for _, m := range vitals.Marks {
		cells = append(cells, cell{m.Name, r.Says(m)})
	}
	return cells
}

// columns are the cells by their columns.
func (o Observation) columns() dbx.Params {
	columns := dbx.Params{}
	for _, c := range o.cells() {
		columns[c.column] = c.value
	}
	return columns
}

// FHIR is what the FHIR form of the observation is made from, without what is known of its patient and device.
func (o Observation) FHIR() fhir.Stored {
	return fhir.Stored{
		ID: o.ID, PatientID: o.PatientID, Reading: o.Reading, Origin: o.Origin, EnteredInError: o.EnteredInError, Suspect: o.Review == Suspect,
		Version: o.FHIRVersion, CreatedAt: o.CreatedAt, UpdatedAt: o.UpdatedAt,
	}
}

// readingKey is equal for equal readings: same patient, kind, second, device and values, however they came. It tells apart what one patient has of a
// kind in one second, for which 72 bits are plenty, and stands in an index where every reading goes to a page of its own: each letter counts.
// Source: docs/decisions/observations.md, "Duplicate readings outside the webhook".
func readingKey(patientID string, r vitals.Reading) string {
	for _, m := range vitals.Marks {
		if m.Flag() && r.Says(m) == vitals.No {
			r.Say(m, "") // a sender that says nothing and one that says "no" mean the same
		}
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{
		patientID, r.MeasuredAt.UTC().Truncate(time.Second).Format(time.RFC3339), r.DeviceID, r.ValuesKey(),
	}, "|")))
	return base64.RawURLEncoding.EncodeToString(sum[:9])
}

// findStored is the observation that has the reading's key.
func (o Observation) findStored(app core.App) (*core.Record, error) {
	return collections.FindObservationByReading(app, collections.ReadingKey{
		PatientID: o.PatientID, Kind: string(o.Reading.Kind), MeasuredAt: o.Reading.MeasuredAt, Key: o.readingKey,
	})
}

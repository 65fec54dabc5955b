package ingest

import (
	"errors"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// CreateFromRecord checks a reading that is created as a record in the dashboard or by a script, stores it with store, and writes the same
// effects as for any other reading. It runs inside the transaction of the save.
func (rs *ReadingStore) CreateFromRecord(tx core.App, record *core.Record, by audit.Actor, now time.Time, store func() error) (Outcome, error) {
	s, err := rs.submissionFromRecord(record, by, now)
	if err != nil {
		return Outcome{}, err
	}
	patient, err := rs.findPatient(tx, nil, s)
	if err != nil {
		return Outcome{}, err
	}
	o := rs.newObservation(s, now)
	if record.Id != "" {
		o.ID = record.Id
	}
	if _, err := o.findStored(tx); err == nil {
		return Outcome{}, fault.Field("measured_at", "This reading is stored already.")
	} else if !collections.IsNotFound(err) {
		return Outcome{}, err
	}
	for column, value := range o.columns() {
		record.Set(column, value)
	}
	if err := store(); err != nil {
		return Outcome{}, err
	}
	b, err := newWriteBatch(tx)
	if err != nil {
		return Outcome{}, err
	}
	outcome, err := rs.evaluateAndApply(tx, b, o, patient, s, now)
	if err != nil {
		return Outcome{}, err
	}
	for column, value := range outcome.Observation.columns() { // its review state may have changed
		record.Set(column, value)
	}
	if outcome.CheckDevice, err = recordSighting(tx, o, s, now); err != nil {
		return outcome, err
	}
	return outcome, b.store(tx)
}

// submissionFromRecord converts a record, as filled in, to a submission.
func (rs *ReadingStore) submissionFromRecord(record *core.Record, by audit.Actor, now time.Time) (Submission, error) {
	checks := validate.NewChecks()
	reading := readingFromRow(record)
	reading.MeasuredAt = rs.ParseMeasuredAt(checks, record, now)
	reading.Check(checks)
	for _, p := range vitals.Parameters {
		if value := reading.Value(p); value != nil {
			*value = vitals.RoundHalfUp(*value, vitals.Decimals)
		}
	}
	source := vitals.Source(record.GetString(collections.ObservationSource))
	if source == "" {
		source = vitals.SourceAPI
	}
	return Submission{
		PatientID: collections.PatientOf(record), Reading: reading, Source: source, Origin: recordOrigin(record, source), By: by, ReceivedAt: now,
	}, checks.Err()
}

// ParseMeasuredAt returns the time in a record, in any form that the contract accepts; zero for none.
func (rs *ReadingStore) ParseMeasuredAt(checks *validate.Checks, record *core.Record, now time.Time) time.Time {
	at := checks.Instant("measured_at", validate.Of(record.GetString(collections.ObservationMeasuredAt)), true)
	checks.NotFuture("measured_at", at, now, rs.rules.MaxFuture)
	return at
}

// recordOrigin returns the origin of a reading that is created as a record: the origin in the record, the patient for the portal, and
// otherwise staff, also if it names a device.
func recordOrigin(record *core.Record, source vitals.Source) vitals.Origin {
	origin := vitals.Origin(record.GetString(collections.ObservationOrigin))
	switch {
	case source == vitals.SourcePortal:
		return vitals.OriginPatient
	case origin == "":
		return vitals.OriginStaff
	}
	return origin
}

// ErrImmutable rejects changing or deleting a stored reading.
var ErrImmutable = errors.New("a stored reading is never changed; mark it as entered in error")

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

// CreateFromRecord takes a reading that somebody creates as a record, in the dashboard or by a script: it is checked like any
// other, stored by store, and has the same consequences. It runs inside the transaction of the save.
func (e *Evaluator) CreateFromRecord(tx core.App, record *core.Record, by audit.Actor, now time.Time, store func() error) (Outcome, error) {
	s, err := e.submissionFromRecord(record, by, now)
	if err != nil {
		return Outcome{}, err
	}
	patient, err := e.findPatient(tx, nil, s)
	if err != nil {
		return Outcome{}, err
	}
	o := e.newObservation(s, now)
	if record.Id != "" {
		o.ID = record.Id
	}
	if _, err := o.findStored(tx); err == nil {
		return Outcome{}, fault.Field("measured_at", "This very reading is stored already.")
	} else if !collections.Missing(err) {
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
	outcome, err := e.evaluateAndApply(tx, b, o, patient, s, now)
	if err != nil {
		return Outcome{}, err
	}
	for column, value := range outcome.Observation.columns() { // it may be suspect
		record.Set(column, value)
	}
	if outcome.CheckDevice, err = recordSighting(tx, o, s.Device, now); err != nil {
		return outcome, err
	}
	return outcome, b.store(tx)
}

// submissionFromRecord reads the record as a person filled it in.
func (e *Evaluator) submissionFromRecord(record *core.Record, by audit.Actor, now time.Time) (Submission, error) {
	checks := validate.NewChecks()
	reading := readingFromRecord(record)
	reading.MeasuredAt = e.ParseMeasuredAt(checks, record, now)
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

// ParseMeasuredAt is the time in a record as a person or script wrote it, in any form that the contract takes; zero when there is none.
func (e *Evaluator) ParseMeasuredAt(checks *validate.Checks, record *core.Record, now time.Time) time.Time {
	at := checks.Instant("measured_at", validate.Of(record.GetString(collections.ObservationMeasuredAt)), true)
	checks.NotFuture("measured_at", at, now, e.rules.MaxFuture)
	return at
}

// recordOrigin is who vouches for a reading that is created as a record: whoever the record names, the patient where it is the portal's,
// otherwise the person or script that creates it, whatever device it names.
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

// ErrImmutable refuses to change or remove a stored reading.
var ErrImmutable = errors.New("a stored reading is never changed; mark it as entered in error")

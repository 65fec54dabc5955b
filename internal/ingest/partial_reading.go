package ingest

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/emr"
	"github.com/vigilhealth/vigil/internal/fault"
)

// ReasonReadingMissing is the code of a part that arrived before its reading.
const ReasonReadingMissing = "reading_missing"

// mergePartial adds to a stored reading what its device measured with it and its vendor sent separately. Existing values never change. New
// values are evaluated as if they had come with the reading, without a second reading, day or delivery; a copy in the EMR is updated.
// Source: docs/decisions/gateway.md, "Other device vendors"; docs/decisions/fhir.md, "Withdrawn or corrected after delivery".
func (e *ReadingStore) mergePartial(tx core.App, b *writeBatch, m *patientCache, s Submission, now time.Time) (Outcome, error) {
	record, err := collections.FindObservationByGatewayKey(tx, s.GatewayKey)
	if collections.IsNotFound(err) {
		return Outcome{}, fault.State(ReasonReadingMissing, "The reading that this belongs to has not arrived.")
	}
	if err != nil {
		return Outcome{}, err
	}
	o := ObservationFromRecord(record)
	before := o.Reading.ValuesKey()
	whole, fits := o.Reading.Merge(s.Reading)
	switch {
	case !fits || o.PatientID != s.PatientID || o.EnteredInError:
		return Outcome{Observation: o, Conflict: true}, nil
	case whole.ValuesKey() == before:
		return Outcome{Observation: o, Duplicate: true}, nil
	}
	patient, err := e.findPatient(tx, m, s)
	if err != nil {
		return Outcome{}, err
	}
	o.Reading, o.UpdatedAt, o.addition = whole, now, &s.Reading
	doubted := o.Review == Suspect
	if !doubted {
		o.setConfirmation(s, now)
	}
	if o.FHIRStatus != "" {
		o.FHIRVersion, o.TransformedAt = o.FHIRVersion+1, now
	}
	if o.readingKey, err = o.mergedKey(tx, record.GetString(collections.ObservationReadingKey)); err != nil {
		return Outcome{}, err
	}
	record.Load(o.columns())
	changed := append(s.Reading.Columns(), collections.ObservationFHIRVersion, collections.ObservationTransformedAt,
		collections.ObservationReadingKey, collections.ColumnUpdatedAt)
	if s.ConfirmedBy != "" && !doubted {
		changed = append(changed, collections.ObservationReviewState, collections.ObservationConfirmedBy, collections.ObservationConfirmedAt)
	}
	if err := collections.Update(tx, record, changed...); err != nil {
		return Outcome{}, err
	}
	if doubted { // parts of a suspect reading are not evaluated either
		return auditMerged(b, o, s.By, now)
	}
	if err := emr.Correct(tx, o.ID, now); err != nil {
		return Outcome{}, err
	}
	if s.skipsEvaluation() {
		return auditMerged(b, o, s.By, now)
	}
	return e.evaluateAndApply(tx, b, o, patient, s, now)
}

// mergedKey returns the key of the merged reading; if another reading has that key already, the current key.
func (o Observation) mergedKey(tx core.App, own string) (string, error) {
	o.readingKey = readingKey(o.PatientID, o.Reading)
	_, err := o.findStored(tx)
	switch {
	case own == "" || err == nil:
		return own, nil
	case collections.IsNotFound(err):
		return o.readingKey, nil
	}
	return "", err
}

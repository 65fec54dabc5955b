package ingest

import (
	"cmp"
	"errors"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/emr"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/gateway"
)

// A device's measurement may arrive in parts, in any order and concurrently. The part that makes a reading is stored at once together with
// pending parts; another part is merged into the stored reading, or stays pending. The second writer reads again after its commit, so two
// concurrent parts cannot miss each other. Source: docs/decisions/gateway.md, "Other device vendors".

// patientMatch is the patient of a reading. manual: chosen by a person; withoutKey: stored separately from the reading that has the event's
// key.
type patientMatch struct {
	patient            string
	manual, withoutKey bool
}

// eachPendingPart calls do for each pending part of the event's reading that belongs to the same patient.
func (e *Pipeline) eachPendingPart(
	app core.App, event gateway.Event, match patientMatch, do func(pending *collections.GatewayEvent, addition gateway.Event) error,
) error {
	for _, name := range event.Parts {
		pending, err := collections.FindGatewayEvent(app, event.PartID(name))
		if collections.IsNotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		addition, err := e.reparse(pending)
		if checkPending(pending) != nil || err != nil || addition.Reading == nil {
			continue // stays in quarantine
		}
		if fits, err := match.accepts(app, pending, addition, event); err != nil {
			return err
		} else if !fits {
			continue
		}
		if err := do(pending, addition); err != nil {
			return err
		}
	}
	return nil
}

// accepts reports whether a part belongs to the patient of its reading. A part that waits only for the reading is matched like any event; a
// person's choice for a reading holds for parts that name the same patient. Other parts stay pending: their patient is not guessed.
func (m patientMatch) accepts(app core.App, pending *collections.GatewayEvent, addition, reading gateway.Event) (bool, error) {
	if m.manual && addition.PatientID == reading.PatientID {
		return true, nil
	}
	if pending.Reason() != ReasonReadingMissing {
		return false, nil
	}
	patient, _, err := MatchPatient(app, addition)
	return patient == m.patient, err
}

// mergePendingParts returns the event with the parts of its reading that arrived earlier.
func (e *Pipeline) mergePendingParts(app core.App, event gateway.Event, match patientMatch) (gateway.Event, error) {
	err := e.eachPendingPart(app, event, match, func(_ *collections.GatewayEvent, addition gateway.Event) error {
		if whole, fits := event.Reading.Merge(*addition.Reading); fits {
			event.Reading = &whole
		}
		return nil
	})
	return event, err
}

// matchedSubmission returns the submission of a matched event with its pending parts.
func (e *Pipeline) matchedSubmission(app core.App, event gateway.Event, match patientMatch, by audit.Actor, at time.Time) (Submission, error) {
	whole, err := e.mergePendingParts(app, event, match)
	if err != nil {
		return Submission{}, err
	}
	s := gatewaySubmission(whole, match.patient, by, at)
	s.Arrival = Arrival{At: event.ReceivedAt, IsDeferred: true, IsUnnamed: event.PatientID == ""}
	if event.Part == "" && len(event.Parts) == 0 {
		return s, nil
	}
	reading, err := collections.FindGatewayEvent(app, event.PartID(""))
	if err != nil || reading.ObservationID() == "" {
		return s, collections.IgnoreNotFound(err)
	}
	stored, err := collections.FindObservation(app, reading.ObservationID())
	if err != nil {
		return s, collections.IgnoreNotFound(err)
	}
	s.GatewayKey = cmp.Or(stored.GetString(collections.ObservationGatewayKey), s.GatewayKey)
	return s, nil
}

// storeKeyAlias stores an event that repeats a reading under another key, so that its later parts and repeats are found to belong to that
// reading.
func storeKeyAlias(tx core.App, event gateway.Event, v classification, d VendorRequest) error {
	id, duplicate, err := StoreEvent(tx, EventEntry{
		ID: event.ID(), Status: collections.EventReleased, Reason: reasonKeyAlias, Event: event, Payload: d.Body,
	}, d.By, d.At)
	if duplicate || err != nil {
		return err
	}
	note, err := FindQuarantined(tx, id)
	if err != nil {
		return err
	}
	return closeEvent(tx, note, eventClosure{status: collections.EventReleased, observation: v.outcome.Observation.ID, patient: v.patient}, d.By, d.At)
}

// addPendingParts merges pending parts into the stored reading of the event. Parts that cannot be merged stay pending.
func (e *Pipeline) addPendingParts(
	tx core.App, event gateway.Event, stored Observation, match patientMatch, by audit.Actor, now time.Time,
) error {
	return e.eachPendingPart(tx, event, match, func(pending *collections.GatewayEvent, addition gateway.Event) error {
		ended := eventClosure{status: collections.EventReleased, observation: stored.ID, patient: match.patient}
		switch whole, fits := stored.Reading.Merge(*addition.Reading); {
		case fits && whole.SameValues(stored.Reading):
			return closeEvent(tx, pending, ended, by, now)
		case match.withoutKey: // the part belongs to the reading with the key
			return nil
		}
		s, err := e.matchedSubmission(tx, addition, match, by, now)
		if err != nil {
			return err
		}
		outcome, err := e.Readings.Ingest(tx, s, now)
		refused, isFault := errors.AsType[*fault.Error](err)
		switch {
		case isFault && refused.Kind != fault.Unavailable:
			return keepQuarantined(tx, pending, collections.EventOpen, quarantineReason(refused), nil)
		case err != nil:
			return err
		case outcome.Conflict:
			return keepQuarantined(tx, pending, collections.EventOpen, ReasonConflict, nil)
		}
		ended.observation = outcome.Observation.ID
		return closeEvent(tx, pending, ended, by, now)
	})
}

// afterCommit stores a key alias and merges pending parts after a reading's commit; most readings need neither.
func (e *Pipeline) afterCommit(app core.App, event gateway.Event, v classification, d VendorRequest) error {
	match, needed := patientMatch{patient: v.patient}, v.outcome.KeyAlias
	err := e.eachPendingPart(app, event, match, func(*collections.GatewayEvent, gateway.Event) error {
		needed = true
		return nil
	})
	if err != nil || !needed {
		return err
	}
	return app.RunInTransaction(func(tx core.App) error {
		if v.outcome.KeyAlias {
			if err := storeKeyAlias(tx, event, v, d); err != nil {
				return err
			}
		}
		return e.addPendingParts(tx, event, v.outcome.Observation, match, d.By, d.At)
	})
}

// ReasonReadingMissing is the code of a part that arrived before its reading.
const ReasonReadingMissing = "reading_missing"

// mergePartial adds to a stored reading what its device measured with it and its vendor sent separately. Existing values never change. New
// values are evaluated as if they had come with the reading, without a second reading, day or delivery; a copy in the EMR is updated.
// Source: docs/decisions/gateway.md, "Other device vendors"; docs/decisions/fhir.md, "Withdrawn or corrected after delivery".
func (rs *ReadingStore) mergePartial(tx core.App, b *writeBatch, m *patientCache, s Submission, now time.Time) (Outcome, error) {
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
	patient, err := rs.findPatient(tx, m, s)
	if err != nil {
		return Outcome{}, err
	}
	o.Reading, o.UpdatedAt, o.mergedPart = whole, now, &s.Reading
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
	switch {
	case doubted && o.SuspectReason == ReasonDeviceClock:
		return rs.evaluateDoubtful(tx, b, o, patient, s, now)
	case doubted: // parts of a suspect reading are not evaluated either
		return auditMerged(b, o, s.By, now)
	}
	if err := emr.Correct(tx, o.ID, now); err != nil {
		return Outcome{}, err
	}
	if s.TimeInDoubt {
		return auditMerged(b, o, s.By, now)
	}
	return rs.evaluateAndApply(tx, b, o, patient, s, now)
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

// auditMerged records a merged part that has no effects.
func auditMerged(b *writeBatch, o Observation, by audit.Actor, now time.Time) (Outcome, error) {
	a := effectsWriter{batch: b, effects: Effects{Observation: o}, by: by, now: now}
	return Outcome{Observation: o, Merged: true}, a.auditObservation()
}

package ingest

import (
	"cmp"
	"errors"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/gateway"
)

// What a device measures at one time may come in parts, in any order and at the same moment. The part that makes a reading is stored
// at once, with the additions that wait for it; an addition completes a reading that is stored, and else waits. Whoever comes second
// looks once more after what it wrote is committed, so that of two at the same moment one sees the other.
// Source: docs/decisions/gateway.md, "Other device vendors".

// patientMatch is the patient of a reading. chosen: a person says so; beside: the reading stands beside the one that has the event's key.
type patientMatch struct {
	patient                 string
	manual, readingSnapshot bool
}

// eachPendingPart calls do for each addition to the event's reading that waits and is the owner's, too.
func (e *Pipeline) eachPendingPart(
	app core.App, event gateway.Event, match patientMatch, do func(pending *collections.GatewayEvent, addition gateway.Event) error,
) error {
	for _, name := range event.Additions {
		pending, err := collections.FindGatewayEvent(app, event.IDOf(name))
		if collections.Missing(err) {
			continue
		}
		if err != nil {
			return err
		}
		addition, err := e.reparse(pending)
		if checkPending(pending) != nil || err != nil || addition.Reading == nil {
			continue // it is where people see it
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

// accepts reports whether an addition is of the owner of its reading. One that waits for the reading alone is placed as any other event is;
// what a person says of a reading holds for what names the same patient, or nobody as the reading does. Anything else waits on: it is
// never guessed whose a value is.
func (o patientMatch) accepts(app core.App, pending *collections.GatewayEvent, addition, reading gateway.Event) (bool, error) {
	if o.manual && addition.PatientID == reading.PatientID {
		return true, nil
	}
	if pending.Reason() != ReasonNoReadingYet {
		return false, nil
	}
	patient, _, err := MatchPatient(app, addition)
	return patient == o.patient, err
}

// mergePendingParts is the event with the additions to its reading that came before it.
func (e *Pipeline) mergePendingParts(app core.App, event gateway.Event, match patientMatch) (gateway.Event, error) {
	err := e.eachPendingPart(app, event, match, func(_ *collections.GatewayEvent, addition gateway.Event) error {
		if whole, fits := event.Reading.Add(*addition.Reading); fits {
			event.Reading = &whole
		}
		return nil
	})
	return event, err
}

// matchedSubmission is the reading of an event of the owner's on its way in, with what waits for it.
func (e *Pipeline) matchedSubmission(app core.App, event gateway.Event, match patientMatch, by audit.Actor, at time.Time) (Submission, error) {
	whole, err := e.mergePendingParts(app, event, match)
	if err != nil {
		return Submission{}, err
	}
	s := gatewaySubmission(whole, match.patient, by, at)
	if s.WrongClock, err = isClockWrong(e.reads.In(app), event, match.patient); err != nil {
		return s, err
	}
	if event.Addition == "" && len(event.Additions) == 0 {
		return s, nil
	}
	reading, err := collections.FindGatewayEvent(app, event.IDOf(""))
	if err != nil || reading.ObservationID() == "" {
		return s, ignoreMissing(err)
	}
	stored, err := collections.FindObservation(app, reading.ObservationID())
	if err != nil {
		return s, ignoreMissing(err)
	}
	s.GatewayKey = cmp.Or(stored.GetString(collections.ObservationGatewayKey), s.GatewayKey)
	return s, nil
}

// storeKeyAlias keeps a reading that repeats the values of one with another key, so that what comes to it by itself, and it when it comes
// again, are found to belong to that one.
func storeKeyAlias(tx core.App, event gateway.Event, v classification, d Delivery) error {
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
	return closeEvent(tx, note, closure{status: collections.EventReleased, observation: v.outcome.Observation.ID, patient: v.patient}, d.By, d.At)
}

func ignoreMissing(err error) error {
	if collections.Missing(err) {
		return nil
	}
	return err
}

// addPendingParts adds what waits to the event's reading as it is stored for its owner, unless it is in it. What cannot be added goes on
// waiting.
func (e *Pipeline) addPendingParts(
	tx core.App, event gateway.Event, stored Observation, match patientMatch, by audit.Actor, now time.Time,
) error {
	return e.eachPendingPart(tx, event, match, func(pending *collections.GatewayEvent, addition gateway.Event) error {
		ended := closure{status: collections.EventReleased, observation: stored.ID, patient: match.patient}
		switch whole, fits := stored.Reading.Add(*addition.Reading); {
		case fits && whole.SameValues(stored.Reading):
			return closeEvent(tx, pending, ended, by, now)
		case match.readingSnapshot: // a part that comes by itself is of the other
			return nil
		}
		s, err := e.matchedSubmission(tx, addition, match, by, now)
		if err != nil {
			return err
		}
		outcome, err := e.Evaluator.Ingest(tx, s, now)
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

// afterCommit does after a reading's commit what belongs to it besides: nothing, for most.
func (e *Pipeline) afterCommit(app core.App, event gateway.Event, v classification, d Delivery) error {
	match, something := patientMatch{patient: v.patient}, v.outcome.KeyAlias
	err := e.eachPendingPart(app, event, match, func(*collections.GatewayEvent, gateway.Event) error {
		something = true
		return nil
	})
	if err != nil || !something {
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

// retryQuarantined tries an event again that was held a moment ago.
func (e *Pipeline) retryQuarantined(app core.App, held Result, now time.Time) (Result, error) {
	var done ReplayResult
	err := app.RunInTransaction(func(tx core.App) error {
		return e.replayInTx(tx, held.EventID, &deliveryBatch{pipeline: e, at: now}, &done, now)
	})
	if err != nil || done.Pending > 0 {
		return held, err
	}
	ended, err := FindQuarantined(app, held.EventID)
	if err != nil {
		return held, err
	}
	return Result{Status: Stored, EventID: held.EventID, ObservationID: ended.ObservationID()}, nil
}

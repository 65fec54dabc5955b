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

// owner is the patient of a reading. chosen: a person says so; beside: the reading stands beside the one that has the event's key.
type owner struct {
	patient        string
	chosen, beside bool
}

// eachWaiting calls do for each addition to the event's reading that waits and is the owner's, too.
func (e *Pipeline) eachWaiting(
	app core.App, event gateway.Event, whose owner, do func(waiting *collections.GatewayEvent, addition gateway.Event) error,
) error {
	for _, name := range event.Additions {
		waiting, err := collections.FindGatewayEvent(app, event.IDOf(name))
		if collections.Missing(err) {
			continue
		}
		if err != nil {
			return err
		}
		addition, err := e.reread(waiting)
		if waits(waiting) != nil || err != nil || addition.Reading == nil {
			continue // it is where people see it
		}
		if fits, err := whose.has(app, waiting, addition, event); err != nil {
			return err
		} else if !fits {
			continue
		}
		if err := do(waiting, addition); err != nil {
			return err
		}
	}
	return nil
}

// has reports whether an addition is of the owner of its reading. One that waits for the reading alone is placed as any other event is;
// what a person says of a reading holds for what names the same patient, or nobody as the reading does. Anything else waits on: it is
// never guessed whose a value is.
func (o owner) has(app core.App, waiting *collections.GatewayEvent, addition, reading gateway.Event) (bool, error) {
	if o.chosen && addition.PatientID == reading.PatientID {
		return true, nil
	}
	if waiting.Reason() != ReasonNoReading {
		return false, nil
	}
	patient, _, err := Place(app, addition)
	return patient == o.patient, err
}

// joined is the event with the additions to its reading that came before it.
func (e *Pipeline) joined(app core.App, event gateway.Event, whose owner) (gateway.Event, error) {
	err := e.eachWaiting(app, event, whose, func(_ *collections.GatewayEvent, addition gateway.Event) error {
		if whole, fits := event.Reading.Add(*addition.Reading); fits {
			event.Reading = &whole
		}
		return nil
	})
	return event, err
}

// placed is the reading of an event of the owner's on its way in, with what waits for it.
func (e *Pipeline) placed(app core.App, event gateway.Event, whose owner, by audit.Actor, at time.Time) (Submission, error) {
	whole, err := e.joined(app, event, whose)
	if err != nil {
		return Submission{}, err
	}
	s := submission(whole, whose.patient, by, at)
	if s.Undated, err = undated(e.reads.In(app), event, whose.patient); err != nil {
		return s, err
	}
	if event.Addition == "" && len(event.Additions) == 0 {
		return s, nil
	}
	reading, err := collections.FindGatewayEvent(app, event.IDOf(""))
	if err != nil || reading.ObservationID() == "" {
		return s, unlessMissing(err)
	}
	stored, err := collections.FindObservation(app, reading.ObservationID())
	if err != nil {
		return s, unlessMissing(err)
	}
	s.GatewayKey = cmp.Or(stored.GetString(collections.ObservationGatewayKey), s.GatewayKey)
	return s, nil
}

// noteOtherKey keeps a reading that repeats the values of one with another key, so that what comes to it by itself, and it when it comes
// again, are found to belong to that one.
func noteOtherKey(tx core.App, event gateway.Event, v verdict, d Delivery) error {
	id, known, err := Store(tx, Entry{
		ID: event.ID(), Status: collections.EventReleased, Reason: reasonOtherKey, Event: event, Payload: d.Body,
	}, d.By, d.At)
	if known || err != nil {
		return err
	}
	note, err := FindQuarantined(tx, id)
	if err != nil {
		return err
	}
	return end(tx, note, ending{status: collections.EventReleased, observation: v.outcome.Observation.ID, patient: v.patient}, d.By, d.At)
}

func unlessMissing(err error) error {
	if collections.Missing(err) {
		return nil
	}
	return err
}

// addWaiting adds what waits to the event's reading as it is stored for its owner, unless it is in it. What cannot be added goes on
// waiting.
func (e *Pipeline) addWaiting(
	tx core.App, event gateway.Event, stored Observation, whose owner, by audit.Actor, now time.Time,
) error {
	return e.eachWaiting(tx, event, whose, func(waiting *collections.GatewayEvent, addition gateway.Event) error {
		ended := ending{status: collections.EventReleased, observation: stored.ID, patient: whose.patient}
		switch whole, fits := stored.Reading.Add(*addition.Reading); {
		case fits && whole.SameValues(stored.Reading):
			return end(tx, waiting, ended, by, now)
		case whose.beside: // a part that comes by itself is of the other
			return nil
		}
		s, err := e.placed(tx, addition, whose, by, now)
		if err != nil {
			return err
		}
		outcome, err := e.Readings.Ingest(tx, s, now)
		refused, isFault := errors.AsType[*fault.Error](err)
		switch {
		case isFault && refused.Kind != fault.Unavailable:
			return goOnWaiting(tx, waiting, collections.EventOpen, reasonFor(refused), nil)
		case err != nil:
			return err
		case outcome.Conflict:
			return goOnWaiting(tx, waiting, collections.EventOpen, ReasonConflict, nil)
		}
		ended.observation = outcome.Observation.ID
		return end(tx, waiting, ended, by, now)
	})
}

// followUp does after a reading's commit what belongs to it besides: nothing, for most.
func (e *Pipeline) followUp(app core.App, event gateway.Event, v verdict, d Delivery) error {
	whose, something := owner{patient: v.patient}, v.outcome.OtherKey
	err := e.eachWaiting(app, event, whose, func(*collections.GatewayEvent, gateway.Event) error {
		something = true
		return nil
	})
	if err != nil || !something {
		return err
	}
	return app.RunInTransaction(func(tx core.App) error {
		if v.outcome.OtherKey {
			if err := noteOtherKey(tx, event, v, d); err != nil {
				return err
			}
		}
		return e.addWaiting(tx, event, v.outcome.Observation, whose, d.By, d.At)
	})
}

// retry tries an event again that was held a moment ago.
func (e *Pipeline) retry(app core.App, held Result, now time.Time) (Result, error) {
	var done Replayed
	err := app.RunInTransaction(func(tx core.App) error {
		return e.replayOne(tx, held.EventID, &together{engine: e, at: now}, &done, now)
	})
	if err != nil || done.Waiting > 0 {
		return held, err
	}
	ended, err := FindQuarantined(app, held.EventID)
	if err != nil {
		return held, err
	}
	return Result{Status: Stored, EventID: held.EventID, ObservationID: ended.ObservationID()}, nil
}

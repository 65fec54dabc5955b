package ingest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/gateway"
)

// Replayed says what became of the events that a replay looked at.
type Replayed struct {
	Stored  int // became observations
	Known   int // were stored meanwhile in another way
	Handled int // of devices and hubs, readable now
	Waiting int // could not be placed or read this time either
}

// Replay tries every open and rejected event again, after something was put right: a patient enrolled, a device assigned, a
// mapping mended. In order of measurement, each in a transaction of its own, so that a running service goes on beside it and the run
// can be interrupted. Each counts as of its own receipt: a time that lay in the future then
// is still wrong. progress is told how many of how many were looked at.
func (e *Pipeline) Replay(ctx context.Context, app core.App, clock func() time.Time, progress func(done, total int)) (done Replayed, err error) {
	ids, err := collections.WaitingGatewayEvents(app)
	if err != nil {
		return done, err
	}
	r := &replaying{engine: e, clock: clock, together: &together{engine: e, newest: newest{}, at: clock()}}
	sorted, err := r.inOrder(app, ids)
	if err != nil {
		return done, err
	}
	for i, id := range sorted {
		if err = ctx.Err(); err != nil {
			err = fmt.Errorf("replay was interrupted: %w", err)
			break
		}
		if err = r.try(app, id, &done); err != nil {
			break
		}
		progress(i+1, len(ids))
	}
	r.together.missing = r.together.missing || err != nil
	return done, errors.Join(err, r.together.reconsider(app, clock()))
}

// replaying is a replay under way, and what it takes together.
type replaying struct {
	engine   *Pipeline
	clock    func() time.Time
	together *together
}

// sortByMeasurement puts events in order of measurement, and remembers what follows what is late.
func (r *replaying) inOrder(app core.App, ids []string) ([]string, error) {
	events := make([]gateway.Event, len(ids))
	for i, id := range ids {
		waiting, err := FindQuarantined(app, id)
		if collections.IsUnreadable(err) || err == nil && fromPeople(waiting.Source()) {
			continue
		}
		if err != nil {
			return nil, err
		}
		event, err := r.engine.reread(waiting)
		if err != nil || event.Reading == nil || event.Addition != "" || len(event.LeftOut) > 0 && waiting.Status() == collections.EventRejected {
			continue // it makes no reading, and keeps its place
		}
		events[i] = event
		r.together.newest.add(event)
	}
	sorted := make([]string, len(ids))
	for n, place := range deliveryOrder(events, func(event gateway.Event) (gateway.Event, bool) { return event, true }) {
		sorted[n] = ids[place]
	}
	return sorted, nil
}

func (r *replaying) try(app core.App, id string, done *Replayed) error {
	err := app.RunInTransaction(func(tx core.App) error { return r.engine.replayOne(tx, id, r.together, done, r.clock()) })
	if collections.IsUnreadable(err) {
		done.Waiting++ // for its key; the others go on
		return nil
	}
	if err != nil {
		return fmt.Errorf("replay event %s: %w", id, err)
	}
	return nil
}

func (e *Pipeline) replayOne(tx core.App, id string, all *together, done *Replayed, now time.Time) error {
	waiting, err := FindQuarantined(tx, id)
	if err != nil {
		return err
	}
	if waits(waiting) != nil {
		return nil //nolint:nilerr // somebody was faster
	}
	if fromPeople(waiting.Source()) { // its patient is known, and nothing else is to be put right
		done.Waiting++
		return nil
	}
	event, err := e.reread(waiting)
	if err := e.tellOfImplausible(tx, id, event, now); err != nil {
		return err
	}
	if refused, ok := errors.AsType[*fault.Error](err); ok {
		done.Waiting++
		return goOnWaiting(tx, waiting, collections.EventRejected, refused.Code, refused.Fields)
	}
	if err != nil {
		return err
	}
	if len(event.LeftOut) > 0 && waiting.Status() == collections.EventRejected { // for what was left out of it
		done.Waiting++
		return goOnWaiting(tx, waiting, collections.EventRejected, waiting.Reason(), event.LeftOut)
	}
	v, err := take(tx, event, func(patientID string) (Outcome, error) {
		s, err := e.placed(tx, event, owner{patient: patientID}, audit.System(), now)
		if err != nil {
			return Outcome{}, err
		}
		s.Following = all.following(event)
		return e.Readings.Ingest(tx, s, now)
	})
	if err != nil {
		return err
	}
	all.note(event, v.status, v.patient)
	ended := ending{status: collections.EventReleased, observation: v.outcome.Observation.ID, patient: v.patient}
	switch v.status {
	case Held:
		done.Waiting++
		return goOnWaiting(tx, waiting, collections.EventOpen, v.reason, nil)
	case Handled, Ignored:
		done.Handled++
		if err := e.Devices.Handle(tx, event, now); err != nil {
			return err
		}
		ended = ending{status: collections.EventHandled}
	case Known:
		done.Known++
	default:
		done.Stored++
	}
	if err := end(tx, waiting, ended, audit.System(), now); err != nil {
		return err
	}
	return e.addWaiting(tx, event, v.outcome.Observation, owner{patient: v.patient}, audit.System(), now)
}

// goOnWaiting leaves the event where it is, with the reason that holds now.
func goOnWaiting(tx core.App, event *collections.GatewayEvent, status, reason string, fields fault.Fields) error {
	if event.Status() == status && event.Reason() == reason {
		return nil
	}
	return event.Wait(tx, status, reason, fields)
}

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

// ReplayResult says what became of the events that a replay looked at.
type ReplayResult struct {
	Stored     int // became observations
	Duplicates int // were stored meanwhile in another way
	Processed  int // of devices and hubs, readable now
	Pending    int // could not be placed or read this time either
}

// Replay tries every open and rejected event again, after something was put right: a patient enrolled, a device assigned, a
// mapping mended. In order of measurement, each in a transaction of its own, so that a running service goes on beside it and the run
// can be interrupted. Each counts as of its own receipt: a time that lay in the future then
// is still wrong. progress is told how many of how many were looked at.
func (e *Pipeline) Replay(ctx context.Context, app core.App, clock func() time.Time, progress func(done, total int)) (done ReplayResult, err error) {
	ids, err := collections.WaitingGatewayEvents(app)
	if err != nil {
		return done, err
	}
	r := &replayRun{pipeline: e, clock: clock, batch: &deliveryBatch{pipeline: e, newest: newestReadings{}, at: clock()}}
	sorted, err := r.sortEvents(app, ids)
	if err != nil {
		return done, err
	}
	for i, id := range sorted {
		if err = ctx.Err(); err != nil {
			err = fmt.Errorf("replay was interrupted: %w", err)
			break
		}
		if err = r.replayEvent(app, id, &done); err != nil {
			break
		}
		progress(i+1, len(ids))
	}
	r.batch.incomplete = r.batch.incomplete || err != nil
	return done, errors.Join(err, r.batch.reopenSuperseded(app, clock()))
}

// replayRun is a replay under way, and what it takes together.
type replayRun struct {
	pipeline *Pipeline
	clock    func() time.Time
	batch    *deliveryBatch
}

// sortByMeasurement puts events in order of measurement, and remembers what follows what is late.
func (r *replayRun) sortEvents(app core.App, ids []string) ([]string, error) {
	events := make([]gateway.Event, len(ids))
	for i, id := range ids {
		pending, err := FindQuarantined(app, id)
		if collections.IsUnreadable(err) || err == nil && isManualSource(pending.Source()) {
			continue
		}
		if err != nil {
			return nil, err
		}
		event, err := r.pipeline.reparse(pending)
		if err != nil || event.Reading == nil || event.Addition != "" || len(event.LeftOut) > 0 && pending.Status() == collections.EventRejected {
			continue // it makes no reading, and keeps its place
		}
		events[i] = event
		r.batch.newest.add(event)
	}
	sorted := make([]string, len(ids))
	for n, index := range deliveryOrder(events, func(event gateway.Event) (gateway.Event, bool) { return event, true }) {
		sorted[n] = ids[index]
	}
	return sorted, nil
}

func (r *replayRun) replayEvent(app core.App, id string, done *ReplayResult) error {
	err := app.RunInTransaction(func(tx core.App) error { return r.pipeline.replayInTx(tx, id, r.batch, done, r.clock()) })
	if collections.IsUnreadable(err) {
		done.Pending++ // for its key; the others go on
		return nil
	}
	if err != nil {
		return fmt.Errorf("replay event %s: %w", id, err)
	}
	return nil
}

func (e *Pipeline) replayInTx(tx core.App, id string, all *deliveryBatch, done *ReplayResult, now time.Time) error {
	pending, err := FindQuarantined(tx, id)
	if err != nil {
		return err
	}
	if checkPending(pending) != nil {
		return nil //nolint:nilerr // somebody was faster
	}
	if isManualSource(pending.Source()) { // its patient is known, and nothing else is to be put right
		done.Pending++
		return nil
	}
	event, err := e.reparse(pending)
	if err := e.alertIfImplausible(tx, id, event, now); err != nil {
		return err
	}
	if refused, ok := errors.AsType[*fault.Error](err); ok {
		done.Pending++
		return keepQuarantined(tx, pending, collections.EventRejected, refused.Code, refused.Fields)
	}
	if err != nil {
		return err
	}
	if len(event.LeftOut) > 0 && pending.Status() == collections.EventRejected { // for what was left out of it
		done.Pending++
		return keepQuarantined(tx, pending, collections.EventRejected, pending.Reason(), event.LeftOut)
	}
	v, err := classify(tx, event, func(patientID string) (Outcome, error) {
		s, err := e.matchedSubmission(tx, event, patientMatch{patient: patientID}, audit.System(), now)
		if err != nil {
			return Outcome{}, err
		}
		s.NewerInBatch = all.newerThan(event)
		return e.Evaluator.Ingest(tx, s, now)
	})
	if err != nil {
		return err
	}
	all.recordResult(event, v.status, v.patient)
	ended := closure{status: collections.EventReleased, observation: v.outcome.Observation.ID, patient: v.patient}
	switch v.status {
	case Quarantined:
		done.Pending++
		return keepQuarantined(tx, pending, collections.EventOpen, v.reason, nil)
	case Processed, Ignored:
		done.Processed++
		if err := e.Devices.Handle(tx, event, now); err != nil {
			return err
		}
		ended = closure{status: collections.EventHandled}
	case Duplicate:
		done.Duplicates++
	default:
		done.Stored++
	}
	if err := closeEvent(tx, pending, ended, audit.System(), now); err != nil {
		return err
	}
	return e.addPendingParts(tx, event, v.outcome.Observation, patientMatch{patient: v.patient}, audit.System(), now)
}

// keepQuarantined leaves the event where it is, with the reason that holds now.
func keepQuarantined(tx core.App, event *collections.GatewayEvent, status, reason string, fields fault.Fields) error {
	if event.Status() == status && event.Reason() == reason {
		return nil
	}
	return event.Wait(tx, status, reason, fields)
}

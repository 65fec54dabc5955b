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

// ReplayResult counts the events of a replay by result.
type ReplayResult struct {
	Stored     int // became observations
	Duplicates int // were stored from another source since
	Processed  int // of devices and hubs, readable now
	Pending    int // still cannot be matched or parsed
}

// Replay processes every pending event again after its cause is fixed: a patient enrolled, a device assigned, a mapping corrected. It
// proceeds in order of measurement with one transaction per event, so that a service can run at the same time and the replay can be
// interrupted. Each event is parsed as of its own receipt: a time that was in the future then is still wrong. progress receives the number
// of processed and of all events.
func (e *Pipeline) Replay(ctx context.Context, app core.App, clock func() time.Time, progress func(done, total int)) (done ReplayResult, err error) {
	ids, err := collections.UndecidedGatewayEvents(app)
	if err != nil {
		return done, err
	}
	r := &replayRun{pipeline: e, clock: clock}
	if err := r.collectReadings(app, ids); err != nil {
		return done, err
	}
	for i, index := range r.batch.order {
		if err = ctx.Err(); err != nil {
			err = fmt.Errorf("replay was interrupted: %w", err)
			break
		}
		if err = r.replayEvent(app, ids[index], &done); err != nil {
			break
		}
		progress(i+1, len(ids))
	}
	return done, r.batch.finish(app, err, clock())
}

// replayRun is a replay in progress.
type replayRun struct {
	pipeline *Pipeline
	clock    func() time.Time
	batch    *readingBatch
}

// collectReadings collects the readings of the events in a batch.
func (r *replayRun) collectReadings(app core.App, ids []string) error {
	events := make([]gateway.Event, len(ids))
	for i, id := range ids {
		pending, err := FindQuarantined(app, id)
		if collections.IsUnreadable(err) || err == nil && isManualSource(pending.Source()) {
			continue
		}
		if err != nil {
			return err
		}
		event, err := r.pipeline.reparse(pending)
		if err != nil || event.Reading == nil || event.Part != "" || len(event.RejectedValues) > 0 && pending.Status() == collections.EventRejected {
			continue // no reading: keeps its place
		}
		events[i] = event
	}
	r.batch = r.pipeline.newBatch(events, r.clock())
	return nil
}

func (r *replayRun) replayEvent(app core.App, id string, done *ReplayResult) error {
	err := app.RunInTransaction(func(tx core.App) error { return r.pipeline.replayInTx(tx, id, r.batch, done, r.clock()) })
	if collections.IsUnreadable(err) {
		done.Pending++ // its key is missing; the others continue
		return nil
	}
	if err != nil {
		return fmt.Errorf("replay event %s: %w", id, err)
	}
	return nil
}

func (e *Pipeline) replayInTx(tx core.App, id string, batch *readingBatch, done *ReplayResult, now time.Time) error {
	pending, err := FindQuarantined(tx, id)
	if err != nil {
		return err
	}
	if checkPending(pending) != nil {
		return nil //nolint:nilerr // closed concurrently
	}
	if isManualSource(pending.Source()) { // its patient is known: only a person can decide
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
	if len(event.RejectedValues) > 0 && pending.Status() == collections.EventRejected { // pending for its left-out values
		done.Pending++
		return keepQuarantined(tx, pending, collections.EventRejected, pending.Reason(), event.RejectedValues)
	}
	v, err := classify(tx, event, func(patientID string) (Outcome, error) {
		s, err := e.matchedSubmission(tx, event, patientMatch{patient: patientID}, audit.System(), now)
		if err != nil {
			return Outcome{}, err
		}
		s.NewerInBatch = batch.newerThan(event)
		return e.Readings.Ingest(tx, s, now)
	})
	if err != nil {
		return err
	}
	batch.recordResult(event, v.status, v.patient)
	ended := eventClosure{status: collections.EventReleased, observation: v.outcome.Observation.ID, patient: v.patient}
	switch v.status {
	case Quarantined:
		done.Pending++
		return keepQuarantined(tx, pending, collections.EventOpen, v.reason, nil)
	case Processed, Ignored:
		done.Processed++
		if err := e.Devices.Handle(tx, event, now); err != nil {
			return err
		}
		ended = eventClosure{status: collections.EventHandled}
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

// retryQuarantined processes an event again that was just quarantined.
func (e *Pipeline) retryQuarantined(app core.App, held Result, now time.Time) (Result, error) {
	var done ReplayResult
	err := app.RunInTransaction(func(tx core.App) error {
		return e.replayInTx(tx, held.EventID, e.newBatch(nil, now), &done, now)
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

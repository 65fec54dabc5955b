package emr

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
)

const (
	// doubtsEvery is how often the worker asks itself what is in doubt, and the least time between two looks at one record.
	doubtsEvery = time.Minute
	// longestDoubt bounds the time between two looks. They grow apart, so that an EMR that lets nobody look is not asked forever.
	longestDoubt = 6 * time.Hour
	// lateArrival is after which time something that was sent counts as not there when it is not found.
	lateArrival = 15 * time.Minute
	// mostDoubts bounds the looks of one pass.
	mostDoubts = 100
)

// watchDoubts clears what is in doubt, at once and then by the clock, until ctx ends.
func (w *Worker) watchDoubts(ctx context.Context, app core.App) {
	clock := time.NewTicker(doubtsEvery)
	defer clock.Stop()
	for {
		if _, err := w.ClearDoubts(ctx, app); err != nil && ctx.Err() == nil {
			w.Log.Error("doubts not cleared", slog.Any("error", err))
		}
		select {
		case <-ctx.Done():
			return
		case <-clock.C:
		}
	}
}

// ClearDoubts looks at the EMR for what nobody will send again though its end is unknown: after the last retry, or a manual transmit of what
// was given up. What is found is transmitted after all; what is known not to be there stays failed. Nothing is sent. It returns how many are
// clear now. Source: docs/decisions/transmissions.md, "Unknown outcomes".
func (w *Worker) ClearDoubts(ctx context.Context, app core.App) (cleared int, err error) {
	if !w.EMR.Configured() || w.line.isDown() { // the line is probed, and left alone in between
		return 0, nil
	}
	doubts, err := collections.UnconfirmedTransmissions(app, mostDoubts)
	for _, d := range doubts {
		if err != nil || ctx.Err() != nil {
			return cleared, err
		}
		if !lookIsDue(d, w.Clock()) {
			continue
		}
		var known, down bool
		if known, down, err = w.clear(ctx, app, d); known {
			cleared++
		}
		if down {
			break // the others would end the same way
		}
	}
	return cleared, err
}

// lookIsDue lets a quarter of a record's age pass between two looks at it.
func lookIsDue(d collections.UnconfirmedTransmission, now time.Time) bool {
	seen := collections.ParseInstant(d.UpdatedAt)
	age := now.Sub(seen)
	if d.LastAttemptedAt != "" {
		age = now.Sub(collections.ParseInstant(d.LastAttemptedAt))
	}
	return now.Sub(seen) >= min(max(age/4, doubtsEvery), longestDoubt)
}

// clear looks at one and stores what that comes to; down says that the line to the EMR is at fault.
func (w *Worker) clear(ctx context.Context, app core.App, d collections.UnconfirmedTransmission) (known, down bool, err error) {
	result, queue, err := w.lookInto(ctx, app, d)
	if refusal, ok := errors.AsType[*Error](err); ok {
		down, err = refusal.Fault() != OfRequest, nil
	}
	if err != nil || ctx.Err() != nil {
		return false, down, err
	}
	now, held := w.Clock(), false
	err = app.RunInTransaction(func(tx core.App) (err error) {
		if held, err = collections.StoreReconcileResult(tx, d, result, now); err != nil || !held || !result.Resolved {
			return err
		}
		if queue {
			if err := collections.QueueCorrection(tx, d.ID, now); err != nil {
				return err
			}
		}
		if result.NeedsNoCorrection() {
			if err := collections.CancelCorrection(tx, d.ID); err != nil {
				return err
			}
		}
		return noteCleared(tx, d, result, now)
	})
	if err != nil || !held || !result.Resolved {
		return false, down, err
	}
	if queue {
		w.Wake()
	}
	if result.Status == collections.FHIRTransmitted && w.Finished != nil {
		w.Finished(Result{TransmissionID: d.ID, ObservationID: d.ObservationID, EMRID: result.EMRID, StoredAt: collections.ParseInstant(d.CreatedAt)})
	}
	return true, down, nil
}

// lookInto finds out how a delivery ended. queue: the EMR's copy was found, and has yet to follow a change.
func (w *Worker) lookInto(ctx context.Context, app core.App, d collections.UnconfirmedTransmission) (c collections.ReconcileResult, queue bool, err error) {
	w.rendering <- struct{}{}
	rendered, err := w.render(app, d.ClaimedTransmission)
	<-w.rendering
	if err != nil {
		return c, false, err
	}
	late := w.Clock().Sub(collections.ParseInstant(d.LastAttemptedAt)) >= lateArrival
	if d.EMRID != "" {
		return w.lookAtCopy(ctx, d, rendered, late)
	}
	emrID, found, err := w.EMR.LookUpObservation(ctx, rendered.id)
	switch {
	case err != nil:
		return c, false, err
	case found && d.Corrections > 0:
		return collections.ReconcileResult{Status: collections.FHIRPending, Resolved: true, EMRID: emrID}, true, nil
	case found:
		return collections.ReconcileResult{Status: collections.FHIRTransmitted, Resolved: true, EMRID: emrID}, false, nil
	case late && rendered.withdrawn:
		return collections.ReconcileResult{Resolved: true, ErrorCode: codeWithdrawn, ErrorMessage: notSent}, false, nil
	}
	return collections.ReconcileResult{Resolved: late}, false, nil
}

// lookAtCopy finds out how an update ended.
func (w *Worker) lookAtCopy(ctx context.Context, d collections.UnconfirmedTransmission, s sendable, late bool) (c collections.ReconcileResult, _ bool, err error) {
	content, err := s.update(d.EMRID).Encode()
	if err != nil {
		return c, false, &Error{Code: CodeInvalidResource, Message: "The observation has no FHIR form"}
	}
	has, known, err := w.EMR.HasObservation(ctx, d.EMRID, content)
	switch {
	case err != nil:
		return c, false, err
	case has:
		return collections.ReconcileResult{Status: collections.FHIRTransmitted, Resolved: true, EMRID: d.EMRID, SentHash: s.hash()}, false, nil
	}
	return collections.ReconcileResult{Resolved: known && late}, false, nil
}

// noteCleared adds a line to the audit trail.
func noteCleared(tx core.App, d collections.UnconfirmedTransmission, c collections.ReconcileResult, now time.Time) error {
	entry := audit.Entry{
		Event: audit.EMRTransmit, Actor: audit.System(), ResourceType: audit.ResourceTransmission, ResourceID: d.ID, PatientID: d.PatientID,
		Changes: audit.Changes{"ambiguous": {Old: true, New: false}},
	}
	if c.Status == "" {
		entry.Outcome = audit.MinorFailure
	}
	return audit.Append(tx, entry, now)
}

// wait is how long a record waits until the EMR's search can be believed, and takes no further slot: when nothing was sent, and once after
// its first unknown end. Source: docs/decisions/transmissions.md, "Look-ups and the EMR's search cache".
func (d *delivery) wait(c Claimed) time.Duration {
	if d.unsent || !c.Ambiguous {
		return d.err.LookAgain
	}
	return 0
}

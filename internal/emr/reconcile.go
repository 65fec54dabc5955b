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
	// reconcileInterval is the time between passes, and the least time between two queries for one delivery.
	reconcileInterval = time.Minute
	// maxReconcileInterval bounds the growing time between two queries, for an EMR that permits no search.
	maxReconcileInterval = 6 * time.Hour
	// arrivalTimeout is the time after which a delivery that is not found counts as not stored.
	arrivalTimeout = 15 * time.Minute
	// reconcileBatch bounds the deliveries of one pass.
	reconcileBatch = 100
)

// reconcileLoop reconciles at once and then at each interval, until ctx ends.
func (w *Worker) reconcileLoop(ctx context.Context, app core.App) {
	clock := time.NewTicker(reconcileInterval)
	defer clock.Stop()
	for {
		if _, err := w.ReconcileUnknown(ctx, app); err != nil && ctx.Err() == nil {
			w.Log.Error("EMR worker could not reconcile unknown outcomes; it retries at the next interval", slog.Any("error", err))
		}
		select {
		case <-ctx.Done():
			return
		case <-clock.C:
		}
	}
}

// ReconcileUnknown queries the EMR for dead letters with an unknown outcome: after the last retry, or after a manual transmit of a
// dead letter. A delivery that is found becomes transmitted; one that is known not to be there stays failed. It sends nothing, and
// returns the number of outcomes resolved. Source: docs/decisions/transmissions.md, "Unknown outcomes".
func (w *Worker) ReconcileUnknown(ctx context.Context, app core.App) (resolved int, err error) {
	if !w.EMR.Configured() || w.breaker.isOpen() { // probes alone may reach the EMR now
		return 0, nil
	}
	unconfirmed, err := collections.UnconfirmedTransmissions(app, reconcileBatch)
	for _, d := range unconfirmed {
		if err != nil || ctx.Err() != nil {
			return resolved, err
		}
		if !isReconcileDue(d, w.Clock()) {
			continue
		}
		var isResolved, isDown bool
		if isResolved, isDown, err = w.reconcileOne(ctx, app, d); isResolved {
			resolved++
		}
		if isDown {
			break // the others would fail the same way
		}
	}
	return resolved, err
}

// isReconcileDue lets a quarter of a delivery's age pass between two queries.
func isReconcileDue(d collections.UnconfirmedTransmission, now time.Time) bool {
	updatedAt := collections.ParseInstant(d.UpdatedAt)
	age := now.Sub(updatedAt)
	if d.LastAttemptedAt != "" {
		age = now.Sub(collections.ParseInstant(d.LastAttemptedAt))
	}
	return now.Sub(updatedAt) >= min(max(age/4, reconcileInterval), maxReconcileInterval)
}

// reconcileOne queries one delivery and stores the result; isDown reports that the EMR cannot answer.
func (w *Worker) reconcileOne(ctx context.Context, app core.App, d collections.UnconfirmedTransmission) (isResolved, isDown bool, err error) {
	result, queue, err := w.queryOutcome(ctx, app, d)
	if refusal, ok := errors.AsType[*Error](err); ok {
		isDown, err = refusal.Class() != ClassRequest, nil
	}
	if err != nil || ctx.Err() != nil {
		return false, isDown, err
	}
	now, isStored := w.Clock(), false
	err = app.RunInTransaction(func(tx core.App) (err error) {
		if isStored, err = collections.StoreReconcileResult(tx, d, result, now); err != nil || !isStored || !result.Resolved {
			return err
		}
		if d.Form == collections.FormDocument && result.Status == collections.FHIRTransmitted {
			if err := collections.MarkReadingsInDocument(tx, d.ID, now); err != nil {
				return err
			}
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
		return auditReconciled(tx, d, result, now)
	})
	if err != nil || !isStored || !result.Resolved {
		return false, isDown, err
	}
	if queue {
		w.Wake()
	}
	if result.Status == collections.FHIRTransmitted && w.Finished != nil {
		w.Finished(Result{TransmissionID: d.ID, ObservationID: d.ObservationID, EMRID: result.EMRID, StoredAt: collections.ParseInstant(d.CreatedAt)})
	}
	return true, isDown, nil
}

// queryOutcome queries how a delivery ended. queue: the EMR's copy was found and needs an update.
func (w *Worker) queryOutcome(ctx context.Context, app core.App, d collections.UnconfirmedTransmission) (c collections.ReconcileResult, queue bool, err error) {
	if d.Form == collections.FormDocument {
		return w.queryDocument(ctx, app, d)
	}
	w.rendering <- struct{}{}
	rendered, err := w.render(app, d.LeasedTransmission)
	<-w.rendering
	if err != nil {
		return c, false, err
	}
	isLate := w.Clock().Sub(collections.ParseInstant(d.LastAttemptedAt)) >= arrivalTimeout
	if d.EMRID != "" {
		return w.queryCopy(ctx, d, rendered, isLate)
	}
	emrID, found, err := w.EMR.LookUpObservation(ctx, rendered.id, rendered.content)
	switch {
	case err != nil:
		return c, false, err
	case found && d.Corrections > 0:
		return collections.ReconcileResult{Status: collections.FHIRPending, Resolved: true, EMRID: emrID}, true, nil
	case found:
		return collections.ReconcileResult{Status: collections.FHIRTransmitted, Resolved: true, EMRID: emrID}, false, nil
	case d.ErrorCode == CodeOutcomeUnknown: // only the EMR's search or a person resolves it
		return collections.ReconcileResult{}, false, nil
	case isLate && rendered.retracted:
		return collections.ReconcileResult{Resolved: true, ErrorCode: codeNeverSent, ErrorMessage: neverSentMessage}, false, nil
	}
	return collections.ReconcileResult{Resolved: isLate}, false, nil
}

// queryCopy queries how an update ended.
func (w *Worker) queryCopy(ctx context.Context, d collections.UnconfirmedTransmission, p payload, isLate bool) (c collections.ReconcileResult, _ bool, err error) {
	content, err := p.update(d.EMRID).Encode()
	if err != nil {
		return c, false, &Error{Code: CodeInvalidResource, Message: "The observation has no FHIR form"}
	}
	hasContent, isKnown, err := w.EMR.HasObservation(ctx, d.EMRID, content)
	switch {
	case err != nil:
		return c, false, err
	case hasContent:
		return collections.ReconcileResult{Status: collections.FHIRTransmitted, Resolved: true, EMRID: d.EMRID, SentHash: p.hash()}, false, nil
	}
	return collections.ReconcileResult{Resolved: isKnown && isLate}, false, nil
}

// auditReconciled adds an entry to the audit trail.
func auditReconciled(tx core.App, d collections.UnconfirmedTransmission, c collections.ReconcileResult, now time.Time) error {
	entry := audit.Entry{
		Event: audit.EMRTransmit, Actor: audit.System(), ResourceType: audit.ResourceTransmission, ResourceID: d.ID, PatientID: d.PatientID,
		Changes: audit.Changes{"ambiguous": {Old: true, New: false}},
	}
	if c.Status == "" {
		entry.Outcome = audit.MinorFailure
	}
	return audit.Append(tx, entry, now)
}

// searchWait returns how long the delivery waits, without using an attempt, until the EMR's search can be trusted: when nothing was sent,
// and once after its first unknown outcome. Source: docs/decisions/transmissions.md, "Look-ups and the EMR's search cache".
func (d *deliveryOutcome) searchWait(c Leased) time.Duration {
	if d.unsent || !c.Ambiguous {
		return d.err.TrustSearchAfter
	}
	return 0
}

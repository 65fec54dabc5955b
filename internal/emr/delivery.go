package emr

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
)

// send delivers a leased delivery and stores the result. After a failure of our own, such as the database, or a stop of the process, it
// stays in processing: the next process recovers it at its start, or this one when it is stuck.
func (w *Worker) send(ctx context.Context, app core.App, c Leased) (Result, error) {
	d, err := w.deliver(ctx, app, c)
	if err == nil {
		d.attribution = w.attribute(c, d)
	}
	if err == nil && d.err != nil && w.sendCtx.Err() != nil {
		err = errors.New("aborted while the worker stops")
	}
	if err != nil {
		return Result{}, fmt.Errorf("deliver %s: %w", c.ID, err)
	}
	return w.record(app, c, d)
}

// deliveryOutcome is the outcome of one attempt.
type deliveryOutcome struct {
	delivered    EMRCopy
	err          *Error
	attempts     []Attempt
	startedAt    time.Time
	requestID    string // of the request that brought the reading, so that one id connects the log with the EMR's log
	retracted    bool
	canceled     bool // retracted before it was sent: nothing is sent
	unsent       bool // it failed before anything was sent
	requested    bool // at least one request was sent to the EMR
	attribution  attribution
	oldIsCurrent bool // a document that this one replaces still counts at the EMR
}

// firstFailure returns when the first request of a failed delivery had failed.
func (d *deliveryOutcome) firstFailure() time.Time {
	if len(d.attempts) == 0 {
		return d.startedAt
	}
	return d.startedAt.Add(d.attempts[0].Started + d.attempts[0].Took)
}

// deliver sends one observation, or updates the EMR's copy. After an attempt with an unknown outcome it searches the EMR first.
func (w *Worker) deliver(ctx context.Context, app core.App, c Leased) (deliveryOutcome, error) {
	if c.Form == collections.FormDocument {
		return w.deliverDocument(ctx, app, c)
	}
	d := deliveryOutcome{startedAt: w.Clock()}
	// An attempt under way is finished even during shutdown, since aborting it leaves its outcome unknown. Only a hanging EMR is
	// not waited for.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(w.sendCtx, cancel)()
	ctx = WithSharedRetries(ctx)
	w.rendering <- struct{}{}
	rendered, err := w.render(app, c)
	if err == nil {
		d.requestID, err = collections.CausingRequest(app, audit.ResourceObservation, c.ObservationID)
	}
	<-w.rendering
	if err != nil {
		return d, d.setError(err)
	}
	if d.requestID == "" {
		d.requestID = uuid.NewString()
	}
	d.retracted = rendered.retracted
	d.delivered.EMRID = c.EMRID
	// A copy without a known id may exist: after an unknown outcome, or when the EMR did not return the id.
	wasTaken := c.ErrorCode == CodeOutcomeUnknown || c.SentHash == collections.StatedPresent
	if c.EMRID == "" && (c.Ambiguous || c.SentHash != "" || wasTaken) {
		d.requested = true
		if d.delivered.EMRID, err = w.lookUp(ctx, c, rendered); err != nil {
			d.unsent = true
			return d, d.setError(err)
		}
		if d.delivered.EMRID != "" && c.Corrections == 0 && !rendered.retracted {
			return d, nil // an earlier attempt had arrived
		}
		if d.delivered.EMRID == "" && wasTaken {
			d.unsent = true
			return d, d.setError(outcomeUnknown(0))
		}
		d.startedAt = w.Clock()
	}
	switch {
	case d.delivered.EMRID != "":
		err = w.update(ctx, c, rendered, &d)
	case rendered.retracted:
		d.canceled = true
	default:
		err = w.create(ctx, rendered, &d)
	}
	return d, d.setError(err)
}

// lookUp searches for a copy. Before a correction the answer must be certain.
func (w *Worker) lookUp(ctx context.Context, c Leased, p payload) (emrID string, err error) {
	find := w.EMR.FindObservation
	if c.Corrections > 0 {
		find = w.EMR.LookUpObservation
	}
	emrID, _, err = find(ctx, p.id, p.content)
	return emrID, err
}

func (w *Worker) create(ctx context.Context, p payload, d *deliveryOutcome) error {
	d.requested = true
	created, err := w.EMR.CreateObservation(ctx, p.id, p.content, d.requestID)
	if err != nil {
		return err
	}
	d.delivered, d.attempts = EMRCopy{EMRID: created.EMRID, SentHash: p.hash()}, created.Attempts
	return nil
}

// update updates the EMR's copy, unless it is known to have this content.
func (w *Worker) update(ctx context.Context, c Leased, p payload, d *deliveryOutcome) error {
	d.delivered.SentHash = p.hash()
	if c.SentHash == d.delivered.SentHash && !c.Ambiguous {
		return nil
	}
	content, err := p.update(d.delivered.EMRID).Encode()
	if err != nil {
		return &Error{Code: CodeInvalidResource, Message: "The observation has no FHIR form"}
	}
	d.requested = true
	updated, err := w.EMR.UpdateObservation(ctx, d.delivered.EMRID, content, d.requestID, c.Ambiguous)
	d.attempts = updated.Attempts
	return err
}

// setError records an *Error as the outcome of the delivery; it returns any other error.
func (d *deliveryOutcome) setError(err error) error {
	if err == nil {
		return nil
	}
	if refusal, ok := errors.AsType[*Error](err); ok {
		d.err, d.attempts = refusal, refusal.Attempts
		return nil
	}
	return err
}

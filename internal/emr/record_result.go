package emr

import (
	"errors"
	"fmt"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/async"
	"github.com/vigilhealth/vigil/internal/audit"
)

// finishedDelivery is a delivery with its outcome, and the result of storing it.
type finishedDelivery = async.GroupItem[deliveryResult, Result]

type deliveryResult struct {
	leased Leased
	deliveryOutcome
}

// record stores the outcome of a delivery: its state, attempts and audit entry in one transaction, shared with others (group commit).
func (w *Worker) record(app core.App, c Leased, d deliveryOutcome) (Result, error) {
	result, err := w.results.Commit(app, deliveryResult{c, d})
	if err != nil {
		return result, fmt.Errorf("record the result of %s: %w", c.ID, err)
	}
	return result, nil
}

// publish wakes the worker and notifies Finished after a group's commit.
func (w *Worker) publish(group []*finishedDelivery) {
	for _, e := range group {
		if !e.Out.RetryAt.IsZero() || e.Out.MoreDue {
			w.Wake() // from any round: Run must schedule the retry, or send what is due now
		}
		if e.Err == nil && w.Finished != nil && !e.Out.Blocked {
			w.Finished(e.Out)
		}
	}
}

func (w *Worker) store(app core.App, group []*finishedDelivery) error {
	now := w.Clock()
	return async.JoinTx(app, func(tx core.App) error {
		trail, err := audit.NewChain(tx)
		if err != nil {
			return err
		}
		tx = collections.WithStatementCache(tx)
		for _, e := range group {
			// An expired lease changes nothing, so it does not fail the group.
			if e.Err = w.applyTransition(tx, trail, e, now); e.Err != nil && !errors.Is(e.Err, ErrLeaseExpired) {
				return e.Err
			}
		}
		return trail.Store()
	})
}

// applyTransition applies the state change that a delivery ends in, with its attempts and audit entry.
func (w *Worker) applyTransition(tx core.App, trail *audit.Chain, e *finishedDelivery, now time.Time) error {
	c, d, outcome := e.In.leased, e.In.deliveryOutcome, audit.Success
	e.Out = Result{TransmissionID: c.ID, ObservationID: c.ObservationID, EMRID: d.delivered.EMRID, StoredAt: collections.ParseInstant(c.CreatedAt)}
	if c.Form == collections.FormDocument {
		e.Out.ObservationID = ""
	}
	switch {
	case e.In.waitsForLink():
		if err := blockUntilLinked(tx, c, d, &e.Out, now); err != nil {
			return err
		}
		if e.Out.Blocked { // nothing was attempted, so there is nothing more to store
			return releaseNext(tx, e)
		}
		outcome = audit.MinorFailure
	case d.canceled:
		message := neverSentMessage
		if c.Form == collections.FormDocument {
			message = emptyDocument
		}
		if err := recordNeverSent(tx, c, message, d.startedAt, now); err != nil {
			return err
		}
		outcome = audit.MinorFailure
		e.Out.ErrorCode, e.Out.ErrorMessage = codeNeverSent, message
	case d.err == nil:
		var err error
		if e.Out.MoreDue, err = Succeed(tx, c, d.delivered, d.startedAt, now); err != nil {
			return err
		}
		if err := finishDocument(tx, c, d, now); err != nil {
			return err
		}
	default:
		next, err := Fail(tx, c, Failure{
			EMRID: d.delivered.EMRID, IsUnsent: d.unsent || d.err.SignIn, Code: d.err.Code, Message: d.err.Message, Diagnostics: d.err.Diagnostics.Reveal(),
			Ambiguous: d.err.Ambiguous, RetryAfter: max(d.err.RetryAfter, d.err.TrustSearchAfter), IsCopyWrong: d.retracted, Wait: d.searchWait(c),
			NeedsPerson: d.err.NeedsPerson, EMRFault: d.attribution.toEMR, WaitsForEMR: d.attribution.waitsForEMR,
		}, w.Schedule, w.Jitter(), d.startedAt, now)
		if err != nil {
			return err
		}
		outcome = audit.MinorFailure
		e.Out.ErrorCode, e.Out.ErrorMessage, e.Out.RetryAt = d.err.Code, d.err.Message, next
	}
	if err := releaseNext(tx, e); err != nil {
		return err
	}
	if err := storeAttempts(tx, c.ID, d); err != nil {
		return err
	}
	actor := audit.System()
	actor.Origin.RequestID = d.requestID
	return trail.Add(audit.Entry{
		Event: audit.EMRTransmit, Outcome: outcome, Actor: actor,
		ResourceType: audit.ResourceTransmission, ResourceID: c.ID, PatientID: c.PatientID,
	}, now)
}

// storeAttempts stores the requests of a delivery.
func storeAttempts(tx core.App, transmissionID string, d deliveryOutcome) error {
	for _, attempt := range d.attempts {
		row := collections.TransmissionAttempt{
			StartedAt: collections.FormatInstant(d.startedAt.Add(attempt.Started)), DurationMS: attempt.Took.Milliseconds(),
			RequestID: attempt.RequestID, ErrorCode: attempt.Code,
		}
		if attempt.Status != 0 {
			row.StatusCode = &attempt.Status
		}
		if err := collections.InsertTransmissionAttempt(tx, transmissionID, row); err != nil {
			return err
		}
	}
	return nil
}

// releaseNext makes due the patient's next delivery in order of measurement.
func releaseNext(tx core.App, e *finishedDelivery) error {
	next, err := collections.ReleaseNextTurn(tx, e.In.leased.PatientID)
	e.Out.MoreDue = e.Out.MoreDue || next
	return err
}

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

// ended is a delivery that has ended, and what that came to.
type ended = async.GroupItem[endedDelivery, Result]

type endedDelivery struct {
	claimed Claimed
	delivery
}

// record stores how a delivery ended: state, ledger and audit in one transaction, which others may share.
func (w *Worker) record(app core.App, c Claimed, d delivery) (Result, error) {
	result, err := w.endings.Commit(app, endedDelivery{c, d})
	if err != nil {
		return result, fmt.Errorf("record the end of %s: %w", c.ID, err)
	}
	return result, nil
}

// tell says what a group came to.
func (w *Worker) tell(group []*ended) {
	for _, e := range group {
		if !e.Out.RetryAt.IsZero() || e.Out.Again {
			w.Wake() // whichever round it was sent in, Run is to know of the retry, or of what is due now
		}
		if e.Err == nil && w.Finished != nil && !e.Out.Held {
			w.Finished(e.Out)
		}
	}
}

func (w *Worker) store(app core.App, group []*ended) error {
	now := w.Clock()
	return async.Along(app, func(tx core.App) error {
		trail, err := audit.NewChain(tx)
		if err != nil {
			return err
		}
		tx = collections.WithStatementCache(tx)
		for _, e := range group {
			// A lapsed claim changes nothing, and so does not spoil the group.
			if e.Err = w.move(tx, trail, e, now); e.Err != nil && !errors.Is(e.Err, ErrLost) {
				return e.Err
			}
		}
		return trail.Store()
	})
}

// move makes the one change of state that a delivery ends in, with its ledger and its line in the audit trail.
func (w *Worker) move(tx core.App, trail *audit.Chain, e *ended, now time.Time) error {
	c, d, outcome := e.In.claimed, e.In.delivery, audit.Success
	e.Out = Result{TransmissionID: c.ID, ObservationID: c.ObservationID, EMRID: d.done.EMRID, StoredAt: collections.ParseInstant(c.CreatedAt)}
	switch {
	case e.In.waitsForLink():
		if err := hold(tx, c, d, &e.Out, now); err != nil {
			return err
		}
		if e.Out.Held { // nothing was attempted, so there is nothing to record
			return nextTurn(tx, e)
		}
		outcome = audit.MinorFailure
	case d.never:
		if err := neverSent(tx, c, d.startedAt, now); err != nil {
			return err
		}
		outcome = audit.MinorFailure
		e.Out.ErrorCode, e.Out.ErrorMessage = codeWithdrawn, notSent
	case d.err == nil:
		var err error
		if e.Out.Again, err = Succeed(tx, c, d.done, d.startedAt, now); err != nil {
			return err
		}
	default:
		next, err := Fail(tx, c, Failure{
			Code: d.err.Code, Message: d.err.Message, Diagnostics: d.err.Diagnostics.Reveal(),
			Ambiguous: d.err.Ambiguous, RetryAfter: max(d.err.RetryAfter, d.err.LookAgain), CopyWrong: d.withdrawn, Wait: d.wait(c),
			Line: d.verdict.line, Held: d.verdict.held,
		}, w.Schedule, w.Spread(), d.startedAt, now)
		if err != nil {
			return err
		}
		outcome = audit.MinorFailure
		e.Out.ErrorCode, e.Out.ErrorMessage, e.Out.RetryAt = d.err.Code, d.err.Message, next
	}
	if err := nextTurn(tx, e); err != nil {
		return err
	}
	for _, attempt := range d.attempts {
		line := collections.TransmissionAttempt{
			StartedAt: collections.Instant(d.startedAt.Add(attempt.Started)), DurationMS: attempt.Took.Milliseconds(),
			RequestID: attempt.RequestID, ErrorCode: attempt.Code,
		}
		if attempt.Status != 0 {
			line.StatusCode = &attempt.Status
		}
		if err := collections.InsertTransmissionAttempt(tx, c.ID, line); err != nil {
			return err
		}
	}
	actor := audit.System()
	actor.From.RequestID = d.requestID
	return trail.Add(audit.Entry{
		Event: audit.EMRTransmit, Outcome: outcome, Actor: actor,
		ResourceType: audit.ResourceTransmission, ResourceID: c.ID, PatientID: c.PatientID,
	}, now)
}

// nextTurn makes due what was measured next of those of the patient that wait for their turn.
func nextTurn(tx core.App, e *ended) error {
	next, err := collections.ReleaseNextTurn(tx, e.In.claimed.PatientID)
	e.Out.Again = e.Out.Again || next
	return err
}

package transmissions

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
)

// settling is a delivery that has ended and waits to be stored.
type settling struct {
	claimed    Claimed
	delivery   delivery
	settlement Settlement
	err        error
	done       bool
}

// settler stores ended deliveries in groups: whoever gets to write first stores all that wait by then, in one transaction,
// so that the cost of making a commit durable is shared. Nobody waits for company.
type settler struct {
	waiting struct {
		sync.Mutex
		list []*settling
	}
	writing sync.Mutex
}

// settle stores how a delivery ended: state, ledger and audit in one transaction, which others may share.
func (w *Worker) settle(app core.App, c Claimed, d delivery) (Settlement, error) {
	mine := &settling{claimed: c, delivery: d}
	waiting := &w.settler.waiting
	waiting.Lock()
	waiting.list = append(waiting.list, mine)
	waiting.Unlock()

	w.settler.writing.Lock()
	defer w.settler.writing.Unlock()
	if !mine.done { // nobody took it along
		waiting.Lock()
		group := waiting.list
		waiting.list = nil
		waiting.Unlock()
		w.settleAll(app, group)
	}
	return mine.settlement, mine.err
}

// settleAll stores a group in one transaction. When that fails each is stored on its own, so that only the one at fault
// fails.
func (w *Worker) settleAll(app core.App, group []*settling) {
	if err := w.store(app, group); err != nil {
		for _, s := range group {
			if err := w.store(app, []*settling{s}); err != nil {
				s.err = fmt.Errorf("settle %s: %w", s.claimed.ID, err)
			}
		}
	}
	for _, s := range group {
		s.done = true
		if !s.settlement.RetryAt.IsZero() {
			w.Wake() // whichever round it was sent in, Run is to know of the retry
		}
		if s.err == nil && w.Settled != nil {
			w.Settled(s.settlement)
		}
	}
}

func (w *Worker) store(app core.App, group []*settling) error {
	now := w.Clock()
	return app.RunInTransaction(func(tx core.App) error {
		trail, err := audit.NewChain(tx)
		if err != nil {
			return err
		}
		tx = collections.Prepared(tx)
		for _, s := range group {
			// A lapsed claim changes nothing, and so does not spoil the group.
			if s.err = w.move(tx, trail, s, now); s.err != nil && !errors.Is(s.err, ErrLost) {
				return s.err
			}
		}
		return trail.Store()
	})
}

// move makes the one change of state that a delivery ends in, with its ledger and its line in the audit trail.
func (w *Worker) move(tx core.App, trail *audit.Chain, s *settling, now time.Time) error {
	c, d, outcome := s.claimed, s.delivery, audit.Success
	s.settlement = Settlement{TransmissionID: c.ID, ObservationID: c.ObservationID, EMRID: d.done.EMRID, StoredAt: collections.ParseInstant(c.CreatedAt)}
	if d.err == nil {
		if err := Succeed(tx, c, d.done, d.startedAt, now); err != nil {
			return err
		}
	} else {
		next, err := Fail(tx, c, Failure{
			Code: d.err.Code, Message: d.err.Message, Diagnostics: d.err.Diagnostics.Reveal(),
			Ambiguous: d.err.Ambiguous, RetryAfter: d.err.RetryAfter,
		}, w.Schedule, w.Spread(), d.startedAt, now)
		if err != nil {
			return err
		}
		outcome = audit.MinorFailure
		s.settlement.ErrorCode, s.settlement.ErrorMessage, s.settlement.RetryAt = d.err.Code, d.err.Message, next
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
		ResourceType: "Transmission", ResourceID: c.ID, PatientID: c.PatientID,
	}, now)
}

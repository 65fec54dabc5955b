package messaging

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/async"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/patients"
)

const (
	// sendTimeout bounds one request to the provider.
	sendTimeout = 30 * time.Second
	// abandonedAfter is when a message without a recorded answer has an unknown outcome; it is longer than a request.
	abandonedAfter = 2 * time.Minute
	// retryAfter is the wait after an attempt that certainly sent nothing.
	retryAfter = time.Minute
	// staleAfter is how long an automatic message may wait for the provider.
	staleAfter = 2 * time.Hour
	// batch bounds the messages of one round.
	batch = 500
)

// WorkerOptions configure a worker.
type WorkerOptions struct {
	Provider Provider
	// IsOver reports whether what an automatic message is about is over; it may be nil.
	IsOver func(tx core.App, m *collections.Message, now time.Time) (bool, error)
	Clock  func() time.Time
	Log    *slog.Logger
}

// Worker sends queued messages. It claims a message before the request, so that an automatic
// message is sent at most once, even if the service is killed: a message without a recorded answer
// is never sent again, and its outcome is shown as unknown.
type Worker struct {
	WorkerOptions
	async.Signal
	roundMu sync.Mutex // one round at a time
}

// NewWorker returns a worker; Run starts it.
func NewWorker(o WorkerOptions) *Worker { return &Worker{WorkerOptions: o, Signal: async.NewSignal()} }

// Run sends due messages after each wake-up until ctx ends.
func (w *Worker) Run(ctx context.Context, app core.App) {
	for w.Wake(); ; {
		select {
		case <-ctx.Done():
			return
		case <-w.Signal:
			if _, err := w.SendDue(ctx, app); err != nil && ctx.Err() == nil {
				w.Log.Error("message worker could not send messages; the next round retries", slog.Any("error", err))
			}
		}
	}
}

// Counts are the messages of one round by result.
type Counts struct{ Sent, Suppressed, Failed, Unknown, Waiting int }

// SendDue sends the due messages, oldest first. It ends early when the provider cannot be reached.
func (w *Worker) SendDue(ctx context.Context, app core.App) (round Counts, err error) {
	w.roundMu.Lock()
	defer w.roundMu.Unlock()
	if err := w.markAbandoned(app, &round); err != nil {
		return round, err
	}
	ids, err := collections.DueMessages(app, w.Clock(), batch)
	if err != nil {
		return round, err
	}
	for _, id := range ids {
		if ctx.Err() != nil {
			return round, ctx.Err()
		}
		reached, err := w.sendOne(ctx, app, id, &round)
		if err != nil || !reached {
			return round, err
		}
	}
	return round, nil
}

// markAbandoned marks messages with an unknown outcome.
func (w *Worker) markAbandoned(app core.App, round *Counts) error {
	now := w.Clock()
	ids, err := collections.AbandonedMessages(app, now.Add(-abandonedAfter))
	if err != nil {
		return err
	}
	for _, id := range ids {
		err := app.RunInTransaction(func(tx core.App) error {
			m, err := collections.MessageByID(tx, id)
			if err != nil {
				return err
			}
			did, err := changeState(tx, m, []string{collections.MessageSending},
				collections.MessageChange{State: collections.MessageUnknown, Reason: ReasonNoAnswer}, now)
			if did {
				round.Unknown++
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// sendOne claims, sends and records one message. reached is false if the provider cannot be reached.
func (w *Worker) sendOne(ctx context.Context, app core.App, id string, round *Counts) (reached bool, err error) {
	out, err := w.claim(app, id, round)
	if err != nil || out == nil {
		return true, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendTimeout) // a started request may finish, even during a shutdown
	defer cancel()
	result := w.Provider.Send(ctx, *out, w.Clock())
	return result.Outcome != NotSent, w.record(app, id, result, round)
}

// claim decides in one transaction whether a message is sent now, and marks it as being sent. It
// returns nil if it is not.
func (w *Worker) claim(app core.App, id string, round *Counts) (out *Outgoing, err error) {
	now := w.Clock()
	practice, on := IsOn(app)
	err = app.RunInTransaction(func(tx core.App) error {
		m, err := collections.MessageByID(tx, id)
		if err != nil || m.State() != collections.MessageQueued || m.DueAt().After(now) {
			return collections.IgnoreNotFound(err)
		}
		reason, to, next, err := w.decide(tx, m, practice, now)
		switch {
		case err != nil:
			return err
		case !on:
			reason = ReasonOff
		}
		change := collections.MessageChange{State: collections.MessageSending, SentAt: now, Phone: to.Phone}
		switch {
		case reason != "":
			change = collections.MessageChange{State: collections.MessageSuppressed, Reason: reason}
			round.Suppressed++
		case next.After(now):
			round.Waiting++
			_, err := collections.MoveMessage(tx, id, []string{collections.MessageQueued}, collections.MessageChange{State: collections.MessageQueued, DueAt: next}, now)
			return err
		}
		did, err := changeState(tx, m, []string{collections.MessageQueued}, change, now)
		if err != nil || !did || reason != "" {
			return err
		}
		out = &Outgoing{ID: id, To: to.Phone, Text: m.Text(), Language: m.Language(), Channel: m.Channel()}
		return nil
	})
	return out, err
}

// decide returns why a message is suppressed, its recipient with a dialable phone, and when it may be sent.
func (w *Worker) decide(tx core.App, m *collections.Message, practice Practice, now time.Time) (reason string, to Recipient, next time.Time, err error) {
	if answer := Template(m.Template()); answer.IsAnswer() {
		reason, to = answer.suppressionReason(m, now)
		return reason, to, now, nil
	}
	p, err := collections.FindPatient(tx, m.PatientID())
	if collections.IsNotFound(err) {
		return ReasonArchived, to, now, nil
	}
	if err != nil {
		return "", to, now, err
	}
	if collections.Readable(p.ProxyRecord()) != nil || collections.Readable(m.ProxyRecord()) != nil {
		return ReasonUnreadable, to, now, nil //nolint:nilerr // it is the reason
	}
	if to, err = RecipientOf(tx, p, now); err != nil {
		return "", to, now, err
	}
	if reason = to.SuppressionReason(m.Channel(), m.Automatic()); reason != "" {
		return reason, to, now, nil
	}
	to.Phone, _ = Dialable(to.Phone)
	next = practice.Hours.Next(now, collections.Zone(p.TimeZone(), collections.PracticeZone(tx)))
	if !m.Automatic() {
		return "", to, next, nil
	}
	switch {
	case next.After(now):
		reason = ReasonQuietHours
	case now.Sub(m.CreatedAt()) > staleAfter:
		reason = ReasonOutage
	case w.IsOver != nil:
		over, err := w.IsOver(tx, m, now)
		if over {
			reason = ReasonResolved
		}
		return reason, to, now, err
	}
	return reason, to, now, nil
}

// record stores the result of an attempt. It keeps a state that the provider has reported in the
// meantime.
func (w *Worker) record(app core.App, id string, result Result, round *Counts) error {
	now := w.Clock()
	change := collections.MessageChange{State: collections.MessageUnknown, Reason: ReasonNoAnswer}
	switch result.Outcome {
	case Accepted:
		change = collections.MessageChange{State: collections.MessageSent, ProviderID: result.ProviderID}
		round.Sent++
	case Refused:
		change = collections.MessageChange{State: collections.MessageFailed, Reason: result.Reason}
		round.Failed++
	case NotSent:
		change = collections.MessageChange{State: collections.MessageQueued, DueAt: now.Add(retryAfter)}
		round.Waiting++
	case Unknown:
		round.Unknown++
	}
	return app.RunInTransaction(func(tx core.App) error {
		m, err := collections.MessageByID(tx, id)
		if err != nil {
			return err
		}
		if _, err := changeState(tx, m, []string{collections.MessageSending}, change, now); err != nil {
			return err
		}
		return recordProviderStop(tx, m, change.Reason, now)
	})
}

// recordProviderStop stops a patient's messages when the provider reports a stop.
func recordProviderStop(tx core.App, m *collections.Message, reason string, now time.Time) error {
	if reason != ReasonStopped || m.PatientID() == "" {
		return nil
	}
	_, err := patients.StopMessages(tx, m.PatientID(), audit.System(), now)
	return collections.IgnoreNotFound(err)
}

// ApplyStatus applies a provider's report about a message. A repeated or older report changes
// nothing; the message of an unknown id is not found.
func ApplyStatus(app core.App, s Status, now time.Time) error {
	return app.RunInTransaction(func(tx core.App) error {
		m, err := collections.MessageByID(tx, s.MessageID)
		if collections.IsNotFound(err) {
			m, err = collections.MessageByProviderID(tx, s.ProviderID)
		}
		if err != nil || s.State == "" || m.Direction() != collections.MessageOut || m.SentAt().IsZero() {
			return err
		}
		if known := m.ProviderID(); known != "" && s.ProviderID != "" && known != s.ProviderID {
			return nil // of an earlier attempt that the provider counts as another message
		}
		from := []string{collections.MessageSending, collections.MessageUnknown}
		if s.State != collections.MessageSent {
			from = append(from, collections.MessageSent)
		}
		did, err := changeState(tx, m, from, collections.MessageChange{State: s.State, Reason: s.Reason, ProviderID: s.ProviderID}, now)
		if err != nil || !did {
			return err
		}
		return recordProviderStop(tx, m, s.Reason, now)
	})
}

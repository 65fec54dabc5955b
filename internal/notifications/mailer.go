package notifications

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/mail"
	"net/textproto"
	"slices"
	"sync"
	"time"

	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tools/mailer"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/async"
	"github.com/vigilhealth/vigil/internal/audit"
)

// QueueMail adds a mail to a user to the outbox, in the transaction of the event.
func QueueMail(tx core.App, template Template, user *collections.User, parameters map[string]string, now time.Time) error {
	return queue(tx, template, user.Id, user.Email(), parameters, now)
}

// QueueUnresolvedMail adds a mail to an address that has not been looked up yet. The worker resolves it, so that the caller does the same work whether
// or not an account exists.
func QueueUnresolvedMail(tx core.App, template Template, address string, parameters map[string]string, now time.Time) error {
	return queue(tx, template, "", address, parameters, now)
}

func queue(tx core.App, template Template, userID, recipient string, parameters map[string]string, now time.Time) error {
	m, err := collections.NewMail(tx, string(template), userID, recipient, parameters, now)
	if err != nil {
		return err
	}
	if err := tx.Save(m); err != nil {
		return fmt.Errorf("queue mail: %w", err)
	}
	return nil
}

// MailerOptions configure a mailer.
type MailerOptions struct {
	// Configured reports whether a mail server is set; without one queued mails expire.
	Configured bool
	From       mail.Address
	// Resolve looks up the recipient of an unresolved mail and fills it, in a transaction; false drops the mail.
	Resolve func(tx core.App, m *collections.Mail, now time.Time) (send bool, err error)
	Clock   func() time.Time
	Log     *slog.Logger
}

// Mailer sends the mails in the outbox, after a wake-up and in a periodic sweep.
type Mailer struct {
	MailerOptions
	async.Signal
	roundMu sync.Mutex // one round at a time
	outage  mailOutage
}

// NewMailer returns a mailer; Run starts it.
func NewMailer(o MailerOptions) *Mailer {
	return &Mailer{MailerOptions: o, Signal: async.NewSignal()}
}

// Run sends due mails after each wake-up until ctx ends.
func (m *Mailer) Run(ctx context.Context, app core.App) {
	for m.Wake(); ; {
		select {
		case <-ctx.Done():
			return
		case <-m.Signal:
			if _, err := m.SendDue(ctx, app); err != nil && ctx.Err() == nil {
				m.Log.Error("mailer could not send mails; the next round retries", slog.Any("error", err))
			}
		}
	}
}

// MailCounts counts the results of one round.
type MailCounts struct {
	Sent, Dropped int
	Failed        int // to be retried
	DeadLettered  int
}

const (
	// sendTimeout bounds one exchange with the mail server.
	sendTimeout = 30 * time.Second
	// lease is how long a claimed mail is not claimed again; it is longer than an exchange.
	lease = 5 * time.Minute
)

// SendDue sends all due mails, oldest first.
func (m *Mailer) SendDue(ctx context.Context, app core.App) (round MailCounts, err error) {
	m.roundMu.Lock()
	defer m.roundMu.Unlock()
	for ctx.Err() == nil {
		now := m.Clock()
		claimed, err := collections.LeaseMail(app, now, now.Add(lease))
		if collections.IsNotFound(err) {
			return round, nil
		}
		if err != nil {
			return round, err
		}
		if err := m.sendOne(ctx, app, claimed, &round); err != nil {
			return round, err
		}
	}
	return round, ctx.Err()
}

func (m *Mailer) sendOne(ctx context.Context, app core.App, claimed *collections.Mail, round *MailCounts) error {
	if collections.Readable(claimed.ProxyRecord()) == nil {
		resolved, err := m.resolve(app, claimed)
		if err != nil {
			return err
		}
		claimed = resolved
	}
	if claimed == nil {
		round.Dropped++
		return nil
	}
	failure := errUnreadable // the key may be restored while the mail is still valid
	if collections.Readable(claimed.ProxyRecord()) == nil {
		failure = m.deliver(ctx, app, claimed)
	}
	if failure != nil && ctx.Err() != nil {
		return nil //nolint:nilerr // the service stops: the lease expires and the mail is sent later
	}
	m.outage.record(failure, m.Clock(), m.Log)
	state, err := m.recordAttempt(app, claimed.Id, failure)
	switch {
	case err != nil:
		return err
	case state == collections.MailSent:
		round.Sent++
	case state == collections.MailFailed:
		round.DeadLettered++
		m.Log.Warn("mailer dead-lettered a mail; it is not sent again", slog.String("mail", claimed.Id), slog.String("template", claimed.Template()), slog.String("because", failureText(failure)))
	default:
		round.Failed++
	}
	return nil
}

// resolve looks up the recipient of a mail. It deletes the mail and returns nil if there is none.
func (m *Mailer) resolve(app core.App, claimed *collections.Mail) (*collections.Mail, error) {
	if claimed.UserID() != "" {
		return claimed, nil
	}
	err := app.RunInTransaction(func(tx core.App) error {
		send, err := m.Resolve(tx, claimed, m.Clock())
		if err != nil {
			return fmt.Errorf("resolve mail: %w", err)
		}
		if !send {
			err = tx.Delete(claimed)
			claimed = nil
		} else {
			err = tx.Save(claimed)
		}
		if err != nil {
			return fmt.Errorf("keep resolved mail: %w", err)
		}
		return nil
	})
	return claimed, err
}

var (
	errNotConfigured = errors.New("no mail server is configured")
	errTimeout       = errors.New("the mail server took too long")
	errUnfillable    = errors.New("the text could not be filled in")
	errUnreadable    = errors.New("a value of the mail cannot be opened")
)

// deliver exchanges one mail with the server. After the timeout the exchange is left to finish in the background, so that the mailer can continue.
func (m *Mailer) deliver(ctx context.Context, app core.App, claimed *collections.Mail) error {
	if !m.Configured {
		return errNotConfigured
	}
	languages, err := languagesOf(app, []string{claimed.UserID()})
	if err != nil {
		return err
	}
	content, err := Template(claimed.Template()).render(claimed.Parameters(), languages[claimed.UserID()])
	if err != nil {
		return fmt.Errorf("%w: %w", errUnfillable, err)
	}
	message := &mailer.Message{
		From: m.From, To: []mail.Address{{Address: claimed.Recipient()}},
		Subject: content.subject, Text: content.text, HTML: content.html,
		Headers: map[string]string{"Auto-Submitted": "auto-generated"},
	} // prevents automatic replies. Source: RFC 3834
	done := make(chan error, 1)
	go func() { done <- app.NewMailClient().Send(message) }()
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return errTimeout
	}
}

// recordAttempt stores the result of an attempt and returns the new state. It deletes the template parameters of a mail that is not sent again.
func (m *Mailer) recordAttempt(app core.App, id string, failure error) (state string, err error) {
	now := m.Clock()
	err = app.RunInTransaction(func(tx core.App) error {
		tried, err := collections.FindMail(tx, id)
		if err != nil {
			return err
		}
		entry := audit.Entry{
			Event: audit.NotificationSent, Actor: audit.System(), ResourceType: audit.ResourceMail, ResourceID: id,
			Changes: audit.Changes{"template": {New: tried.Template()}},
		}
		next := nextAttempt(tried.Attempts(), now)
		switch {
		case failure == nil:
			state = collections.MailSent
			tried.Set(collections.MailSentAt, collections.FormatInstant(now))
		case next.After(tried.CreatedAt().Add(mailTexts[Template(tried.Template())].validFor)):
			state, entry.Outcome = collections.MailFailed, audit.MinorFailure
		default:
			state = collections.MailPending
			tried.Set(collections.MailNextAttemptAt, collections.FormatInstant(next))
		}
		tried.Set(collections.MailStatus, state)
		tried.Set(collections.MailError, failureText(failure))
		if state == collections.MailPending {
			return tx.Save(tried)
		}
		if !slices.Contains(collections.UnreadableColumns(tried.ProxyRecord()), collections.MailParameters) { // an unreadable value is never overwritten
			tried.Set(collections.MailParameters, "")
		}
		if err := tx.Save(tried); err != nil {
			return fmt.Errorf("record mail: %w", err)
		}
		return audit.Append(tx, entry, now)
	})
	return state, err
}

// nextAttempt doubles the wait from five minutes up to four hours.
func nextAttempt(attempts int, now time.Time) time.Time {
	return now.Add(min(lease<<min(max(attempts-1, 0), 10), 4*time.Hour))
}

// failureText returns the reason of a failure. A server's reply may contain the address, so only its code is kept.
func failureText(failure error) string {
	switch refused, ok := errors.AsType[*textproto.Error](failure); {
	case failure == nil:
		return ""
	case ok:
		return fmt.Sprintf("the mail server answered %d", refused.Code)
	}
	for _, known := range []error{errNotConfigured, errTimeout, errUnfillable, errUnreadable} {
		if errors.Is(failure, known) {
			return known.Error()
		}
	}
	return "the mail server could not be reached"
}

package notifications

import (
	"errors"
	"log/slog"
	"net/textproto"
	"slices"
	"time"
)

// mailOutage tracks whether the mail server is down. Only one round uses it at a time.
type mailOutage struct {
	since time.Time // start of the outage; zero without one
}

// serverCodes are replies about the server or our account, not about one mail. Source: RFC 5321, 4.2.3; RFC 4954, 6.
var serverCodes = []int{421, 432, 454, 530, 534, 535, 538}

// isServerFailure reports whether a failure would affect every mail.
func isServerFailure(failure error) bool {
	switch refused, ok := errors.AsType[*textproto.Error](failure); {
	case failure == nil, errors.Is(failure, errNotConfigured), errors.Is(failure, errUnfillable), errors.Is(failure, errUnreadable):
		return false
	case ok:
		return slices.Contains(serverCodes, refused.Code)
	}
	return true
}

// record updates the state after an attempt, and logs the start and the end of an outage once each.
func (o *mailOutage) record(failure error, now time.Time, log *slog.Logger) {
	switch _, answered := errors.AsType[*textproto.Error](failure); {
	case isServerFailure(failure):
		if o.since.IsZero() {
			o.since = now
			log.Warn("the mail server is down: mails stay queued", slog.String("because", failureText(failure)))
		}
	case o.since.IsZero():
	case failure == nil || answered: // it accepted a mail, or replied about one
		log.Info("the mail server is back: queued mails are sent", slog.Duration("after", now.Sub(o.since)))
		o.since = time.Time{}
	}
}

package notifications

import (
	"errors"
	"log/slog"
	"net/textproto"
	"slices"
	"time"
)

// mailLine is the way to the mail server as the last mail found it. Called by one round at a time.
type mailLine struct {
	since time.Time // when it went down; zero while it is up
}

// ofServer are answers that are about the server or our account there, not about one mail. Source: RFC 5321, 4.2.3; RFC 4954, 6.
var ofServer = []int{421, 432, 454, 530, 534, 535, 538}

// serversFault reports whether a failure says that no mail would be taken.
func serversFault(failure error) bool {
	switch refused, ok := errors.AsType[*textproto.Error](failure); {
	case failure == nil, errors.Is(failure, errNotConfigured), errors.Is(failure, errUnfillable), errors.Is(failure, errUnreadable):
		return false
	case ok:
		return slices.Contains(ofServer, refused.Code)
	}
	return true
}

// note says once when the server goes down, and once when it is back.
func (l *mailLine) note(failure error, now time.Time, log *slog.Logger) {
	switch _, answered := errors.AsType[*textproto.Error](failure); {
	case serversFault(failure):
		if l.since.IsZero() {
			l.since = now
			log.Warn("the mail server is down: mails wait", slog.String("because", explain(failure)))
		}
	case l.since.IsZero():
	case failure == nil || answered: // it took one, or answered about one
		log.Info("the mail server is back: mails that wait are sent", slog.Duration("after", now.Sub(l.since)))
		l.since = time.Time{}
	}
}

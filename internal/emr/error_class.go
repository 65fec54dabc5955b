package emr

import (
	"context"
	"errors"
	"net/http"
)

// Fault is what a failure is about.
type Fault int

// The faults. Source: docs/decisions/transmissions.md, "Failure attribution".
const (
	// OfRequest: the EMR answered about what it was asked, or nothing was asked at all.
	OfRequest Fault = iota
	// OfLine: no connection, no answer in time, a 5xx or a stranger's answer. It may be what was sent that the EMR cannot bear.
	OfLine
	// OfSignIn: a 401, or no token. It is never about what was sent.
	OfSignIn
	// OfPace: the EMR asks to be asked less.
	OfPace
)

// Fault says what the failure is about.
func (e *Error) Fault() Fault {
	switch {
	case e.Code == CodeUpdateRefused, e.Code == CodeSearchOutdated:
		return OfRequest
	case e.Status == http.StatusTooManyRequests:
		return OfPace
	case e.SignIn, e.Status == http.StatusUnauthorized, e.Code == CodeNotConfigured:
		return OfSignIn
	case e.Status == 0 && e.Code != CodeTimeout && e.Code != CodeUnavailable:
		return OfRequest
	case e.Status < http.StatusBadRequest, e.Status == http.StatusRequestTimeout, e.Status >= http.StatusInternalServerError:
		return OfLine
	}
	return OfRequest
}

// Probe reports whether the EMR can be reached: it gives a token where one is needed, and answers when it is asked what it can do. An answer
// that it does not say is one too. The error is always an *Error.
func (c *Client) Probe(ctx context.Context) error {
	_, err := c.Metadata(ctx)
	if refusal, ok := errors.AsType[*Error](err); ok && refusal.Fault() == OfRequest {
		return nil
	}
	return err
}

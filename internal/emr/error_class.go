package emr

import (
	"context"
	"errors"
	"net/http"
)

// ErrorClass is what an Error is about. It decides whether a failure is the EMR's or the record's.
type ErrorClass int

// The error classes. Source: docs/decisions/transmissions.md, "Failure attribution".
const (
	// ClassRequest: the EMR answered about the request, or nothing was sent.
	ClassRequest ErrorClass = iota
	// ClassOutage: no connection, a timeout, a 5xx or a response that is not the EMR's. The record may cause it, too.
	ClassOutage
	// ClassSignIn: a 401, or no token. The record never causes it.
	ClassSignIn
	// ClassRateLimited: the EMR requests fewer requests (429).
	ClassRateLimited
)

// Class returns the class of the error.
func (e *Error) Class() ErrorClass {
	switch {
	case e.unanswered:
		return ClassOutage
	case e.Code == CodeUpdateRefused, e.Code == CodeSearchOutdated, e.Code == CodeOutcomeUnknown:
		return ClassRequest
	case e.Status == http.StatusTooManyRequests:
		return ClassRateLimited
	case e.SignIn, e.Status == http.StatusUnauthorized, e.Code == CodeNotConfigured:
		return ClassSignIn
	case e.Status == 0 && e.Code != CodeTimeout && e.Code != CodeUnavailable:
		return ClassRequest
	case e.Status < http.StatusBadRequest, e.Status == http.StatusRequestTimeout, e.Status >= http.StatusInternalServerError:
		return ClassOutage
	}
	return ClassRequest
}

// Probe reports whether the EMR can be reached: it issues a token where one is needed and answers a request for its CapabilityStatement. A
// responseError of that request is an answer, too, and so is a statement that is too long to read. The error is always an *Error.
func (c *Client) Probe(ctx context.Context) error {
	_, err := c.Metadata(ctx)
	if refusal, ok := errors.AsType[*Error](err); ok && (refusal.Class() == ClassRequest || refusal.tooLong) {
		return nil
	}
	return err
}

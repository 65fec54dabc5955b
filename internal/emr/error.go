package emr

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/egress"
	"github.com/vigilhealth/vigil/internal/fhir"
	"github.com/vigilhealth/vigil/internal/phi"
)

// The codes of an Error. Source: docs/decisions/transmissions.md, "One record per observation".
const (
	CodeTimeout         = "timeout"
	CodeUnavailable     = "emr_unavailable"
	CodePatientNotFound = "patient_not_found"
	CodeInvalidResource = "invalid_resource"
	CodeAuth            = "auth_error"
	CodeRateLimited     = "rate_limited"
	CodeNotConfigured   = "not_configured"
	// CodeSearchOutdated: nothing failed, but the EMR's search cannot show yet whether it has the observation.
	CodeSearchOutdated = "search_outdated"
	// CodePatientMerged: the EMR no longer uses the patient's record.
	CodePatientMerged = "patient_merged"
	// CodeUpdateRefused: the EMR has the observation and refuses corrections.
	CodeUpdateRefused = "update_refused"
	// CodeTooLarge: the EMR, or a proxy before it, does not take so much in a request. It is not retried.
	CodeTooLarge = "too_large"
	// CodeOutcomeUnknown: the EMR accepted the observation and does not return it. It is sent again
	// only after a person confirms that it is missing.
	CodeOutcomeUnknown = collections.OutcomeUnknown
)

// maxQuickWait is the longest Retry-After that one call waits for.
// Source: docs/decisions/transmissions.md, "Immediate retries".
const maxQuickWait = 10 * time.Second

// Error is a failed call to the EMR. Message is written for staff and never holds health information.
type Error struct {
	Code    string // one of the Code constants
	Status  int    // HTTP status of the EMR, 0 without a response
	Message string
	// Issues are the issue codes of the EMR's OperationOutcome, from FHIR's own list.
	Issues []string
	// SignIn: there was no token to send the request with.
	SignIn bool
	// OAuthError is the token endpoint's error code, from RFC 6749's own list.
	OAuthError string
	// Diagnostics are the EMR's own words; they may name the patient.
	Diagnostics phi.Text
	// Ambiguous: the EMR may have processed the request. Search before sending again.
	Ambiguous bool
	// RetryAfter is the EMR's Retry-After, 0 when there is none.
	RetryAfter time.Duration
	// TrustSearchAfter is set when the EMR may have answered a search from its cache, or before it finished the last request: the time
	// until a search can be trusted. Until then nothing may be sent again.
	TrustSearchAfter time.Duration
	// NeedsPerson: nothing is sent until a person acts: the EMR may have the observation and cannot be searched for it, or it is too large.
	NeedsPerson bool
	// Attempts are the requests of the call, oldest first.
	Attempts []Attempt

	cause      error
	retryNow   bool          // a quick retry may succeed
	unanswered bool          // with NeedsPerson: the last request had no answer, which may be an outage
	isOwn      bool          // see isOwnFailure
	isNear     bool          // with NeedsPerson: the EMR has what may be the observation
	tooLong    bool          // the EMR's answer was longer than what is read
	took       time.Duration // of the request that failed
}

// Attempt is one request, as recorded for a delivery.
type Attempt struct {
	Started   time.Duration // since the call began, including pacing
	Took      time.Duration // from sending to the end of the response
	Status    int           // 0 without a response
	RequestID string        // sent as X-Request-ID
	Code      string        // "" on success, else as in Error
}

// Error returns the message with the technical cause, fit for a log.
func (e *Error) Error() string {
	if e.cause == nil {
		return "emr: " + e.Message
	}
	return "emr: " + e.Message + ": " + e.cause.Error()
}

// Unwrap returns the technical cause.
func (e *Error) Unwrap() error { return e.cause }

// statusOriginTimeout is what some gateways answer instead of 504. Source: Cloudflare, "Error 524: a timeout occurred".
const statusOriginTimeout = 524

// mayBeRunning reports whether the EMR may still be processing the request: the caller or a gateway stopped waiting for its response.
func (e *Error) mayBeRunning() bool {
	isGateway := e.Status == http.StatusGatewayTimeout || e.Status == statusOriginTimeout
	return e.Ambiguous && (e.Code == CodeTimeout || isGateway || errors.Is(e, context.Canceled))
}

// isOwnFailure reports an answer of the EMR itself that it failed, so that it did not store the resource in its own view. Gateways have other
// statuses, and pages or objects of their own. Source: docs/decisions/transmissions.md, "Look-ups".
func isOwnFailure(a response) bool {
	switch a.status {
	case http.StatusInternalServerError, http.StatusNotImplemented, http.StatusServiceUnavailable:
		return len(bytes.TrimSpace(a.body)) == 0 || fhir.IsOutcome(a.body)
	}
	return false
}

// searchOutdated is the error of a search that found nothing and may have been answered from a cache.
func searchOutdated(after time.Duration) *Error {
	return &Error{Code: CodeSearchOutdated, Message: "EMR search may be out of date", Ambiguous: true, TrustSearchAfter: after}
}

// outcomeUnknown is the error of a request that the EMR accepted without a result, or of a search
// that does not find it afterwards.
func outcomeUnknown(status int) *Error {
	message := "EMR took the observation and does not show it"
	if status != 0 {
		message += fmt.Sprintf(" (%d)", status)
	}
	return &Error{Code: CodeOutcomeUnknown, Status: status, Message: message, Ambiguous: true, retryNow: true}
}

func notConfigured() *Error {
	return &Error{Code: CodeNotConfigured, Message: "EMR is not configured"}
}

// noAnswer is the error of a request without a response. parent is the caller's context: when it has ended, the caller canceled.
// Source: docs/decisions/transmissions.md, "Delivery failure texts".
func noAnswer(parent context.Context, err error, sent bool, timeout time.Duration) *Error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err // its text would repeat the address
	}
	e := &Error{Ambiguous: sent, cause: err}
	netErr, isNet := errors.AsType[net.Error](err)
	switch {
	case parent.Err() != nil:
		e.Code, e.Message = CodeUnavailable, "EMR unavailable (interrupted)"
		e.cause = errors.Join(context.Cause(parent), err)
	case untrusted(err):
		e.Code, e.Message = CodeUnavailable, "EMR unavailable (certificate not trusted)" // trying again would not help
		e.Ambiguous = false                                                              // nothing is sent before the handshake ends
	case errors.Is(err, context.DeadlineExceeded), isNet && netErr.Timeout():
		e.Code, e.Message = CodeTimeout, fmt.Sprintf("Connection timeout after %gs", timeout.Seconds())
		e.retryNow = true
	default:
		e.Code, e.Message = CodeUnavailable, "EMR unavailable (no connection)"
		e.retryNow = true
	}
	return e
}

// untrusted reports whether the EMR's certificate failed verification.
func untrusted(err error) bool {
	_, ok := errors.AsType[*tls.CertificateVerificationError](err)
	return ok
}

// responseError turns a response that is not a success into an error. Only a create or an update carries a resource that names a patient, so
// only there can a 4xx be about either. Source: docs/decisions/transmissions.md, "Delivery failure texts".
func responseError(a response, method string, now time.Time) *Error {
	outcome := fhir.ParseOutcome(a.body)
	if isAcceptedWithoutResult(method, a.status) {
		e := outcomeUnknown(a.status)
		e.Diagnostics, e.took = outcome.Diagnostics, a.took
		return e
	}
	e := &Error{Status: a.status, Issues: outcome.Codes, Diagnostics: outcome.Diagnostics, took: a.took, isOwn: isOwnFailure(a)}
	e.readStatus(a.status, a.header, now)
	if a.status == http.StatusNotImplemented && method == http.MethodPut {
		e.Ambiguous, e.retryNow = false, false // the EMR did not do it, and never will
	}
	if e.Code != "" {
		return e
	}
	if hasResource(method) && a.status == http.StatusRequestEntityTooLarge {
		e.Code, e.Message, e.NeedsPerson = CodeTooLarge, "Too large for the EMR (413)", true
		return e
	}
	if !hasResource(method) || a.status == http.StatusRequestTimeout {
		e.Code, e.Message = CodeUnavailable, unavailable(a.status)
		return e
	}
	switch {
	case a.status == http.StatusNotFound || outcome.HasCode("not-found"):
		e.Code, e.Message = CodePatientNotFound, patientNotFound
		return e
	case a.status == http.StatusGone || outcome.HasCode("deleted"):
		e.Code, e.Message = CodePatientNotFound, patientDeleted
		return e
	}
	if method == http.MethodPost && a.status == http.StatusPreconditionFailed && len(e.Issues) == 0 {
		e.Issues = []string{"multiple-matches"} // what 412 means on a conditional create
	}
	e.Code, e.Message = CodeInvalidResource, withIssues("Invalid FHIR resource", e)
	return e
}

// isAcceptedWithoutResult reports whether a create or an update was accepted without its result; an update has none with 204. Source: RFC 9110, sections 15.3.3 and
// 15.3.5.
func isAcceptedWithoutResult(method string, status int) bool {
	return hasResource(method) && status == http.StatusAccepted || method == http.MethodPost && status == http.StatusNoContent
}

// withIssues adds the codes of what was wrong, else the status.
func withIssues(text string, e *Error) string {
	if len(e.Issues) == 0 {
		return fmt.Sprintf("%s (%d)", text, e.Status)
	}
	return text + ": " + strings.Join(e.Issues, ", ")
}

// readStatus sets the fields that a status determines for any server; it leaves the other 4xx alone.
func (e *Error) readStatus(status int, header http.Header, now time.Time) {
	wait, given := egress.RetryAfter(header, now)
	e.RetryAfter = wait
	switch {
	case status == http.StatusUnauthorized:
		e.Code, e.Message = CodeAuth, "EMR authorization failed (401)"
	case status == http.StatusForbidden:
		e.Code, e.Message = CodeAuth, "EMR authorization failed (403: insufficient scope)"
	case status == http.StatusTooManyRequests:
		e.Code, e.Message = CodeRateLimited, "EMR rate limit exceeded"
		e.retryNow = given && wait <= maxQuickWait
	case status >= 500:
		e.Code, e.Message = CodeUnavailable, unavailable(status)
		e.Ambiguous, e.retryNow = true, true
	case status < 400: // a redirect, which is not followed, or a success with another status
		e.Code, e.Message = CodeUnavailable, unavailable(status)
		e.Ambiguous = status < 300
	}
}

func unavailable(status int) string { return fmt.Sprintf("EMR unavailable (%d)", status) }

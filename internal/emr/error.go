package emr

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

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
	// CodeSearchOutdated: nothing failed, but whether the EMR has the observation is known only later.
	CodeSearchOutdated = "search_outdated"
	// CodePatientMerged: the EMR no longer uses the patient's record.
	CodePatientMerged = "patient_merged"
	// CodeUpdateRefused: the EMR has the observation, and does not let it be corrected.
	CodeUpdateRefused = "update_refused"
)

// maxQuickWait is the longest Retry-After that is waited out inside one call.
// Source: docs/decisions/transmissions.md, "Immediate retries".
const maxQuickWait = 10 * time.Second

// Error is why a call to the EMR failed. Message is written for staff and never holds health information.
type Error struct {
	Code    string // one of the Code constants
	Status  int    // HTTP status of the EMR, 0 without an answer
	Message string
	// Issues are the issue codes of the EMR's OperationOutcome, from FHIR's own list.
	Issues []string
	// SignIn says that there was no token to send the request with.
	SignIn bool
	// OAuthError is the token endpoint's error code, from RFC 6749's own list.
	OAuthError string
	// Diagnostics are the EMR's own words; they may name the patient.
	Diagnostics phi.Text
	// Ambiguous says that the EMR may have taken the request all the same: look before sending again.
	Ambiguous bool
	// RetryAfter is the EMR's wish, 0 when it has none.
	RetryAfter time.Duration
	// LookAgain is set when the EMR may have answered a look-up with what it knew before the last send, or before it was done with it: the time
	// after which its answer can be believed. Until then nothing may be sent again.
	LookAgain time.Duration
	// Attempts are the sends of the call, oldest first.
	Attempts []Attempt

	cause error
	again bool          // worth another send at once
	took  time.Duration // of the request that failed
}

// Attempt is one send, for the ledger.
type Attempt struct {
	Started   time.Duration // since the call began, waits for the request rate included
	Took      time.Duration // from leaving to the end of the answer
	Status    int           // 0 without an answer
	RequestID string        // sent as X-Request-ID
	Code      string        // "" when it went well, else as in Error
}

// Error is the message with the technical cause, fit for a log.
func (e *Error) Error() string {
	if e.cause == nil {
		return "emr: " + e.Message
	}
	return "emr: " + e.Message + ": " + e.cause.Error()
}

// Unwrap returns the technical cause.
func (e *Error) Unwrap() error { return e.cause }

// underWay reports whether the EMR may still be at work on the request: nobody waited for its end, we or a gateway in front of it.
func (e *Error) underWay() bool {
	return e.Ambiguous && (e.Code == CodeTimeout || e.Status == http.StatusGatewayTimeout || errors.Is(e, context.Canceled))
}

// outdated is a look-up that found nothing, and may not have looked.
func outdated(after time.Duration) *Error {
	return &Error{Code: CodeSearchOutdated, Message: "EMR search may be out of date", Ambiguous: true, LookAgain: after}
}

func notConfigured() *Error {
	return &Error{Code: CodeNotConfigured, Message: "EMR is not configured"}
}

// lost is a request without an answer. parent is the caller's context: when it has ended, the caller left.
// Source: docs/decisions/transmissions.md, "Delivery failure texts".
func lost(parent context.Context, err error, sent bool, timeout time.Duration) *Error {
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
		e.again = true
	default:
		e.Code, e.Message = CodeUnavailable, "EMR unavailable (no connection)"
		e.again = true
	}
	return e
}

// untrusted reports whether the EMR could not prove who it is.
func untrusted(err error) bool {
	_, ok := errors.AsType[*tls.CertificateVerificationError](err)
	return ok
}

// refusal reads an answer that is not a success. Only a create or an update names a patient and carries a resource, so only
// there a 4xx is about either. Source: docs/decisions/transmissions.md, "Delivery failure texts".
func refusal(a answer, method string, now time.Time) *Error {
	outcome := fhir.ReadOutcome(a.body)
	e := &Error{Status: a.status, Issues: outcome.Codes, Diagnostics: outcome.Diagnostics, took: a.took}
	e.readStatus(a.status, a.header, now)
	if a.status == http.StatusNotImplemented && method == http.MethodPut {
		e.Ambiguous, e.again = false, false // it is sure not to have been done, and never will be
	}
	if e.Code != "" {
		return e
	}
	if !carries(method) || a.status == http.StatusRequestTimeout {
		e.Code, e.Message = CodeUnavailable, unavailable(a.status)
		return e
	}
	switch {
	case a.status == http.StatusNotFound || outcome.Names("not-found"):
		e.Code, e.Message = CodePatientNotFound, patientNotFound
		return e
	case a.status == http.StatusGone || outcome.Names("deleted"):
		e.Code, e.Message = CodePatientNotFound, patientDeleted
		return e
	}
	if method == http.MethodPost && a.status == http.StatusPreconditionFailed && len(e.Issues) == 0 {
		e.Issues = []string{"multiple-matches"} // what 412 means on a conditional create
	}
	e.Code, e.Message = CodeInvalidResource, withIssues("Invalid FHIR resource", e)
	return e
}

// withIssues adds the codes of what was wrong, else the status.
func withIssues(text string, e *Error) string {
	if len(e.Issues) == 0 {
		return fmt.Sprintf("%s (%d)", text, e.Status)
	}
	return text + ": " + strings.Join(e.Issues, ", ")
}

// readStatus fills in what a status means whoever answered; the other 4xx it leaves alone.
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
		e.again = given && wait <= maxQuickWait
	case status >= 500:
		e.Code, e.Message = CodeUnavailable, unavailable(status)
		e.Ambiguous, e.again = true, true
	case status < 400: // a redirect we do not follow, or a success that is none
		e.Code, e.Message = CodeUnavailable, unavailable(status)
		e.Ambiguous = status < 300
	}
}

func unavailable(status int) string { return fmt.Sprintf("EMR unavailable (%d)", status) }

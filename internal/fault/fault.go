// Package fault defines the errors that a caller may see: a kind, the API contract's code, one plain sentence and, for invalid input, the errors
// of each field. It does not depend on HTTP; the routes map a kind to a status. A fault must not contain protected health information.
package fault

import (
	"database/sql"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"
)

// Kind classifies a fault. The kinds are in the order in which a request is checked.
type Kind int

// Kinds of faults. Source: docs/decisions/errors.md, "Errors".
const (
	Internal Kind = iota
	Throttled
	Unauthenticated
	Forbidden
	NotFound
	MethodNotAllowed
	NotAcceptable
	PayloadTooLarge
	UnsupportedMediaType
	Invalid
	Locked
	Upstream
	UpstreamTimeout
	Unavailable
	TimedOut // the caller took too long
	PreconditionFailed
	Conflict      // with a concurrent request
	Unprocessable // well formed, but not meaningful
)

// Fields holds the error messages of each field: dotted names for nested fields, an index for list items ("icd10_codes.0"), NonField for the
// body as a whole.
type Fields map[string][]string

// NonField is the key of errors of the whole body.
const NonField = "non_field_errors"

// Add appends one message to a field. The map must exist.
func (f Fields) Add(field, message string) { f[field] = append(f[field], message) }

// Err returns a validation fault, or nil if there are no messages.
func (f Fields) Err() error {
	if len(f) == 0 {
		return nil
	}
	return Validation(f)
}

// Error is a fault. Code, Detail and Fields are shown to the caller; the cause is for the log only.
type Error struct {
	Kind   Kind
	Code   string
	Detail string
	Fields Fields
	// Extra holds further members of the error body, such as locked_until.
	Extra map[string]any
	// RetryAfter is sent as the Retry-After header if positive.
	RetryAfter time.Duration

	cause error
}

// New returns a fault of the given kind. Detail is one plain sentence.
func New(kind Kind, code, detail string) *Error {
	return &Error{Kind: kind, Code: code, Detail: detail}
}

// Error returns the text for a log: the code and the names of the invalid fields, never their values.
func (e *Error) Error() string {
	text := e.Code
	if len(e.Fields) > 0 {
		text += " (" + strings.Join(slices.Sorted(maps.Keys(e.Fields)), ", ") + ")"
	}
	if e.cause != nil {
		text += ": " + e.cause.Error()
	}
	return text
}

// Unwrap returns the private cause.
func (e *Error) Unwrap() error { return e.cause }

// With adds a member to the error body.
func (e *Error) With(name string, value any) *Error {
	if e.Extra == nil {
		e.Extra = map[string]any{}
	}
	e.Extra[name] = value
	return e
}

// Because sets the private cause, for the log.
func (e *Error) Because(cause error) *Error {
	e.cause = cause
	return e
}

// After sets the time after which the caller may retry.
func (e *Error) After(wait time.Duration) *Error {
	e.RetryAfter = wait
	return e
}

// Validation returns a fault with field errors.
func Validation(fields Fields) *Error {
	return &Error{Kind: Invalid, Code: "validation_error", Detail: "The request has invalid fields.", Fields: fields}
}

// Field returns a validation fault with one message about one field.
func Field(name, message string) *Error { return Validation(Fields{name: {message}}) }

// Missing returns the fault for an object that does not exist or that the caller may not see.
func Missing() *Error { return New(NotFound, "not_found", "Not found.") }

// OrMissing returns [Missing] for sql.ErrNoRows and every other error unchanged.
func OrMissing(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return Missing()
	}
	return err
}

// State returns the fault for an action that the object's current state does not allow.
func State(code, detail string) *Error { return New(Invalid, code, detail) }

// IsUnexpected reports whether a fault is not about the requested object, so that it applies to every item of a bulk request.
func (e *Error) IsUnexpected() bool {
	return e.Kind != Forbidden && e.Kind != NotFound && e.Kind != Invalid
}

// Overloaded returns the fault for a server at capacity; the caller may retry after wait.
func Overloaded(wait time.Duration) *Error {
	return New(Unavailable, "overloaded", "The service is at capacity. Try again later.").After(wait)
}

// Denied returns the fault for an action that the caller's role does not permit.
func Denied() *Error {
	return New(Forbidden, "permission_denied", "You do not have permission to perform this action.")
}

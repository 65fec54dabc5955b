// Package fault knows the errors a caller may see: what kind of thing went wrong, the contract's code for it,
// one plain sentence and, for bad input, what is wrong with each field. It does not know HTTP; only the routes
// turn a kind into a status. Nothing in a fault may hold protected health information.
package fault

import (
	"database/sql"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"
)

// Kind says what went wrong, in the order in which a request is checked.
type Kind int

// The kinds of fault. Source: docs/decisions/errors.md, "Errors".
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
	Conflict      // with another request that is under way
	Unprocessable // it is well formed, and cannot be what the caller means
)

// Fields names what is wrong with each field of a request: dotted names for nested fields, an index for list
// items ("icd10_codes.0"), NonField for the body as a whole.
type Fields map[string][]string

// NonField is the key of errors that belong to the whole body.
const NonField = "non_field_errors"

// Add appends one message to a field. The map must exist.
func (f Fields) Add(field, message string) { f[field] = append(f[field], message) }

// Err is nil when no field is wrong, else a validation fault.
func (f Fields) Err() error {
	if len(f) == 0 {
		return nil
	}
	return Validation(f)
}

// Error is a failure whose Code, Detail and Fields are written for the caller. The cause is for the log only.
type Error struct {
	Kind   Kind
	Code   string
	Detail string
	Fields Fields
	// Extra are further members of the error body, such as locked_until.
	Extra map[string]any
	// RetryAfter is sent as the Retry-After header when positive.
	RetryAfter time.Duration

	cause error
}

// New returns a fault of the given kind. Detail is one plain sentence.
func New(kind Kind, code, detail string) *Error {
	return &Error{Kind: kind, Code: code, Detail: detail}
}

// Error is what a log may hold: the code and the names of the wrong fields, never their values.
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

// Because keeps the private cause for the log.
func (e *Error) Because(cause error) *Error {
	e.cause = cause
	return e
}

// After asks the caller to come back no sooner than wait.
func (e *Error) After(wait time.Duration) *Error {
	e.RetryAfter = wait
	return e
}

// Validation is a 400 with field errors.
func Validation(fields Fields) *Error {
	return &Error{Kind: Invalid, Code: "validation_error", Detail: "The request has invalid fields.", Fields: fields}
}

// Field is a validation fault about one field.
func Field(name, message string) *Error { return Validation(Fields{name: {message}}) }

// Missing says that an object does not exist, or is none of the caller's business.
func Missing() *Error { return New(NotFound, "not_found", "Not found.") }

// OrMissing is [Missing] for a row that was not found; every other error stays what it is.
func OrMissing(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return Missing()
	}
	return err
}

// State says that the action is not possible in the object's present state.
func State(code, detail string) *Error { return New(Invalid, code, detail) }

// Unexpected reports whether a fault is none of what was asked for, which is the same for everything that is asked at once.
func (e *Error) Unexpected() bool {
	return e.Kind != Forbidden && e.Kind != NotFound && e.Kind != Invalid
}

// Overloaded asks the caller to come back once there is less to do.
func Overloaded(wait time.Duration) *Error {
	return New(Unavailable, "overloaded", "There is too much to do at the moment. Try again later.").After(wait)
}

// Denied says that the caller's role does not permit the action.
func Denied() *Error {
	return New(Forbidden, "permission_denied", "You do not have permission to perform this action.")
}

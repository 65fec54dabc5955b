package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"

	validation "github.com/pocketbase/ozzo-validation/v4"
	"github.com/pocketbase/pocketbase/tools/inflector"
	"github.com/pocketbase/pocketbase/tools/router"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/sqlite"
)

// statuses maps kinds of faults to statuses, the only place that does. Source: docs/decisions/errors.md, "Error-code
// catalogue".
var statuses = map[fault.Kind]int{
	fault.Internal:             http.StatusInternalServerError,
	fault.Throttled:            http.StatusTooManyRequests,
	fault.Unauthenticated:      http.StatusUnauthorized,
	fault.Forbidden:            http.StatusForbidden,
	fault.NotFound:             http.StatusNotFound,
	fault.MethodNotAllowed:     http.StatusMethodNotAllowed,
	fault.NotAcceptable:        http.StatusNotAcceptable,
	fault.PayloadTooLarge:      http.StatusRequestEntityTooLarge,
	fault.UnsupportedMediaType: http.StatusUnsupportedMediaType,
	fault.Invalid:              http.StatusBadRequest,
	fault.Locked:               http.StatusLocked,
	fault.Upstream:             http.StatusBadGateway,
	fault.UpstreamTimeout:      http.StatusGatewayTimeout,
	fault.Unavailable:          http.StatusServiceUnavailable,
	fault.TimedOut:             http.StatusRequestTimeout,
	fault.PreconditionFailed:   http.StatusPreconditionFailed,
	fault.Conflict:             http.StatusConflict,
	fault.Unprocessable:        http.StatusUnprocessableEntity,
}

// statusClientGone is nginx's status for a client that disconnected; only the log shows it.
const statusClientGone = 499

// answerError answers with an error.
func (s *Server) answerError(c *Call, row Route, err error) {
	f, status := outcome(c, err)
	if status >= 500 {
		s.report(c, status, err)
	}
	if w, ok := c.response.(router.WriteTracker); ok && w.Written() {
		return // the answer was already sent
	}
	if status == http.StatusInternalServerError || f.Code == collections.UnreadableCode {
		f = f.With("request_id", c.RequestID)
	}
	if f.RetryAfter > 0 {
		c.Header().Set("Retry-After", strconv.Itoa(wholeSeconds(f.RetryAfter)))
	}
	kind, body := JSONType, errorBody(f)
	if s.RenderFault != nil {
		if other, otherBody := s.RenderFault(row, c.Request, f); other != "" {
			kind, body = other, otherBody
		}
	}
	if err := c.Send(status, kind, body); err != nil {
		s.Log.WarnContext(c.Request.Context(), "the request failed; the caller gets an error", "request_id", c.RequestID, "error", err)
	}
}

// outcome returns the fault and the status for the caller. Work that failed because its time was up, or because the
// caller left, is not an unexpected error, regardless of the database's error.
func outcome(c *Call, err error) (*fault.Error, int) {
	f := Translate(err)
	_, isPanic := errors.AsType[*panicked](err)
	if f.Kind == fault.Internal && !isPanic {
		switch ended := c.Request.Context().Err(); {
		case errors.Is(ended, context.Canceled):
			return f, statusClientGone
		case errors.Is(ended, context.DeadlineExceeded):
			f = fault.New(fault.Unavailable, "service_unavailable", "The request took too long.").Because(err)
		case sqlite.IsStorageFailure(err): // for example a full disk, where even a read cannot be audited
			f = fault.New(fault.Unavailable, "service_unavailable", "The server cannot store data at the moment. Try again later.").Because(err)
		}
	}
	return f, statuses[f.Kind]
}

// report logs details that the answer omits. A panic's own text may contain PHI, so only its type and stack are kept.
func (s *Server) report(c *Call, status int, err error) {
	attrs := []any{"request_id", c.RequestID, "route", template(c.Request.Pattern), "status", status, "error", err.Error()}
	if p, ok := errors.AsType[*panicked](err); ok {
		attrs = append(attrs, "stack", p.stack)
	}
	s.Log.ErrorContext(c.Request.Context(), "request failed", attrs...)
}

// Translate returns the fault of an error. An error that is neither a fault, nor PocketBase's, nor a validation error
// is unexpected, never the caller's mistake.
func Translate(err error) *fault.Error {
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Kind != fault.Internal {
		return f
	}
	if record, ok := errors.AsType[*collections.UnreadableError](err); ok {
		return fault.New(fault.Unavailable, collections.UnreadableCode, record.Detail()).Because(err)
	}
	if refusal, ok := errors.AsType[*router.ApiError](err); ok {
		return fromPocketBase(refusal)
	}
	if invalid, ok := errors.AsType[validation.Errors](err); ok {
		return fault.Validation(dotted(fault.Fields{}, "", invalid)).Because(err)
	}
	if sqlite.IsRefusedCommit(err) {
		return notLeader().Because(err)
	}
	return unexpected(err)
}

func unexpected(err error) *fault.Error {
	return fault.New(fault.Internal, "server_error", "An unexpected error occurred.").Because(err)
}

func fromPocketBase(refusal *router.ApiError) *fault.Error {
	switch refusal.Status {
	case http.StatusBadRequest:
		if invalid, ok := refusal.RawData().(validation.Errors); ok {
			return fault.Validation(dotted(fault.Fields{}, "", invalid))
		}
		return fault.Validation(fault.Fields{fault.NonField: {refusal.Message}})
	case http.StatusForbidden:
		return fault.Denied()
	case http.StatusNotFound:
		return fault.Missing()
	case http.StatusRequestEntityTooLarge:
		return tooLarge()
	default:
		return unexpected(refusal)
	}
}

// dotted flattens nested validation errors: {"address": {"city": …}} becomes "address.city".
func dotted(into fault.Fields, prefix string, invalid validation.Errors) fault.Fields {
	for name, err := range invalid {
		switch nested, ok := errors.AsType[validation.Errors](err); {
		case err == nil:
		case ok:
			dotted(into, prefix+name+".", nested)
		default:
			into.Add(prefix+name, inflector.Sentenize(err.Error()))
		}
	}
	return into
}

// errorBody renders a fault in the contract's order: detail, code, field_errors, then the extra members by name.
// Source: docs/decisions/errors.md, "Error body".
func errorBody(f *fault.Error) []byte {
	head, err := Encode(struct {
		Detail string       `json:"detail"`
		Code   string       `json:"code"`
		Fields fault.Fields `json:"field_errors,omitempty"`
	}{f.Detail, f.Code, f.Fields})
	if err != nil {
		panic(err) // strings always encode
	}
	body := bytes.TrimSuffix(head, []byte("}"))
	for _, name := range slices.Sorted(maps.Keys(f.Extra)) {
		key, _ := json.Marshal(name)
		value, err := Encode(f.Extra[name])
		if err != nil {
			value = []byte("null") // a member that fails to encode must not fail the error answer
		}
		body = fmt.Appendf(body, ",%s:%s", key, value)
	}
	return append(body, '}')
}

// WriteFault answers a request outside the API's server with an error, in the form of the API.
func WriteFault(w http.ResponseWriter, f *fault.Error) {
	if f.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(wholeSeconds(f.RetryAfter)))
	}
	w.Header().Set("Content-Type", JSONType)
	w.WriteHeader(statuses[f.Kind])
	_, _ = w.Write(errorBody(f)) // the caller may be gone
}

// WriteJSON answers such a request with an object.
func WriteJSON(w http.ResponseWriter, status int, object any) {
	body, err := Encode(object)
	if err != nil {
		WriteFault(w, unexpected(err))
		return
	}
	w.Header().Set("Content-Type", JSONType)
	w.WriteHeader(status)
	_, _ = w.Write(body) // the caller may be gone
}

// panicked is a panic of a handler.
type panicked struct {
	kind  string // type of the value, never the value
	stack string
}

func (p *panicked) Error() string { return "panic of type " + p.kind }

// recoverPanic converts a panic to an error, except http.ErrAbortHandler.
func recoverPanic(err *error) {
	value := recover()
	if value == nil {
		return
	}
	if value == http.ErrAbortHandler { //nolint:errorlint // never wrapped
		panic(value)
	}
	*err = &panicked{kind: fmt.Sprintf("%T", value), stack: string(debug.Stack())}
}

package web

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/routes/web/idempotency"
)

// POST with an Idempotency-Key. Source: docs/decisions/conventions.md, "Idempotency keys".

// replayedHeader marks a repeated answer.
const replayedHeader = "Idempotent-Replayed"

// storedHeaders are the headers stored with the body of an answer.
var storedHeaders = []string{"Content-Type", "Content-Disposition", "Etag", "Location"}

// SupportsIdempotencyKey reports whether a route supports the key: each POST of an authenticated caller. Each caller has keys of their
// own.
func (r Route) SupportsIdempotencyKey() bool {
	return r.Method == http.MethodPost && r.Permission != authz.Anyone && r.Permission != authz.SignedByGateway && strings.HasPrefix(r.Path, BasePath+"/")
}

// keyedRequest is a request with a key in progress.
type keyedRequest struct {
	*idempotency.Use
	app      core.App // the app without the key's transaction
	answer   *bufferedResponse
	patients []string
}

// handle runs the row's handler, or replays the stored answer of an earlier request.
func (s *Server) handle(c *Call, row Route) error {
	lines, given := c.Request.Header[idempotency.Header]
	if !given || !row.SupportsIdempotencyKey() {
		return row.Handle(c)
	}
	key, err := idempotency.ParseKey(lines)
	if err != nil {
		return err
	}
	body, err := c.Body()
	if err != nil {
		return err
	}
	use, answered, err := s.keys.Begin(c.App, idempotency.Request{
		Caller: c.callerName(), Key: key, Method: row.Method, Target: c.target(), Body: body,
	}, c.Now)
	switch {
	case err != nil:
		return err
	case answered != nil:
		return s.replay(c, answered)
	}
	c.keyed = &keyedRequest{Use: use, app: c.App, answer: &bufferedResponse{under: c.response}}
	c.response, c.Request.Body = c.keyed.answer, io.NopCloser(bytes.NewReader(body))
	if !row.Repeatable {
		c.App = use.In(c.App)
	}
	return row.Handle(c)
}

func (c *Call) callerName() string {
	if c.Caller.Client != nil {
		return "client " + c.Caller.RecordID
	}
	return "user " + c.Caller.RecordID
}

// target is the path and query of the request, without the optional last slash.
func (c *Call) target() string {
	return strings.TrimSuffix(c.Request.URL.Path, "/") + "?" + c.Request.URL.RawQuery
}

// rights are the caller's rights that an answer may depend on. After a change of rights a stored answer is not
// replayed.
func (c *Call) rights() string {
	if client := c.Caller.Client; client != nil {
		scopes := client.Scopes.Strings()
		slices.Sort(scopes)
		return "client " + strings.Join(scopes, " ")
	}
	rights := []string{string(c.Caller.Role)}
	for _, access := range c.Caller.Patients {
		rights = append(rights, access.PatientID, string(access.Scope))
	}
	return strings.Join(rights, " ")
}

// RecordAuthorizedPatient notes that the answer required access to a patient; a replay checks the access again.
func (c *Call) RecordAuthorizedPatient(patientID string) {
	if c.keyed != nil && !slices.Contains(c.keyed.patients, patientID) {
		c.keyed.patients = append(c.keyed.patients, patientID)
	}
}

// replay sends a stored answer if the caller may still see it.
func (s *Server) replay(c *Call, a *idempotency.Answer) error {
	if a.Rights != c.rights() {
		return fault.New(fault.Forbidden, "permission_denied", "Your permissions have changed since this was answered. Use a new Idempotency-Key.")
	}
	if s.AuthorizePatient != nil {
		for _, patient := range a.Patients {
			if err := s.AuthorizePatient(c, patient); err != nil {
				return err
			}
		}
	}
	if len(a.Patients) > 0 {
		if err := c.RecordRead(audit.PatientRead, audit.ResourcePatient, "", a.Patients...); err != nil {
			return err
		}
	}
	if err := c.stillHeld(); err != nil {
		return err
	}
	h := c.Header()
	for name, value := range a.Header {
		h.Set(name, value)
	}
	h.Set(replayedHeader, "true")
	if a.Status != http.StatusNoContent {
		h.Set("Content-Length", strconv.Itoa(len(a.Body)))
	}
	return write(c.response, a.Status, a.Body)
}

// finish stores the answer under its key and sends it; failure is the handler's error, if any.
func (s *Server) finish(c *Call, failure error) {
	if c.keyed == nil {
		return
	}
	h := c.keyed.answer
	if err := s.store(c, failure); err != nil {
		s.Log.ErrorContext(c.Request.Context(), "storing the answer for its idempotency key failed; a retry with the key cannot replay it", slog.String("request_id", c.RequestID), slog.Any("error", err))
	}
	if refusal := c.stillHeld(); refusal != nil && h.status < http.StatusBadRequest && !h.sent {
		h.status = http.StatusServiceUnavailable
		h.body.Reset()
		h.body.Write(errorBody(Translate(refusal)))
		h.Header().Set("Content-Type", JSONType)
		h.Header().Set("Content-Length", strconv.Itoa(h.body.Len()))
	}
	if err := h.send(); err != nil {
		s.Log.WarnContext(c.Request.Context(), "sending the answer failed; the client must retry", slog.String("request_id", c.RequestID), slog.Any("error", err))
	}
}

func (s *Server) store(c *Call, failure error) error {
	h, app := c.keyed.answer, c.outerApp()
	switch {
	case h.sent: // too large to store
		return c.keyed.StoreUnknown(app)
	case isRepeatableStatus(h.status):
		answer := idempotency.Answer{Status: h.status, Header: map[string]string{}, Body: h.body.Bytes(), Rights: c.rights(), Patients: c.keyed.patients}
		for _, name := range storedHeaders {
			if value := h.Header().Get(name); value != "" {
				answer.Header[name] = value
			}
		}
		return c.keyed.Store(app, answer)
	case failure != nil && Translate(failure).Kind == fault.Internal && c.keyed.Stored():
		return nil // stopped halfway with an unknown outcome, so the key stays in use
	}
	return c.keyed.Drop(app)
}

// isRepeatableStatus reports whether an answer depends only on the request, not on the caller, the time or the format,
// so that a repetition would get the same answer.
func isRepeatableStatus(status int) bool {
	return status < 400 || slices.Contains([]int{http.StatusBadRequest, http.StatusNotFound, http.StatusUnprocessableEntity}, status)
}

var errNoAnswer = errors.New("nothing was answered")

// bufferedResponse holds an answer until it is stored, unless it grows too large.
type bufferedResponse struct {
	under  http.ResponseWriter
	status int
	body   bytes.Buffer
	sent   bool
}

// Header implements [http.ResponseWriter].
func (r *bufferedResponse) Header() http.Header { return r.under.Header() }

// WriteHeader implements [http.ResponseWriter].
func (r *bufferedResponse) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
}

// Write implements [http.ResponseWriter].
func (r *bufferedResponse) Write(part []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	if !r.sent && r.body.Len()+len(part) > idempotency.MaxAnswer {
		if err := r.send(); err != nil {
			return 0, err
		}
	}
	if r.sent {
		return r.under.Write(part)
	}
	return r.body.Write(part)
}

// Written reports whether an answer was started.
func (r *bufferedResponse) Written() bool { return r.status != 0 }

// send sends the buffered answer.
func (r *bufferedResponse) send() error {
	switch {
	case r.sent:
		return nil
	case r.status == 0:
		return errNoAnswer
	}
	r.sent = true
	return write(r.under, r.status, r.body.Bytes())
}

func write(w http.ResponseWriter, status int, body []byte) error {
	w.WriteHeader(status)
	if len(body) == 0 {
		return nil
	}
	_, err := w.Write(body)
	return err
}

// release lets the next request with the same key start.
func (c *Call) release() {
	if c.keyed != nil {
		c.keyed.Release()
	}
}

// outerApp returns the app outside the key's transaction, for work that must not be part of it.
func (c *Call) outerApp() core.App {
	if c.keyed != nil {
		return c.keyed.app
	}
	return c.App
}

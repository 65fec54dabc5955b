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
	"github.com/vigilhealth/vigil/internal/idempotency"
)

// What a POST with an Idempotency-Key means: docs/decisions/conventions.md, "Idempotency keys".

// replayedHeader says that an answer was given before.
const replayedHeader = "Idempotent-Replayed"

// storedHeaders are those of an answer that belong to its body.
var storedHeaders = []string{"Content-Type", "Content-Disposition", "Etag", "Location"}

// Keyed reports whether a route looks at the key: each that makes something for somebody who is known. A key belongs to its caller.
func (r Route) Keyed() bool {
	return r.Method == http.MethodPost && r.Who != authz.Anyone && r.Who != authz.SignedByGateway && strings.HasPrefix(r.Path, BasePath+"/")
}

// once is a request on its way under a key.
type once struct {
	*idempotency.Use
	app      core.App // in which nothing is noted
	answer   *held
	patients []string
}

// handle has the row's handler answer, or answers as before when the request was answered already.
func (d *Door) handle(c *Call, row Route) error {
	lines, given := c.Request.Header[idempotency.Header]
	if !given || !row.Keyed() {
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
	use, answered, err := d.keys.Begin(c.App, idempotency.Request{
		Caller: c.callerName(), Key: key, Method: row.Method, Target: c.target(), Body: body,
	}, c.Now)
	switch {
	case err != nil:
		return err
	case answered != nil:
		return d.answerAgain(c, answered)
	}
	c.once = &once{Use: use, app: c.App, answer: &held{under: c.response}}
	c.response, c.Request.Body = c.once.answer, io.NopCloser(bytes.NewReader(body))
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

// target is what the request is sent to; the path is served alike without its last slash.
func (c *Call) target() string {
	return strings.TrimSuffix(c.Request.URL.Path, "/") + "?" + c.Request.URL.RawQuery
}

// rights are what an answer may depend on besides the caller: whoever has others now may not be shown it.
func (c *Call) rights() string {
	if client := c.Caller.Client; client != nil {
		scopes := client.Scopes.Texts()
		slices.Sort(scopes)
		return "client " + strings.Join(scopes, " ")
	}
	return string(c.Caller.Role) + " " + c.Caller.PatientID
}

// NoteReached remembers that the caller had to be let at a patient, for when the answer is given again.
func (c *Call) NoteReached(patientID string) {
	if c.once != nil && !slices.Contains(c.once.patients, patientID) {
		c.once.patients = append(c.once.patients, patientID)
	}
}

// answerAgain gives an answer that was given before, as long as the caller may still see it.
func (d *Door) answerAgain(c *Call, a *idempotency.Answer) error {
	if a.Rights != c.rights() {
		return fault.New(fault.Forbidden, "permission_denied", "Your rights are others than when this was answered.")
	}
	if d.Reach != nil {
		for _, patient := range a.Patients {
			if err := d.Reach(c, patient); err != nil {
				return err
			}
		}
	}
	if len(a.Patients) > 0 {
		if err := c.RecordRead(audit.PatientRead, audit.ResourcePatient, "", a.Patients...); err != nil {
			return err
		}
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

// finish stores the answer of a request under a key, and gives it; failure is what was answered with, if anything went wrong.
func (d *Door) finish(c *Call, failure error) {
	if c.once == nil {
		return
	}
	h := c.once.answer
	if err := d.store(c, failure); err != nil {
		d.Log.ErrorContext(c.Request.Context(), "answer not kept", slog.String("request_id", c.RequestID), slog.Any("error", err))
	}
	if err := h.send(); err != nil {
		d.Log.WarnContext(c.Request.Context(), "answering", slog.String("request_id", c.RequestID), slog.Any("error", err))
	}
}

func (d *Door) store(c *Call, failure error) error {
	h, app := c.once.answer, c.unkeyed()
	switch {
	case h.sent: // too large to be kept
		return c.once.StoreUnknown(app)
	case lasts(h.status):
		answer := idempotency.Answer{Status: h.status, Header: map[string]string{}, Body: h.body.Bytes(), Rights: c.rights(), Patients: c.once.patients}
		for _, name := range storedHeaders {
			if value := h.Header().Get(name); value != "" {
				answer.Header[name] = value
			}
		}
		return c.once.Store(app, answer)
	case failure != nil && Translate(failure).Kind == fault.Internal && c.once.Stored():
		return nil // it broke half way: nobody knows what a second time would do
	}
	return c.once.Drop(app)
}

// lasts reports whether an answer is about the request itself, and not about who sent it, when, or in which form: then it would be the same again.
func lasts(status int) bool {
	return status < 400 || slices.Contains([]int{http.StatusBadRequest, http.StatusNotFound, http.StatusUnprocessableEntity}, status)
}

var errNoAnswer = errors.New("nothing was answered")

// held is an answer that waits until it is kept, unless it grows too large for that.
type held struct {
	under  http.ResponseWriter
	status int
	body   bytes.Buffer
	sent   bool
}

// Header implements [http.ResponseWriter].
func (h *held) Header() http.Header { return h.under.Header() }

// WriteHeader implements [http.ResponseWriter].
func (h *held) WriteHeader(status int) {
	if h.status == 0 {
		h.status = status
	}
}

// Write implements [http.ResponseWriter].
func (h *held) Write(part []byte) (int, error) {
	h.WriteHeader(http.StatusOK)
	if !h.sent && h.body.Len()+len(part) > idempotency.MaxAnswer {
		if err := h.send(); err != nil {
			return 0, err
		}
	}
	if h.sent {
		return h.under.Write(part)
	}
	return h.body.Write(part)
}

// Written tells the door that an answer is on its way.
func (h *held) Written() bool { return h.status != 0 }

// send lets the answer go.
func (h *held) send() error {
	switch {
	case h.sent:
		return nil
	case h.status == 0:
		return errNoAnswer
	}
	h.sent = true
	return write(h.under, h.status, h.body.Bytes())
}

func write(w http.ResponseWriter, status int, body []byte) error {
	w.WriteHeader(status)
	if len(body) == 0 {
		return nil
	}
	_, err := w.Write(body)
	return err
}

// release lets the next one with the key in, however the request ended.
func (c *Call) release() {
	if c.once != nil {
		c.once.Release()
	}
}

// unkeyed is the app for what is done beside the request itself.
func (c *Call) unkeyed() core.App {
	if c.once != nil {
		return c.once.app
	}
	return c.App
}

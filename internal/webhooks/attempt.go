package webhooks

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/changefeed"
	"github.com/vigilhealth/vigil/internal/egress"
	"github.com/vigilhealth/vigil/internal/validate"
)

// Error codes of an attempt. The text of a network error is not stored, because it may contain the URL.
const (
	errAddress     = "address"     // the URL leads to a forbidden address
	errTimeout     = "timeout"     // no answer in time
	errCertificate = "certificate" // the receiver's certificate is not valid
	errConnection  = "connection"  // no connection or no answer
	errStatus      = "status"      // the receiver answered with a status other than 2xx
	errUnreadable  = "unreadable"  // Vigil could not render the payload or open the secret
)

// Errors lists all error codes.
var Errors = []string{errAddress, errTimeout, errCertificate, errConnection, errStatus, errUnreadable}

// The body of an answer is read only up to these bounds, so that the connection can be reused.
const (
	maxDrainedBytes = 4 << 10
	maxDrainTime    = time.Second
)

// attempt is the result of one request.
type attempt struct {
	startedAt, endedAt time.Time
	status             int    // 0 for none
	errorCode          string // "" when the receiver accepted it
	retryAfter         time.Duration
	sentValues         bool // values were sent, or may have been
}

// message is the payload of a request. Source: Standard Webhooks, "Payload structure".
type message struct {
	Type      string `json:"type"`
	Timestamp string `json:"timestamp"`
	Data      data   `json:"data"`
}

// data identifies the resource of an event, and includes the resource itself if the webhook is configured so.
type data struct {
	Type      string           `json:"type"`
	ID        any              `json:"id"`
	PatientID *string          `json:"patient_id"`
	Object    *json.RawMessage `json:"object,omitempty"`
}

// resourceType returns the resource type of an event, as the change feed names it.
func resourceType(event string) string {
	kind, _, _ := strings.Cut(event, ".")
	return kind
}

// render encodes the payload of a delivery from the current state of its resource.
func (e *Engine) render(app core.App, w *collections.Webhook, d collections.WebhookDelivery) ([]byte, error) {
	kind := resourceType(d.Event)
	m := message{Type: d.Event, Timestamp: validate.FormatInstant(collections.ParseInstant(d.Occurred)), Data: data{Type: kind, ID: d.Record}}
	if d.Event == testEvent {
		return json.Marshal(m)
	}
	m.Data.ID = changefeed.Change{Type: kind, Record: d.Record}.ID()
	if d.Patient != "" {
		m.Data.PatientID = &d.Patient
	}
	if w.Values().IncludeValues {
		object, err := e.Views.Object(app, kind, d.Record)
		if err != nil {
			return nil, fmt.Errorf("show %s: %w", kind, err)
		}
		encoded, err := json.Marshal(object) // null if the resource was deleted
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", kind, err)
		}
		m.Data.Object = (*json.RawMessage)(&encoded)
	}
	return json.Marshal(m)
}

// send makes one attempt. It holds no transaction while it waits for the receiver.
func (e *Engine) send(ctx context.Context, app core.App, w *collections.Webhook, d collections.WebhookDelivery) attempt {
	now := e.Clock()
	a := attempt{startedAt: now}
	e.renderSlots <- struct{}{}
	body, err := e.render(app, w, d)
	<-e.renderSlots
	var headers map[string]string
	if err == nil {
		headers, err = signatureHeaders(w, d.ID, body, now)
	}
	if err != nil {
		e.Log.Warn("webhook worker could not render a payload; it retries the delivery", "webhook", w.Id, "event", d.Event, "error", err)
		a.errorCode, a.endedAt = errUnreadable, e.Clock()
		return a
	}
	ctx, cancel := context.WithTimeout(ctx, e.Timeout)
	defer cancel()
	values := w.Values()
	a.status, a.retryAfter, err = e.post(ctx, cancel, values.URL, headers, body)
	a.endedAt = e.Clock()
	switch {
	case err != nil:
		a.errorCode = classifyError(err)
	case a.status < 200 || a.status > 299:
		a.errorCode = errStatus
	}
	a.sentValues = values.IncludeValues && d.Event != testEvent && a.errorCode != errAddress
	return a
}

func (e *Engine) post(ctx context.Context, hangUp func(), url string, headers map[string]string, body []byte) (status int, pause time.Duration, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, 0, egress.ErrAddress // its own text quotes the address
	}
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", e.UserAgent)
	got, err := e.Client.Do(request)
	if err != nil {
		return 0, 0, err
	}
	slow := time.AfterFunc(maxDrainTime, hangUp)
	_, _ = io.CopyN(io.Discard, got.Body, maxDrainedBytes)
	slow.Stop()
	_ = got.Body.Close()
	return got.StatusCode, retryAfter(got.StatusCode, got.Header, e.Clock()), nil
}

// classifyError returns the error code of a request that got no answer.
func classifyError(err error) string {
	var (
		timeout     net.Error
		certificate *tls.CertificateVerificationError
		record      tls.RecordHeaderError
		alert       tls.AlertError
		unknown     x509.UnknownAuthorityError
	)
	switch {
	case errors.Is(err, egress.ErrAddress):
		return errAddress
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return errTimeout
	case errors.As(err, &certificate), errors.As(err, &record), errors.As(err, &alert), errors.As(err, &unknown):
		return errCertificate
	}
	return errConnection
}

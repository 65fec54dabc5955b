package emr

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/vigilhealth/vigil/internal/fhir"
)

// transport sends every request, including token requests; it paces them and bounds their time.
type transport struct {
	http    *http.Client
	pace    *pacer
	timeout time.Duration
	now     func() time.Time
}

// do waits for pacing and runs work with the timeout. work returns an error only for a request without a response. The duration is that
// of work alone.
func (t *transport) do(ctx context.Context, work func(context.Context) error) (time.Duration, *Error) {
	if err := t.pace.wait(ctx); err != nil {
		return 0, noAnswer(ctx, err, false, t.timeout)
	}
	bounded, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	var r reach
	began := t.now()
	err := work(r.watch(bounded))
	took := t.now().Sub(began)
	if err == nil {
		return took, nil
	}
	if bounded.Err() != nil {
		err = bounded.Err() // the cause, however the transport wrapped it
	}
	e := noAnswer(ctx, err, r.sent(), t.timeout)
	e.took = took
	return took, e
}

// reach tracks how far a request got.
type reach struct{ requested, connected atomic.Bool }

func (r *reach) watch(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { r.requested.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { r.connected.Store(true) },
	})
}

// sent reports whether the EMR may have received the request. A transport without trace events counts as having sent it.
func (r *reach) sent() bool { return r.connected.Load() || !r.requested.Load() }

// call is one request with its retries.
type call struct {
	method, path string // path is relative to the base address
	address      string // instead of path: the absolute address of a page, of the EMR's origin
	header       http.Header
	body         []byte
	requestID    string
	maxBody      int64
	once         bool        // no quick retries
	source       tokenSource // nil means that of deliveries
	// lookup searches for the result of an earlier attempt. It is set where sending twice would store twice. Its error is always an
	// *Error; it makes a single request, since the retries are those of the call.
	lookup func(context.Context) (emrID string, found bool, err error)
	// onResend, if set, is called before the request is sent again after a look-up that found nothing.
	onResend func()
	// onAbandoned, if set, is called when the call stopped waiting while the EMR may be processing the request.
	onAbandoned func()
}

// hasResource reports whether a request carries a resource: then a 4xx may be about it.
func hasResource(method string) bool { return method == http.MethodPost || method == http.MethodPut }

// response is a response of the EMR.
type response struct {
	status   int
	header   http.Header
	body     []byte
	took     time.Duration
	lookedUp string // the EMR's id, when lookup found an earlier attempt
}

// accepted reports whether the answer is a success: created, OK, or without a body if it is to an update or names what was created.
func (a response) accepted(method string) bool {
	hasResult := a.status == http.StatusNoContent && (method == http.MethodPut || createdID(a, "Observation") != "" || createdID(a, documentType) != "")
	return a.status == http.StatusOK || a.status == http.StatusCreated || hasResult
}

// callRun is the state of one call across its attempts.
type callRun struct {
	*Client
	call
	began       time.Time
	attempts    []Attempt
	last        *Error
	ambiguous   bool // the EMR may have processed an attempt
	isUnknown   bool // the same, and no answer of the EMR itself denies it, or a near copy contradicts that
	hasNoLookup bool // the EMR cannot be searched
	hasNewToken bool
}

// send makes the call with its quick retries. Source: docs/decisions/transmissions.md, "Immediate retries".
func (c *Client) send(ctx context.Context, request call) (response, []Attempt, error) {
	if request.source == nil {
		request.source = c.mainSource
	}
	r := &callRun{Client: c, call: request, began: c.transport.now()}
	delays := &quickDelays{jitter: c.jitter, used: new(int)}
	if !request.once {
		delays.all, delays.used = c.retryDelays, quickRetriesUsed(ctx)
	}
	got, err := backoff.Retry(ctx, func() (response, error) { return r.attempt(ctx) },
		backoff.WithBackOff(delays), backoff.WithMaxElapsedTime(0))
	if err == nil {
		return got, r.attempts, nil
	}
	if _, isOurs := errors.AsType[*Error](err); !isOurs { // the caller canceled between two attempts
		r.last.cause = errors.Join(err, r.last.cause)
	}
	r.last.Ambiguous = r.isUnknown || r.ambiguous && !r.hasNoLookup
	r.last.Attempts = r.attempts
	return response{}, r.attempts, r.last
}

// attempt sends once, and once more with a new token after a 401.
func (r *callRun) attempt(ctx context.Context) (response, error) {
	if r.ambiguous && r.lookup != nil {
		emrID, found, err := r.lookup(ctx)
		failure, failed := errors.AsType[*Error](err)
		r.hasNoLookup = failed && failure.NeedsPerson
		r.isUnknown = r.isUnknown || failed && failure.isNear
		if failed && (r.isUnknown || !r.hasNoLookup) {
			return response{}, r.stopUnconfirmed(failure)
		}
		if found {
			return response{status: http.StatusOK, lookedUp: emrID}, nil
		}
		if r.last.Code == CodeOutcomeUnknown { // taken: it is looked up and not sent again
			return response{}, r.last
		}
		if r.onResend != nil {
			r.onResend()
		}
	}
	got, e := r.roundTrip(ctx)
	if got.status == http.StatusUnauthorized && !r.hasNewToken {
		r.hasNewToken = true
		got, e = r.roundTrip(ctx)
	}
	switch {
	case e == nil:
		return got, nil
	case e.retryNow:
		return response{}, e
	default:
		return response{}, backoff.Permanent(e)
	}
}

// stopUnconfirmed ends an attempt before anything is sent, since one failed delivery is better than a duplicate. The first error stays the
// reason; a search that may succeed later is retried like an attempt, and one that never can leaves the outcome to a person.
func (r *callRun) stopUnconfirmed(look *Error) error {
	if look.NeedsPerson {
		look.unanswered, look.took, look.cause = r.last.Class() == ClassOutage, r.last.took, r.last
		r.last = look
		return backoff.Permanent(r.last)
	}
	r.last.RetryAfter, r.last.TrustSearchAfter = max(r.last.RetryAfter, look.RetryAfter), look.TrustSearchAfter
	if look.retryNow {
		return r.last
	}
	return backoff.Permanent(r.last)
}

// roundTrip sends one request and records the attempt.
func (r *callRun) roundTrip(ctx context.Context) (response, *Error) {
	entry := Attempt{Started: r.transport.now().Sub(r.began), RequestID: r.requestID}
	got, e := r.authorizedRoundTrip(ctx)
	entry.Took, entry.Status = got.took, got.status
	if e != nil {
		r.last, r.ambiguous = e, r.ambiguous || e.Ambiguous
		r.isUnknown = r.isUnknown || e.Ambiguous && !e.isOwn
		entry.Took, entry.Status, entry.Code = e.took, e.Status, e.Code
		if r.onAbandoned != nil && e.mayBeRunning() {
			r.onAbandoned()
		}
	}
	r.attempts = append(r.attempts, entry)
	return got, e
}

func (r *callRun) authorizedRoundTrip(ctx context.Context) (response, *Error) {
	token, e := r.source.token(ctx)
	if e != nil {
		e.SignIn = true
		return response{}, e
	}
	var got response
	took, e := r.transport.do(ctx, func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, r.method, cmp.Or(r.address, r.baseURL+r.path), bytes.NewReader(r.body))
		if err != nil {
			return err
		}
		for name, values := range r.header {
			req.Header[name] = values
		}
		req.Header.Set("Accept", fhir.ContentType)
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		req.Header.Set("X-Request-ID", r.requestID)
		resp, err := r.transport.http.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		got.status, got.header = resp.StatusCode, resp.Header
		got.body, err = io.ReadAll(io.LimitReader(resp.Body, r.maxBody))
		if hasResource(r.method) || !got.accepted(r.method) {
			return nil // the status decides; a body that is too long or breaks off is read as far as possible
		}
		return err
	})
	got.took = took
	if e != nil || got.accepted(r.method) {
		return got, e
	}
	e = responseError(got, r.method, r.transport.now())
	switch e.Code {
	case CodeRateLimited:
		r.transport.pace.pause(e.RetryAfter)
	case CodeAuth:
		if got.status == http.StatusUnauthorized {
			r.source.reject(token)
		}
	}
	return got, e
}

// quickDelays are the waits between the attempts of one call, each with 20 % jitter.
type quickDelays struct {
	all    []time.Duration
	used   *int
	jitter func() float64
}

// NextBackOff implements backoff.BackOff.
func (q *quickDelays) NextBackOff() time.Duration {
	if *q.used >= len(q.all) {
		return backoff.Stop
	}
	next := q.all[*q.used]
	*q.used++
	return time.Duration(float64(next) * (0.8 + 0.4*q.jitter()))
}

// Reset implements backoff.BackOff; a call is never restarted.
func (*quickDelays) Reset() {}

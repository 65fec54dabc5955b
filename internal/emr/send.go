package emr

import (
	"bytes"
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

// transport is the one way out: every request, those for tokens included, waits for its turn and has a bounded time.
type transport struct {
	http    *http.Client
	pace    *pacer
	timeout time.Duration
	now     func() time.Time
}

// use waits for a turn and gives work the timeout. Work returns an error only for a request without an answer. The
// duration is that of work alone.
func (l *transport) use(ctx context.Context, work func(context.Context) error) (time.Duration, *Error) {
	if err := l.pace.wait(ctx); err != nil {
		return 0, lost(ctx, err, false, l.timeout)
	}
	bounded, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	var r reach
	began := l.now()
	err := work(r.watch(bounded))
	took := l.now().Sub(began)
	if err == nil {
		return took, nil
	}
	if bounded.Err() != nil {
		err = bounded.Err() // the reason, however it was wrapped on the way
	}
	e := lost(ctx, err, r.sent(), l.timeout)
	e.took = took
	return took, e
}

// reach watches how far a request came.
type reach struct{ asked, connected atomic.Bool }

func (r *reach) watch(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { r.asked.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { r.connected.Store(true) },
	})
}

// sent reports whether the EMR may have seen the request. A transport that does not tell is taken to have sent it.
func (r *reach) sent() bool { return r.connected.Load() || !r.asked.Load() }

// call is one request, sent as often as it takes.
type call struct {
	method, path string // path starts behind the base address
	header       http.Header
	body         []byte
	requestID    string
	maxBody      int64
	once         bool        // no quick retries
	source       tokenSource // nil is that of deliveries
	// lookup finds out whether an earlier send arrived after all. It is set where sending twice would store twice. Its error is always an
	// *Error; it is asked once each time, since the retries are those of the call.
	lookup func(context.Context) (emrID string, found bool, err error)
	// abandoned, where it is set, is called when a send was given up while the EMR may be at work on it.
	abandoned func()
}

// carries reports whether a request carries a resource: then a 4xx may be about it.
func carries(method string) bool { return method == http.MethodPost || method == http.MethodPut }

// answer is what came back.
type answer struct {
	status   int
	header   http.Header
	body     []byte
	took     time.Duration
	lookedUp string // the EMR's id, when lookup found it instead
}

// accepted are the statuses of success: created, and there already or here it is.
func (a answer) accepted() bool { return a.status == http.StatusOK || a.status == http.StatusCreated }

// run is the state of one call while it is sent and sent again.
type run struct {
	*Client
	call
	began     time.Time
	attempts  []Attempt
	last      *Error
	ambiguous bool
	renewed   bool
}

// send makes the call with its quick retries. Source: docs/decisions/transmissions.md, "Immediate retries".
func (c *Client) send(ctx context.Context, what call) (answer, []Attempt, error) {
	if what.source == nil {
		what.source = c.main
	}
	r := &run{Client: c, call: what, began: c.line.now()}
	delays := &quickDelays{jitter: c.jitter, used: new(int)}
	if !what.once {
		delays.all, delays.used = c.delays, quickRetriesUsed(ctx)
	}
	got, err := backoff.Retry(ctx, func() (answer, error) { return r.attempt(ctx) },
		backoff.WithBackOff(delays), backoff.WithMaxElapsedTime(0))
	if err == nil {
		return got, r.attempts, nil
	}
	if _, ours := errors.AsType[*Error](err); !ours { // the caller left between two sends
		r.last.cause = errors.Join(err, r.last.cause)
	}
	r.last.Ambiguous = r.ambiguous
	r.last.Attempts = r.attempts
	return answer{}, r.attempts, r.last
}

// attempt sends once, and once more with a new token when the old one is refused.
func (r *run) attempt(ctx context.Context) (answer, error) {
	if r.ambiguous && r.lookup != nil {
		emrID, found, err := r.lookup(ctx)
		if failure, failed := errors.AsType[*Error](err); failed {
			return answer{}, r.inDoubt(failure)
		}
		if found {
			return answer{status: http.StatusOK, lookedUp: emrID}, nil
		}
	}
	got, e := r.exchange(ctx)
	if got.status == http.StatusUnauthorized && !r.renewed {
		r.renewed = true
		got, e = r.exchange(ctx)
	}
	switch {
	case e == nil:
		return got, nil
	case e.again:
		return answer{}, e
	default:
		return answer{}, backoff.Permanent(e)
	}
}

// unconfirmed ends an attempt before anything is sent: better one failed delivery than one reading stored twice. What went wrong first stays the
// reason; a look-up that may go well the next time is tried again like a send.
func (r *run) inDoubt(look *Error) error {
	r.last.RetryAfter, r.last.LookAgain = max(r.last.RetryAfter, look.RetryAfter), look.LookAgain
	if look.again {
		return r.last
	}
	return backoff.Permanent(r.last)
}

// exchange is one request and its answer, with its line in the ledger.
func (r *run) exchange(ctx context.Context) (answer, *Error) {
	entry := Attempt{Started: r.line.now().Sub(r.began), RequestID: r.requestID}
	got, e := r.signedExchange(ctx)
	entry.Took, entry.Status = got.took, got.status
	if e != nil {
		r.last, r.ambiguous = e, r.ambiguous || e.Ambiguous
		entry.Took, entry.Status, entry.Code = e.took, e.Status, e.Code
		if r.abandoned != nil && e.underWay() {
			r.abandoned()
		}
	}
	r.attempts = append(r.attempts, entry)
	return got, e
}

func (r *run) signedExchange(ctx context.Context) (answer, *Error) {
	token, e := r.source.token(ctx)
	if e != nil {
		e.SignIn = true
		return answer{}, e
	}
	var got answer
	took, e := r.line.use(ctx, func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, r.method, r.baseURL+r.path, bytes.NewReader(r.body))
		if err != nil {
			return err
		}
		for name, values := range r.header {
			req.Header[name] = values
		}
		req.Header.Set("Accept", fhir.ContentType)
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("X-Request-ID", r.requestID)
		resp, err := r.line.http.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		got.status, got.header = resp.StatusCode, resp.Header
		got.body, err = io.ReadAll(io.LimitReader(resp.Body, r.maxBody))
		if carries(r.method) || !got.accepted() {
			return nil // the status is the answer; a body that is too long or breaks off is read as far as it goes
		}
		return err
	})
	got.took = took
	if e != nil || got.accepted() {
		return got, e
	}
	e = refusal(got, r.method, r.line.now())
	switch e.Code {
	case CodeRateLimited:
		r.line.pace.pause(e.RetryAfter)
	case CodeAuth:
		if got.status == http.StatusUnauthorized {
			r.source.reject(token)
		}
	}
	return got, e
}

// quickDelays are the waits between the sends of one call, each spread by a fifth to both sides.
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

// Reset implements backoff.BackOff; a run is never begun twice.
func (*quickDelays) Reset() {}

package ratelimit

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"time"
)

// lingerTimeout is how long a client may continue to send a request that was answered before it was complete.
const lingerTimeout = time.Second

// handler limits the time in which a body must arrive, drops forwarding headers of untrusted peers, and closes connections after a refusal.
func (cl *ConnLimiter) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := connOf(r.Context())
		if !c.beginRequest() {
			panic(http.ErrAbortHandler) // a client could also block the response
		}
		defer c.endRequest()
		cl.dropUntrustedHeaders(r)
		b := &requestBody{ReadCloser: r.Body, conn: c, control: http.NewResponseController(w)}
		if b.isEmpty() {
			b.markComplete()
		} else {
			_ = b.control.SetReadDeadline(cl.Clock().Add(cl.ReadBodyTimeout)) // test connections may not support deadlines
			r.Body = b
		}
		defer func() {
			if b.timedOut {
				return // the read deadline has passed
			}
			if !b.complete {
				_ = b.control.SetReadDeadline(cl.Clock().Add(lingerTimeout))
				return
			}
			c.markServed(r.ProtoMajor > 1)
		}()
		next.ServeHTTP(&responseWriter{ResponseWriter: w, body: b}, r)
	})
}

// AwaitClient marks the current request as waiting for another action of its client, such as subscribing to its stream. The connection can be
// evicted until done is called.
func AwaitClient(ctx context.Context) (done func()) {
	c := connOf(ctx)
	if c == nil {
		return func() {}
	}
	c.limiter.lock.Lock()
	defer c.limiter.lock.Unlock()
	if c.serving == 1 { // not if it serves others over HTTP/2
		c.enqueue()
	}
	return func() {
		c.limiter.lock.Lock()
		defer c.limiter.lock.Unlock()
		if c.serving > 0 {
			c.dequeue()
		}
	}
}

// dropUntrustedHeaders removes forwarding headers that do not come from a trusted proxy.
func (cl *ConnLimiter) dropUntrustedHeaders(r *http.Request) {
	if len(cl.Proxies) == 0 {
		return
	}
	if _, proxy := cl.peerKey(r.RemoteAddr); !proxy {
		for _, name := range cl.ProxyHeaders {
			r.Header.Del(name)
		}
	}
}

// requestBody tracks whether a request body has been received completely.
type requestBody struct {
	io.ReadCloser
	conn     *conn
	control  *http.ResponseController
	complete bool
	timedOut bool
	closed   bool
}

func (b *requestBody) isEmpty() bool { return b.ReadCloser == nil || b.ReadCloser == http.NoBody }

// markComplete records that the request is complete. Serving it may take longer than sending it, so the read deadline ends.
func (b *requestBody) markComplete() {
	if b.complete {
		return
	}
	b.complete = true
	b.conn.markServing()
	if !b.isEmpty() {
		_ = b.control.SetReadDeadline(time.Time{})
	}
}

// ErrBodyTimeout reports a body that did not arrive in time.
var ErrBodyTimeout = errors.New("the request body took too long")

// Read implements [io.Reader].
func (b *requestBody) Read(p []byte) (int, error) {
	if b.closed {
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := b.ReadCloser.Read(p)
	switch {
	case err == io.EOF:
		b.markComplete()
	case errors.Is(err, os.ErrDeadlineExceeded):
		err, b.timedOut = ErrBodyTimeout, true
	}
	return n, err
}

// Close implements [io.Closer]. It leaves unread data to the server: draining it here would wait for the client and delay the response.
func (b *requestBody) Close() error {
	b.closed = true
	return nil
}

// closingStatuses are the responses after which the connection is closed.
var closingStatuses = []int{http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusTooManyRequests, http.StatusServiceUnavailable}

// responseWriter closes the connection after a refusal, or if the request is answered with an error before it is complete.
type responseWriter struct {
	http.ResponseWriter
	body *requestBody
}

// WriteHeader implements [http.ResponseWriter].
func (w *responseWriter) WriteHeader(status int) {
	refused := slices.Contains(closingStatuses, status) || status >= http.StatusBadRequest && !w.body.complete
	if h := w.Header(); refused && h.Get("Connection") == "" {
		h.Set("Connection", "close")
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap supports [http.ResponseController].
func (w *responseWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

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

// lingering is how long a client whose request was answered before it was all sent may go on sending it.
const lingering = time.Second

// handler bounds the time in which a body is sent, believes proxies only, and lets go of connections whose request was refused.
func (g *ConnLimiter) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := connOf(r.Context())
		if !c.begin() {
			panic(http.ErrAbortHandler) // an answer could be made to wait as well
		}
		defer c.end()
		g.disbelieve(r)
		b := &body{ReadCloser: r.Body, conn: c, control: http.NewResponseController(w)}
		if b.empty() {
			b.finish()
		} else {
			_ = b.control.SetReadDeadline(g.Clock().Add(g.ReadBodyTimeout)) // not every test's connection has one
			r.Body = b
		}
		defer func() {
			if b.slow {
				return // its time is up
			}
			if !b.finished {
				_ = b.control.SetReadDeadline(g.Clock().Add(lingering))
				return
			}
			c.served(r.ProtoMajor > 1)
		}()
		next.ServeHTTP(&answer{ResponseWriter: w, body: b}, r)
	})
}

// Await says that a request under way waits for its client to do something more, such as to subscribe to the stream it is: its connection may give way
// until done is called.
func Await(ctx context.Context) (done func()) {
	c := connOf(ctx)
	if c == nil {
		return func() {}
	}
	c.gate.lock.Lock()
	defer c.gate.lock.Unlock()
	if c.busy == 1 { // not beside others over HTTP/2
		c.sit()
	}
	return func() {
		c.gate.lock.Lock()
		defer c.gate.lock.Unlock()
		if c.busy > 0 {
			c.stand()
		}
	}
}

// disbelieve forgets what anybody but a proxy says about a client's address.
func (g *ConnLimiter) disbelieve(r *http.Request) {
	if len(g.Proxies) == 0 {
		return
	}
	if _, proxy := g.peer(r.RemoteAddr); !proxy {
		for _, name := range g.ProxyHeaders {
			r.Header.Del(name)
		}
	}
}

// body is a request's, as far as it has been sent.
type body struct {
	io.ReadCloser
	conn     *conn
	control  *http.ResponseController
	finished bool
	slow     bool
	closed   bool
}

func (b *body) empty() bool { return b.ReadCloser == nil || b.ReadCloser == http.NoBody }

// finish says that all of the request is there: what is done with it may take longer than sending it.
func (b *body) finish() {
	if b.finished {
		return
	}
	b.finished = true
	b.conn.serve()
	if !b.empty() {
		_ = b.control.SetReadDeadline(time.Time{})
	}
}

// ErrSlow is a body that took too long.
var ErrSlow = errors.New("the request body took too long")

// Read implements [io.Reader].
func (b *body) Read(p []byte) (int, error) {
	if b.closed {
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := b.ReadCloser.Read(p)
	switch {
	case err == io.EOF:
		b.finish()
	case errors.Is(err, os.ErrDeadlineExceeded):
		err, b.slow = ErrSlow, true
	}
	return n, err
}

// Close implements [io.Closer]. It leaves the rest of the body to the server: reading that, which closing would do, waits for the client, and
// holds back the answer meanwhile.
func (b *body) Close() error {
	b.closed = true
	return nil
}

// refusals are answers after which the client had better be gone.
var refusals = []int{http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusTooManyRequests, http.StatusServiceUnavailable}

// answer ends the connection with a refusal, and when the rest of the request is not wanted.
type answer struct {
	http.ResponseWriter
	body *body
}

// WriteHeader implements [http.ResponseWriter].
func (a *answer) WriteHeader(status int) {
	refused := slices.Contains(refusals, status) || status >= http.StatusBadRequest && !a.body.finished
	if h := a.Header(); refused && h.Get("Connection") == "" {
		h.Set("Connection", "close")
	}
	a.ResponseWriter.WriteHeader(status)
}

// Unwrap is for [http.ResponseController].
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

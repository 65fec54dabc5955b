package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// figures are what one stretch of load showed.
type figures struct {
	perSecond          float64
	p50, p95, p99, max time.Duration
	failed             int
	work               time.Duration // of the server's processor for each request; 0 where nobody looked
}

// target is where load goes: next makes the n-th request, as the bytes on the wire. It counts what was asked and what
// succeeded over all stretches, so that no request is made twice and the answers can be held against what was stored.
type target struct {
	addr string
	next func(n int64) []byte
	want int // the status of success

	asked, accepted atomic.Int64

	worked func() time.Duration // the server's processor time so far; nil where nobody looks
}

// watch returns what the server's processor has worked for each request since.
func (to *target) watch() func() time.Duration {
	if to.worked == nil {
		return func() time.Duration { return 0 }
	}
	before, asked := to.worked(), to.asked.Load()
	return func() time.Duration { return (to.worked() - before) / time.Duration(max(to.asked.Load()-asked, 1)) }
}

// load is how hard to press, and for how long.
type load struct {
	clients        int
	warmUp, length time.Duration
}

// press keeps so many clients busy over connections that stay open, each sending its next request when the last was
// answered, and measures what is answered after the warm-up.
func press(ctx context.Context, to *target, l load) (figures, error) {
	began := time.Now()
	measured, ends := began.Add(l.warmUp), began.Add(l.warmUp+l.length)
	return eachClient(ctx, to, l.clients, measured, func() (sent time.Time, over bool) {
		sent = time.Now()
		return sent, sent.After(ends)
	})
}

// pour sends at a fixed rate whether or not answers come, as the world does; the clock of a request starts when it is due,
// so that a stall is seen by everyone who would have been served meanwhile.
func pour(ctx context.Context, to *target, perSecond float64, l load) (figures, error) {
	began := time.Now()
	var due atomic.Int64
	return eachClient(ctx, to, l.clients, began, func() (sent time.Time, over bool) {
		at := time.Duration(float64(due.Add(1)) / perSecond * float64(time.Second))
		if at > l.length {
			return sent, true
		}
		time.Sleep(time.Until(began.Add(at)))
		return began.Add(at), false
	})
}

// fill asks so many times, as fast as the server takes it.
func fill(ctx context.Context, to *target, clients, count int) error {
	var turns atomic.Int64
	before := to.accepted.Load()
	_, err := eachClient(ctx, to, clients, time.Now(), func() (sent time.Time, over bool) {
		return time.Now(), turns.Add(1) > int64(count)
	})
	if accepted := to.accepted.Load() - before; err == nil && accepted != int64(count) {
		err = fmt.Errorf("%d of %d requests succeeded", accepted, count)
	}
	return err
}

// eachClient has every client ask until its turns are over, and adds up what they saw from a moment until the last was answered. A turn
// returns when a request may go, with the time from which it counts.
func eachClient(ctx context.Context, to *target, clients int, from time.Time, turn func() (sent time.Time, over bool)) (figures, error) {
	var group sync.WaitGroup
	var lock sync.Mutex
	var all []time.Duration
	var failures int
	var first error
	for range clients {
		group.Go(func() {
			var taken []time.Duration
			var failed int
			c, err := dial(ctx, to.addr)
			if err == nil {
				defer func() { _ = c.conn.Close() }() // the stretch is over
				taken, failed, err = c.askOn(ctx, to, from, turn)
			}
			lock.Lock()
			defer lock.Unlock()
			all, failures = append(all, taken...), failures+failed
			if first == nil {
				first = err
			}
		})
	}
	group.Wait()
	return summarise(all, failures, time.Since(from)), first
}

// summarise takes the percentiles of what requests took; those that failed took time but are no throughput.
func summarise(taken []time.Duration, failed int, length time.Duration) figures {
	slices.Sort(taken)
	at := func(share float64) time.Duration {
		if len(taken) == 0 {
			return 0
		}
		return taken[min(int(share*float64(len(taken))), len(taken)-1)]
	}
	return figures{perSecond: float64(len(taken)-failed) / length.Seconds(), p50: at(.5), p95: at(.95), p99: at(.99), max: at(1), failed: failed}
}

// client is one connection; cheaper than net/http's, which would take the cores from the server.
type client struct {
	conn net.Conn
	in   *bufio.Reader
}

func dial(ctx context.Context, addr string) (*client, error) {
	conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return &client{conn, bufio.NewReaderSize(conn, 16<<10)}, nil
}

// askOn asks until the turns are over, and measures what is answered from a moment on.
func (c *client) askOn(ctx context.Context, to *target, from time.Time, turn func() (time.Time, bool)) (taken []time.Duration, failed int, err error) {
	for ctx.Err() == nil {
		request := to.next(to.asked.Add(1))
		sent, over := turn()
		if over {
			return taken, failed, nil
		}
		ok, err := c.ask(to, request)
		if err != nil {
			return nil, 0, err
		}
		if time.Now().Before(from) {
			continue
		}
		if !ok {
			failed++
		}
		taken = append(taken, time.Since(sent))
	}
	return nil, 0, ctx.Err()
}

// ask sends a request and reports whether it succeeded.
func (c *client) ask(to *target, request []byte) (bool, error) {
	status, err := c.do(request, io.Discard)
	if err != nil {
		return false, err
	}
	if status != to.want {
		return false, nil
	}
	to.accepted.Add(1)
	return true, nil
}

func (c *client) do(request []byte, into io.Writer) (status int, err error) {
	if err := c.conn.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		return 0, err
	}
	if _, err := c.conn.Write(request); err != nil {
		return 0, err
	}
	answer, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(into, answer.Body)
	return answer.StatusCode, err
}

// exchange sends one request over a connection of its own.
func exchange(ctx context.Context, addr string, request []byte) (status int, answer []byte, err error) {
	c, err := dial(ctx, addr)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = c.conn.Close() }() // of no more use
	var into bytes.Buffer
	status, err = c.do(request, &into)
	return status, into.Bytes(), err
}

// wire is a request as bytes; headers are name, value, name, value.
func wire(method, addr, path, token string, body []byte, headers ...string) []byte {
	text := fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: %s\r\n", method, path, addr)
	if token != "" {
		text = fmt.Appendf(text, "Authorization: Bearer %s\r\n", token)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		text = fmt.Appendf(text, "%s: %s\r\n", headers[i], headers[i+1])
	}
	if body != nil {
		text = fmt.Appendf(text, "Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	return append(append(text, "\r\n"...), body...)
}

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

// figures are the results of one load.
type figures struct {
	perSecond          float64
	p50, p95, p99, max time.Duration
	failed             int
	cpu                time.Duration // server CPU time per request; 0 when not measured
}

// target is a server under load. next returns the n-th request as bytes on the wire. The counters span all loads, so that no
// request is sent twice and the acknowledged requests can be compared with the stored rows.
type target struct {
	addr string
	next func(n int64) []byte
	want int // the status of success

	sent, accepted atomic.Int64

	cpuTime func() time.Duration // the server's CPU time so far; nil when not measured
}

// cpuPerRequest returns a function that returns the server's CPU time per request since this call.
func (to *target) cpuPerRequest() func() time.Duration {
	if to.cpuTime == nil {
		return func() time.Duration { return 0 }
	}
	before, asked := to.cpuTime(), to.sent.Load()
	return func() time.Duration { return (to.cpuTime() - before) / time.Duration(max(to.sent.Load()-asked, 1)) }
}

// load is the number of clients and the duration.
type load struct {
	clients        int
	warmUp, length time.Duration
}

// closedLoop runs a closed loop: each client sends its next request over its open connection when the last one was answered.
// Answers during the warm-up are not counted.
func closedLoop(ctx context.Context, to *target, l load) (figures, error) {
	began := time.Now()
	measured, ends := began.Add(l.warmUp), began.Add(l.warmUp+l.length)
	return eachClient(ctx, to, l.clients, measured, func() (sent time.Time, over bool) {
		sent = time.Now()
		return sent, sent.After(ends)
	})
}

// openLoop runs an open loop: requests are sent at a fixed rate whether or not answers arrive. The latency of a request counts
// from its due time, so that a stall counts for every request due during it.
func openLoop(ctx context.Context, to *target, perSecond float64, l load) (figures, error) {
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

// sendCount sends count requests as fast as the server accepts them.
func sendCount(ctx context.Context, to *target, clients, count int) error {
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

// eachClient runs a loop per client until turn reports over, and combines the results measured from a given time on. turn
// returns when the next request may be sent, with the time from which its latency counts.
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
				defer func() { _ = c.conn.Close() }() // the load is over
				taken, failed, err = c.sendLoop(ctx, to, from, turn)
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

// summarise returns percentiles of the latencies. Failed requests count toward latency, not throughput.
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

// client is one connection. It costs less than net/http's client, which would take CPU from the server.
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

// sendLoop sends requests until turn reports over, and records latencies from a given time on.
func (c *client) sendLoop(ctx context.Context, to *target, from time.Time, turn func() (time.Time, bool)) (taken []time.Duration, failed int, err error) {
	for ctx.Err() == nil {
		request := to.next(to.sent.Add(1))
		sent, over := turn()
		if over {
			return taken, failed, nil
		}
		ok, err := c.send(to, request)
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

// send sends a request and reports whether it succeeded.
func (c *client) send(to *target, request []byte) (bool, error) {
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

// exchange sends one request over its own connection.
func exchange(ctx context.Context, addr string, request []byte) (status int, answer []byte, err error) {
	c, err := dial(ctx, addr)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = c.conn.Close() }() // not used again
	var into bytes.Buffer
	status, err = c.do(request, &into)
	return status, into.Bytes(), err
}

// wire encodes an HTTP request; headers alternate names and values.
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

// Package pace keeps long work from taking the processors away from a practice's readings: it rests as long as it has worked,
// so that it takes half of one at most. It knows nothing of the work.
package async

import (
	"context"
	"io"
	"time"
)

// stretch is how long work goes on before it rests.
const stretch = 5 * time.Millisecond

// Throttle is that of one piece of work, done by one goroutine. nil never rests.
type Throttle struct {
	needed func() bool
	since  time.Time // the last rest
}

// ThrottleAlways rests whoever else is there.
func ThrottleAlways() *Throttle { return ThrottleWhile(func() bool { return true }) }

// ThrottleWhile rests only as long as there is need; nil is never.
func ThrottleWhile(needed func() bool) *Throttle {
	if needed == nil {
		return nil
	}
	return &Throttle{needed: needed, since: time.Now()}
}

// Rest is called between two pieces of the work. It fails only when ctx has ended.
func (p *Throttle) Rest(ctx context.Context) error {
	if p == nil || time.Since(p.since) < stretch {
		return ctx.Err()
	}
	if p.needed() {
		select {
		case <-ctx.Done():
		case <-time.After(time.Since(p.since)):
		}
	}
	p.since = time.Now()
	return ctx.Err()
}

// Reader rests between reads; the work is what is done with the bytes.
func (p *Throttle) Reader(ctx context.Context, from io.Reader) io.Reader {
	return reader(func(into []byte) (int, error) {
		if err := p.Rest(ctx); err != nil {
			return 0, err
		}
		return from.Read(into)
	})
}

type reader func([]byte) (int, error)

// Read implements [io.Reader].
func (r reader) Read(into []byte) (int, error) { return r(into) }

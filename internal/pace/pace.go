// Package pace keeps long work from taking the processors away from a practice's readings: it rests as long as it has worked,
// so that it takes half of one at most. It knows nothing of the work.
package pace

import (
	"context"
	"io"
	"time"
)

// stretch is how long work goes on before it rests.
const stretch = 5 * time.Millisecond

// Pace is that of one piece of work, done by one goroutine. nil never rests.
type Pace struct {
	needed func() bool
	since  time.Time // the last rest
}

// Always rests whoever else is there.
func Always() *Pace { return While(func() bool { return true }) }

// While rests only as long as there is need; nil is never.
func While(needed func() bool) *Pace {
	if needed == nil {
		return nil
	}
	return &Pace{needed: needed, since: time.Now()}
}

// Rest is called between two pieces of the work. It fails only when ctx has ended.
func (p *Pace) Rest(ctx context.Context) error {
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
func (p *Pace) Reader(ctx context.Context, from io.Reader) io.Reader {
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

package backup

import (
	"context"
	"io"
	"time"
)

// stretch is how long a backup works before it rests.
const stretch = 5 * time.Millisecond

// pace keeps a backup from taking a processor for itself: it rests as long as it has worked. A practice's readings share the
// machine with it, and nobody waits for it. nil never rests.
type pace struct{ since time.Time }

func newPace() *pace { return &pace{since: time.Now()} }

func (p *pace) rest(ctx context.Context) error {
	if p == nil || time.Since(p.since) < stretch {
		return ctx.Err()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Since(p.since)):
	}
	p.since = time.Now()
	return nil
}

// reader rests between reads; the work is what was done with the bytes.
func (p *pace) reader(ctx context.Context, from io.Reader) io.Reader {
	return readerFunc(func(into []byte) (int, error) {
		if err := p.rest(ctx); err != nil {
			return 0, err
		}
		return from.Read(into)
	})
}

type readerFunc func([]byte) (int, error)

// Read implements [io.Reader].
func (f readerFunc) Read(into []byte) (int, error) { return f(into) }

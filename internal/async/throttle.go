package async

import (
	"context"
	"io"
	"time"
)

// workSlice is how long the work runs before it rests.
const workSlice = 5 * time.Millisecond

// Throttle keeps long work from taking the processors away from readings: it rests as long as it has worked, so that it uses at most half of one.
// Each throttle belongs to one goroutine. A nil throttle never rests.
type Throttle struct {
	needed func() bool
	since  time.Time // the last rest
}

// ThrottleAlways returns a throttle that always rests.
func ThrottleAlways() *Throttle { return ThrottleWhile(func() bool { return true }) }

// ThrottleWhile returns a throttle that rests only while needed returns true. A nil function never does.
func ThrottleWhile(needed func() bool) *Throttle {
	if needed == nil {
		return nil
	}
	return &Throttle{needed: needed, since: time.Now()}
}

// Rest pauses between two pieces of the work. It returns an error only if ctx has ended.
func (t *Throttle) Rest(ctx context.Context) error {
	if t == nil || time.Since(t.since) < workSlice {
		return ctx.Err()
	}
	if t.needed() {
		select {
		case <-ctx.Done():
		case <-time.After(time.Since(t.since)):
		}
	}
	t.since = time.Now()
	return ctx.Err()
}

// Reader returns a reader that rests between reads.
func (t *Throttle) Reader(ctx context.Context, from io.Reader) io.Reader {
	return reader(func(into []byte) (int, error) {
		if err := t.Rest(ctx); err != nil {
			return 0, err
		}
		return from.Read(into)
	})
}

type reader func([]byte) (int, error)

// Read implements [io.Reader].
func (r reader) Read(into []byte) (int, error) { return r(into) }

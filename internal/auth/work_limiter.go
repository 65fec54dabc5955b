package auth

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/vigilhealth/vigil/internal/fault"
)

// workLimiter bounds concurrent work, such as hashing passwords. While callers wait, each slot also pauses after a hash for about as long as one
// takes, which leaves most CPU time to readings during a sign-in rush. A caller that cannot be served in time is refused immediately.
type workLimiter struct {
	slots      chan struct{}
	waiting    atomic.Int32
	maxWaiting int32 // waiting callers beyond this are refused
	pause      time.Duration
}

const (
	hashPause = 50 * time.Millisecond
	// queuePerSlot callers may wait for each slot; serving them takes about seven seconds.
	queuePerSlot = 64
	// queueTimeout is how long one attempt may wait for all of its hashes. It leaves time to decide within ten seconds.
	queueTimeout       = 8 * time.Second
	overloadRetryAfter = 5 * time.Second
)

// withQueueTimeout bounds how long one attempt waits for slots.
func withQueueTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, queueTimeout)
}

// newHashLimiter returns a limiter for n concurrent hashes.
func newHashLimiter(n int) *workLimiter {
	return &workLimiter{slots: make(chan struct{}, n), maxWaiting: int32(queuePerSlot * n), pause: hashPause} //nolint:gosec // as many as processors
}

// newDecisionLimiter returns a limiter for decisions about attempts. Each is a write of about one millisecond; one at a time keeps readings from
// waiting for more than one. The queue is as long as the maximum number of connections.
func newDecisionLimiter() *workLimiter {
	return &workLimiter{slots: make(chan struct{}, 1), maxWaiting: 4096}
}

// acquire waits for a slot and returns the function that releases it. It refuses with overloaded if the queue is full or the wait times out; a
// caller that disconnects leaves the queue.
func (wl *workLimiter) acquire(ctx context.Context) (release func(), err error) {
	defer wl.waiting.Add(-1)
	if wl.waiting.Add(1) > wl.maxWaiting {
		return nil, fault.Overloaded(overloadRetryAfter)
	}
	select {
	case wl.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, queueError(ctx)
	}
	if ctx.Err() != nil { // the slot came free as the context ended: pass it on
		<-wl.slots
		return nil, queueError(ctx)
	}
	return func() {
		if wl.pause == 0 || wl.waiting.Load() == 0 {
			<-wl.slots
			return
		}
		time.AfterFunc(wl.pause, func() { <-wl.slots })
	}, nil
}

// queueError returns the error for an attempt that stopped waiting.
func queueError(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fault.Overloaded(overloadRetryAfter)
	}
	return fmt.Errorf("wait for a slot: %w", ctx.Err())
}

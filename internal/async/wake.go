// Package wake tells an engine that there may be work, after a commit. It knows neither engine nor work, and promises nothing: a call may be lost,
// so that whoever waits for it also looks by the clock.
package async

import (
	"context"
	"time"
)

// Signal is what an engine waits for; embedded, it gives the engine its Wake.
type Signal chan struct{}

// NewSignal returns a signal.
func NewSignal() Signal { return make(Signal, 1) }

// Wake tells the engine to look now. It never blocks, and calls that come before it looks are one.
func (s Signal) Wake() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// Pause waits, and says whether ctx lasted.
func Pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

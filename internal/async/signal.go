package async

import (
	"context"
	"time"
)

// Signal wakes an engine after a commit that may have brought work; embedded, it gives the engine a Wake method. A wake-up may be lost, so the
// engine also sweeps periodically.
type Signal chan struct{}

// NewSignal returns a signal.
func NewSignal() Signal { return make(Signal, 1) }

// Wake wakes the engine. It never blocks, and several calls before the engine looks count as one.
func (s Signal) Wake() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// Sleep waits for d. It returns false if ctx ended first.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

package emr

import (
	"context"
	"math"
	"sync"
	"time"
)

// maxPause bounds how long one response of the EMR can pause requests. Source: docs/decisions/limits.md, "EMR pacing".
const maxPause = 60 * time.Second

// pacer spaces requests evenly, in the order of arrival. The time between two requests is at least the gap, rounded up to the
// nanosecond: at n per second no second has n + 1.
type pacer struct {
	now  func() time.Time
	gap  time.Duration
	turn chan struct{} // held by the caller at the head of the queue

	mu   sync.Mutex
	next time.Time // the earliest next request
}

// newPacer spaces requests by 1/perSecond; 0 means no pacing.
func newPacer(perSecond float64, now func() time.Time) *pacer {
	p := &pacer{now: now, turn: make(chan struct{}, 1)}
	if perSecond > 0 {
		p.gap = time.Duration(math.Ceil(float64(time.Second) / perSecond))
	}
	return p
}

// wait returns when the caller may send, or when its context ends.
func (p *pacer) wait(ctx context.Context) error {
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		delay := p.delay()
		if delay <= 0 {
			return nil
		}
		timer := time.NewTimer(delay)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

// delay lets the caller send and returns 0, or returns how long to wait. The next request is spaced from this one and not from its
// scheduled time: a request that leaves late must not be followed too closely.
func (p *pacer) delay() time.Duration {
	now := p.now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if wait := p.next.Sub(now); wait > 0 {
		return wait
	}
	p.next = now.Add(p.gap)
	return 0
}

// pause delays all requests for d, at most maxPause.
func (p *pacer) pause(d time.Duration) {
	until := p.now().Add(min(d, maxPause))
	p.mu.Lock()
	defer p.mu.Unlock()
	if until.After(p.next) {
		p.next = until
	}
}

package emr

import (
	"testing"
	"time"
)

// TestLateCallDelaysNext checks that spacing is between actual requests, not scheduled ones: the request after a late one waits the full gap.
func TestLateCallDelaysNext(t *testing.T) {
	now := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	p := newPacer(10, func() time.Time { return now })
	for _, step := range []struct{ advance, delay time.Duration }{
		{0, 0},
		{0, 100 * time.Millisecond},
		{130 * time.Millisecond, 0}, // 30 ms late
		{70 * time.Millisecond, 30 * time.Millisecond},
		{30 * time.Millisecond, 0},
		{time.Hour, 0},
		{0, 100 * time.Millisecond},
	} {
		now = now.Add(step.advance)
		if got := p.delay(); (got - step.delay).Abs() > 2*time.Nanosecond {
			t.Errorf("at %v: wait %v, want %v", now.Format("15:04:05.000"), got, step.delay)
		}
	}
	p.pause(time.Hour)
	if got := p.delay(); got != maxPause {
		t.Errorf("paused for %v", got)
	}
	p.pause(time.Second)
	if got := p.delay(); got != maxPause {
		t.Errorf("a shorter pause cut it to %v", got)
	}
}

package routes_test

import (
	"testing"
	"time"
)

// The escalation of an unconfirmed severe pressure opens with the sweep that is due, even if that runs some milliseconds
// before the hold ends; none opens a second earlier.
func TestHoldEndsWithItsSweep(t *testing.T) {
	for early, open := range map[time.Duration]int{
		0: 1, 3 * time.Millisecond: 1, 499 * time.Millisecond: 1, 501 * time.Millisecond: 0, time.Second: 0, time.Minute: 0,
	} {
		w := newNightShift(t, confirm)
		w.now = w.now.Add(7 * time.Millisecond)
		w.cuff(182, 118, 0)
		w.now = w.now.Add(confirm - early)
		w.minute()
		w.wantStat(early.String()+" before the end", open)
	}
}

package escalations_test

import (
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/escalations"
)

// Sweeps are a minute apart, give or take milliseconds: a step due at that moment does not wait for the next sweep, and none is made a
// second early.
func TestSweepIntervalsVary(t *testing.T) {
	for _, step := range []struct {
		what  string
		early time.Duration
		tiers int
	}{
		{"on time", 0, 1},
		{"a microsecond", time.Microsecond, 1},
		{"some milliseconds", 40 * time.Millisecond, 1},
		{"half a second", 500 * time.Millisecond, 1},
		{"more than that", 501 * time.Millisecond, 0},
		{"a second", time.Second, 0},
	} {
		for _, deadline := range []time.Duration{15 * time.Minute, 30 * time.Minute, time.Hour} {
			p, _, _ := staffed(t)
			l := ladder()
			l.Overdue[escalations.Stat] = never
			l.Tiers[escalations.Stat] = escalations.Deadlines{deadline, never, never}
			p.create(escalations.Draft{Priority: escalations.Stat})
			if done := p.sweep(l, now.Add(deadline-step.early)); done.Waiting != step.tiers {
				t.Errorf("%s early at %s: %d are notified, want %d", step.what, deadline, done.Waiting, step.tiers)
			}
		}
	}
}

// Hourly steps, reminders and overdue announcements come at the sweep of their time, however uneven the sweeps are.
func TestRepeatedStepsKeepTheirTime(t *testing.T) {
	p, _, _ := staffed(t)
	e := p.create(escalations.Draft{Priority: escalations.Stat})
	l := ladder()
	jitter := []time.Duration{9 * time.Millisecond, 2 * time.Millisecond, 400 * time.Millisecond, 0, time.Millisecond}
	notified := map[int]bool{}
	for minute := range 241 {
		at := now.Add(time.Duration(minute)*time.Minute + jitter[minute%len(jitter)])
		if minute == 0 {
			continue
		}
		notified[minute] = p.sweep(l, at).Waiting > 0
	}
	for minute := 1; minute < 241; minute++ {
		if notified[minute] != (minute%15 == 0) {
			t.Errorf("notified in minute %d: %t", minute, notified[minute])
		}
	}

	start := now.Add(241*time.Minute + 9*time.Millisecond)
	if _, err := p.update(e, escalations.Change{Status: new(escalations.StatusInProgress)}, start); err != nil {
		t.Fatal(err)
	}
	for round := 1; round <= 3; round++ {
		at := start.Add(time.Duration(round)*4*time.Hour - time.Duration(round)*3*time.Millisecond)
		if done := p.sweep(l, at.Add(-time.Minute)); done.Idle != 0 {
			t.Errorf("reminder %d comes a minute early", round)
		}
		if done := p.sweep(l, at); done.Idle != 1 {
			t.Errorf("reminder %d waits for another minute", round)
		}
	}
}

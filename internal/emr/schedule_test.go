package emr_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/vigilhealth/vigil/internal/emr"
)

// schedule is the default schedule. Source: docs/decisions/transmissions.md, "Attempts versus delays".
var schedule = emr.Schedule{5 * time.Minute, 15 * time.Minute, 45 * time.Minute, 2 * time.Hour, 6 * time.Hour}

func TestScheduleNext(t *testing.T) {
	tests := []struct {
		failures int
		spread   float64
		wait     time.Duration // 0: none
	}{
		{0, 0, 5 * time.Minute},
		{1, 0, 15 * time.Minute},
		{2, 0, 45 * time.Minute},
		{3, 0, 2 * time.Hour},
		{4, 0, 6 * time.Hour},
		{0, 1, 5*time.Minute + 30*time.Second},
		{0, -1, 4*time.Minute + 30*time.Second},
		{4, 1, 6*time.Hour + 36*time.Minute},
		{4, -1, 5*time.Hour + 24*time.Minute},
		{2, 0.5, 47*time.Minute + 15*time.Second},
		{5, 0, 0},
		{6, 0, 0},
		{-1, 0, 0},
	}
	for _, test := range tests {
		next, ok := schedule.Next(test.failures, now, test.spread)
		want := time.Time{}
		if test.wait != 0 {
			want = now.Add(test.wait)
		}
		if !next.Equal(want) || ok != (test.wait != 0) {
			t.Errorf("after %d failures, spread %v: %s, %t", test.failures, test.spread, next, ok)
		}
	}
}

func TestScheduleStaysWithinATenth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		failures, spread := rapid.IntRange(0, 4).Draw(t, "failures"), rapid.Float64Range(-1, 1).Draw(t, "spread")
		next, ok := schedule.Next(failures, now, spread)
		wait, nominal := next.Sub(now), schedule[failures]
		if !ok || wait < nominal*9/10 || wait > nominal*11/10 {
			t.Fatalf("%s for %s", wait, nominal)
		}
	})
}

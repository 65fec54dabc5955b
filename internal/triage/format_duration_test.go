package triage

import (
	"testing"
	"time"
)

func TestFormatDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 hours", 59 * time.Minute: "0 hours", time.Hour: "1 hour", 47 * time.Hour: "47 hours", 48 * time.Hour: "2 days", 647 * time.Hour: "26 days",
	} {
		if got := formatDuration(d); got != want {
			t.Errorf("%v is formatted as %q, not %q", d, got, want)
		}
	}
}

package alerts_test

import (
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// The message of a late suspect value states its measurement time.
func TestLateSuspectValueStatesItsTime(t *testing.T) {
	const question = "Who stood on the scale? Weight 62 kg is far from the usual 88 kg, the median of the last 7. It does not count until a clinician confirms it."
	d := alerts.SuspectValue{Parameter: vitals.WeightKg, Value: 62, Usual: 88, Bound: 78, Count: 7}
	for late, want := range map[bool]string{false: question, true: question + " Measured 2026-01-15T12:45:00Z."} {
		if got := d.Finding(now.Add(-time.Hour), late).Message; got != want {
			t.Errorf("late %t: %q", late, got)
		}
	}
}

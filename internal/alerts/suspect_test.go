package alerts_test

import (
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// The question about a value that came late says when it was measured; what is late is the caller's to know.
func TestAskDatesWhatIsLate(t *testing.T) {
	const question = "Who stood on the scale? Weight 62 kg is far from the usual 88 kg, the median of the last 7. It counts for nothing until somebody confirms it."
	d := alerts.Doubt{Of: vitals.WeightKg, Value: 62, Usual: 88, Bound: 78, Among: 7}
	for late, want := range map[bool]string{false: question, true: question + " Measured 2026-01-15T12:45:00Z."} {
		if got := d.Ask(now.Add(-time.Hour), late).Message; got != want {
			t.Errorf("late %t: %q", late, got)
		}
	}
}

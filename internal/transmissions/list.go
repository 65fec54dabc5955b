package transmissions

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// Backlog counts what waits: pending, in processing, and failed with a retry to come.
func Backlog(app core.App) (pending, processing, awaitingRetry int, err error) {
	return collections.TransmissionBacklog(app)
}

// Find returns one transmission with its attempts, oldest first, or a not-found fault.
func Find(app core.App, id string) (*collections.Transmission, []collections.TransmissionAttempt, error) {
	found, err := collections.FindTransmission(app, id)
	if collections.Missing(err) {
		return nil, nil, fault.Missing()
	}
	if err != nil {
		return nil, nil, err
	}
	ledger, err := collections.TransmissionLedger(app, id)
	return found, ledger, err
}

// Figures are how deliveries go: what waits, and what ended since a moment.
type Figures struct {
	Pending, Processing, AwaitingRetry int
	Transmitted, Failed                int       // since that moment; failed counts those that stand so now
	LastTransmitted                    time.Time // zero for never
}

// SuccessRate is the percentage of what ended well, to one decimal; 100 when nothing was sent.
// Source: docs/decisions/transmissions.md, "FHIR status".
func (f Figures) SuccessRate() float64 {
	if f.Transmitted+f.Failed == 0 {
		return 100
	}
	return vitals.RoundHalfUp(100*float64(f.Transmitted)/float64(f.Transmitted+f.Failed), 1)
}

// ReadFigures counts what waits now and what ended since a moment, the midnight of the practice.
func ReadFigures(app core.App, since time.Time) (f Figures, err error) {
	if f.Pending, f.Processing, f.AwaitingRetry, err = Backlog(app); err != nil {
		return f, err
	}
	f.Transmitted, f.Failed, f.LastTransmitted, err = collections.TransmissionsSince(app, since)
	return f, err
}

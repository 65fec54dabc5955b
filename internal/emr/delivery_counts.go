package emr

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// syncInterval is the least time between two sync entries in the audit trail.
const syncInterval = time.Hour

// NoteSync records in the audit trail that everything due was delivered, at most once an hour and only after a delivery since the last
// such entry. The dashboard's feed shows it; each delivery has an entry of its own.
// Source: docs/decisions/dashboard.md, "Feed types and severities".
func NoteSync(app core.App, now time.Time) error {
	since, err := collections.LastAudited(app, string(audit.EMRSync))
	if err != nil {
		return err
	}
	if now.Sub(since) < syncInterval {
		return nil
	}
	f, err := CountDeliveries(app, since)
	if err != nil || f.Transmitted == 0 || f.Pending+f.Processing > 0 {
		return err
	}
	return audit.Append(app, audit.Entry{
		Event: audit.EMRSync, Actor: audit.System(), ResourceType: audit.ResourceEMR,
		Changes: audit.Changes{"transmitted": {New: f.Transmitted}, "failed": {New: f.Failed}},
	}, now)
}

// Backlog counts the queued deliveries: pending, in processing, and failed with a retry to come.
func Backlog(app core.App) (pending, processing, awaitingRetry int, err error) {
	return collections.TransmissionBacklog(app)
}

// FindDelivery returns one delivery with its attempts, oldest first, or a not-found fault.
func FindDelivery(app core.App, id string) (*collections.Transmission, []collections.TransmissionAttempt, error) {
	found, err := collections.FindTransmission(app, id)
	if collections.IsNotFound(err) {
		return nil, nil, fault.Missing()
	}
	if err != nil {
		return nil, nil, err
	}
	attempts, err := collections.AttemptsOfTransmission(app, id)
	return found, attempts, err
}

// DeliveryCounts are the counts of deliveries: the queue now, and the results since a time.
type DeliveryCounts struct {
	Pending, Processing, AwaitingRetry int
	Unlinked                           int       // blocked until the patient is linked
	CorrectionsDue                     int       // copies at the EMR that a person must correct
	Transmitted, Failed                int       // since that time; Failed counts those that are failed now
	LastTransmitted                    time.Time // zero for never
	DeadLetters                        int       // at any time
}

// SuccessRate returns the percentage of results that are transmitted, to one decimal; 100 without results.
// Source: docs/decisions/transmissions.md, "FHIR status".
func (c DeliveryCounts) SuccessRate() float64 {
	if c.Transmitted+c.Failed == 0 {
		return 100
	}
	return vitals.RoundHalfUp(100*float64(c.Transmitted)/float64(c.Transmitted+c.Failed), 1)
}

// CountDeliveries counts the queue now and the results since a time, the practice's midnight.
func CountDeliveries(app core.App, since time.Time) (f DeliveryCounts, err error) {
	if f.Pending, f.Processing, f.AwaitingRetry, err = Backlog(app); err != nil {
		return f, err
	}
	if f.Unlinked, _, err = collections.CountBlockedTransmissions(app); err != nil {
		return f, err
	}
	if f.CorrectionsDue, err = collections.CountCorrectionsDue(app); err != nil {
		return f, err
	}
	f.Transmitted, f.Failed, f.LastTransmitted, err = collections.TransmissionsSince(app, since)
	if err == nil {
		f.DeadLetters, err = collections.CountDeadLetters(app)
	}
	return f, err
}

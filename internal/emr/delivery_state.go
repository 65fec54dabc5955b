package emr

import (
	"errors"
	"fmt"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/notifications"
)

// stuckAfter is how long a delivery may be in processing before its worker counts as gone.
// Source: docs/decisions/transmissions.md, "Stuck processing".
const stuckAfter = 10 * time.Minute

// Leased is a delivery leased by this worker: no other worker sends it until its result is stored.
type Leased = collections.LeasedTransmission

// Lease leases up to limit due deliveries, oldest first: pending ones, and failed ones with a retry due. It leaves out those attempted
// after since, so that a round sends nothing twice even if waits are short. What it returns is in processing.
func Lease(app core.App, limit int, since, now time.Time) (leased []Leased, err error) {
	return leaseBy(app, now, func(tx core.App) ([]Leased, error) { return collections.LeaseTransmissions(tx, limit, since, now) })
}

func leaseBy(app core.App, now time.Time, take func(tx core.App) ([]Leased, error)) (leased []Leased, err error) {
	err = app.RunInTransaction(func(tx core.App) (err error) {
		if leased, err = take(tx); err != nil {
			return err
		}
		prepared := collections.WithStatementCache(tx)
		for _, c := range leased {
			if c.Form != collections.FormReading {
				continue
			}
			if err := collections.SetFHIRStatus(prepared, c.ObservationID, collections.FHIRProcessing, "", collections.FormatInstant(now)); err != nil {
				return err
			}
		}
		return nil
	})
	return leased, err
}

// leaseOne leases the delivery of one observation, even if it is not due.
func leaseOne(tx core.App, observationID string, now time.Time) (Leased, error) {
	c, err := collections.LeaseTransmissionOf(tx, observationID, now)
	if err != nil {
		return c, err
	}
	return c, collections.SetFHIRStatus(tx, observationID, collections.FHIRProcessing, "", collections.FormatInstant(now))
}

// EMRCopy is the EMR's copy of an observation.
type EMRCopy struct {
	EMRID    string
	SentHash string // of the resource as sent, without the EMR's id; "" when a search found the copy
}

// Succeed moves a leased delivery to transmitted. again is true when its reading changed since the lease: it is queued again.
func Succeed(tx core.App, c Leased, d EMRCopy, startedAt, now time.Time) (again bool, err error) {
	again, err = storeResult(tx, c, collections.FinishedTransmission{
		Status: collections.FHIRTransmitted, Attempts: c.AttemptCount, EMRID: d.EMRID, SentHash: d.SentHash,
	}, startedAt, now)
	if err == nil && c.Corrections > 0 && !again && c.Form != collections.FormDocument { // a former document may still be wrong
		err = collections.CancelCorrection(tx, c.ID)
	}
	return again, err
}

// Failure is why a delivery failed. Code and Message hold no health information.
type Failure struct {
	Code, Message string
	Diagnostics   string // the EMR's own words; stored encrypted
	// EMRID is the EMR's copy, if it is known.
	EMRID string
	// IsUnsent: it failed before the observation was sent.
	IsUnsent bool
	// Ambiguous: the EMR may have stored the observation.
	Ambiguous bool
	// RetryAfter is the EMR's Retry-After; 0 when there is none.
	RetryAfter time.Duration
	// IsCopyWrong: the EMR has, or may have, a copy of a reading that was entered in error.
	IsCopyWrong bool
	// Wait is set when the EMR's search result can be trusted only later: the delivery waits that long and uses up no attempt.
	Wait time.Duration
	// NeedsPerson: the delivery is a dead letter at once, until a person acts.
	NeedsPerson bool
	// EMRFault: the EMR failed and not the record, which uses up no attempt after its first; WaitsForEMR: the record is sent as soon as the
	// circuit breaker closes.
	EMRFault, WaitsForEMR bool
}

// nextAttempt returns the attempts used after a failure and when the next is due; again is false for a dead letter. An EMR fault uses up
// at most the first attempt, makes no dead letter, and leaves a dead letter as it was.
// Source: docs/decisions/transmissions.md, "Failure attribution".
func (f Failure) nextAttempt(c Leased, schedule Schedule, spread float64, now time.Time) (attempts int, next time.Time, again bool) {
	attempts = c.AttemptCount
	switch {
	case f.NeedsPerson:
		return attempts, next, false
	// After CodeSearchOutdated nothing was sent: the dead letter is sent once that is safe.
	case c.WasDeadLetter && (f.EMRFault || f.Wait > 0 && f.Code != CodeSearchOutdated):
		return attempts, next, false
	case f.EMRFault, f.Wait > 0:
		attempts = min(max(1, attempts), len(schedule))
	default:
		attempts++
	}
	if next, again = schedule.Next(attempts-1, now, spread); !again {
		return c.AttemptCount, next, false
	}
	if f.Wait > 0 {
		next = now.Add(f.Wait)
	}
	if earliest := now.Add(f.RetryAfter); earliest.After(next) {
		next = earliest
	}
	return attempts, next, true
}

// Fail moves a leased delivery to failed. While attempts are left it uses one and returns the next retry: the schedule's, or the EMR's
// Retry-After when that is later. After the last attempt it returns the zero time and notifies the administrators of the dead letter.
func Fail(tx core.App, c Leased, f Failure, schedule Schedule, spread float64, startedAt, now time.Time) (next time.Time, err error) {
	diagnostics, err := collections.Seal(f.Diagnostics, "transmissions.diagnostics", c.ID)
	if err != nil {
		return next, fmt.Errorf("seal diagnostics: %w", err)
	}
	attempts, next, again := f.nextAttempt(c, schedule, spread, now)
	_, err = storeResult(tx, c, collections.FinishedTransmission{
		Status: collections.FHIRFailed, EMRID: f.EMRID, ErrorCode: f.Code, ErrorMessage: f.Message, Diagnostics: diagnostics,
		Attempts: attempts, NextRetryAt: next, Ambiguous: c.Ambiguous || f.Ambiguous, WaitsForEMR: f.WaitsForEMR && !f.NeedsPerson, SameReason: f.hidesRefusal(c),
	}, startedAt, now)
	if err != nil || f.EMRFault && !f.NeedsPerson {
		return next, err
	}
	if !again || f.isRefusal() {
		err = openCorrectionTask(tx, c, f.IsCopyWrong, now)
	}
	if err != nil || again {
		return next, err
	}
	return next, announceDeadLetter(tx, f, now)
}

// announceDeadLetter notifies once a day for each reason, for any number of observations.
// Source: docs/decisions/transmissions.md, "Attempts versus delays".
func announceDeadLetter(tx core.App, f Failure, now time.Time) error {
	return notifications.Announce(tx, notifications.Announcement{
		Kind: notifications.DeliveryDeadLettered, Severity: "warning",
		Body: withRemedy("Observations could not be delivered to the EMR and are not retried: "+f.Message+".", f),
		Key:  "delivery given up/" + f.Code + "/" + now.UTC().Format(time.DateOnly),
	}, now)
}

// ErrLeaseExpired is returned when another worker has taken over the delivery. Nothing is lost: the delivery counts as ambiguous, and
// the next worker searches the EMR before it sends.
var ErrLeaseExpired = errors.New("the lease on the delivery has expired")

func storeResult(tx core.App, c Leased, s collections.FinishedTransmission, startedAt, now time.Time) (again bool, err error) {
	held, again, err := collections.FinishTransmission(tx, c, s, startedAt, now)
	if err == nil && !held {
		return false, ErrLeaseExpired
	}
	return again, err
}

// RequeueInterrupted makes pending what an earlier process left in processing, except the own leases of this one. It uses up no attempt, and the
// worker searches the EMR before it sends. Source: docs/decisions/transmissions.md, "Stuck processing".
func RequeueInterrupted(app core.App, own []string, now time.Time) (recovered int, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		observations, err := collections.RecoverTransmissions(tx, own, now)
		if err != nil {
			return err
		}
		prepared := collections.WithStatementCache(tx)
		for _, id := range observations {
			if id == "" {
				continue // a form other than the reading itself
			}
			if err := collections.SetFHIRStatus(prepared, id, collections.FHIRPending, "", collections.FormatInstant(now)); err != nil {
				return err
			}
		}
		recovered = len(observations)
		return nil
	})
	return recovered, err
}

// Stuck lists the deliveries in processing for so long that their worker must be gone.
func Stuck(app core.App, now time.Time) ([]Leased, error) {
	return collections.LeasedBefore(app, now.Add(-stuckAfter))
}

// Package transmissions delivers observations to the EMR, each exactly once as far as the EMR can tell: the intent is
// stored with the reading, a worker claims what is due, and every change of state is a named move that keeps the
// transmission and its observation in step. It knows states, retries and numbers; the EMR's language is in emr.
package transmissions

import (
	"errors"
	"fmt"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/notifications"
)

// stuckAfter is how long a record may be in processing before its worker counts as lost.
// Source: docs/decisions/transmissions.md, "Stuck processing".
const stuckAfter = 10 * time.Minute

// Draft is a transmission about to be queued.
type Draft struct{ ObservationID, PatientID, ObservationType string }

// Claimed is a transmission that this worker has taken: nobody else sends it until it is settled.
type Claimed = collections.ClaimedTransmission

// Claim takes up to limit due transmissions, oldest first: pending ones and failed ones whose time has come. Those
// attempted since the given time are left for later, so that a round never sends anything twice, however short the
// waits are. What is claimed is in processing when it returns.
func Claim(app core.App, limit int, since, now time.Time) (claimed []Claimed, err error) {
	err = app.RunInTransaction(func(tx core.App) (err error) {
		if claimed, err = collections.ClaimTransmissions(tx, limit, since, now); err != nil {
			return err
		}
		prepared := collections.Prepared(tx)
		for _, c := range claimed {
			if err := collections.SetFHIRStatus(prepared, c.ObservationID, collections.FHIRProcessing, "", collections.Instant(now)); err != nil {
				return err
			}
		}
		return nil
	})
	return claimed, err
}

// claimOne takes the transmission of one observation, due or not.
func claimOne(tx core.App, observationID string, now time.Time) (Claimed, error) {
	c, err := collections.ClaimTransmissionOf(tx, observationID, now)
	if err != nil {
		return c, err
	}
	return c, collections.SetFHIRStatus(tx, observationID, collections.FHIRProcessing, "", collections.Instant(now))
}

// Delivered says what the EMR made of an observation.
type Delivered struct {
	EMRID    string
	SentHash string // of the resource as delivered; "" when it was found there
}

// Succeed moves a claimed transmission to transmitted, for good.
func Succeed(tx core.App, c Claimed, d Delivered, startedAt, now time.Time) error {
	return settle(tx, c, collections.SettledTransmission{
		Status: collections.FHIRTransmitted, Attempts: c.AttemptCount, EMRID: d.EMRID, SentHash: d.SentHash,
	}, startedAt, now)
}

// Failure says why a delivery failed, in words without health information.
type Failure struct {
	Code, Message string
	Diagnostics   string // the EMR's own words; stored encrypted
	// Ambiguous: the EMR may have stored it all the same.
	Ambiguous bool
	// RetryAfter is how long the EMR asks to be left alone; 0 when it does not.
	RetryAfter time.Duration
}

// Fail moves a claimed transmission to failed. While a slot is left it takes one and sets the next retry, which it returns:
// the schedule's, or later when the EMR asked for that. After that the zero time means that a person must look, and those
// responsible are told.
func Fail(tx core.App, c Claimed, f Failure, schedule Schedule, spread float64, startedAt, now time.Time) (next time.Time, err error) {
	diagnostics, err := collections.Seal(f.Diagnostics, "transmissions.diagnostics", c.ID)
	if err != nil {
		return next, fmt.Errorf("seal diagnostics: %w", err)
	}
	attempts := c.AttemptCount
	next, again := schedule.Next(attempts, now, spread)
	if again {
		attempts++
		if asked := now.Add(f.RetryAfter); asked.After(next) {
			next = asked
		}
	}
	err = settle(tx, c, collections.SettledTransmission{
		Status: collections.FHIRFailed, ErrorCode: f.Code, ErrorMessage: f.Message, Diagnostics: diagnostics,
		Attempts: attempts, NextRetryAt: next, Ambiguous: c.Ambiguous || f.Ambiguous,
	}, startedAt, now)
	if err != nil || again {
		return next, err
	}
	return next, tellOfGivenUp(tx, f, now)
}

// tellOfGivenUp tells once a day for each reason, however many observations share it.
// Source: docs/decisions/transmissions.md, "Attempts versus delays".
func tellOfGivenUp(tx core.App, f Failure, now time.Time) error {
	return notifications.Announce(tx, notifications.Announcement{
		Kind: notifications.DeliveryGivenUp, Severity: "warning",
		Body: "Observations could not be delivered to the EMR and are not tried again: " + f.Message + ".",
		Key:  "delivery given up/" + f.Code + "/" + now.UTC().Format(time.DateOnly),
	}, now)
}

// ErrLost says that a claim has lapsed and the record is no longer the claimant's to finish. Nothing is lost by it: the
// record counts as ambiguous, and the next to send it looks at the EMR first.
var ErrLost = errors.New("the claim on the transmission has lapsed")

func settle(tx core.App, c Claimed, s collections.SettledTransmission, startedAt, now time.Time) error {
	held, err := collections.SettleTransmission(tx, c, s, startedAt, now)
	if err == nil && !held {
		return ErrLost
	}
	return err
}

// Recover is for the start of the process: whatever is in processing, but what the process has claimed itself, belongs to a
// worker that is gone. It becomes pending
// again, without taking a slot, and is searched for at the EMR before it is sent.
// Source: docs/decisions/transmissions.md, "Stuck processing".
func Recover(app core.App, own []string, now time.Time) (recovered int, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		observations, err := collections.RecoverTransmissions(tx, own, now)
		if err != nil {
			return err
		}
		prepared := collections.Prepared(tx)
		for _, id := range observations {
			if err := collections.SetFHIRStatus(prepared, id, collections.FHIRPending, "", collections.Instant(now)); err != nil {
				return err
			}
		}
		recovered = len(observations)
		return nil
	})
	return recovered, err
}

// Stuck lists what has been in processing so long that its worker must be lost.
func Stuck(app core.App, now time.Time) ([]Claimed, error) {
	return collections.ClaimedBefore(app, now.Add(-stuckAfter))
}

// Package transmissions delivers observations to the EMR, each exactly once as far as the EMR can tell: the intent is
// stored with the reading, a worker claims what is due, and every change of state is a named move that keeps the
// transmission and its observation in step. It knows states, retries and numbers; the EMR's language is in emr.
package transmissions

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
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
type Claimed struct {
	ID            string `db:"id"`
	ObservationID string `db:"observation"`
	PatientID     string `db:"patient"`
	AttemptCount  int    `db:"attempt_count"`
	// ClaimedAt tells this claim from a later one of the same record.
	ClaimedAt string `db:"claimed_at"`
	// Ambiguous: an earlier send may have reached the EMR.
	Ambiguous bool `db:"ambiguous"`
	// CreatedAt is when the observation was stored, and with it the intent to deliver it.
	CreatedAt string `db:"created_at"`
}

// The two ways to be due, as their partial indexes have them.
const (
	waiting  = `status = 'pending'`
	retrying = `status = 'failed' AND next_retry_at != ''`
)

// Claim takes up to limit due transmissions, oldest first: pending ones and failed ones whose time has come. Those
// attempted since the given time are left for later, so that a round never sends anything twice, however short the
// waits are. What is claimed is in processing when it returns.
func Claim(app core.App, limit int, since, now time.Time) (claimed []Claimed, err error) {
	at := collections.Instant(now)
	err = app.RunInTransaction(func(tx core.App) error {
		// Each half walks its own index no further than needed, whatever the backlog. With a limit of just one SQLite would walk
		// it to the end: hence one more.
		err := tx.NonconcurrentDB().NewQuery(`UPDATE transmissions SET status = 'processing', claimed_at = {:now}, updated_at = {:now}
			WHERE id IN (SELECT id FROM (
				SELECT * FROM (SELECT id, created_at FROM transmissions
					WHERE ` + waiting + ` AND last_attempted_at < {:since} ORDER BY created_at, id LIMIT {:limit} + 1)
				UNION ALL
				SELECT * FROM (SELECT id, created_at FROM transmissions
					WHERE ` + retrying + ` AND next_retry_at <= {:now} AND last_attempted_at < {:since}
					ORDER BY next_retry_at LIMIT {:limit} + 1)
				) ORDER BY created_at, id LIMIT +{:limit})
			RETURNING id, observation, patient, attempt_count, claimed_at, ambiguous, created_at`).
			Bind(dbx.Params{"now": at, "since": collections.Instant(since), "limit": limit}).All(&claimed)
		if err != nil {
			return fmt.Errorf("claim transmissions: %w", err)
		}
		prepared := collections.Prepared(tx)
		for _, c := range claimed {
			if err := collections.SetFHIRStatus(prepared, c.ObservationID, collections.FHIRProcessing, "", at); err != nil {
				return err
			}
		}
		return nil
	})
	return claimed, err
}

// claimOne takes the transmission of one observation, due or not.
func claimOne(tx core.App, observationID string, now time.Time) (c Claimed, err error) {
	at := collections.Instant(now)
	err = tx.NonconcurrentDB().NewQuery(`UPDATE transmissions SET status = 'processing', claimed_at = {:now}, updated_at = {:now}
		WHERE observation = {:observation} AND status IN ('pending', 'failed')
		RETURNING id, observation, patient, attempt_count, claimed_at, ambiguous, created_at`).
		Bind(dbx.Params{"now": at, "observation": observationID}).One(&c)
	if err != nil {
		return c, fmt.Errorf("claim transmission: %w", err)
	}
	return c, collections.SetFHIRStatus(tx, observationID, collections.FHIRProcessing, "", at)
}

// Due counts what a claim could take now.
func Due(app core.App, now time.Time) (due int, err error) {
	err = app.DB().NewQuery(`SELECT (SELECT COUNT(*) FROM transmissions WHERE ` + waiting + `)
		+ (SELECT COUNT(*) FROM transmissions WHERE ` + retrying + ` AND next_retry_at <= {:now})`).
		Bind(dbx.Params{"now": collections.Instant(now)}).Row(&due)
	if err != nil {
		return 0, fmt.Errorf("count due transmissions: %w", err)
	}
	return due, nil
}

// Delivered says what the EMR made of an observation.
type Delivered struct {
	EMRID    string
	SentHash string // of the resource as delivered; "" when it was found there
}

// Succeed moves a claimed transmission to transmitted, for good.
func Succeed(tx core.App, c Claimed, d Delivered, startedAt, now time.Time) error {
	return c.settle(tx, outcome{status: collections.FHIRTransmitted, attempts: c.AttemptCount, emrID: d.EMRID, sentHash: d.SentHash}, startedAt, now)
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
	err = c.settle(tx, outcome{
		status: collections.FHIRFailed, errorCode: f.Code, errorMessage: f.Message, diagnostics: diagnostics,
		attempts: attempts, nextRetryAt: collections.Instant(next), ambiguous: c.Ambiguous || f.Ambiguous,
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

// ErrLost says that a claim has lapsed and the record is no longer the claimant's to settle. Nothing is lost by it: the
// record counts as ambiguous, and the next to send it looks at the EMR first.
var ErrLost = errors.New("the claim on the transmission has lapsed")

// outcome is what the end of a delivery makes of its record.
type outcome struct {
	status, errorCode, errorMessage, diagnostics, nextRetryAt string
	attempts                                                  int
	ambiguous                                                 bool
	emrID, sentHash                                           string // "" keeps what is there
}

func (c Claimed) settle(tx core.App, o outcome, startedAt, now time.Time) error {
	at := collections.Instant(now)
	result, err := tx.NonconcurrentDB().NewQuery(`UPDATE transmissions SET status = {:status}, error_code = {:code},
			error_message = {:message}, diagnostics = {:diagnostics}, next_retry_at = {:next}, attempt_count = {:attempts},
			ambiguous = {:ambiguous}, claimed_at = '', updated_at = {:now}, last_attempted_at = {:started},
			first_attempted_at = CASE WHEN first_attempted_at = '' THEN {:started} ELSE first_attempted_at END,
			emr_resource_id = CASE WHEN {:emr} = '' THEN emr_resource_id ELSE {:emr} END,
			sent_hash = CASE WHEN {:hash} = '' THEN sent_hash ELSE {:hash} END
		WHERE id = {:id} AND status = 'processing' AND claimed_at = {:claimed}`).Bind(dbx.Params{
		"id": c.ID, "claimed": c.ClaimedAt, "status": o.status, "code": o.errorCode, "message": o.errorMessage, "diagnostics": o.diagnostics,
		"next": o.nextRetryAt, "attempts": o.attempts, "ambiguous": o.ambiguous, "now": at, "started": collections.Instant(startedAt),
		"emr": o.emrID, "hash": o.sentHash,
	}).Execute()
	if err != nil {
		return fmt.Errorf("settle transmission: %w", err)
	}
	n, err := result.RowsAffected()
	if err != nil {
		return fmt.Errorf("settle transmission: %w", err)
	}
	if n == 0 {
		return ErrLost
	}
	return collections.SetFHIRStatus(tx, c.ObservationID, o.status, o.emrID, at)
}

// Recover is for the start of the process: whatever is in processing, but what the process has claimed itself, belongs to a
// worker that is gone. It becomes pending
// again, without taking a slot, and is searched for at the EMR before it is sent.
// Source: docs/decisions/transmissions.md, "Stuck processing".
func Recover(app core.App, own []string, now time.Time) (recovered int, err error) {
	at := collections.Instant(now)
	except, err := json.Marshal(own)
	if err != nil {
		return 0, fmt.Errorf("list own claims: %w", err)
	}
	err = app.RunInTransaction(func(tx core.App) error {
		var observations []string
		err := tx.NonconcurrentDB().NewQuery(`UPDATE transmissions
			SET status = 'pending', ambiguous = TRUE, claimed_at = '', updated_at = {:now}
			WHERE status = 'processing' AND id NOT IN (SELECT value FROM json_each({:own}))
			RETURNING observation`).Bind(dbx.Params{"now": at, "own": string(except)}).Column(&observations)
		if err != nil {
			return fmt.Errorf("recover transmissions: %w", err)
		}
		prepared := collections.Prepared(tx)
		for _, id := range observations {
			if err := collections.SetFHIRStatus(prepared, id, collections.FHIRPending, "", at); err != nil {
				return err
			}
		}
		recovered = len(observations)
		return nil
	})
	return recovered, err
}

// Stuck lists what has been in processing so long that its worker must be lost.
func Stuck(app core.App, now time.Time) (stuck []Claimed, err error) {
	err = app.DB().NewQuery(`SELECT id, observation, patient, attempt_count, claimed_at, TRUE AS ambiguous
		FROM transmissions WHERE status = 'processing' AND claimed_at <= {:before} ORDER BY claimed_at`).
		Bind(dbx.Params{"before": collections.Instant(now.Add(-stuckAfter))}).All(&stuck)
	if err != nil {
		return nil, fmt.Errorf("find stuck transmissions: %w", err)
	}
	return stuck, nil
}

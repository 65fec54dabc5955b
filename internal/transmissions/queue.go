package transmissions

import (
	"fmt"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
)

var insertPending = collections.NewRowInsert(collections.Transmissions, "id, observation, patient, observation_type, status, created_at, updated_at", "")

// Batch gathers the intents to deliver that one transaction stores, so that their numbers and rows cost few statements
// however many they are. Nobody else may number transmissions in that transaction.
type Batch struct {
	sequence string
	last     int64
	rows     [][]any
}

// Add takes up an intent and returns its number: TXN-<year>-<six digits>, counted anew each year.
// Source: docs/decisions/conventions.md, "Identifiers: integer or uuid".
func (b *Batch) Add(tx core.App, d Draft, now time.Time) (id string, err error) {
	year := now.UTC().Year()
	if sequence := fmt.Sprintf("transmissions-%d", year); sequence != b.sequence {
		if err := b.Store(tx); err != nil {
			return "", err
		}
		if b.last, err = collections.LastNumber(tx, sequence); err != nil {
			return "", err
		}
		b.sequence = sequence
	}
	b.last++
	id = fmt.Sprintf("TXN-%d-%06d", year, b.last)
	at := collections.Instant(now)
	b.rows = append(b.rows, []any{id, d.ObservationID, d.PatientID, d.ObservationType, collections.FHIRPending, at, at})
	return id, nil
}

// Store writes what was added since the last time.
func (b *Batch) Store(tx core.App) error {
	if len(b.rows) == 0 {
		return nil
	}
	if err := collections.SetLastNumber(tx, b.sequence, b.last); err != nil {
		return err
	}
	if err := insertPending.Store(tx, b.rows); err != nil {
		return fmt.Errorf("queue transmissions: %w", err)
	}
	b.rows = nil
	return nil
}

// Queue stores one intent to deliver, inside the transaction that stores its observation.
func Queue(tx core.App, d Draft, now time.Time) (id string, err error) {
	b := Batch{}
	if id, err = b.Add(tx, d, now); err != nil {
		return "", err
	}
	return id, b.Store(tx)
}

// MaxAttempts is the number of automatic retries; the first send takes no slot of its own.
// Source: docs/decisions/transmissions.md, "Attempts versus delays".
const MaxAttempts = 5

// Schedule holds the waits before the five automatic retries.
type Schedule []time.Duration

// jitter spreads retries by a tenth either way, so that an outage's backlog does not return in one wave.
const jitter = 0.1

// Next says when to try again after another failure. failures counts the slots used before it; spread is drawn evenly
// from [-1, 1]. ok is false when no slot is left and a person must look.
func (s Schedule) Next(failures int, at time.Time, spread float64) (next time.Time, ok bool) {
	if failures < 0 || failures >= len(s) {
		return time.Time{}, false
	}
	wait := s[failures]
	return at.Add(wait + time.Duration(spread*jitter*float64(wait))), true
}

// syncEvery is how often the trail says at most that the EMR is in step.
const syncEvery = time.Hour

// NoteSync says in the audit trail that everything due was delivered, at most once an hour and only if something was delivered since the last
// time. Each delivery has a line of its own there; this one is for people. Source: docs/decisions/dashboard.md, "Feed types and severities".
func NoteSync(app core.App, now time.Time) error {
	since, err := collections.LastAudited(app, string(audit.EMRSync))
	if err != nil {
		return err
	}
	if now.Sub(since) < syncEvery {
		return nil
	}
	f, err := ReadFigures(app, since)
	if err != nil || f.Transmitted == 0 || f.Pending+f.Processing > 0 {
		return err
	}
	return audit.Append(app, audit.Entry{
		Event: audit.EMRSync, Actor: audit.System(), ResourceType: audit.ResourceEMR,
		Changes: audit.Changes{"transmitted": {New: f.Transmitted}, "failed": {New: f.Failed}},
	}, now)
}

// codeWithdrawn is the error code of what will not be delivered because the reading was entered in error.
const codeWithdrawn = "entered_in_error"

// Withdraw ends the delivery of an observation that was entered in error, inside the caller's transaction: what has not
// left yet never leaves. reached says that the EMR has a copy, or may have one; to correct that is a person's task.
// Source: docs/decisions/observations.md, "Wrongly entered reading".
func Withdraw(tx core.App, observationID string, now time.Time) (reached bool, err error) {
	status, ambiguous, err := collections.TransmissionState(tx, observationID)
	if collections.Missing(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if status == collections.FHIRTransmitted || status == collections.FHIRProcessing {
		return true, nil // done, or under way: its end is stored as always
	}
	err = collections.WithdrawTransmission(tx, observationID, codeWithdrawn, "Not sent: the reading was entered in error", now)
	if err != nil {
		return false, err
	}
	return ambiguous, collections.SetFHIRStatus(tx, observationID, collections.FHIRFailed, "", collections.Instant(now))
}

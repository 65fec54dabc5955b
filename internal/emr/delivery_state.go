// Package transmissions delivers observations to the EMR, each exactly once as far as the EMR can tell: the intent is
// stored with the reading, a worker claims what is due, and every change of state is a named move that keeps the
// transmission and its observation in step. It knows states, retries and numbers; the EMR's language is in emr.
package emr

import (
	"errors"
	"fmt"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"

	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// stuckAfter is how long a record may be in processing before its worker counts as lost.
// Source: docs/decisions/transmissions.md, "Stuck processing".
const stuckAfter = 10 * time.Minute

// Draft is a transmission about to be queued.
type Draft struct {
	ObservationID, PatientID, ObservationType string
	// Form is what is sent; From and To are the dates of a mean's period.
	Form, From, To string
}

// Claimed is a transmission that this worker has taken: nobody else sends it until its end is stored.
type Claimed = collections.ClaimedTransmission

// Claim takes up to limit due transmissions, oldest first: pending ones and failed ones whose time has come. Those
// attempted since the given time are left for later, so that a round never sends anything twice, however short the
// waits are. What is claimed is in processing when it returns.
func Claim(app core.App, limit int, since, now time.Time) (claimed []Claimed, err error) {
	return claimBy(app, now, func(tx core.App) ([]Claimed, error) { return collections.ClaimTransmissions(tx, limit, since, now) })
}

func claimBy(app core.App, now time.Time, take func(tx core.App) ([]Claimed, error)) (claimed []Claimed, err error) {
	err = app.RunInTransaction(func(tx core.App) (err error) {
		if claimed, err = take(tx); err != nil {
			return err
		}
		prepared := collections.WithStatementCache(tx)
		for _, c := range claimed {
			if c.Form != collections.FormReading {
				continue
			}
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
	SentHash string // of the resource as delivered, without the EMR's id; "" when it was found there
}

// Succeed moves a claimed transmission to transmitted; one whose reading has changed meanwhile waits again, which again says.
func Succeed(tx core.App, c Claimed, d Delivered, startedAt, now time.Time) (again bool, err error) {
	again, err = storeEnd(tx, c, collections.FinishedTransmission{
		Status: collections.FHIRTransmitted, Attempts: c.AttemptCount, EMRID: d.EMRID, SentHash: d.SentHash,
	}, startedAt, now)
	if err == nil && c.Corrections > 0 && !again {
		err = collections.CancelCorrection(tx, c.ID)
	}
	return again, err
}

// Failure says why a delivery failed, in words without health information.
type Failure struct {
	Code, Message string
	Diagnostics   string // the EMR's own words; stored encrypted
	// Ambiguous: the EMR may have stored it all the same.
	Ambiguous bool
	// RetryAfter is how long the EMR asks to be left alone; 0 when it does not.
	RetryAfter time.Duration
	// CopyWrong: the EMR has a copy, or may have one, of a reading that was entered in error.
	CopyWrong bool
	// Wait is set when only time has to pass before the EMR's answer can be believed: the record waits that long and takes no slot.
	Wait time.Duration
	// Line: the line to the EMR was at fault and not the record, which takes no slot; Held: it is sent as soon as the line is back.
	Line, Held bool
}

// after is what a failure makes of the attempts of a record and when it is sent again; again is false when it is not. A fault of the line takes
// no record further than its first slot, gives none up, and leaves what was given up as it was.
// Source: docs/decisions/transmissions.md, "Failure attribution".
func (f Failure) after(c Claimed, schedule Schedule, spread float64, now time.Time) (attempts int, next time.Time, again bool) {
	attempts = c.AttemptCount
	switch {
	case c.WasDeadLetter && (f.Line || f.Wait > 0 && f.Code != CodeSearchOutdated): // what was not even sent is sent once that is safe
		return attempts, next, false
	case f.Line, f.Wait > 0:
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
	if asked := now.Add(f.RetryAfter); asked.After(next) {
		next = asked
	}
	return attempts, next, true
}

// Fail moves a claimed transmission to failed. While a slot is left it takes one and sets the next retry, which it returns:
// the schedule's, or later when the EMR asked for that. After that the zero time means that a person must look, and those
// responsible are told.
func Fail(tx core.App, c Claimed, f Failure, schedule Schedule, spread float64, startedAt, now time.Time) (next time.Time, err error) {
	diagnostics, err := collections.Seal(f.Diagnostics, "transmissions.diagnostics", c.ID)
	if err != nil {
		return next, fmt.Errorf("seal diagnostics: %w", err)
	}
	attempts, next, again := f.after(c, schedule, spread, now)
	_, err = storeEnd(tx, c, collections.FinishedTransmission{
		Status: collections.FHIRFailed, ErrorCode: f.Code, ErrorMessage: f.Message, Diagnostics: diagnostics,
		Attempts: attempts, NextRetryAt: next, Ambiguous: c.Ambiguous || f.Ambiguous, WaitsForEMR: f.Held, SameReason: f.hides(c),
	}, startedAt, now)
	if err != nil || f.Line {
		return next, err
	}
	if !again || f.refused() {
		err = leaveToPeople(tx, c, f.CopyWrong, now)
	}
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
		Body: whatToDo("Observations could not be delivered to the EMR and are not tried again: "+f.Message+".", f),
		Key:  "delivery given up/" + f.Code + "/" + now.UTC().Format(time.DateOnly),
	}, now)
}

// ErrLost says that a claim has lapsed and the record is no longer the claimant's to finish. Nothing is lost by it: the
// record counts as ambiguous, and the next to send it looks at the EMR first.
var ErrLost = errors.New("the claim on the transmission has lapsed")

func storeEnd(tx core.App, c Claimed, s collections.FinishedTransmission, startedAt, now time.Time) (again bool, err error) {
	held, again, err := collections.FinishTransmission(tx, c, s, startedAt, now)
	if err == nil && !held {
		return false, ErrLost
	}
	return again, err
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
		prepared := collections.WithStatementCache(tx)
		for _, id := range observations {
			if id == "" {
				continue // of another form than the reading itself
			}
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

const pendingColumns = "id, observation, patient, observation_type, status, created_at, updated_at"

// Readings are many and have no more than they need; other forms say which they are.
var (
	insertPending = collections.NewRowInsert(collections.Transmissions, pendingColumns, "")
	insertForms   = collections.NewRowInsert(collections.Transmissions, pendingColumns+", form, period_from, period_to", "")
)

// Batch gathers the intents to deliver that one transaction stores, so that their numbers and rows cost few statements
// however many they are. Nobody else may number transmissions in that transaction.
type Batch struct {
	sequence string
	last     int64
	rows     [][]any
	forms    [][]any
}

// Add takes up an intent and returns its number: TXN-<year>-<six digits>, counted anew each year.
// Source: docs/decisions/conventions.md, "Identifiers: integer or uuid".
func (b *Batch) Add(tx core.App, d Draft, now time.Time) (id string, err error) {
	year := now.UTC().Year()
	if sequence := fmt.Sprintf("transmissions-%d", year); sequence != b.sequence {
		if err := b.Store(tx); err != nil {
			return "", err
		}
		if b.last, err = collections.LastValue(tx, sequence); err != nil {
			return "", err
		}
		b.sequence = sequence
	}
	b.last++
	id = fmt.Sprintf("TXN-%d-%06d", year, b.last)
	at := collections.Instant(now)
	row := []any{id, d.ObservationID, d.PatientID, d.ObservationType, collections.FHIRPending, at, at}
	if d.Form == collections.FormReading {
		b.rows = append(b.rows, row)
	} else {
		b.forms = append(b.forms, append(row, d.Form, d.From, d.To))
	}
	return id, nil
}

// Store writes what was added since the last time.
func (b *Batch) Store(tx core.App) error {
	if len(b.rows)+len(b.forms) == 0 {
		return nil
	}
	if err := collections.SetLastValue(tx, b.sequence, b.last); err != nil {
		return err
	}
	if err := insertPending.Store(tx, b.rows); err != nil {
		return fmt.Errorf("queue transmissions: %w", err)
	}
	if err := insertForms.Store(tx, b.forms); err != nil {
		return fmt.Errorf("queue transmissions of other forms: %w", err)
	}
	b.rows, b.forms = nil, nil
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

// Backlog counts what waits: pending, in processing, and failed with a retry to come.
func Backlog(app core.App) (pending, processing, awaitingRetry int, err error) {
	return collections.TransmissionBacklog(app)
}

// Find returns one transmission with its attempts, oldest first, or a not-found fault.
func Find(app core.App, id string) (*collections.Transmission, []collections.TransmissionAttempt, error) {
	found, err := collections.FindTransmission(app, id)
	if collections.IsNotFound(err) {
		return nil, nil, fault.Missing()
	}
	if err != nil {
		return nil, nil, err
	}
	ledger, err := collections.AttemptsOfTransmission(app, id)
	return found, ledger, err
}

// Figures are how deliveries go: what waits, and what ended since a moment.
type Figures struct {
	Pending, Processing, AwaitingRetry int
	Unlinked                           int       // wait until the EMR knows the patient
	CorrectionsDue                     int       // copies at the EMR that a person is to correct
	Transmitted, Failed                int       // since that moment; failed counts those that stand so now
	LastTransmitted                    time.Time // zero for never
	GivenUp                            int       // of all days
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
	if f.Unlinked, _, err = collections.CountBlockedTransmissions(app); err != nil {
		return f, err
	}
	if f.CorrectionsDue, err = collections.CorrectionsDue(app); err != nil {
		return f, err
	}
	f.Transmitted, f.Failed, f.LastTransmitted, err = collections.TransmissionsSince(app, since)
	if err == nil {
		f.GivenUp, err = collections.CountDeadLetters(app)
	}
	return f, err
}

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

// stuckAfter is how long a delivery may be in processing before its worker counts as gone.
// Source: docs/decisions/transmissions.md, "Stuck processing".
const stuckAfter = 10 * time.Minute

// Draft is a delivery to be queued.
type Draft struct {
	ObservationID, PatientID, ObservationType string
	// Form is what is sent; From and To are the dates of a mean's period.
	Form, From, To string
}

// Claimed is a delivery leased by this worker: no other worker sends it until its result is stored.
type Claimed = collections.ClaimedTransmission

// Claim leases up to limit due deliveries, oldest first: pending ones, and failed ones with a retry due. It leaves out those attempted
// after since, so that a round sends nothing twice even if waits are short. What it returns is in processing.
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

// claimOne leases the delivery of one observation, even if it is not due.
func claimOne(tx core.App, observationID string, now time.Time) (Claimed, error) {
	c, err := collections.ClaimTransmissionOf(tx, observationID, now)
	if err != nil {
		return c, err
	}
	return c, collections.SetFHIRStatus(tx, observationID, collections.FHIRProcessing, "", collections.Instant(now))
}

// Delivered is the EMR's copy of an observation.
type Delivered struct {
	EMRID    string
	SentHash string // of the resource as sent, without the EMR's id; "" when a search found the copy
}

// Succeed moves a claimed delivery to transmitted. again is true when its reading changed since the claim: it is queued again.
func Succeed(tx core.App, c Claimed, d Delivered, startedAt, now time.Time) (again bool, err error) {
	again, err = storeResult(tx, c, collections.FinishedTransmission{
		Status: collections.FHIRTransmitted, Attempts: c.AttemptCount, EMRID: d.EMRID, SentHash: d.SentHash,
	}, startedAt, now)
	if err == nil && c.Corrections > 0 && !again {
		err = collections.CancelCorrection(tx, c.ID)
	}
	return again, err
}

// Failure is why a delivery failed. Code and Message hold no health information.
type Failure struct {
	Code, Message string
	Diagnostics   string // the EMR's own words; stored encrypted
	// Ambiguous: the EMR may have stored the observation.
	Ambiguous bool
	// RetryAfter is the EMR's Retry-After; 0 when there is none.
	RetryAfter time.Duration
	// IsCopyWrong: the EMR has, or may have, a copy of a reading that was entered in error.
	IsCopyWrong bool
	// Wait is set when the EMR's search result can be trusted only later: the delivery waits that long and uses up no attempt.
	Wait time.Duration
	// EMRFault: the EMR failed and not the record, which uses up no attempt; WaitsForEMR: it is sent as soon as the circuit breaker closes.
	EMRFault, WaitsForEMR bool
}

// nextAttempt returns the attempts used after a failure and when the next is due; again is false for a dead letter. An EMR fault uses up no
// attempt after the first, makes no dead letter, and leaves a dead letter as it was.
// Source: docs/decisions/transmissions.md, "Failure attribution".
func (f Failure) nextAttempt(c Claimed, schedule Schedule, spread float64, now time.Time) (attempts int, next time.Time, again bool) {
	attempts = c.AttemptCount
	switch {
	case c.WasDeadLetter && (f.EMRFault || f.Wait > 0 && f.Code != CodeSearchOutdated): // a manual transmit that was not sent may be repeated once it is safe
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
	if asked := now.Add(f.RetryAfter); asked.After(next) {
		next = asked
	}
	return attempts, next, true
}

// Fail moves a claimed delivery to failed. While attempts are left it uses one and returns the next retry: the schedule's, or the EMR's
// Retry-After when that is later. After the last attempt it returns the zero time and notifies the administrators of the dead letter.
func Fail(tx core.App, c Claimed, f Failure, schedule Schedule, spread float64, startedAt, now time.Time) (next time.Time, err error) {
	diagnostics, err := collections.Seal(f.Diagnostics, "transmissions.diagnostics", c.ID)
	if err != nil {
		return next, fmt.Errorf("seal diagnostics: %w", err)
	}
	attempts, next, again := f.nextAttempt(c, schedule, spread, now)
	_, err = storeResult(tx, c, collections.FinishedTransmission{
		Status: collections.FHIRFailed, ErrorCode: f.Code, ErrorMessage: f.Message, Diagnostics: diagnostics,
		Attempts: attempts, NextRetryAt: next, Ambiguous: c.Ambiguous || f.Ambiguous, WaitsForEMR: f.WaitsForEMR, SameReason: f.hidesRefusal(c),
	}, startedAt, now)
	if err != nil || f.EMRFault {
		return next, err
	}
	if !again || f.isRefusal() {
		err = openManualTask(tx, c, f.IsCopyWrong, now)
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
		Kind: notifications.DeliveryGivenUp, Severity: "warning",
		Body: withRemedy("Observations could not be delivered to the EMR and are not retried: "+f.Message+".", f),
		Key:  "delivery given up/" + f.Code + "/" + now.UTC().Format(time.DateOnly),
	}, now)
}

// ErrLeaseExpired is returned when another worker has taken over the delivery. Nothing is lost: the delivery counts as ambiguous, and
// the next worker searches the EMR before it sends.
var ErrLeaseExpired = errors.New("the claim on the transmission has lapsed")

func storeResult(tx core.App, c Claimed, s collections.FinishedTransmission, startedAt, now time.Time) (again bool, err error) {
	held, again, err := collections.FinishTransmission(tx, c, s, startedAt, now)
	if err == nil && !held {
		return false, ErrLeaseExpired
	}
	return again, err
}

// Recover makes pending what an earlier process left in processing, except the own leases of this one. It uses up no attempt, and the
// worker searches the EMR before it sends. Source: docs/decisions/transmissions.md, "Stuck processing".
func Recover(app core.App, own []string, now time.Time) (recovered int, err error) {
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
			if err := collections.SetFHIRStatus(prepared, id, collections.FHIRPending, "", collections.Instant(now)); err != nil {
				return err
			}
		}
		recovered = len(observations)
		return nil
	})
	return recovered, err
}

// Stuck lists the deliveries in processing for so long that their worker must be gone.
func Stuck(app core.App, now time.Time) ([]Claimed, error) {
	return collections.ClaimedBefore(app, now.Add(-stuckAfter))
}

const pendingColumns = "id, observation, patient, observation_type, status, created_at, updated_at"

// Readings are many, so their rows have only the columns they need; other forms add which form they are.
var (
	insertPending = collections.NewRowInsert(collections.Transmissions, pendingColumns, "")
	insertForms   = collections.NewRowInsert(collections.Transmissions, pendingColumns+", form, period_from, period_to", "")
)

// Batch collects the deliveries that one transaction queues, so that numbering and inserting any number of them costs few statements.
// Nothing else may number deliveries in that transaction.
type Batch struct {
	sequence string
	last     int64
	rows     [][]any
	forms    [][]any
}

// Add collects a delivery and returns its number: TXN-<year>-<six digits>, starting again each year.
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

// Store writes the deliveries added since the last call.
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

// Queue queues one delivery in the transaction that stores its observation.
func Queue(tx core.App, d Draft, now time.Time) (id string, err error) {
	b := Batch{}
	if id, err = b.Add(tx, d, now); err != nil {
		return "", err
	}
	return id, b.Store(tx)
}

// MaxAttempts is the number of automatic retries; the first attempt is not counted.
// Source: docs/decisions/transmissions.md, "Attempts versus delays".
const MaxAttempts = 5

// Schedule holds the waits before the five automatic retries.
type Schedule []time.Duration

// jitter spreads retries by 10 % either way, so that an outage's backlog does not return all at once.
const jitter = 0.1

// Next returns when to retry after another failure. failures counts the retries used before it; spread is drawn evenly from [-1, 1].
// ok is false when no retry is left.
func (s Schedule) Next(failures int, at time.Time, spread float64) (next time.Time, ok bool) {
	if failures < 0 || failures >= len(s) {
		return time.Time{}, false
	}
	wait := s[failures]
	return at.Add(wait + time.Duration(spread*jitter*float64(wait))), true
}

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
	f, err := ReadFigures(app, since)
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

// Find returns one delivery with its attempts, oldest first, or a not-found fault.
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

// Figures are the counts of deliveries: the queue now, and the results since a time.
type Figures struct {
	Pending, Processing, AwaitingRetry int
	Unlinked                           int       // blocked until the patient is linked
	CorrectionsDue                     int       // copies at the EMR that a person must correct
	Transmitted, Failed                int       // since that time; Failed counts those that are failed now
	LastTransmitted                    time.Time // zero for never
	DeadLetters                        int       // at any time
}

// SuccessRate returns the percentage of results that are transmitted, to one decimal; 100 without results.
// Source: docs/decisions/transmissions.md, "FHIR status".
func (f Figures) SuccessRate() float64 {
	if f.Transmitted+f.Failed == 0 {
		return 100
	}
	return vitals.RoundHalfUp(100*float64(f.Transmitted)/float64(f.Transmitted+f.Failed), 1)
}

// ReadFigures counts the queue now and the results since a time, the practice's midnight.
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
		f.DeadLetters, err = collections.CountDeadLetters(app)
	}
	return f, err
}

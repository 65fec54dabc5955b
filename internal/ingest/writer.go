package ingest

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/async"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/sqlite"
)

// maxGroupSize bounds the readings of one transaction.
const maxGroupSize = 256

// Writer commits readings in groups, to share the cost of a durable commit, and answers each caller after the commit.
type Writer struct {
	readings      *ReadingStore
	clock         func() time.Time
	stored        func([]Outcome)
	log           *slog.Logger
	group         *async.GroupCommit[Submission, Outcome]
	cache         *patientCache
	statements    collections.StatementCache
	commitStarted atomic.Int64 // start of the current commit in Unix nanoseconds; idle or notRunning
}

// Values of commitStarted that are no time.
const (
	notRunning = 0
	idle       = 1
)

// groupItem is one caller's submission and result.
type groupItem = async.GroupItem[Submission, Outcome]

// NewWriter returns a writer. stored is called after each commit with the newly stored readings, and must not block.
func NewWriter(engine *ReadingStore, clock func() time.Time, log *slog.Logger, stored func([]Outcome)) *Writer {
	w := &Writer{readings: engine, clock: clock, stored: stored, log: log, cache: newPatientCache()}
	w.group = async.NewGroupCommit(async.GroupOptions[Submission, Outcome]{
		Store: w.store, RewordError: w.fail, OnDone: w.finish, MaxBatch: maxGroupSize, Log: log,
		WorkItem: func(work func(tx core.App) error) Submission { return Submission{joinTx: work} },
	})
	return w
}

// QueueDepth is the number of queued readings and joined work items.
func (w *Writer) QueueDepth() int { return w.group.Waiting() }

// Busy reports whether a caller waits for a reading to be stored.
func (w *Writer) Busy() bool { return w.QueueDepth() > 0 || w.commitStarted.Load() > idle }

// Alive reports whether the writer runs and no commit has taken longer than patience.
func (w *Writer) Alive(now time.Time, patience time.Duration) bool {
	switch began := w.commitStarted.Load(); began {
	case notRunning:
		return false
	case idle:
		return true
	default:
		return now.Sub(time.Unix(0, began)) <= patience
	}
}

// Submit queues a reading and returns when it is durably stored or rejected. If ctx ends first, the reading may still be stored; a repeat
// is then a duplicate.
func (w *Writer) Submit(ctx context.Context, s Submission) (Outcome, error) {
	if !s.AllowDuplicates {
		s.key = readingKey(s.PatientID, s.Reading)
	}
	outcome, err := w.group.Submit(ctx, s)
	return outcome, asUnavailable(err)
}

// asUnavailable converts a queue error to a fault for the caller.
func asUnavailable(err error) error {
	switch {
	case errors.Is(err, async.ErrGroupFull):
		return unavailable("Too many readings are queued. Try again later.").After(time.Second)
	case errors.Is(err, async.ErrGroupStopped):
		return unavailable("The service is stopping. Try again later.").After(time.Second)
	}
	return err
}

func unavailable(detail string) *fault.Error {
	return fault.New(fault.Unavailable, "service_unavailable", detail)
}

// Run commits submissions until ctx ends and the queue is empty. A writer runs once.
func (w *Writer) Run(ctx context.Context, app core.App) {
	w.commitStarted.Store(idle)
	defer w.commitStarted.Store(notRunning)
	w.group.Run(ctx, app)
}

// store writes a group in one transaction. After an error the transaction is rolled back.
func (w *Writer) store(app core.App, group []*groupItem) error {
	w.commitStarted.CompareAndSwap(idle, w.clock().UnixNano()) // a single retry belongs to the commit of its group
	stored := false
	defer func() {
		if !stored {
			w.cache.clear() // it may hold data that was rolled back
		}
	}()
	err := app.RunInTransaction(func(tx core.App) error {
		readings, err := runJoined(tx, group)
		if err != nil || len(readings) == 0 {
			return err
		}
		tx = w.statements.In(tx)
		b, err := newWriteBatch(tx)
		if err != nil {
			return err
		}
		if err := w.cache.invalidateSince(tx, b.trail.LastID()); err != nil {
			return err
		}
		if err := w.storeGroup(tx, b, sortByMeasurement(readings)); err != nil {
			return err
		}
		w.cache.head = b.trail.LastID()
		return b.store(tx)
	})
	stored = err == nil
	return err
}

// runJoined runs joined work, which may append to the audit trail and therefore comes first, and returns the readings.
func runJoined(tx core.App, group []*groupItem) (readings []*groupItem, err error) {
	readings = make([]*groupItem, 0, len(group))
	for _, r := range group {
		if r.In.joinTx == nil {
			readings = append(readings, r)
		} else if err := r.In.joinTx(tx); err != nil {
			return nil, err
		}
	}
	return readings, nil
}

// storeGroup stores a group in order. A rejected reading leaves nothing behind.
func (w *Writer) storeGroup(tx core.App, b *writeBatch, group []*groupItem) error {
	staleGroup, anyRefused := false, false
	for i, r := range group {
		now := w.clock()
		in := w.readings.addNewerInGroup(r.In, group[i+1:], now)
		staleGroup = staleGroup || len(in.NewerInBatch) > len(r.In.NewerInBatch)
		r.Out, r.Err = w.readings.storeReading(tx, b, w.cache, in, now)
		if _, refused := errors.AsType[*fault.Error](r.Err); r.Err != nil && !refused {
			return r.Err
		}
		anyRefused = anyRefused || r.Err != nil
		if r.Err == nil && in.record != nil {
			if err := in.record(tx); err != nil {
				return err
			}
		}
	}
	if staleGroup && anyRefused {
		return errStaleGroup
	}
	return nil
}

func (w *Writer) fail(r *groupItem) {
	if r.In.joinTx != nil || sqlite.IsRefusedCommit(r.Err) {
		return // its caller gets the error unchanged
	}
	w.log.Error("writer failed to store a reading; its sender has to send it again", slog.Any("error", r.Err))
	r.Err = unavailable("The reading could not be stored. Try again later.").Because(r.Err)
}

// finish reports the newly stored readings of a group.
func (w *Writer) finish(group []*groupItem) {
	defer w.commitStarted.Store(idle)
	var stored []Outcome
	for _, r := range group {
		if r.In.joinTx == nil && r.Err == nil && !r.Out.Duplicate && !r.Out.Conflict {
			stored = append(stored, r.Out)
		}
	}
	if len(stored) > 0 {
		w.stored(stored)
	}
}

// SubmitResult is the result of one of several readings.
type SubmitResult struct {
	Outcome Outcome
	Err     error
}

// SubmitAll queues readings in order of measurement and returns when each is durably stored or rejected.
func (w *Writer) SubmitAll(ctx context.Context, list []Submission) []SubmitResult {
	answers := make([]SubmitResult, len(list))
	for i, a := range w.group.SubmitAll(ctx, list) {
		answers[i] = SubmitResult{a.Out, asUnavailable(a.Err)}
	}
	return answers
}

// errStaleGroup rolls back a group in which a late reading was evaluated against one that was rejected; each is then stored on its own.
var errStaleGroup = errors.New("a late reading was evaluated against one that was not stored")

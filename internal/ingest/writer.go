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
)

// maxGroupSize bounds how many readings one transaction takes.
const maxGroupSize = 256

// Writer commits readings in groups, so that the cost of making a commit durable is shared, and answers every sender after the commit.
type Writer struct {
	evaluator     *Evaluator
	clock         func() time.Time
	stored        func([]Outcome)
	log           *slog.Logger
	group         *async.Group[Submission, Outcome]
	cache         *patientCache
	statements    collections.Statements
	commitStarted atomic.Int64 // when the commit under way began, in Unix nanoseconds; idle or notRunning
}

// What the pulse says besides a time.
const (
	notRunning = 0
	idle       = 1
)

// groupItem is one sender's, and the answer.
type groupItem = async.GroupItem[Submission, Outcome]

// NewWriter returns a writer; stored is called after each commit with what was stored anew, and must not block.
func NewWriter(engine *Evaluator, clock func() time.Time, log *slog.Logger, stored func([]Outcome)) *Writer {
	w := &Writer{evaluator: engine, clock: clock, stored: stored, log: log, cache: newPatientCache()}
	w.group = async.NewGroup(async.GroupOptions[Submission, Outcome]{
		Store: w.store, Failed: w.fail, After: w.finish, Most: maxGroupSize, Log: log,
		Along: func(work func(tx core.App) error) Submission { return Submission{joinTx: work} },
	})
	return w
}

// QueueDepth is how many readings wait, and others whose work goes along with them.
func (w *Writer) QueueDepth() int { return w.group.Waiting() }

// Busy reports whether somebody waits for a reading to be stored.
func (w *Writer) Busy() bool { return w.QueueDepth() > 0 || w.commitStarted.Load() > idle }

// Alive reports whether readings are being stored: the writer runs, and no commit has lasted longer than patience.
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

// Submit hands over a reading and returns once it is durably stored, or refused. When ctx ends first the reading may
// still be stored; sending it again is then answered as a duplicate.
func (w *Writer) Submit(ctx context.Context, s Submission) (Outcome, error) {
	if !s.AllowDuplicates {
		s.key = readingKey(s.PatientID, s.Reading)
	}
	outcome, err := w.group.Submit(ctx, s)
	return outcome, asUnavailable(err)
}

// asUnavailable says to the sender why a reading was not handed over.
func asUnavailable(err error) error {
	switch {
	case errors.Is(err, async.ErrGroupFull):
		return unavailable("Too many readings are waiting.").After(time.Second)
	case errors.Is(err, async.ErrGroupStopped):
		return unavailable("The service is stopping.").After(time.Second)
	}
	return err
}

func unavailable(detail string) *fault.Error {
	return fault.New(fault.Unavailable, "service_unavailable", detail)
}

// Run commits what arrives until ctx ends and the queue is empty. A writer runs once.
func (w *Writer) Run(ctx context.Context, app core.App) {
	w.commitStarted.Store(idle)
	defer w.commitStarted.Store(notRunning)
	w.group.Run(ctx, app)
}

// store writes a group in one transaction. An error may have left half a reading behind.
func (w *Writer) store(app core.App, group []*groupItem) error {
	w.commitStarted.CompareAndSwap(idle, w.clock().UnixNano()) // one stored on its own belongs to the commit of its group
	stored := false
	defer func() {
		if !stored {
			w.cache.clear() // it may have learnt what was rolled back
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
		if err := w.cache.invalidateSince(tx, b.trail.Head()); err != nil {
			return err
		}
		if err := w.storeGroup(tx, b, sortByMeasurement(readings)); err != nil {
			return err
		}
		w.cache.head = b.trail.Head()
		return b.store(tx)
	})
	stored = err == nil
	return err
}

// runJoined does what others want done, before the audit trail is looked at, to which they may append, and returns the readings.
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

// storeGroup stores a group in its order. One that is refused leaves nothing behind.
func (w *Writer) storeGroup(tx core.App, b *writeBatch, group []*groupItem) error {
	staleGroup, anyRefused := false, false
	for i, r := range group {
		now := w.clock()
		in := w.evaluator.addNewerInGroup(r.In, group[i+1:], now)
		staleGroup = staleGroup || len(in.NewerInBatch) > len(r.In.NewerInBatch)
		r.Out, r.Err = w.evaluator.storeReading(tx, b, w.cache, in, now)
		if _, refused := errors.AsType[*fault.Error](r.Err); r.Err != nil && !refused {
			return r.Err
		}
		anyRefused = anyRefused || r.Err != nil
	}
	if staleGroup && anyRefused {
		return errStaleGroup
	}
	return nil
}

func (w *Writer) fail(r *groupItem) {
	if r.In.joinTx != nil {
		return // whoever wanted it done is told as it is
	}
	w.log.Error("reading not stored", slog.Any("error", r.Err))
	r.Err = unavailable("The reading could not be stored.").Because(r.Err)
}

// finish tells of what a group stored anew.
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

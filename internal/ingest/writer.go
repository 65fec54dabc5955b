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

// largestGroup bounds how many readings one transaction takes.
const largestGroup = 256

// Writer commits readings in groups, so that the cost of making a commit durable is shared, and answers every sender after the commit.
type Writer struct {
	engine     *Evaluator
	clock      func() time.Time
	stored     func([]Outcome)
	log        *slog.Logger
	group      *async.Group[Submission, Outcome]
	memory     *memory
	statements collections.Statements
	pulse      atomic.Int64 // when the commit under way began, in Unix nanoseconds; idle or notRunning
}

// What the pulse says besides a time.
const (
	notRunning = 0
	idle       = 1
)

// submitted is one sender's, and the answer.
type submitted = async.GroupItem[Submission, Outcome]

// NewWriter returns a writer; stored is called after each commit with what was stored anew, and must not block.
func NewWriter(engine *Evaluator, clock func() time.Time, log *slog.Logger, stored func([]Outcome)) *Writer {
	w := &Writer{engine: engine, clock: clock, stored: stored, log: log, memory: newMemory()}
	w.group = async.NewGroup(async.GroupOptions[Submission, Outcome]{
		Store: w.store, Failed: w.fail, After: w.finish, Most: largestGroup, Log: log,
		Along: func(work func(tx core.App) error) Submission { return Submission{along: work} },
	})
	return w
}

// QueueDepth is how many readings wait, and others whose work goes along with them.
func (w *Writer) QueueDepth() int { return w.group.Waiting() }

// Busy reports whether somebody waits for a reading to be stored.
func (w *Writer) Busy() bool { return w.QueueDepth() > 0 || w.pulse.Load() > idle }

// Alive reports whether readings are being stored: the writer runs, and no commit has lasted longer than patience.
func (w *Writer) Alive(now time.Time, patience time.Duration) bool {
	switch began := w.pulse.Load(); began {
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
	if !s.Repeatable {
		s.key = readingKey(s.PatientID, s.Reading)
	}
	outcome, err := w.group.Submit(ctx, s)
	return outcome, waited(err)
}

// waited says to the sender why a reading was not handed over.
func waited(err error) error {
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
	w.pulse.Store(idle)
	defer w.pulse.Store(notRunning)
	w.group.Run(ctx, app)
}

// store writes a group in one transaction. An error may have left half a reading behind.
func (w *Writer) store(app core.App, group []*submitted) error {
	w.pulse.CompareAndSwap(idle, w.clock().UnixNano()) // one stored on its own belongs to the commit of its group
	stored := false
	defer func() {
		if !stored {
			w.memory.forgetAll() // it may have learnt what was rolled back
		}
	}()
	err := app.RunInTransaction(func(tx core.App) error {
		readings, err := doneAlong(tx, group)
		if err != nil || len(readings) == 0 {
			return err
		}
		tx = w.statements.In(tx)
		b, err := newBatch(tx)
		if err != nil {
			return err
		}
		if err := w.memory.catchUp(tx, b.trail.Head()); err != nil {
			return err
		}
		if err := w.ingest(tx, b, sortByMeasurement(readings)); err != nil {
			return err
		}
		w.memory.head = b.trail.Head()
		return b.store(tx)
	})
	stored = err == nil
	return err
}

// doneAlong does what others want done, before the audit trail is looked at, to which they may append, and returns the readings.
func doneAlong(tx core.App, group []*submitted) (readings []*submitted, err error) {
	readings = make([]*submitted, 0, len(group))
	for _, r := range group {
		if r.In.along == nil {
			readings = append(readings, r)
		} else if err := r.In.along(tx); err != nil {
			return nil, err
		}
	}
	return readings, nil
}

// ingest stores a group in its order. One that is refused leaves nothing behind.
func (w *Writer) ingest(tx core.App, b *batch, group []*submitted) error {
	misled, anyRefused := false, false
	for i, r := range group {
		now := w.clock()
		in := w.engine.following(r.In, group[i+1:], now)
		misled = misled || len(in.Following) > len(r.In.Following)
		r.Out, r.Err = w.engine.ingest(tx, b, w.memory, in, now)
		if _, refused := errors.AsType[*fault.Error](r.Err); r.Err != nil && !refused {
			return r.Err
		}
		anyRefused = anyRefused || r.Err != nil
	}
	if misled && anyRefused {
		return errMisled
	}
	return nil
}

func (w *Writer) fail(r *submitted) {
	if r.In.along != nil {
		return // whoever wanted it done is told as it is
	}
	w.log.Error("reading not stored", slog.Any("error", r.Err))
	r.Err = unavailable("The reading could not be stored.").Because(r.Err)
}

// finish tells of what a group stored anew.
func (w *Writer) finish(group []*submitted) {
	defer w.pulse.Store(idle)
	var stored []Outcome
	for _, r := range group {
		if r.In.along == nil && r.Err == nil && !r.Out.Duplicate && !r.Out.Conflict {
			stored = append(stored, r.Out)
		}
	}
	if len(stored) > 0 {
		w.stored(stored)
	}
}

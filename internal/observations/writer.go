package observations

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/fault"
)

const (
	queueLength  = 4096
	largestGroup = 256
)

// Writer commits readings in groups: it takes whatever waits, stores it all in one transaction and answers every
// sender after the commit, so that the cost of making a commit durable is shared. It never waits for company.
type Writer struct {
	engine     *Engine
	clock      func() time.Time
	stored     func([]Outcome)
	log        *slog.Logger
	queue      chan *job
	ended      chan struct{} // closed once nothing is stored any more
	memory     *memory
	statements collections.Statements
	pulse      atomic.Int64 // when the commit under way began, in Unix nanoseconds; idle or notRunning
}

// What the pulse says besides a time.
const (
	notRunning = 0
	idle       = 1
)

type job struct {
	submission Submission
	outcome    Outcome
	err        error
	done       chan struct{}
}

// NewWriter returns a writer; stored is called after each commit with what was stored anew, and must not block.
func NewWriter(engine *Engine, clock func() time.Time, log *slog.Logger, stored func([]Outcome)) *Writer {
	return &Writer{
		engine: engine, clock: clock, stored: stored, log: log,
		queue: make(chan *job, queueLength), ended: make(chan struct{}), memory: newMemory(),
	}
}

// QueueDepth is how many readings wait.
func (w *Writer) QueueDepth() int { return len(w.queue) }

// Busy reports whether somebody waits for a reading to be stored.
func (w *Writer) Busy() bool { return len(w.queue) > 0 || w.pulse.Load() > idle }

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
	j := &job{submission: s, done: make(chan struct{})}
	select {
	case w.queue <- j:
	case <-ctx.Done():
		return Outcome{}, ctx.Err()
	default:
		return Outcome{}, unavailable("Too many readings are waiting.").After(time.Second)
	}
	select {
	case <-j.done:
	case <-ctx.Done():
		return Outcome{}, ctx.Err()
	case <-w.ended:
		select {
		case <-j.done: // it was among the last
		default:
			return Outcome{}, unavailable("The service is stopping.").After(time.Second)
		}
	}
	return j.outcome, j.err
}

func unavailable(detail string) *fault.Error {
	return fault.New(fault.Unavailable, "service_unavailable", detail)
}

// Run commits what arrives until ctx ends and the queue is empty. A writer runs once.
func (w *Writer) Run(ctx context.Context, app core.App) {
	defer close(w.ended)
	w.pulse.Store(idle)
	defer w.pulse.Store(notRunning)
	for {
		select {
		case first := <-w.queue:
			w.commit(app, w.waiting(first))
		case <-ctx.Done():
			w.drain(app)
			return
		}
	}
}

func (w *Writer) drain(app core.App) {
	for {
		select {
		case first := <-w.queue:
			w.commit(app, w.waiting(first))
		default:
			return
		}
	}
}

// waiting is the first job and all others that are there already.
func (w *Writer) waiting(first *job) []*job {
	group := []*job{first}
	for len(group) < largestGroup {
		select {
		case next := <-w.queue:
			group = append(group, next)
		default:
			return group
		}
	}
	return group
}

// commit stores a group in one transaction. An error that may have left half a reading behind rolls the group back;
// then each is stored on its own, so that only the one at fault fails.
func (w *Writer) commit(app core.App, group []*job) {
	w.pulse.Store(w.clock().UnixNano())
	defer w.pulse.Store(idle)
	if err := w.store(app, group); err != nil {
		for _, j := range group {
			if err := w.store(app, []*job{j}); err != nil {
				j.outcome, j.err = Outcome{}, unavailable("The reading could not be stored.").Because(err)
				w.log.Error("reading not stored", slog.Any("error", err))
			}
		}
	}
	var stored []Outcome
	for _, j := range group {
		if j.err == nil && !j.outcome.Duplicate && !j.outcome.Conflict {
			stored = append(stored, j.outcome)
		}
	}
	for _, j := range group {
		close(j.done)
	}
	if len(stored) > 0 {
		w.stored(stored)
	}
}

// store writes a group in one transaction. A panic is an error like any other: it must not take everybody's readings down.
func (w *Writer) store(app core.App, group []*job) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("storing panicked (%T)", v) // its text could quote a value
			w.log.Error("storing panicked", slog.String("stack", string(debug.Stack())))
		}
		if err != nil {
			w.memory.forgetAll() // it may have learnt what was rolled back
		}
	}()
	return app.RunInTransaction(func(tx core.App) error {
		tx = w.statements.In(tx)
		b, err := newBatch(tx)
		if err != nil {
			return err
		}
		if err := w.memory.catchUp(tx, b.trail.Head()); err != nil {
			return err
		}
		for _, j := range group {
			j.outcome, j.err = w.engine.ingest(tx, b, w.memory, j.submission, w.clock())
			var refused *fault.Error
			if j.err != nil && !errors.As(j.err, &refused) {
				return j.err
			}
		}
		w.memory.head = b.trail.Head()
		return b.store(tx)
	})
}

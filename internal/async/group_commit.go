// Package async holds the concurrency tools of the background engines: group commit, wake-up signals, throttling and in-memory caches. It does not
// depend on what the engines store.
package async

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/pocketbase/pocketbase/core"
)

// queueLength bounds the waiting items; there are at most as many as connections.
const queueLength = 4096

// Errors of an item that was not queued.
var (
	ErrGroupFull    = errors.New("the queue of the group is full")
	ErrGroupStopped = errors.New("the group has stopped")
)

// GroupItem is what one caller submits, with its result.
type GroupItem[In, Out any] struct {
	In   In
	Out  Out
	Err  error
	done chan struct{}
}

func newItem[In, Out any](in In) *GroupItem[In, Out] {
	return &GroupItem[In, Out]{In: in, done: make(chan struct{})}
}

func (i *GroupItem[In, Out]) isDone() bool {
	select {
	case <-i.done:
		return true
	default:
		return false
	}
}

// GroupOptions configure a group. All but Store and Log may be omitted.
type GroupOptions[In, Out any] struct {
	// Store writes items in one transaction and sets their results. After an error, which rolls back all of them, each item is stored on its own, so
	// that only the faulty one fails. A refusal that leaves nothing half-written is a result, not an error.
	Store func(app core.App, items []*GroupItem[In, Out]) error
	// RewordError may replace the error of an item that failed on its own too.
	RewordError func(*GroupItem[In, Out])
	// OnDone receives each group after all its callers have their results. It must not block.
	OnDone func([]*GroupItem[In, Out])
	// WorkItem wraps work of other callers as an item, to run in the transactions of Run; see [JoinTx]. Nil disables joining.
	WorkItem func(work func(tx core.App) error) In
	// MaxBatch bounds the items of one transaction; 0 means all that wait.
	MaxBatch int
	Log      *slog.Logger
}

// GroupCommit is a group commit: many callers' items in one transaction, because a durable commit costs more than most of the writes in it. It never waits
// for more items, and returns no result before the commit. Callers either store items themselves with Commit, or submit them to one Run with Submit.
type GroupCommit[In, Out any] struct {
	GroupOptions[In, Out]
	queue chan *GroupItem[In, Out]
	turn  chan struct{} // held by the caller that commits
	ended chan struct{} // closed when Run has stopped
}

// NewGroupCommit returns a group.
func NewGroupCommit[In, Out any](o GroupOptions[In, Out]) *GroupCommit[In, Out] {
	if o.MaxBatch == 0 {
		o.MaxBatch = queueLength
	}
	return &GroupCommit[In, Out]{
		GroupOptions: o, queue: make(chan *GroupItem[In, Out], queueLength), turn: make(chan struct{}, 1), ended: make(chan struct{}),
	}
}

// Waiting returns the number of queued items.
func (g *GroupCommit[In, Out]) Waiting() int { return len(g.queue) }

// Commit stores an item and all others in the queue, unless another caller commits it first. The caller must not be in a transaction of app.
func (g *GroupCommit[In, Out]) Commit(app core.App, in In) (Out, error) {
	own := newItem[In, Out](in)
	g.queue <- own
	select {
	case <-own.done:
		return own.Out, own.Err
	case g.turn <- struct{}{}:
	}
	defer func() { <-g.turn }()
	for !own.isDone() { // the item is still queued, because only the holder of the turn takes from the queue
		g.commit(app, g.takeBatch(<-g.queue))
	}
	return own.Out, own.Err
}

// Submit queues an item for Run and waits for its result. If ctx ends first, the item may still be stored.
func (g *GroupCommit[In, Out]) Submit(ctx context.Context, in In) (out Out, err error) {
	own := newItem[In, Out](in)
	select {
	case g.queue <- own:
	case <-ctx.Done():
		return out, ctx.Err()
	default:
		return out, ErrGroupFull
	}
	select {
	case <-own.done:
	case <-ctx.Done():
		return out, ctx.Err()
	case <-g.ended:
		if !own.isDone() { // Run stopped before it took the item
			return out, ErrGroupStopped
		}
	}
	return own.Out, own.Err
}

// Run stores submitted items until ctx ends and the queue is empty. A group runs once.
func (g *GroupCommit[In, Out]) Run(ctx context.Context, app core.App) {
	defer close(g.ended)
	defer g.shareTx(app)()
	for {
		select {
		case first := <-g.queue:
			g.commit(app, g.takeBatch(first))
		case <-ctx.Done():
			for len(g.queue) > 0 {
				g.commit(app, g.takeBatch(<-g.queue))
			}
			return
		}
	}
}

// takeBatch returns the first item and those already queued, up to MaxBatch.
func (g *GroupCommit[In, Out]) takeBatch(first *GroupItem[In, Out]) []*GroupItem[In, Out] {
	items := []*GroupItem[In, Out]{first}
	for len(items) < g.MaxBatch {
		select {
		case next := <-g.queue:
			items = append(items, next)
		default:
			return items
		}
	}
	return items
}

func (g *GroupCommit[In, Out]) commit(app core.App, items []*GroupItem[In, Out]) {
	if err := g.store(app, items); err != nil {
		for _, item := range items {
			g.storeAlone(app, item)
		}
	}
	for _, item := range items {
		close(item.done)
	}
	if g.OnDone != nil {
		g.OnDone(items)
	}
}

func (g *GroupCommit[In, Out]) storeAlone(app core.App, item *GroupItem[In, Out]) {
	if err := g.store(app, []*GroupItem[In, Out]{item}); err != nil {
		var none Out
		item.Out, item.Err = none, err
		if g.RewordError != nil {
			g.RewordError(item)
		}
	}
}

// store calls Store and turns a panic into an error, so that one item cannot stop the group.
func (g *GroupCommit[In, Out]) store(app core.App, items []*GroupItem[In, Out]) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("storing panicked (%T)", v) // the panic's text could contain a stored value
			g.Log.Error("a group commit panicked; its items fail", slog.String("stack", string(debug.Stack())))
		}
	}()
	return g.Store(app, items)
}

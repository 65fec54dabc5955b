// Package groupcommit lets many callers share one transaction, since making a commit durable costs more than what most of them write. It never
// waits for company, and answers nobody before the commit. It knows nothing of what is stored: what a group writes, and in which transaction,
// is its owner's.
package async

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/pocketbase/pocketbase/core"
)

// queueLength is how many items may wait: as many as there may be connections.
const queueLength = 4096

// Why Submit did not hand an item over.
var (
	ErrGroupFull    = errors.New("too many items wait")
	ErrGroupStopped = errors.New("nothing is stored any more")
)

// GroupItem is what one caller hands in, and the answer.
type GroupItem[In, Out any] struct {
	In   In
	Out  Out
	Err  error
	done chan struct{}
}

func newItem[In, Out any](in In) *GroupItem[In, Out] {
	return &GroupItem[In, Out]{In: in, done: make(chan struct{})}
}

func (i *GroupItem[In, Out]) answered() bool {
	select {
	case <-i.done:
		return true
	default:
		return false
	}
}

// GroupOptions of a group. All but Store and Log may be left out.
type GroupOptions[In, Out any] struct {
	// Store writes items in one transaction and sets their answers. An error rolls all back, and each is stored on its own, so that only the one
	// at fault fails. What is refused and leaves no half of it behind is an answer, not an error.
	Store func(app core.App, items []*GroupItem[In, Out]) error
	// Failed may reword the error of an item that could not be stored on its own either.
	Failed func(*GroupItem[In, Out])
	// After is told of each group once all are answered. It must not block.
	After func([]*GroupItem[In, Out])
	// Along makes an item of work that others want done in the transaction of those that Run stores; see [Along]. Nil if there is no such thing.
	Along func(work func(tx core.App) error) In
	// Most bounds what one transaction takes; 0 is all that wait.
	Most int
	Log  *slog.Logger
}

// Group is what shares transactions. Items are stored by those who hand them in, with Commit, or all by one Run, with Submit.
type Group[In, Out any] struct {
	GroupOptions[In, Out]
	queue chan *GroupItem[In, Out]
	turn  chan struct{} // held by whoever commits
	ended chan struct{} // closed once Run stores nothing any more
}

// NewGroup returns a group.
func NewGroup[In, Out any](o GroupOptions[In, Out]) *Group[In, Out] {
	if o.Most == 0 {
		o.Most = queueLength
	}
	return &Group[In, Out]{
		GroupOptions: o, queue: make(chan *GroupItem[In, Out], queueLength), turn: make(chan struct{}, 1), ended: make(chan struct{}),
	}
}

// Waiting is how many items wait.
func (g *Group[In, Out]) Waiting() int { return len(g.queue) }

// Commit stores an item and whatever else waits by then, unless somebody who came before takes it along. app must be in no transaction.
func (g *Group[In, Out]) Commit(app core.App, in In) (Out, error) {
	own := newItem[In, Out](in)
	g.queue <- own
	select {
	case <-own.done:
		return own.Out, own.Err
	case g.turn <- struct{}{}:
	}
	defer func() { <-g.turn }()
	for !own.answered() { // then it is in the queue: only who has the turn takes from there
		g.commit(app, g.with(<-g.queue))
	}
	return own.Out, own.Err
}

// Submit hands an item to Run and waits for its answer. When ctx ends first the item may still be stored.
func (g *Group[In, Out]) Submit(ctx context.Context, in In) (out Out, err error) {
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
		if !own.answered() { // it was not among the last
			return out, ErrGroupStopped
		}
	}
	return own.Out, own.Err
}

// Run stores what is submitted until ctx ends and the queue is empty. A group runs once.
func (g *Group[In, Out]) Run(ctx context.Context, app core.App) {
	defer close(g.ended)
	defer g.lend(app)()
	for {
		select {
		case first := <-g.queue:
			g.commit(app, g.with(first))
		case <-ctx.Done():
			for len(g.queue) > 0 {
				g.commit(app, g.with(<-g.queue))
			}
			return
		}
	}
}

// with is the first item and those that are there already.
func (g *Group[In, Out]) with(first *GroupItem[In, Out]) []*GroupItem[In, Out] {
	items := []*GroupItem[In, Out]{first}
	for len(items) < g.Most {
		select {
		case next := <-g.queue:
			items = append(items, next)
		default:
			return items
		}
	}
	return items
}

func (g *Group[In, Out]) commit(app core.App, items []*GroupItem[In, Out]) {
	if err := g.store(app, items); err != nil {
		for _, item := range items {
			g.storeAlone(app, item)
		}
	}
	for _, item := range items {
		close(item.done)
	}
	if g.After != nil {
		g.After(items)
	}
}

func (g *Group[In, Out]) storeAlone(app core.App, item *GroupItem[In, Out]) {
	if err := g.store(app, []*GroupItem[In, Out]{item}); err != nil {
		var none Out
		item.Out, item.Err = none, err
		if g.Failed != nil {
			g.Failed(item)
		}
	}
}

// store makes an error of a panic: it must not take everybody's items down.
func (g *Group[In, Out]) store(app core.App, items []*GroupItem[In, Out]) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("storing panicked (%T)", v) // its text could quote a value
			g.Log.Error("storing panicked", slog.String("stack", string(debug.Stack())))
		}
	}()
	return g.Store(app, items)
}

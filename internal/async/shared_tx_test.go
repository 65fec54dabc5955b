package async_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tools/store"

	"github.com/vigilhealth/vigil/internal/async"
)

// practice is an app that counts its transactions.
type practice struct {
	core.App
	shared       *store.Store[string, any]
	lock         sync.Mutex
	transactions int
}

func newPractice() *practice { return &practice{shared: store.New[string, any](nil)} }

func (p *practice) Store() *store.Store[string, any] { return p.shared }

func (p *practice) RunInTransaction(work func(tx core.App) error) error {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.transactions++
	return work(p)
}

// job is a number to be stored, or joined work.
type job struct {
	number int
	work   func(tx core.App) error
}

// newSharingGroup returns a group that stores numbers and shares its transactions until end is called; each transaction waits for gate.
func newSharingGroup(app core.App, gate chan struct{}, stored *[]int) (g *async.GroupCommit[job, int], end func()) {
	g = async.NewGroupCommit(async.GroupOptions[job, int]{
		WorkItem: func(work func(tx core.App) error) job { return job{work: work} },
		Store: func(app core.App, items []*async.GroupItem[job, int]) error {
			<-gate
			return app.RunInTransaction(func(tx core.App) error {
				var numbers []int
				for _, item := range items {
					if item.In.work == nil {
						numbers = append(numbers, item.In.number)
					} else if err := item.In.work(tx); err != nil {
						return err
					}
				}
				*stored = append(*stored, numbers...)
				return nil
			})
		},
		Log: slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { g.Run(ctx, app) })
	return g, func() { cancel(); running.Wait() }
}

// newBusyGroup returns a sharing group that is storing a first number. release unblocks it once all callers wait, and waits for them.
func newBusyGroup(t *testing.T, app core.App, stored *[]int) (g *async.GroupCommit[job, int], callers *sync.WaitGroup, release, end func()) {
	t.Helper()
	gate := make(chan struct{})
	g, end = newSharingGroup(app, gate, stored)
	callers = &sync.WaitGroup{}
	callers.Go(func() { _, _ = g.Submit(t.Context(), job{number: 1}) })
	synctest.Wait()
	return g, callers, func() { synctest.Wait(); close(gate); callers.Wait() }, end
}

func TestWorkJoinsTheTransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		app, stored, done := newPractice(), []int(nil), 0
		g, callers, release, end := newBusyGroup(t, app, &stored)
		callers.Go(func() { _, _ = g.Submit(t.Context(), job{number: 2}) })
		for range 3 {
			callers.Go(func() {
				if err := async.JoinTx(app, func(core.App) error { done++; return nil }); err != nil {
					t.Error(err)
				}
			})
		}
		release()
		if app.transactions != 2 || done != 3 || !slices.Equal(stored, []int{1, 2}) {
			t.Errorf("%d transactions, work ran %d times, %v stored", app.transactions, done, stored)
		}
		end()
	})
}

var errWork = errors.New("work failed")

func TestFailingWorkFailsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		app, stored, done := newPractice(), []int(nil), 0
		g, callers, release, end := newBusyGroup(t, app, &stored)
		callers.Go(func() {
			if err := async.JoinTx(app, func(core.App) error { return errWork }); !errors.Is(err, errWork) {
				t.Errorf("returned %v", err)
			}
		})
		callers.Go(func() {
			if _, err := g.Submit(t.Context(), job{number: 2}); err != nil {
				t.Error(err)
			}
		})
		callers.Go(func() {
			if err := async.JoinTx(app, func(core.App) error { done++; return nil }); err != nil {
				t.Error(err)
			}
		})
		release()
		if done == 0 || !slices.Equal(stored, []int{1, 2}) {
			t.Errorf("work ran %d times, %v stored", done, stored)
		}
		end()
	})
}

// Work runs in a transaction of its own if no group shares one, the group belongs to another app, or the group has stopped.
func TestWorkWithoutSharedTransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		app, other, gate, stored, done := newPractice(), newPractice(), make(chan struct{}), []int(nil), 0
		work := func(core.App) error { done++; return nil }
		other.shared = app.shared
		ends := []error{async.JoinTx(app, work)}
		_, end := newSharingGroup(app, gate, &stored)
		synctest.Wait()
		ends = append(ends, async.JoinTx(other, work))
		close(gate)
		ends = append(ends, async.JoinTx(app, work))
		end()
		ends = append(ends, async.JoinTx(app, work), async.JoinTx(app, func(core.App) error { return errWork }))
		if err := errors.Join(ends[:4]...); err != nil || !errors.Is(ends[4], errWork) {
			t.Errorf("returned %v", ends)
		}
		if done != 4 || app.transactions != 4 || other.transactions != 1 {
			t.Errorf("work ran %d times in %d transactions and %d of another app", done, app.transactions, other.transactions)
		}
	})
}

package async_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/async"
)

var errFault = errors.New("at fault")

// ledger stores numbers unless fail rejects them, and records the groups.
type ledger struct {
	lock   sync.Mutex
	groups [][]int
	fail   func(n int) error
	began  chan struct{} // if not nil, receives each group, which then waits for gate
	gate   chan struct{}
}

func (l *ledger) store(_ core.App, items []*async.GroupItem[int, int]) error {
	if l.began != nil {
		l.began <- struct{}{}
		<-l.gate
	}
	var group []int
	for _, item := range items {
		if l.fail != nil {
			if err := l.fail(item.In); err != nil {
				return err
			}
		}
		item.Out = 2 * item.In
		group = append(group, item.In)
	}
	l.lock.Lock()
	defer l.lock.Unlock()
	l.groups = append(l.groups, group)
	return nil
}

func newGroup(l *ledger, set func(*async.GroupOptions[int, int])) *async.GroupCommit[int, int] {
	o := async.GroupOptions[int, int]{Store: l.store, Log: slog.New(slog.DiscardHandler)}
	if set != nil {
		set(&o)
	}
	return async.NewGroupCommit(o)
}

// commitTogether commits 0 to n-1 while another commit is in progress, so that they wait together, and returns their results.
func commitTogether(t *testing.T, l *ledger, n int, set func(*async.GroupOptions[int, int])) (outs []int, errs []error) {
	t.Helper()
	outs, errs = make([]int, n), make([]error, n)
	synctest.Test(t, func(t *testing.T) {
		l.began, l.gate = make(chan struct{}), make(chan struct{})
		group := newGroup(l, set)
		var callers sync.WaitGroup
		callers.Go(func() { _, _ = group.Commit(nil, n) })
		<-l.began
		for i := range n {
			callers.Go(func() { outs[i], errs[i] = group.Commit(nil, i) })
		}
		synctest.Wait()
		if group.Waiting() != n {
			t.Errorf("%d items wait", group.Waiting())
		}
		ended := make(chan struct{})
		go func() { callers.Wait(); close(ended) }()
		close(l.gate)
		for {
			select {
			case <-l.began:
			case <-ended:
				return
			}
		}
	})
	return outs, errs
}

func TestWaitingItemsShareACommit(t *testing.T) {
	for most, groups := range map[int]int{0: 2, 40: 4} { // the first item is committed alone
		l := &ledger{}
		outs, errs := commitTogether(t, l, 100, func(o *async.GroupOptions[int, int]) { o.MaxBatch = most })
		for i := range outs {
			if outs[i] != 2*i || errs[i] != nil {
				t.Errorf("%d: %d (%v)", i, outs[i], errs[i])
			}
		}
		seen := map[int]int{}
		for _, group := range l.groups {
			if most > 0 && len(group) > most {
				t.Errorf("%d in a group", len(group))
			}
			for _, n := range group {
				seen[n]++
			}
		}
		if len(l.groups) != groups || len(seen) != 101 {
			t.Errorf("%d groups of %d items", len(l.groups), len(seen))
		}
	}
}

// An item that cannot be stored, or panics, fails for its own caller only, who gets no partial result.
func TestFaultyItemFailsAlone(t *testing.T) {
	for name, fail := range map[string]func(){"error": func() {}, "panic": func() { panic("a value") }} {
		l, done := &ledger{}, 0
		l.fail = func(n int) error {
			if n != 7 {
				return nil
			}
			fail()
			return errFault
		}
		outs, errs := commitTogether(t, l, 20, func(o *async.GroupOptions[int, int]) {
			o.RewordError = func(item *async.GroupItem[int, int]) { item.Err = errors.Join(item.Err, errors.New("reworded")) }
			o.OnDone = func(items []*async.GroupItem[int, int]) { done += len(items) }
		})
		for i := range outs {
			if i == 7 && (errs[i] == nil || outs[i] != 0) || i != 7 && (errs[i] != nil || outs[i] != 2*i) {
				t.Errorf("%s, %d: %d (%v)", name, i, outs[i], errs[i])
			}
		}
		if name == "error" && !errors.Is(errs[7], errFault) || done != 21 {
			t.Errorf("%s: %v; OnDone received %d items", name, errs[7], done)
		}
	}
}

func TestSubmit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{}
		group := newGroup(l, nil)
		gone, leave := context.WithCancel(t.Context())
		var senders sync.WaitGroup
		senders.Go(func() {
			if _, err := group.Submit(gone, 1); !errors.Is(err, context.Canceled) {
				t.Errorf("gone: %v", err)
			}
		})
		synctest.Wait()
		leave()
		senders.Wait()
		for range 4095 {
			senders.Go(func() {
				if out, err := group.Submit(t.Context(), 2); out != 4 || err != nil {
					t.Errorf("%d (%v)", out, err)
				}
			})
		}
		synctest.Wait()
		if _, err := group.Submit(t.Context(), 3); !errors.Is(err, async.ErrGroupFull) {
			t.Errorf("%d items wait, and one more: %v", group.Waiting(), err)
		}
		stopped, stop := context.WithCancel(t.Context())
		stop()
		group.Run(stopped, nil) // stores all queued items first
		senders.Wait()
		if _, err := group.Submit(t.Context(), 4); !errors.Is(err, async.ErrGroupStopped) || len(l.groups) != 1 || len(l.groups[0]) != 4096 {
			t.Errorf("after the stop: %v; %d groups", err, len(l.groups))
		}
	})
}

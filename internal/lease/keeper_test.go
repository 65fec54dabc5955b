package lease_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vigilhealth/vigil/internal/lease"
)

var errAway = errors.New("no servers available")

// memory is a store; away makes it fail, before or after a write.
type memory struct {
	lease.Entry
	away, loseAnswers bool
	lock              sync.Mutex
}

// change changes the store between the keeper's calls.
func (m *memory) change(change func()) {
	m.lock.Lock()
	defer m.lock.Unlock()
	change()
}

// entry returns what is stored.
func (m *memory) entry() (e lease.Entry) {
	m.change(func() { e = m.Entry })
	return e
}

func (m *memory) Read(context.Context) (lease.Entry, error) {
	m.lock.Lock()
	defer m.lock.Unlock()
	if m.away {
		return lease.Entry{}, errAway
	}
	return m.Entry, nil
}

func (m *memory) Write(_ context.Context, r lease.Record, revision uint64) (uint64, error) {
	m.lock.Lock()
	defer m.lock.Unlock()
	switch {
	case m.away:
		return 0, errAway
	case revision != m.Revision:
		return 0, lease.ErrRevision
	}
	m.Entry = lease.Entry{Record: r, Revision: revision + 1}
	if m.loseAnswers {
		return 0, errAway
	}
	return m.Revision, nil
}

// keeper is a running keeper in a bubble of simulated time.
type keeper struct {
	*lease.Keeper
	ended chan error
}

func run(t *testing.T, store lease.Store, tenure lease.Tenure) *keeper {
	t.Helper()
	began := time.Now()
	k := &keeper{ended: make(chan error, 1)}
	k.Keeper = lease.NewKeeper(lease.Options{
		Store: store, Node: "a", Tenure: tenure, Log: slog.New(slog.DiscardHandler),
		Clock: func() time.Duration { return time.Hour + time.Since(began) },
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { k.ended <- k.Run(ctx) }()
	t.Cleanup(cancel)
	return k
}

func (k *keeper) expect(t *testing.T, after time.Duration, mayWrite bool) {
	t.Helper()
	time.Sleep(after)
	synctest.Wait()
	if k.MayWrite() != mayWrite {
		t.Errorf("may write: %t, want %t", k.MayWrite(), mayWrite)
	}
}

func TestKeeperOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memory{Entry: lease.Entry{Record: lease.Record{Node: "b", Nonce: "x", Wrote: 5}, Revision: 90}}
		k := run(t, store, lease.Tenure{})
		k.expect(t, 19900*time.Millisecond, false)
		k.expect(t, 200*time.Millisecond, true)
		if held := <-k.Taken(); k.Epoch() != 91 || held.Epoch != 91 || held.Wrote != 5 {
			t.Errorf("epoch %d, held %+v", k.Epoch(), held)
		}
		if wrote := store.entry().Wrote; wrote != 5 {
			t.Errorf("the record says that epoch %d wrote, before it did", wrote)
		}
		if err := k.Begin(t.Context()); err != nil || store.entry().Wrote != 91 {
			t.Errorf("the record says that epoch %d wrote: %v", store.entry().Wrote, err)
		}
		k.expect(t, time.Hour, true)
		store.change(func() { store.away = true })
		k.expect(t, 6900*time.Millisecond, true) // 10 s after the last renewal, which was at most 3 s ago
		k.expect(t, 3200*time.Millisecond, false)
		k.expect(t, time.Hour, false)
		if k.LastHeld() < time.Hour {
			t.Errorf("last held %v ago", k.LastHeld())
		}
		store.change(func() { store.away = false })
		k.expect(t, 2*time.Second, true)
		if k.Epoch() != 91 {
			t.Errorf("nobody else held the lease, but the epoch is %d", k.Epoch())
		}
		store.change(func() { store.loseAnswers = true })
		k.expect(t, time.Hour, true)
	})
}

func TestKeeperLost(t *testing.T) {
	for name, put := range map[string]lease.Record{
		"another holder": {Node: "b", Nonce: "y"},
		"garbage":        {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &memory{}
				k := run(t, store, lease.Tenure{})
				k.expect(t, time.Minute, true)
				store.change(func() { store.away = true })
				k.expect(t, 20*time.Second, false)
				store.change(func() { store.away, store.Entry = false, lease.Entry{Record: put, Revision: 1000} })
				k.expect(t, time.Minute, false)
				if err := <-k.ended; !errors.Is(err, lease.ErrLost) {
					t.Errorf("ended with %v", err)
				}
			})
		})
	}
}

// A deletion during the hold is repaired, because no waiter can have taken the lease yet.
func TestKeeperRepairsDeletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memory{}
		k := run(t, store, lease.Tenure{})
		k.expect(t, time.Minute, true)
		store.change(func() { store.Entry = lease.Entry{Revision: store.Revision + 1} })
		for range 100 {
			k.expect(t, time.Second, true)
		}
		if store.entry().Node != "a" || k.Epoch() != 1 {
			t.Errorf("record %+v, epoch %d", store.entry().Record, k.Epoch())
		}
	})
}

func TestKeeperRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memory{}
		first := run(t, store, lease.Tenure{})
		first.expect(t, time.Minute, true)
		dir, tenure := t.TempDir(), (<-first.Taken()).Tenure
		if err := lease.KeepTenure(dir, "a", tenure); err != nil {
			t.Fatal(err)
		}
		for node, kept := range map[string]lease.Tenure{"a": tenure, "b": {}} {
			if got, err := lease.LoadTenure(dir, node); err != nil || got != kept {
				t.Errorf("tenure of %s: %v, %v", node, got, err)
			}
		}
		again := run(t, &memory{Entry: store.entry()}, tenure)
		again.expect(t, time.Second, true)
		if again.Epoch() != first.Epoch() {
			t.Errorf("epoch %d after a restart in time, want %d", again.Epoch(), first.Epoch())
		}
		late := run(t, &memory{Entry: lease.Entry{Record: lease.Record{Node: "b", Nonce: "z", Wrote: 400}, Revision: 400}}, tenure)
		late.expect(t, time.Minute, true)
		if held := <-late.Taken(); held.Epoch != 401 || held.Wrote != 400 {
			t.Errorf("held %+v", held)
		}
	})
}

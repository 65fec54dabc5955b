package audit_test

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

func appendConcurrently(app core.App, entries []audit.Entry) []error {
	group := audit.NewGroup(slog.New(slog.DiscardHandler))
	var callers sync.WaitGroup
	failures := make([]error, len(entries))
	for i, entry := range entries {
		callers.Go(func() { failures[i] = group.Append(app, entry, vigiltest.Clock) })
	}
	callers.Wait()
	return failures
}

func entriesWithIDs(n int) []audit.Entry {
	entries := make([]audit.Entry, n)
	for i := range entries {
		entries[i] = reading()
		entries[i].ResourceID = fmt.Sprint("resource-", i)
	}
	return entries
}

func TestGroupRecordsEachOnce(t *testing.T) {
	app := vigiltest.NewApp(t)
	entries := entriesWithIDs(500)
	for i, err := range appendConcurrently(app, entries) {
		if err != nil {
			t.Errorf("entry %d: %v", i, err)
		}
	}
	seen := map[string]int{}
	for _, row := range rows(t, app) {
		seen[row.ResourceID]++
	}
	for _, entry := range entries {
		if seen[entry.ResourceID] != 1 {
			t.Errorf("%s is recorded %d times", entry.ResourceID, seen[entry.ResourceID])
		}
	}
	if result := verify(t, app); !result.Valid || result.Checked != int64(len(entries)) {
		t.Errorf("result %+v", result)
	}
}

// An invalid entry fails only for its own caller.
func TestGroupIsolatesFailures(t *testing.T) {
	app := vigiltest.NewApp(t)
	entries := entriesWithIDs(100)
	entries[42].Event = ""
	for i, err := range appendConcurrently(app, entries) {
		if (err != nil) != (i == 42) {
			t.Errorf("entry %d: %v", i, err)
		}
	}
	if result := verify(t, app); !result.Valid || result.Checked != 99 {
		t.Errorf("result %+v", result)
	}
}

// brokenApp panics in its first transaction.
type brokenApp struct {
	core.App
	broken sync.Once
}

func (a *brokenApp) RunInTransaction(work func(core.App) error) error {
	a.broken.Do(func() { panic("broken") })
	return a.App.RunInTransaction(work)
}

// Every entry that was reported as recorded is in the trail, and a panic of the committing caller loses no entry.
func TestGroupSurvivesPanic(t *testing.T) {
	app := &brokenApp{App: vigiltest.NewApp(t)}
	group := audit.NewGroup(slog.New(slog.DiscardHandler))
	var callers sync.WaitGroup
	var recorded atomic.Int64
	for range 50 {
		callers.Go(func() {
			if group.Append(app, reading(), vigiltest.Clock) == nil {
				recorded.Add(1)
			}
		})
	}
	callers.Wait()
	if n := int64(len(rows(t, app))); n != recorded.Load() || n != 50 {
		t.Errorf("%d callers succeeded, but %d entries are stored", recorded.Load(), n)
	}
}

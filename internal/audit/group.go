package audit

import (
	"log/slog"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/groupcommit"
)

// Group records entries of many callers in few transactions: a commit waits for the disk, so those who read share that wait.
type Group struct {
	entries *groupcommit.Group[datedEntry, struct{}]
}

type datedEntry struct {
	Entry
	now time.Time
}

// NewGroup returns a group.
func NewGroup(log *slog.Logger) *Group {
	return &Group{groupcommit.New(groupcommit.Options[datedEntry, struct{}]{Store: appendAll, Log: log})}
}

// Append records one entry durably, in a transaction with those of others. app must be in no transaction of its own.
func (g *Group) Append(app core.App, entry Entry, now time.Time) error {
	_, err := g.entries.Commit(app, datedEntry{entry, now})
	return err
}

func appendAll(app core.App, entries []*groupcommit.Item[datedEntry, struct{}]) error {
	return app.RunInTransaction(func(tx core.App) error {
		chain, err := NewChain(tx)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := chain.Add(e.In.Entry, e.In.now); err != nil {
				return err
			}
		}
		return chain.Store()
	})
}

package audit

import (
	"errors"
	"sync"
	"time"

	"github.com/pocketbase/pocketbase/core"
)

// Group records entries of many callers in few transactions: who comes while one is committed waits for the next, which takes everybody's.
// A commit waits for the disk, so those who read share that wait. The zero value is ready; it serves one database.
type Group struct {
	joining sync.Mutex
	waiting []*groupEntry

	turn sync.Mutex // held by who commits
}

// groupEntry is one caller's entry and what became of it.
type groupEntry struct {
	entry   Entry
	now     time.Time
	settled bool
	err     error
}

// errUnsettled is what callers are told when whoever committed for them came to a sudden end.
var errUnsettled = errors.New("audit: the entry was not recorded")

// Append records one entry durably, in a transaction with those of others. app must be in no transaction of its own.
func (g *Group) Append(app core.App, entry Entry, now time.Time) error {
	own := &groupEntry{entry: entry, now: now, err: errUnsettled}
	g.joining.Lock()
	g.waiting = append(g.waiting, own)
	g.joining.Unlock()

	g.turn.Lock()
	defer g.turn.Unlock()
	if !own.settled {
		g.joining.Lock()
		all := g.waiting
		g.waiting = nil
		g.joining.Unlock()
		settle(app, all)
	}
	return own.err
}

// settle records all in one transaction; when that fails, each in one of its own, so that only the one at fault fails.
func settle(app core.App, all []*groupEntry) {
	failed := app.RunInTransaction(func(tx core.App) error {
		chain, err := NewChain(tx)
		if err != nil {
			return err
		}
		for _, one := range all {
			if err := chain.Add(one.entry, one.now); err != nil {
				return err
			}
		}
		return chain.Store()
	})
	for _, one := range all {
		one.settled, one.err = true, nil
		if failed != nil {
			one.err = Append(app, one.entry, one.now)
		}
	}
}

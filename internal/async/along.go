package async

import (
	"context"
	"errors"

	"github.com/pocketbase/pocketbase/core"
)

// sharedTxKey is the key of a shared transaction in an app's store.
const lenderKey = "groupcommit.lender"

// sharedTx lets other work of the same app run in a group's transactions.
type lender struct {
	app core.App
	// do reports whether it ran the work, or tried to.
	do func(work func(tx core.App) error) (done bool, err error)
}

// JoinTx runs work in a transaction, as [core.App.RunInTransaction] does. While a group with [GroupOptions.WorkItem] runs, the work joins its
// transaction: both then share a commit, and neither waits for the other. Failing work does not prevent other items from being stored. The work may
// run a second time, after the first was rolled back, and must wait for nothing but the database.
func Along(app core.App, work func(tx core.App) error) error {
	if l, lends := app.Store().Get(lenderKey).(lender); lends && l.app == app {
		if done, err := l.do(work); done {
			return err
		}
	}
	return app.RunInTransaction(work)
}

// shareTx shares the group's transactions until the returned function is called.
func (g *Group[In, Out]) lend(app core.App) (end func()) {
	if g.Along == nil {
		return func() {}
	}
	app.Store().Set(lenderKey, lender{app, g.along})
	return func() { app.Store().Remove(lenderKey) }
}

func (g *Group[In, Out]) along(work func(tx core.App) error) (done bool, err error) {
	item := newItem[In, Out](g.Along(work))
	if !g.handIn(item) {
		return false, nil
	}
	answer := g.await(context.Background(), item)
	if errors.Is(answer.Err, ErrGroupStopped) {
		return false, nil
	}
	return true, answer.Err
}

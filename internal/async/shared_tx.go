package async

import (
	"context"
	"errors"

	"github.com/pocketbase/pocketbase/core"
)

// sharedTxKey is the key of a shared transaction in an app's store.
const sharedTxKey = "groupcommit.lender"

// sharedTx lets other work of the same app run in a group's transactions.
type sharedTx struct {
	app core.App
	// do reports whether it ran the work, or tried to.
	do func(work func(tx core.App) error) (done bool, err error)
}

// JoinTx runs work in a transaction, as [core.App.RunInTransaction] does. While a group with [GroupOptions.WorkItem] runs, the work joins its
// transaction: both then share a commit, and neither waits for the other. Failing work does not prevent other items from being stored. The work may
// run a second time, after the first was rolled back, and must wait for nothing but the database.
func JoinTx(app core.App, work func(tx core.App) error) error {
	if l, lends := app.Store().Get(sharedTxKey).(sharedTx); lends && l.app == app {
		if done, err := l.do(work); done {
			return err
		}
	}
	return app.RunInTransaction(work)
}

// shareTx shares the group's transactions until the returned function is called.
func (g *GroupCommit[In, Out]) shareTx(app core.App) (end func()) {
	if g.WorkItem == nil {
		return func() {}
	}
	app.Store().Set(sharedTxKey, sharedTx{app, g.submitWork})
	return func() { app.Store().Remove(sharedTxKey) }
}

func (g *GroupCommit[In, Out]) submitWork(work func(tx core.App) error) (done bool, err error) {
	item := newItem[In, Out](g.WorkItem(work))
	if !g.enqueue(item) {
		return false, nil
	}
	answer := g.await(context.Background(), item)
	if errors.Is(answer.Err, ErrGroupStopped) {
		return false, nil
	}
	return true, answer.Err
}

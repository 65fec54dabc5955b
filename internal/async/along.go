package async

import (
	"context"
	"errors"

	"github.com/pocketbase/pocketbase/core"
)

// lenderKey is where an app's store has whose transactions are shared.
const lenderKey = "groupcommit.lender"

// lender shares its transactions with those who work with the same app.
type lender struct {
	app core.App
	// do says whether it did the work, or tried.
	do func(work func(tx core.App) error) (done bool, err error)
}

// Along does work in a transaction, as [core.App.RunInTransaction] does: in that of the group that Run stores with [Options.Along], while there is one.
// Then neither waits for the other's turn at the database, and both share a commit. Work that fails keeps nobody else's from being stored. It may
// be done a second time, when all of the first was rolled back, and must wait for nothing but the database.
func Along(app core.App, work func(tx core.App) error) error {
	if l, lends := app.Store().Get(lenderKey).(lender); lends && l.app == app {
		if done, err := l.do(work); done {
			return err
		}
	}
	return app.RunInTransaction(work)
}

// lend shares transactions until the returned function is called.
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

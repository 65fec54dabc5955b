package groupcommit

import (
	"errors"

	"github.com/pocketbase/pocketbase/core"
)

// lenderKey is where an app's store has whose transactions are shared.
const lenderKey = "groupcommit.lender"

// lender shares its transactions with those who work with the same app.
type lender struct {
	app core.App
	// do returns errNotTaken when it did nothing.
	do func(work func(tx core.App) error) error
}

var errNotTaken = errors.New("no transaction to share")

// Along does work in a transaction, as [core.App.RunInTransaction] does: in that of the group that Run stores with [Options.Along], while there is one.
// Then neither waits for the other's turn at the database, and both share a commit. Work that fails keeps nobody else's from being stored. It may
// be done a second time, when all of the first was rolled back, and must wait for nothing but the database.
func Along(app core.App, work func(tx core.App) error) error {
	if l, lends := app.Store().Get(lenderKey).(lender); lends && l.app == app {
		if err := l.do(work); !errors.Is(err, errNotTaken) {
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

func (g *Group[In, Out]) along(work func(tx core.App) error) error {
	item := newItem[In, Out](g.Along(work))
	if !g.handIn(item) {
		return errNotTaken
	}
	select {
	case <-item.done:
	case <-g.ended:
		if !item.answered() { // it was not among the last
			return errNotTaken
		}
	}
	return item.Err
}

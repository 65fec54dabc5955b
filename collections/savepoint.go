package collections

import (
	"errors"

	"github.com/pocketbase/pocketbase/core"
)

// RunInSavepoint runs fn in a transaction that its error undoes, also inside another transaction, where PocketBase's nested ones undo nothing.
func RunInSavepoint(app core.App, fn func(tx core.App) error) error {
	if !app.IsTransactional() {
		return app.RunInTransaction(fn)
	}
	if err := exec(app, "begin a nested transaction", "SAVEPOINT undoable", nil); err != nil {
		return err
	}
	err := fn(app)
	if err != nil {
		err = errors.Join(err, exec(app, "undo a nested transaction", "ROLLBACK TO undoable", nil))
	}
	return errors.Join(err, exec(app, "end a nested transaction", "RELEASE undoable", nil))
}

package collections

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// Snapshot calls read with an app whose every query finds the database as it is at this moment, however long read takes and whatever others write
// meanwhile. It holds up no writer, and cannot write. fixed is called as soon as the moment is fixed, while nobody else writes: everything that was
// committed before is in it, and nothing that will be.
func Snapshot(ctx context.Context, app core.App, fixed func(tx core.App) error, read func(core.App) error) error {
	db, ok := app.ConcurrentDB().(*dbx.DB)
	if !ok {
		return fmt.Errorf("fix a moment: %T is no database", app.ConcurrentDB())
	}
	var reader *dbx.Tx
	err := app.RunInTransaction(func(tx core.App) (err error) { // for its write lock
		if reader, err = db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true}); err != nil {
			return wrap(err, "begin to read")
		}
		var tables int // the first read fixes the moment
		if err = reader.NewQuery(`SELECT COUNT(*) FROM sqlite_master`).Row(&tables); err == nil {
			err = fixed(tx)
		}
		return wrap(err, "fix a moment")
	})
	if reader != nil {
		defer func() { _ = reader.Rollback() }() // nothing was written
	}
	if err != nil {
		return err
	}
	return read(&snapshotApp{App: app, reader: reader})
}

// errSnapshot is of a write where nothing can be written.
var errSnapshot = errors.New("this app reads a moment that is past, and writes nothing")

type snapshotApp struct {
	core.App
	reader *dbx.Tx
}

// DB implements [core.App].
func (a *snapshotApp) DB() dbx.Builder { return a.reader }

// ConcurrentDB implements [core.App].
func (a *snapshotApp) ConcurrentDB() dbx.Builder { return a.reader }

// NonconcurrentDB implements [core.App].
func (a *snapshotApp) NonconcurrentDB() dbx.Builder { return a.reader }

// RecordQuery implements [core.App]: PocketBase's own, by the reader.
func (a *snapshotApp) RecordQuery(collection any) *dbx.SelectQuery {
	known := a.App.RecordQuery(collection).Info()
	return a.reader.Select(known.Selects...).From(known.From...).WithBuildHook(known.BuildHook).WithContext(known.Context)
}

// RunInTransaction implements [core.App].
func (a *snapshotApp) RunInTransaction(func(core.App) error) error { return errSnapshot }

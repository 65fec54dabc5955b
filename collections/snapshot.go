package collections

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// Snapshot calls read with an app that sees the database at one moment, no matter how long read takes. The app does not block writers and
// cannot write. Snapshot calls fixed at that moment, while it holds the write lock: everything committed before is included, nothing after is.
func Snapshot(ctx context.Context, app core.App, fixed func(tx core.App) error, read func(core.App) error) error {
	db, ok := app.ConcurrentDB().(*dbx.DB)
	if !ok {
		return fmt.Errorf("take a snapshot: %T is not a database", app.ConcurrentDB())
	}
	var reader *dbx.Tx
	err := app.RunInTransaction(func(tx core.App) (err error) { // takes the write lock
		if reader, err = db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true}); err != nil {
			return wrap(err, "begin to read")
		}
		var tables int // the first read starts the snapshot
		if err = reader.NewQuery(`SELECT COUNT(*) FROM sqlite_master`).Row(&tables); err == nil {
			err = fixed(tx)
		}
		return wrap(err, "take a snapshot")
	})
	if reader != nil {
		defer func() { _ = reader.Rollback() }() // read-only
	}
	if err != nil {
		return err
	}
	return read(&snapshotApp{App: app, reader: reader})
}

// errSnapshot rejects a write through a snapshot.
var errSnapshot = errors.New("a database snapshot is read-only")

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

// RecordQuery implements [core.App]: PocketBase's query, run by the snapshot's reader.
func (a *snapshotApp) RecordQuery(collection any) *dbx.SelectQuery {
	query := a.App.RecordQuery(collection).Info()
	return a.reader.Select(query.Selects...).From(query.From...).WithBuildHook(query.BuildHook).WithContext(query.Context)
}

// RunInTransaction implements [core.App].
func (a *snapshotApp) RunInTransaction(func(core.App) error) error { return errSnapshot }

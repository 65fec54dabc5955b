//go:build !(sqlite_in_c && cgo)

package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	modernc "modernc.org/sqlite"
)

// InC reports whether SQLite is compiled from C, as opposed to translated to Go.
const InC = false

// open opens a connection and runs the pragmas itself: the driver would run them in alphabetical order, with page_size too late.
func (c connector) open() (connection, error) {
	opened, err := sqliteDriver.Open(c.path + "?_txlock=immediate&_defensive=1")
	if err != nil {
		return nil, err
	}
	inner, ok := opened.(connection)
	if !ok {
		return nil, fmt.Errorf("the SQLite driver's %T lacks a required interface", opened)
	}
	for _, pragma := range c.pragmas {
		if _, err := inner.ExecContext(context.Background(), "PRAGMA "+pragma, nil); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", pragma, err), inner.Close())
		}
	}
	if mayCommit, guarded := commitGuard(c.path); guarded {
		hooks, ok := opened.(modernc.HookRegisterer)
		if !ok {
			return nil, errors.Join(fmt.Errorf("the SQLite driver's %T has no commit hooks", opened), inner.Close())
		}
		hooks.RegisterCommitHook(func() int32 {
			if mayCommit() {
				return 0
			}
			return 1
		})
	}
	return inner, nil
}

// sqliteDriver is the driver with which other packages register functions and hooks for every connection.
var sqliteDriver = func() driver.Driver {
	db, err := sql.Open("sqlite", "")
	if err != nil {
		return &modernc.Driver{}
	}
	defer func() { _ = db.Close() }() // no connection was opened
	return db.Driver()
}()

// runningCopy is a running copy of a database.
type runningCopy struct{ *modernc.Backup }

func copyTo(inner connection, target string) (runningCopy, error) {
	source, ok := inner.(interface {
		NewBackup(target string) (*modernc.Backup, error)
	})
	if !ok {
		return runningCopy{}, fmt.Errorf("the SQLite driver's %T does not support backups", inner)
	}
	started, err := source.NewBackup(target + "?_pragma=journal_mode(OFF)&_pragma=synchronous(OFF)")
	return runningCopy{started}, err
}

// errorCode returns the SQLite error code of an error, or 0 if it is not an SQLite error.
func errorCode(err error) int { return extendedCode(err) & 0xff }

// extendedCode returns the extended SQLite error code of an error, or 0 if it is not an SQLite error.
func extendedCode(err error) int {
	if sqliteErr, ok := errors.AsType[*modernc.Error](err); ok {
		return sqliteErr.Code()
	}
	return 0
}

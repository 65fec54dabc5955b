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

// InC reports whether SQLite is what its authors wrote, and not its translation to Go.
const InC = false

// open makes a connection. The driver would set what it is told in the order of the alphabet, and too late how large pages are.
func (c connector) open() (connection, error) {
	opened, err := registered.Open(c.path + "?_txlock=immediate&_defensive=1")
	if err != nil {
		return nil, err
	}
	inner, ok := opened.(connection)
	if !ok {
		return nil, fmt.Errorf("the SQLite driver's %T lacks something", opened)
	}
	for _, pragma := range c.pragmas {
		if _, err := inner.ExecContext(context.Background(), "PRAGMA "+pragma, nil); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", pragma, err), inner.Close())
		}
	}
	return inner, nil
}

// registered is the driver under which others register functions and hooks for every connection.
var registered = func() driver.Driver {
	db, err := sql.Open("sqlite", "")
	if err != nil {
		return &modernc.Driver{}
	}
	defer func() { _ = db.Close() }() // nothing was opened
	return db.Driver()
}()

// copying is a copy of a database under way.
type copying struct{ *modernc.Backup }

func copyTo(inner connection, target string) (copying, error) {
	source, ok := inner.(interface {
		NewBackup(target string) (*modernc.Backup, error)
	})
	if !ok {
		return copying{}, fmt.Errorf("the SQLite driver's %T cannot copy", inner)
	}
	started, err := source.NewBackup(target + "?_pragma=journal_mode(OFF)&_pragma=synchronous(OFF)")
	return copying{started}, err
}

// codeOf is SQLite's number of an error; 0 when it is none of SQLite's.
func codeOf(err error) int {
	if refused, ok := errors.AsType[*modernc.Error](err); ok {
		return refused.Code() & 0xff // without what it adds
	}
	return 0
}

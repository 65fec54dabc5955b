// Package sqlite knows how a database file is opened: durable where readings are kept, with few connections and small
// caches, and with statements that are read once. SQLite spends as long on understanding the text of a short statement as on
// running it, and database/sql forgets what was understood after every call; here each connection remembers the statements it has seen.
// SQLite itself understands a statement anew whenever a bound value could change its plan, which is at every call: a LIMIT or OFFSET, and what
// a range is compared with where rows are asked for in order. What is asked often is written LIMIT +{:n} or at <= +{:at}, whose value it does
// not look at.
//
// SQLite itself is compiled from C where the program is built with a C compiler (driver_c.go), and translated to Go elsewhere (driver_go.go). Nothing
// else may tell the two apart; each opens the other's files.
//
// It refuses to know what is in the database.
package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"path/filepath"

	"github.com/pocketbase/dbx"
)

// Connect opens a database as PocketBase's DBConnect. What a practice was told is stored must survive the loss of power, so
// the database of records waits for the disk on every commit; PocketBase's own log does not.
func Connect(path string) (*dbx.DB, error) {
	if filepath.Base(path) == "auxiliary.db" {
		return open(path, "NORMAL", longLog), nil
	}
	return Open(path, "FULL")
}

// Open opens a database with a say in how its commits wait for the disk; tests do not wait. A commit moves the log only once it has a gigabyte:
// a Checkpointer does so long before, and a command without one has the time.
func Open(path, synchronous string) (*dbx.DB, error) {
	return open(path, synchronous, 250_000), nil
}

// open says from how many pages on a commit moves the log. A new database has pages of 2 kB: a reading changes little on each of many, and all of a page
// is written to the log; and little is remembered of them, for what has just been read anew is nearer to the processor than what was remembered.
func open(path, synchronous string, autocheckpoint int) *dbx.DB {
	return dbx.NewFromDB(sql.OpenDB(connector{path, []string{
		"busy_timeout(10000)", // first, so that switching to WAL can wait
		"page_size(2048)", "journal_mode(WAL)", "journal_size_limit(200000000)", fmt.Sprintf("wal_autocheckpoint(%d)", autocheckpoint), "synchronous(" + synchronous + ")",
		"foreign_keys(ON)", "temp_store(MEMORY)", "cache_size(-4000)",
	}}), "sqlite")
}

// File opens a database that is nobody's daily work, such as a copy that is looked at, with pragmas such as "query_only(ON)" and none of ours.
func File(path string, pragmas ...string) *dbx.DB {
	return dbx.NewFromDB(sql.OpenDB(connector{path, pragmas}), "sqlite")
}

// connector opens connections to one file. A transaction takes the write lock as it begins: one that reads first and writes later would fail if
// another process, such as a rotation of keys, wrote in between. SQL cannot touch what SQLite keeps for itself (its defensive mode).
type connector struct {
	path    string
	pragmas []string
}

// Connect implements [driver.Connector].
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	opened, err := c.open()
	if err != nil {
		return nil, err
	}
	return newConn(opened), ctx.Err()
}

// Driver implements [driver.Connector].
func (connector) Driver() driver.Driver { return registered }

// TakesNothing reports whether the database could not be written because its disk is full or does not work, or may not be written to: what is
// asked for is in order, and can be asked for again. The numbers are SQLite's: SQLITE_READONLY, SQLITE_IOERR, SQLITE_FULL.
func TakesNothing(err error) bool {
	switch codeOf(err) {
	case 8, 10, 13:
		return true
	}
	return false
}

// Package sqlite opens database files: with durable commits for records, and with a cache of prepared statements per connection. SQLite takes as
// long to prepare a short statement as to run it, and database/sql closes statements after every call.
//
// SQLite prepares a statement again whenever a bound value could change its plan, which is the case on every call for a LIMIT or OFFSET, and for the bound
// of a range in an ordered query. Frequent statements avoid this with LIMIT +{:n} or at <= +{:at}, since the planner ignores the value of an expression.
//
// SQLite is compiled from C if the program is built with a C compiler (driver_c.go), and translated to Go otherwise (driver_go.go). Both behave the same,
// and each opens the other's files.
package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/pocketbase/dbx"
)

// Connect opens a database as PocketBase's DBConnect. The database of records waits for the disk on every commit, so that acknowledged
// writes survive a power loss; PocketBase's log database does not.
func Connect(path string) (*dbx.DB, error) {
	if filepath.Base(path) == "auxiliary.db" {
		return open(path, "NORMAL", autoCheckpointPages), nil
	}
	return Open(path, "FULL")
}

// Open opens a database with a setting of PRAGMA synchronous; tests do not wait for the disk. A commit checkpoints the log only at 500 MB, or 1 GB with pages
// of 4 kB: a Checkpointer does so much earlier, and for a command without one the delay is acceptable.
func Open(path, synchronous string) (*dbx.DB, error) {
	return open(path, synchronous, 250_000), nil
}

// open opens a database in which commits checkpoint the log from a number of pages on. A new database has pages of 2 kB, because a reading changes a little on
// each of many pages and the log stores whole pages. The page cache is small, because pages just read from the system's cache are closer to the processor
// than those of a large cache.
func open(path, synchronous string, autocheckpoint int) *dbx.DB {
	return dbx.NewFromDB(sql.OpenDB(connector{path, damageCounter(path), []string{
		"busy_timeout(10000)", // first, so that switching to WAL can wait
		"page_size(2048)", "journal_mode(WAL)", "journal_size_limit(200000000)", fmt.Sprintf("wal_autocheckpoint(%d)", autocheckpoint), "synchronous(" + synchronous + ")",
		"foreign_keys(ON)", "temp_store(MEMORY)", "cache_size(-4000)",
	}}), "sqlite")
}

// File opens a database for occasional use, such as a copy to inspect, with only the given pragmas, such as "query_only(ON)".
func File(path string, pragmas ...string) *dbx.DB {
	return dbx.NewFromDB(sql.OpenDB(connector{path: path, pragmas: pragmas}), "sqlite")
}

// connector opens connections to one file. A transaction takes the write lock when it begins: if it read first and wrote later, it would fail when another
// process, such as a key rotation, wrote in between. Connections are in SQLite's defensive mode, in which SQL cannot change internal structures.
type connector struct {
	path    string
	damage  *atomic.Int64 // counts statements that fail because of damage; may be nil
	pragmas []string
}

// Connect implements [driver.Connector].
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	opened, err := c.open()
	if err != nil {
		return nil, countDamage(c.damage, err)
	}
	return newConn(opened, c.damage), ctx.Err()
}

// Driver implements [driver.Connector].
func (connector) Driver() driver.Driver { return sqliteDriver }

// IsStorageFailure reports whether a write failed because the disk is full, failing or read-only. The request is valid and can be retried.
// The codes are SQLITE_READONLY, SQLITE_IOERR and SQLITE_FULL.
func IsStorageFailure(err error) bool {
	switch errorCode(err) {
	case 8, 10, 13:
		return true
	}
	return false
}

// SetTempDir makes SQLite write its temporary files, such as those of [SortOnDisk], to a folder on a disk with enough space: a container's /tmp can be
// memory. The files are unlinked at once. SQLite translated to Go still uses /var/tmp or /tmp. Call SetTempDir before the first database is opened.
func SetTempDir(dir string) {
	const variable = "SQLITE_TMPDIR"
	if os.Getenv(variable) == "" {
		_ = os.Setenv(variable, dir) // on failure SQLite uses its default
	}
}

// SortOnDisk runs work with temporary files on disk for the writing connection, outside of any transaction. A new index would otherwise sort all keys of
// the table in memory, 1.6 GB for ten million readings.
func SortOnDisk(writer dbx.Builder, work func() error) error {
	keep := func(where string) error {
		if _, err := writer.NewQuery("PRAGMA temp_store = " + where).Execute(); err != nil {
			return fmt.Errorf("set temp_store: %w", err)
		}
		return nil
	}
	if err := keep("FILE"); err != nil {
		return err
	}
	return errors.Join(work(), keep("MEMORY"))
}

// Package sqlite knows how a database file is opened: durable where readings are kept, with few connections and small
// caches, and with statements that are read once. SQLite spends as long on understanding the text of a short statement as on
// running it, and database/sql forgets what was understood after every call; here each connection remembers the statements it has seen.
// SQLite itself understands a statement anew whenever a bound LIMIT or OFFSET could change its plan, which is at every call; ours are
// written LIMIT +{:n}, whose value it does not look at.
//
// It refuses to know what is in the database.
package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/pocketbase/dbx"
	modernc "modernc.org/sqlite"
)

// Connect opens a database as PocketBase's DBConnect. What a practice was told is stored must survive the loss of power, so
// the database of records waits for the disk on every commit; PocketBase's own log does not.
func Connect(path string) (*dbx.DB, error) {
	synchronous := "FULL"
	if filepath.Base(path) == "auxiliary.db" {
		synchronous = "NORMAL"
	}
	return Open(path, synchronous)
}

// Open opens a database with a say in how its commits wait for the disk; tests do not wait.
func Open(path, synchronous string) (*dbx.DB, error) {
	pragmas := []string{
		"busy_timeout(10000)", // first, so that switching to WAL can wait
		"journal_mode(WAL)", "journal_size_limit(200000000)", "wal_autocheckpoint(3000)", "synchronous(" + synchronous + ")",
		"foreign_keys(ON)", "temp_store(MEMORY)", "cache_size(-8000)",
	}
	// A transaction takes the write lock as it begins. One that reads first and writes later would fail if another process, such as a rotation
	// of keys, wrote in between.
	name := path + "?_txlock=immediate&_pragma=" + strings.Join(pragmas, "&_pragma=") + "&_defensive=1"
	return dbx.NewFromDB(sql.OpenDB(connector{name}), "sqlite"), nil
}

type connector struct{ name string }

// Connect implements [driver.Connector].
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	opened, err := c.Driver().Open(c.name)
	if err != nil {
		return nil, err
	}
	inner, ok := opened.(connection)
	if !ok {
		return nil, fmt.Errorf("the SQLite driver's %T lacks something", opened)
	}
	return newConn(inner), ctx.Err()
}

// Driver implements [driver.Connector].
func (connector) Driver() driver.Driver { return registered }

// registered is the driver under which others register functions and hooks for every connection.
var registered = func() driver.Driver {
	db, err := sql.Open("sqlite", "")
	if err != nil {
		return &modernc.Driver{}
	}
	defer func() { _ = db.Close() }() // nothing was opened
	return db.Driver()
}()

//go:build sqlite_in_c && cgo

package main

import (
	"database/sql"

	"github.com/mattn/go-sqlite3"
	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/internal/sqlite"
)

// The SQLite build and driver of this program.
const (
	driver       = "in C"
	driverModule = "github.com/mattn/go-sqlite3"
)

// The driver is registered as in PocketBase's documentation, with the optional commit delay.
func init() {
	sql.Register("plain", &sqlite3.SQLiteDriver{ConnectHook: func(conn *sqlite3.SQLiteConn) error {
		if sqlite.OnConnect != nil {
			sqlite.OnConnect(conn.GetFilename("main"), conn)
		}
		return nil
	}})
}

// plainConnect opens a database as in PocketBase's documentation for this driver, with a configurable synchronous mode.
func plainConnect(path, synchronous string) (*dbx.DB, error) {
	db, err := dbx.Open("plain", path+"?_busy_timeout=10000&_journal_mode=WAL&_synchronous="+synchronous+"&_foreign_keys=1&_cache_size=-32000")
	if err != nil {
		return nil, err
	}
	return dbx.NewFromDB(db.DB(), "sqlite"), nil
}

//go:build sqlite_in_c && cgo

package main

import (
	"database/sql"

	"github.com/mattn/go-sqlite3"
	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/internal/sqlite"
)

// driver is how SQLite is in this program, and by whom.
const (
	driver       = "in C"
	driverModule = "github.com/mattn/go-sqlite3"
)

// The driver as PocketBase's manual has it, but for the delay of commits where there is to be one.
func init() {
	sql.Register("plain", &sqlite3.SQLiteDriver{ConnectHook: func(conn *sqlite3.SQLiteConn) error {
		if sqlite.Connected != nil {
			sqlite.Connected(conn.GetFilename("main"), conn)
		}
		return nil
	}})
}

// plainConnect opens as PocketBase's manual does with this driver, but for the waiting.
func plainConnect(path, synchronous string) (*dbx.DB, error) {
	db, err := dbx.Open("plain", path+"?_busy_timeout=10000&_journal_mode=WAL&_synchronous="+synchronous+"&_foreign_keys=1&_cache_size=-32000")
	if err != nil {
		return nil, err
	}
	return dbx.NewFromDB(db.DB(), "sqlite"), nil
}

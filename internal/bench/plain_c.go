//go:build sqlite_in_c && cgo

package main

import (
	_ "github.com/mattn/go-sqlite3" // registers itself
	"github.com/pocketbase/dbx"
)

// plainConnect opens as PocketBase's manual does with this driver, but for the waiting.
func plainConnect(path, synchronous string) (*dbx.DB, error) {
	db, err := dbx.Open("sqlite3", path+"?_busy_timeout=10000&_journal_mode=WAL&_synchronous="+synchronous+"&_foreign_keys=1&_cache_size=-32000")
	if err != nil {
		return nil, err
	}
	return dbx.NewFromDB(db.DB(), "sqlite"), nil
}

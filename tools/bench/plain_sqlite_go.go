//go:build !(sqlite_in_c && cgo)

package main

import (
	"github.com/pocketbase/dbx"
	_ "modernc.org/sqlite" // PocketBase's own
)

// The SQLite build and driver of this program.
const (
	driver       = "translated to Go"
	driverModule = "modernc.org/sqlite"
)

// plainConnect opens a database as PocketBase does, with a configurable synchronous mode.
func plainConnect(path, synchronous string) (*dbx.DB, error) {
	return dbx.Open("sqlite", path+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=journal_size_limit(200000000)&_pragma=synchronous("+synchronous+
		")&_pragma=foreign_keys(ON)&_pragma=temp_store(MEMORY)&_pragma=cache_size(-32000)&_defensive=1")
}

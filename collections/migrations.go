package collections

import (
	"errors"
	"strings"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// AppliedMigrations are the names of the migrations that a database file has seen. It opens the file by itself, so that it can be asked before the
// app is, and changes nothing.
func AppliedMigrations(file string) ([]string, error) {
	db, err := dbx.Open("sqlite", file+"?_pragma=busy_timeout(10000)&_pragma=query_only(ON)")
	if err != nil {
		return nil, wrap(err, "open the database")
	}
	var names []string
	err = db.Select("file").From(core.DefaultMigrationsTable).OrderBy("file").Column(&names)
	if err != nil && strings.Contains(err.Error(), "no such table") { // a database before its first migration
		err = nil
	}
	return names, wrap(errors.Join(err, db.Close()), "read the migrations of the database")
}

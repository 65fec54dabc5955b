package collections

import (
	"strings"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// AppliedMigrations are the names of the migrations that a database has seen. It can be asked before there is an app.
func AppliedMigrations(db *dbx.DB) ([]string, error) {
	var names []string
	err := db.Select("file").From(core.DefaultMigrationsTable).OrderBy("file").Column(&names)
	if err != nil && strings.Contains(err.Error(), "no such table") { // a database before its first migration
		err = nil
	}
	return names, wrap(err, "read the migrations of the database")
}

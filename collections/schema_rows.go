package collections

import (
	"strings"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// SchemaRow is a collection as stored in PocketBase's _collections table. Fields and options are JSON.
type SchemaRow struct {
	ID      string  `db:"id"`
	Name    string  `db:"name"`
	Type    string  `db:"type"`
	System  bool    `db:"system"`
	Fields  string  `db:"fields"`
	Options string  `db:"options"`
	List    *string `db:"listRule"`
	View    *string `db:"viewRule"`
	Create  *string `db:"createRule"`
	Update  *string `db:"updateRule"`
	Delete  *string `db:"deleteRule"`
}

// SchemaRows returns the rows of all collections, by name.
func SchemaRows(app core.App) (all []SchemaRow, err error) {
	err = app.ConcurrentDB().Select("id", "name", "type", "system", "fields", "options", "listRule", "viewRule", "createRule", "updateRule", "deleteRule").
		From("_collections").OrderBy("name").All(&all)
	return all, wrap(err, "read the collections")
}

// Load reads the collection by its key, because a changed database file may have two collections with one name.
func (r SchemaRow) Load(app core.App) (*core.Collection, error) {
	c := &core.Collection{}
	err := app.CollectionQuery().AndWhere(dbx.HashExp{"id": r.ID}).One(c)
	return c, wrap(err, "read collection %s", r.Name)
}

// FirstStart returns when the first build with second factors required by default opened the data folder; now if that is not on record.
func FirstStart(app core.App, now time.Time) (time.Time, error) {
	applied, err := queryValue[int64](app, "find migration", `SELECT applied FROM _migrations WHERE file = '1795951000_sessions.go'`, nil)
	if IsNotFound(err) {
		return now, nil
	}
	return time.UnixMicro(applied).UTC(), err
}

// AppliedMigrations returns the names of the migrations applied to a database. It needs no app.
func AppliedMigrations(db *dbx.DB) ([]string, error) {
	var names []string
	err := db.Select("file").From(core.DefaultMigrationsTable).OrderBy("file").Column(&names)
	if err != nil && strings.Contains(err.Error(), "no such table") { // no migration has run yet
		err = nil
	}
	return names, wrap(err, "read the migrations of the database")
}

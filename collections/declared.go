package collections

import (
	"strings"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// Declared is what PocketBase has noted down of a collection, as it stands there: fields and options are JSON.
type Declared struct {
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

// AllDeclared are the rows of all collections, by name.
func AllDeclared(app core.App) (all []Declared, err error) {
	err = app.ConcurrentDB().Select("id", "name", "type", "system", "fields", "options", "listRule", "viewRule", "createRule", "updateRule", "deleteRule").
		From("_collections").OrderBy("name").All(&all)
	return all, wrap(err, "read the collections")
}

// Read is the collection of the row, found by its key: another may be named, in the file, as this one is.
func (d Declared) Read(app core.App) (*core.Collection, error) {
	c := &core.Collection{}
	err := app.CollectionQuery().AndWhere(dbx.HashExp{"id": d.ID}).One(c)
	return c, wrap(err, "read collection %s", d.Name)
}

// AppliedMigrations are the names of the migrations that a database has seen. It can be asked before there is an app.
func AppliedMigrations(db *dbx.DB) ([]string, error) {
	var names []string
	err := db.Select("file").From(core.DefaultMigrationsTable).OrderBy("file").Column(&names)
	if err != nil && strings.Contains(err.Error(), "no such table") { // a database before its first migration
		err = nil
	}
	return names, wrap(err, "read the migrations of the database")
}

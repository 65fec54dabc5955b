// Package migrations is the schema as history: one file per step, run in file-name order, never edited once
// released. It imports nothing of ours, because history must not change when a constant is renamed.
//
// Conventions. Times are text in UTC with six digits ("2026-01-15T13:45:00.000000Z"), so that a device's
// microseconds survive and text order is time order. Dates are text, YYYY-MM-DD. Money is whole cents. A number
// that may be absent has the type "optional_number" and is NULL when absent. Protected health information has
// the type "phi" and is ciphertext on disk. Where the contract says UUID the record id is one; where it says integer
// the record id is that integer, zero-padded to fifteen digits, so that ids sort and the default id pattern holds.
package migrations

import (
	"encoding/json"
	"fmt"

	"github.com/pocketbase/pocketbase/core"
	m "github.com/pocketbase/pocketbase/migrations"
)

const (
	instantPattern = `^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}Z$`
	datePattern    = `^\d{4}-\d{2}-\d{2}$`
	uuidPattern    = `^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`
	uuidV4Pattern  = `[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`
)

// step registers one migration. Going back is a restore from backup, so there is no way down.
func step(file string, up func(app core.App) error) {
	m.Register(up, func(core.App) error { return fmt.Errorf("restore a backup to go back") }, file)
}

// table is a collection under construction; the first error stops the rest.
type table struct {
	*core.Collection
	err error
}

// newTable starts a collection that only superusers reach: all API rules stay nil.
func newTable(name string) *table { return &table{Collection: core.NewBaseCollection(name)} }

// withUUID makes the record id a UUID. Every create through PocketBase compares ids without regard to case, so the
// NOCASE index keeps creates from scanning the table.
func (t *table) withUUID() *table {
	id := t.Fields.GetByName("id").(*core.TextField)
	id.Min, id.Max, id.Pattern, id.AutogeneratePattern = 36, 36, uuidPattern, uuidV4Pattern
	t.AddIndex("idx_"+t.Name+"_id_nocase", false, "id COLLATE NOCASE", "")
	return t
}

// index adds an index named after the table and the given suffix.
func (t *table) index(suffix string, unique bool, columns, where string) *table {
	t.AddIndex("idx_"+t.Name+"_"+suffix, unique, columns, where)
	return t
}

// with adds fields.
func (t *table) with(fields ...core.Field) *table {
	t.Fields.Add(fields...)
	return t
}

// phi adds an encrypted text field. Max counts the characters of the plain text; 0 means 5000.
func (t *table) phi(name string, max int, help string) *table {
	return t.custom(map[string]any{"type": "phi", "name": name, "max": max, "purpose": t.Name + "." + name, "help": sentence(help, "Encrypted at rest.")})
}

// optional adds a number that may be absent.
func (t *table) optional(name, help string) *table {
	return t.custom(map[string]any{"type": "optional_number", "name": name, "help": help})
}

// custom adds a field of a type that the program registers.
func (t *table) custom(definition map[string]any) *table {
	raw, err := json.Marshal(definition)
	if err == nil {
		err = t.Fields.AddMarshaledJSON(raw)
	}
	if t.err == nil && err != nil {
		t.err = fmt.Errorf("field %v of %s: %w", definition["name"], t.Name, err)
	}
	return t
}

func (t *table) save(app core.App) error {
	if t.err != nil {
		return t.err
	}
	if err := app.Save(t.Collection); err != nil {
		return fmt.Errorf("collection %s: %w", t.Name, err)
	}
	return nil
}

// saveAll saves collections in order.
func saveAll(app core.App, tables ...*table) error {
	for _, t := range tables {
		if err := t.save(app); err != nil {
			return err
		}
	}
	return nil
}

// execute runs SQL that PocketBase's collections cannot express.
func execute(app core.App, statements ...string) error {
	for _, sql := range statements {
		if _, err := app.DB().NewQuery(sql).Execute(); err != nil {
			return fmt.Errorf("%.60s: %w", sql, err)
		}
	}
	return nil
}

func sentence(parts ...string) string {
	text := ""
	for _, part := range parts {
		if part != "" && text != "" {
			text += " "
		}
		text += part
	}
	return text
}

func text(name string, max int, help string) core.Field {
	return &core.TextField{Name: name, Max: max, Help: help}
}

func requiredText(name string, max int, help string) core.Field {
	return &core.TextField{Name: name, Max: max, Required: true, Help: help}
}

func instant(name, help string) core.Field {
	return &core.TextField{Name: name, Max: 27, Pattern: instantPattern, Help: sentence(help, "UTC, as 2026-01-15T13:45:00.000000Z.")}
}

func date(name, help string) core.Field {
	return &core.TextField{Name: name, Max: 10, Pattern: datePattern, Help: sentence(help, "YYYY-MM-DD.")}
}

func choice(name, help string, values ...string) core.Field {
	return &core.SelectField{Name: name, Values: values, MaxSelect: 1, Help: help}
}

func requiredChoice(name, help string, values ...string) core.Field {
	return &core.SelectField{Name: name, Values: values, MaxSelect: 1, Required: true, Help: help}
}

func integer(name, help string) core.Field {
	return &core.NumberField{Name: name, OnlyInt: true, Help: help}
}

func flag(name, help string) core.Field { return &core.BoolField{Name: name, Help: help} }

func structured(name, help string) core.Field {
	return &core.JSONField{Name: name, MaxSize: 1 << 16, Help: help}
}

// relation links to one record of another collection.
func relation(app core.App, name, collection string, required bool, help string) core.Field {
	target, err := app.FindCollectionByNameOrId(collection)
	if err != nil {
		panic(fmt.Sprintf("migrations: relation %s to %s: %v", name, collection, err)) // an error in this package, found by every test
	}
	return &core.RelationField{Name: name, CollectionId: target.Id, MaxSelect: 1, Required: required, Help: help}
}

package migrations

import (
	"fmt"

	"github.com/pocketbase/pocketbase/core"
)

// Lists and their counts find what they show by an index, whatever narrows them.
func init() {
	step("1767225790_list_indexes.go", func(app core.App) error {
		for _, index := range []struct{ table, suffix, columns, where string }{
			{"alerts", "status", "status, created_at, id", ""},
			{"alerts", "acknowledged", "acknowledged, created_at, id", ""},
			{"alerts", "type", "type, created_at, id", ""},
			{"alerts", "things", "type, status, created_at, id", "observation = ''"}, // about devices and hubs, not about a reading
			{"patients", "provider", "primary_provider, id", ""},
			{"time_entries", "started", "started_at, id", ""},
			{"audit_log", "resource", "resource_id, resource_type, id", ""}, // what is asked for by its id alone, too
			{"audit_log", "patient", "patient, id", ""},                     // SQLite takes no index of some rows for a patient it learns later
		} {
			collection, err := app.FindCollectionByNameOrId(index.table)
			if err != nil {
				return fmt.Errorf("find %s: %w", index.table, err)
			}
			name := "idx_" + index.table + "_" + index.suffix
			collection.RemoveIndex(name)
			collection.AddIndex(name, false, index.columns, index.where)
			if err := app.Save(collection); err != nil {
				return fmt.Errorf("index %s: %w", name, err)
			}
		}
		return nil
	})
}

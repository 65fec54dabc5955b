package migrations

import (
	"fmt"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// A reading that comes alone is mostly pages of indexes, so what something else serves goes:
//
//   - whether a reading is there already is seen where the readings of its patient and kind stand in order of time, instead of in a tree of its own
//     whose keys lie anywhere;
//   - the order in which deliveries were queued is that of their rows, so an index of patients alone has it, too;
//   - PocketBase looks for an id regardless of case before it creates a record; a hook validates new readings and deliveries without that.
func init() {
	step("1767225991_fewer_trees.go", func(app core.App) error {
		if err := execute(app, `CREATE UNIQUE INDEX idx_observations_patient_kind ON observations (patient, observation_type, measured_at, NULLIF(reading_key, ''))`); err != nil {
			return err
		}
		if err := dropIndexes(app, "observations", "reading_key", "patient_measured", "id_nocase"); err != nil {
			return err
		}
		if err := dropIndexes(app, "transmissions", "patient", "created", "id_nocase"); err != nil {
			return err
		}
		return execute(app, `CREATE INDEX idx_transmissions_of_patient ON transmissions (patient)`)
	})
}

// dropIndexes drops indexes of a collection by the ends of their names. Saving the collection would build all its others anew, which takes minutes
// where there are millions of rows.
func dropIndexes(app core.App, collection string, suffixes ...string) error {
	for _, suffix := range suffixes {
		name := "idx_" + collection + "_" + suffix
		if err := execute(app, "DROP INDEX "+name); err != nil {
			return err
		}
		_, err := app.DB().NewQuery(`UPDATE _collections SET indexes = (SELECT json_group_array(value) FROM json_each(indexes) WHERE instr(value, {:name}) = 0)
			WHERE name = {:collection}`).Bind(dbx.Params{"collection": collection, "name": "`" + name + "`"}).Execute()
		if err != nil {
			return fmt.Errorf("forget %s: %w", name, err)
		}
	}
	return app.ReloadCachedCollections()
}

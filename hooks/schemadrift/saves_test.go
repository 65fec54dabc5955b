package schemadrift_test

import (
	"testing"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// saves are how often the upgrade saved each of the great tables, counted while the folder was made: migrating takes long.
var saves = map[string]int{}

func countSaves(app core.App) {
	app.OnCollectionUpdateExecute(collections.Observations, collections.Alerts).BindFunc(func(e *core.CollectionEvent) error {
		before := ""
		if err := e.App.DB().NewQuery(`SELECT max(file) FROM _migrations WHERE file GLOB '1767*'`).Row(&before); err != nil {
			return err
		}
		if before >= "1767225910" {
			saves[e.Collection.Name]++
		}
		return e.Next()
	})
}

// The upgrade makes the indexes of the great tables anew once: PocketBase does so with each save of a collection whose fields change, and
// with millions of readings each time counts.
func TestGreatTablesSavedOnce(t *testing.T) {
	migrated(t)
	for _, name := range []string{collections.Observations, collections.Alerts} {
		if saves[name] != 1 {
			t.Errorf("%s is saved %d times", name, saves[name])
		}
	}
}

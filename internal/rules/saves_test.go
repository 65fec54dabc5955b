package rules_test

import (
	"testing"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/sqlite"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// The upgrade makes the indexes of the great tables anew once: PocketBase does so with each save of a collection whose fields change, and
// with millions of readings each time counts.
func TestGreatTablesSavedOnce(t *testing.T) {
	collections.UseSealer(vigiltest.Sealer())
	app := core.NewBaseApp(core.BaseAppConfig{DataDir: t.TempDir(), DBConnect: sqlite.Connect})
	if err := app.Bootstrap(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = app.ClearBootstrap() })
	saved := map[string]int{}
	app.OnCollectionUpdateExecute(collections.Observations, collections.Alerts).BindFunc(func(e *core.CollectionEvent) error {
		before := ""
		if err := e.App.DB().NewQuery(`SELECT max(file) FROM _migrations WHERE file GLOB '1767*'`).Row(&before); err != nil {
			return err
		}
		if before >= "1767225910" {
			saved[e.Collection.Name]++
		}
		return e.Next()
	})
	if err := app.RunAllMigrations(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{collections.Observations, collections.Alerts} {
		if saved[name] != 1 {
			t.Errorf("%s is saved %d times", name, saved[name])
		}
	}
}

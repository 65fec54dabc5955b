// Package vigiltest knows how to make what tests need: a fresh app with the real schema in milliseconds, people with
// tokens, and counts of every row. It knows no rule of the service, and refuses to import a door: the doors' own
// tests use it.
package vigiltest

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tests"
	"golang.org/x/crypto/bcrypt"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/sqlite"
	_ "github.com/vigilhealth/vigil/migrations"
)

// Clock is the moment at which tests happen.
var Clock = time.Date(2026, time.January, 15, 13, 45, 0, 0, time.UTC)

// Sealer is the same in every test binary: its keys are fixed.
var Sealer = sync.OnceValue(func() *phi.Sealer {
	ring, err := phi.NewKeyRing(phi.Key{ID: "test", Secret: [phi.KeySize]byte([]byte("vigiltest's key, for no real use"))})
	if err != nil {
		panic(err)
	}
	index, err := ring.OpenIndexKey(sealedIndexKey)
	if err != nil {
		panic(err)
	}
	sealer, err := phi.NewSealer(ring, index)
	if err != nil {
		panic(err)
	}
	return sealer
})

// sealedIndexKey is an index key, sealed under the key above.
const sealedIndexKey = "v1:test:of-OVKqdRMoBHFS1:ll5OmG0HuyXBk97Aj8HGbPGtcLsaJrGlIBHiLIBdVap-fTDwvfN3Y5PY5yeoQUUV"

// NewApp returns a fresh app as the migrations leave it, gone when the test ends. It fits
// tests.ApiScenario as TestAppFactory. Passwords are hashed at bcrypt's lowest cost.
func NewApp(t testing.TB) *tests.TestApp {
	t.Helper()
	files, err := template()
	if err != nil {
		t.Fatalf("build the template app: %v", err)
	}
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	app, err := tests.NewTestAppWithConfig(core.BaseAppConfig{DataDir: dir, DBConnect: connect})
	if err != nil {
		t.Fatalf("start the test app: %v", err)
	}
	t.Cleanup(func() {
		if app.IsBootstrapped() { // tests.ApiScenario cleans up by itself
			app.Cleanup()
		}
	})
	return app
}

// connect opens databases as the service does, but for waiting for the disk.
func connect(path string) (*dbx.DB, error) { return sqlite.Open(path, "OFF") }

// template holds the database files of an app after its migrations. They are made once per test binary and kept in
// memory, so that nothing is left behind on disk.
var template = sync.OnceValues(func() (map[string][]byte, error) {
	collections.UseSealer(Sealer())
	empty, err := os.MkdirTemp("", "vigiltest-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(empty) //nolint:errcheck // a left-over empty folder harms nobody
	app, err := tests.NewTestAppWithConfig(core.BaseAppConfig{DataDir: empty, DBConnect: connect})
	if err != nil {
		return nil, err
	}
	defer app.Cleanup()
	if err := errors.Join(hashCheaply(app), collections.SetPlannerStatistics(app), beginTrail(app)); err != nil {
		return nil, err
	}
	if err := app.ClearBootstrap(); err != nil { // closes the databases, which folds their journals in
		return nil, err
	}
	return readDatabases(app.DataDir())
})

// beginTrail stores the index key of all tests and begins the audit trail with it, as the service does at its first start.
func beginTrail(app core.App) error {
	_, err := app.DB().Insert("sealed_keys", dbx.Params{"name": "blind_index", "sealed": sealedIndexKey}).Execute()
	return errors.Join(err, audit.Begin(app))
}

func hashCheaply(app core.App) error {
	for _, name := range []string{collections.Users, core.CollectionNameSuperusers} {
		accounts, err := app.FindCollectionByNameOrId(name)
		if err != nil {
			return err
		}
		password, ok := accounts.Fields.GetByName(core.FieldNamePassword).(*core.PasswordField)
		if !ok {
			return fmt.Errorf("%s has no password field", name)
		}
		password.Cost = bcrypt.MinCost
		if err := app.Save(accounts); err != nil {
			return err
		}
	}
	return nil
}

func readDatabases(dir string) (map[string][]byte, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.db"))
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, path := range paths {
		if files[filepath.Base(path)], err = os.ReadFile(path); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// RowCounts counts the rows of every collection and plain table of ours, by name.
func RowCounts(t testing.TB, app core.App) map[string]int {
	t.Helper()
	var tables []string
	err := app.DB().NewQuery(`SELECT name FROM sqlite_master WHERE type = 'table'`).Column(&tables)
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, table := range tables {
		if strings.HasPrefix(table, "_") || strings.HasPrefix(table, "sqlite_") {
			continue // PocketBase's and SQLite's own
		}
		var rows int
		if err := app.DB().NewQuery(`SELECT COUNT(*) FROM "` + table + `"`).Row(&rows); err != nil {
			t.Fatal(err)
		}
		counts[table] = rows
	}
	return counts
}

// RowsAdded says by how much each table grew since before; tables that did not change are left out.
func RowsAdded(t testing.TB, app core.App, before map[string]int) map[string]int {
	t.Helper()
	added := RowCounts(t, app)
	for table := range added {
		added[table] -= before[table]
	}
	maps.DeleteFunc(added, func(_ string, n int) bool { return n == 0 })
	return added
}

package sqlite_test

import (
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/internal/sqlite"
)

// While the guard refuses, no commit changes the file, whether of a transaction or of one statement, and reads continue.
func TestGuardCommits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data.db")
	var may atomic.Bool
	may.Store(true)
	sqlite.GuardCommits(path, may.Load)
	db, err := sqlite.Open(path, "OFF")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	insert := func(tx dbx.Builder) error {
		_, err := tx.NewQuery("INSERT INTO readings VALUES (1)").Execute()
		return err
	}
	alone := func() error { return insert(db) }
	together := func() error {
		return db.Transactional(func(tx *dbx.Tx) error {
			if err := insert(tx); err != nil {
				return err
			}
			return insert(tx)
		})
	}
	if _, err := db.NewQuery("CREATE TABLE readings (value INTEGER)").Execute(); err != nil {
		t.Fatal(err)
	}
	expect := func(want int) {
		t.Helper()
		var n int
		if err := db.NewQuery("SELECT COUNT(*) FROM readings").Row(&n); err != nil || n != want {
			t.Errorf("%d rows, want %d: %v", n, want, err)
		}
	}
	for range 3 {
		may.Store(false)
		for name, write := range map[string]func() error{"statement": alone, "transaction": together} {
			if err := write(); !sqlite.IsRefusedCommit(err) || sqlite.IsStorageFailure(err) {
				t.Errorf("%s while commits are refused: %v", name, err)
			}
		}
		expect(0)
	}
	may.Store(true)
	if err := alone(); err != nil {
		t.Error(err)
	}
	if err := together(); err != nil {
		t.Error(err)
	}
	expect(3)
}

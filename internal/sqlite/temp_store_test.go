package sqlite_test

import (
	"errors"
	"testing"

	"github.com/vigilhealth/vigil/internal/sqlite"
)

// SortOnDisk stores temporary data on disk during the work and in memory afterwards, even if the work fails.
func TestSortOnDisk(t *testing.T) {
	db := open(t)
	db.DB().SetMaxOpenConns(1)
	store := func() (kept int) {
		if err := db.NewQuery("PRAGMA temp_store").Row(&kept); err != nil {
			t.Error(err)
		}
		return kept
	}
	run(t, db.DB(), "CREATE TEMP TABLE before (n)")
	for _, fails := range []error{nil, errors.New("it does not work")} {
		within := 0
		err := sqlite.SortOnDisk(db, func() error { within = store(); return fails })
		if after := store(); within != 1 || after != 2 || !errors.Is(err, fails) {
			t.Errorf("temp_store is %d within and %d after (%v)", within, after, err)
		}
	}
}

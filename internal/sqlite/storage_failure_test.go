package sqlite_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/internal/sqlite"
)

// IsStorageFailure distinguishes a full or read-only database from an invalid request.
func TestIsStorageFailure(t *testing.T) {
	file := filepath.Join(t.TempDir(), "data.db")
	db := sqlite.File(file, "busy_timeout(1000)")
	defer func() { _ = db.Close() }()
	exec := func(text string) error {
		_, err := db.NewQuery(text).Execute()
		return err
	}
	if err := exec("CREATE TABLE t (a TEXT UNIQUE); INSERT INTO t VALUES ('one'); PRAGMA max_page_count = 4"); err != nil {
		t.Fatal(err)
	}
	db.DB().SetMaxOpenConns(1) // the limit is per connection
	if err := exec("PRAGMA max_page_count = 4"); err != nil {
		t.Fatal(err)
	}
	full := exec("INSERT INTO t VALUES ('" + strings.Repeat("x", 100_000) + "')")
	closed := sqlite.File(file, "query_only(ON)")
	defer func() { _ = closed.Close() }()
	_, readonly := closed.NewQuery("INSERT INTO t VALUES ('two')").Execute()
	for name, tt := range map[string]struct {
		err  error
		want bool
	}{
		"full": {full, true}, "wrapped": {fmt.Errorf("store: %w", full), true}, "read-only": {readonly, true},
		"not unique": {exec("INSERT INTO t VALUES ('one')"), false}, "no table": {exec("INSERT INTO u VALUES (1)"), false},
		"other": {errors.New("database or disk is full"), false}, "none": {nil, false},
	} {
		if got := sqlite.IsStorageFailure(tt.err); got != tt.want || (tt.err == nil) != (name == "none") {
			t.Errorf("%s: %v for %v", name, got, tt.err)
		}
	}
}

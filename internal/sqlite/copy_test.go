package sqlite_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/internal/sqlite"
)

// Writes between two steps are not in the copy and do not restart it.
func TestCopyBesideWriter(t *testing.T) {
	db := open(t).DB()
	run(t, db, `WITH RECURSIVE series(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM series WHERE n < 30000)
		INSERT INTO numbers SELECT n, printf('%.1000c', 'x') FROM series`)
	target, rests := filepath.Join(t.TempDir(), "copy.db"), 0
	err := sqlite.Copy(t.Context(), db, target, func(context.Context) error {
		rests++
		run(t, db, "DELETE FROM numbers WHERE n = ?", rests)
		run(t, db, "INSERT INTO numbers VALUES (?, 'late')", 30_000+rests)
		return nil
	})
	if err != nil || rests < 10 || rests > 20 {
		t.Fatalf("%d rests: %v", rests, err)
	}
	copied, err := sqlite.Open(target, "OFF")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = copied.Close() }()
	var rows, late int
	var sound string
	err = copied.NewQuery("SELECT COUNT(*), SUM(word = 'late'), (SELECT integrity_check FROM pragma_integrity_check) FROM numbers").Row(&rows, &late, &sound)
	if err != nil || rows != 30_000 || late != 0 || sound != "ok" {
		t.Errorf("%d rows, %d of them late, %s: %v", rows, late, sound, err)
	}
	run(t, db, "INSERT INTO numbers VALUES (0, 'after')") // the connection is free again
}

func TestCanceledCopy(t *testing.T) {
	db := open(t).DB()
	run(t, db, `WITH RECURSIVE series(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM series WHERE n < 10000)
		INSERT INTO numbers SELECT n, printf('%.1000c', 'x') FROM series`)
	canceled := errors.New("canceled")
	if err := sqlite.Copy(t.Context(), db, filepath.Join(t.TempDir(), "copy.db"), func(context.Context) error { return canceled }); !errors.Is(err, canceled) {
		t.Errorf("%v", err)
	}
	for range 20 { // every connection is usable: none is in the read transaction of the copy
		tx, err := db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		run(t, tx, "INSERT INTO numbers (word) VALUES ('after')")
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	if err := sqlite.Copy(t.Context(), db, filepath.Join(t.TempDir(), "no", "such", "folder"), nil); err == nil || strings.Contains(err.Error(), "transaction") {
		t.Errorf("copy to a missing folder: %v", err)
	}
}

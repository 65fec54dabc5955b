package sqlite_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/internal/sqlite"
)

// damageable returns a checkpointed database with a table, an index and free pages, and its path.
func damageable(t *testing.T) (db *dbx.DB, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "data.db")
	db, err := sqlite.Open(path, "OFF")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	for _, statement := range []string{
		"CREATE TABLE numbers (n INTEGER PRIMARY KEY, word TEXT)", "CREATE INDEX words ON numbers (word)", "CREATE TABLE dropped (value BLOB)",
		"WITH RECURSIVE series(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM series WHERE n < 20000) INSERT INTO numbers SELECT n, printf('%06d', n) FROM series",
		"INSERT INTO dropped VALUES (zeroblob(100000))", "DROP TABLE dropped", "PRAGMA wal_checkpoint(TRUNCATE)",
	} {
		if _, err := db.NewQuery(statement).Execute(); err != nil {
			t.Fatal(err)
		}
	}
	return db, path
}

// pageOf returns the number of the root page of a table or index, or the first free page for "".
func pageOf(t *testing.T, db *dbx.DB, path, name string) (page int64) {
	t.Helper()
	if name != "" {
		if err := db.NewQuery("SELECT rootpage FROM sqlite_master WHERE name = {:name}").Bind(dbx.Params{"name": name}).Row(&page); err != nil {
			t.Fatal(err)
		}
		return page
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range content[32:36] {
		page = page<<8 + int64(one)
	}
	return page
}

// overwrite replaces the beginning of a page and returns a function that puts it back.
func overwrite(t *testing.T, path string, page int64) (repair func()) {
	t.Helper()
	change := func(with []byte) (before []byte) {
		file, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = file.Close() }()
		before = make([]byte, len(with))
		if _, err := file.ReadAt(before, (page-1)*2048); err != nil {
			t.Fatal(err)
		}
		if _, err := file.WriteAt(with, (page-1)*2048); err != nil {
			t.Fatal(err)
		}
		return before
	}
	before := change([]byte(strings.Repeat("\x77", 100)))
	return func() { change(before) }
}

// A check finds damage of every kind of page, and ends the finding once the page is sound again. A check that is interrupted changes nothing.
func TestInspectorChecksPages(t *testing.T) {
	for _, object := range []string{"numbers", "words", ""} {
		t.Run("damaged "+object, func(t *testing.T) {
			db, path := damageable(t)
			var output strings.Builder
			log, inspector := slog.New(slog.NewTextHandler(&output, nil)), sqlite.NewInspector(path)
			check := func(ctx context.Context, want bool) {
				t.Helper()
				if inspector.Check(ctx, log); inspector.Damaged() != want {
					t.Errorf("damaged: %v, want %v", !want, want)
				}
			}
			interrupted, interrupt := context.WithCancel(t.Context())
			interrupt()
			check(t.Context(), false)
			repair := overwrite(t, path, pageOf(t, db, path, object))
			check(interrupted, false)
			check(t.Context(), true)
			check(t.Context(), true)
			if said := output.String(); strings.Count(said, "level=ERROR") != 1 || !strings.Contains(said, path) || !strings.Contains(said, "VigilDatabaseDamaged") {
				t.Errorf("logged %s", said)
			}
			repair()
			check(interrupted, true)
			check(t.Context(), false)
		})
	}
}

// A statement that fails because of damage is a finding at once, on every way to run one; a check of all pages ends it.
func TestFailedStatementShowsDamage(t *testing.T) {
	for name, run := range map[string]func(db *dbx.DB) error{
		"rows":       func(db *dbx.DB) error { return db.NewQuery("SELECT word FROM numbers").Column(&[]string{}) },
		"row":        func(db *dbx.DB) error { return db.NewQuery("SELECT word FROM numbers WHERE n = 7").Row(new(string)) },
		"write":      func(db *dbx.DB) error { _, err := db.NewQuery("DELETE FROM numbers WHERE n > 9").Execute(); return err },
		"two writes": func(db *dbx.DB) error { _, err := db.DB().Exec("SELECT 1; DELETE FROM numbers"); return err },
		"borrowed": func(db *dbx.DB) error {
			tx, err := db.DB().Begin()
			if err != nil {
				return err
			}
			defer func() { _ = tx.Rollback() }()
			var exec borrower
			if _, err := tx.Exec("", &exec); err != nil {
				return err
			}
			_, err = exec.run("UPDATE numbers SET word = ''", nil, nil)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			db, path := damageable(t)
			page := pageOf(t, db, path, "numbers")
			if err := db.Close(); err != nil { // no cached page
				t.Fatal(err)
			}
			repair := overwrite(t, path, page)
			fresh, err := sqlite.Open(path, "OFF")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = fresh.Close() }()
			inspector := sqlite.NewInspector(path)
			if inspector.Damaged() {
				t.Error("damaged before a statement")
			}
			if err := fresh.NewQuery("SELECT nothing FROM numbers").Row(new(int)); err == nil || inspector.Damaged() {
				t.Errorf("another error: %v, damaged: %v", err, inspector.Damaged())
			}
			if err := run(fresh); err == nil || !inspector.Damaged() {
				t.Fatalf("%v, damaged: %v", err, inspector.Damaged())
			}
			repair()
			if inspector.Check(t.Context(), slog.New(slog.DiscardHandler)); inspector.Damaged() {
				t.Error("damaged after a check without a finding")
			}
		})
	}
}

// After a sign of damage an index with another value than its table is found, which the regular check does not look for.
func TestSuspicionChecksIndexes(t *testing.T) {
	_, path := damageable(t)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const indexLeaf = 10 // the first byte of such a page
	for page := 0; page < len(content); page += 2048 {
		if content[page] == indexLeaf {
			copy(content[page:page+2048], bytes.ReplaceAll(content[page:page+2048], []byte("020000"), []byte("020001")))
		}
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	inspector, log := sqlite.NewInspector(path), slog.New(slog.DiscardHandler)
	if inspector.Check(t.Context(), log); inspector.Damaged() {
		t.Fatal("the regular check found it")
	}
	inspector.Suspect()
	if inspector.Check(t.Context(), log); !inspector.Damaged() {
		t.Error("the thorough check did not find it")
	}
}

// A file that is no database is damaged.
func TestInspectorOfAnotherFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data.db")
	if err := os.WriteFile(path, []byte(fmt.Sprintf("%10000s", "no database")), 0o600); err != nil {
		t.Fatal(err)
	}
	inspector := sqlite.NewInspector(path)
	if inspector.Check(t.Context(), slog.New(slog.DiscardHandler)); !inspector.Damaged() {
		t.Error("not damaged")
	}
}

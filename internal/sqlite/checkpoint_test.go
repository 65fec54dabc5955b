package sqlite_test

import (
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/internal/sqlite"
)

// logged is how long the log is, in pages, and how many of them are in the database.
func logged(t *testing.T, db *dbx.DB) (pages, moved int) {
	t.Helper()
	var busy int
	if err := db.NewQuery("PRAGMA wal_checkpoint(NOOP)").Row(&busy, &pages, &moved); err != nil {
		t.Fatal(err)
	}
	return pages, moved
}

// fill commits a number of pages, each by itself.
func fill(t *testing.T, db *dbx.DB, pages int) {
	t.Helper()
	for range pages {
		if _, err := db.NewQuery("INSERT INTO readings (value) VALUES (zeroblob(3900))").Execute(); err != nil {
			t.Fatal(err)
		}
	}
}

func checkpointed(t *testing.T) (db *dbx.DB, round func()) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "data.db")
	db, err := sqlite.Open(path, "OFF")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.DB().SetMaxOpenConns(2)
	if _, err := db.NewQuery("CREATE TABLE readings (value BLOB)").Execute(); err != nil {
		t.Fatal(err)
	}
	checkpointer := sqlite.NewCheckpointer(path, db)
	t.Cleanup(func() { _ = checkpointer.Close() })
	return db, func() {
		t.Helper()
		if err := checkpointer.Round(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLogIsMovedAndBegunAnew(t *testing.T) {
	db, round := checkpointed(t)
	fill(t, db, 500)
	round()
	if pages, moved := logged(t, db); moved != 0 {
		t.Errorf("a log of %d pages was moved: %d", pages, moved)
	}
	fill(t, db, 2000)
	round()
	pages, moved := logged(t, db)
	if pages < sqlite.LongLog || moved != pages {
		t.Fatalf("%d of %d pages were moved", moved, pages)
	}
	fill(t, db, 1)
	if pages, _ := logged(t, db); pages > 10 {
		t.Errorf("the log goes on at %d pages", pages)
	}
}

// Who reads for long holds the log up, and nobody who writes pays for it once they leave.
func TestNoCommitMovesWhatPiledUp(t *testing.T) {
	db, round := checkpointed(t)
	fill(t, db, 10)
	reader, err := db.DB().BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	var rows int
	if err := reader.QueryRow("SELECT count(*) FROM readings").Scan(&rows); err != nil || rows != 10 {
		t.Fatal(rows, err)
	}
	fill(t, db, 4000)
	round()
	pages, moved := logged(t, db)
	if pages < 4000 || moved > 100 {
		t.Fatalf("%d of %d pages were moved while somebody read what was before", moved, pages)
	}
	if err := reader.QueryRow("SELECT count(*) FROM readings").Scan(&rows); err != nil || rows != 10 {
		t.Errorf("the reader sees %d rows (%v)", rows, err)
	}
	if err := reader.Rollback(); err != nil {
		t.Fatal(err)
	}
	fill(t, db, 1)
	if _, after := logged(t, db); after != moved {
		t.Errorf("a commit moved %d pages", after-moved)
	}
	round()
	if pages, moved := logged(t, db); moved != pages {
		t.Errorf("%d of %d pages were moved", moved, pages)
	}
}

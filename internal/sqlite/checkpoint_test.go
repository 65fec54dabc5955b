package sqlite_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/internal/sqlite"
)

// logged returns the length of the log in pages and how many of them are in the database.
func logged(t *testing.T, db *dbx.DB) (pages, moved int) {
	t.Helper()
	var busy int
	if err := db.NewQuery("PRAGMA wal_checkpoint(NOOP)").Row(&busy, &pages, &moved); err != nil {
		t.Fatal(err)
	}
	return pages, moved
}

// fill commits a number of pages, each in its own transaction.
func fill(t *testing.T, db *dbx.DB, pages int) {
	t.Helper()
	for range pages {
		if _, err := db.NewQuery("INSERT INTO readings (value) VALUES (zeroblob(1900))").Execute(); err != nil {
			t.Fatal(err)
		}
	}
}

// longLog is the number of pages at which these tests checkpoint a log.
const longLog = 2000

func checkpointed(t *testing.T) (db *dbx.DB, round func()) {
	t.Helper()
	db, path := opened(t)
	checkpointer := shortened(t, path, db)
	return db, func() {
		t.Helper()
		if err := checkpointer.Round(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func shortened(t *testing.T, path string, writer dbx.Builder) *sqlite.Checkpointer {
	t.Helper()
	checkpointer := sqlite.NewCheckpointer(path, writer)
	checkpointer.SetLengths(longLog, 50, 10*longLog)
	t.Cleanup(func() { _ = checkpointer.Close() })
	return checkpointer
}

func opened(t *testing.T) (db *dbx.DB, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "data.db")
	db, err := sqlite.Open(path, "OFF")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.DB().SetMaxOpenConns(2)
	if _, err := db.NewQuery("CREATE TABLE readings (value BLOB)").Execute(); err != nil {
		t.Fatal(err)
	}
	return db, path
}

// reads starts a read transaction, which prevents the checkpoint of all later pages.
func reads(t *testing.T, db *dbx.DB) *sql.Tx {
	t.Helper()
	reader, err := db.DB().BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := reader.QueryRow("SELECT count(*) FROM readings").Scan(new(int)); err != nil {
		t.Fatal(err)
	}
	return reader
}

func TestLogRestartsAfterCheckpoint(t *testing.T) {
	db, round := checkpointed(t)
	fill(t, db, 500)
	round()
	if pages, moved := logged(t, db); moved != 0 {
		t.Errorf("%d pages of log: %d were moved", pages, moved)
	}
	fill(t, db, 2000)
	round()
	pages, moved := logged(t, db)
	if pages < longLog || moved != pages {
		t.Fatalf("%d of %d pages were moved", moved, pages)
	}
	fill(t, db, 1)
	if pages, _ := logged(t, db); pages > 10 {
		t.Errorf("the log did not restart: %d pages", pages)
	}
}

// A long read delays the checkpoint, and no commit has to move the accumulated pages after it.
func TestNoCommitMovesAccumulatedPages(t *testing.T) {
	db, round := checkpointed(t)
	fill(t, db, 10)
	reader := reads(t, db)
	fill(t, db, 4000)
	round()
	pages, moved := logged(t, db)
	if pages < 4000 || moved > 100 {
		t.Fatalf("%d of %d pages were moved during a read of an older snapshot", moved, pages)
	}
	var rows int
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

// The same holds for a log so long that SQLite's own checkpoint would start.
func TestNoCommitMovesVeryLongLog(t *testing.T) {
	db, path := opened(t)
	beside := sqlite.File(path, "busy_timeout(10000)")
	t.Cleanup(func() { _ = beside.Close() })
	db.DB().SetMaxOpenConns(1)
	if _, err := db.NewQuery("PRAGMA wal_autocheckpoint(7000)").Execute(); err != nil {
		t.Fatal(err)
	}
	checkpointer := shortened(t, path, db)
	checkpointer.SetLengths(longLog, 50, 3*longLog)
	fill(t, db, 10)
	reader := reads(t, beside)
	fill(t, db, 6500)
	if err := checkpointer.Round(t.Context()); err != nil {
		t.Fatal(err)
	}
	fill(t, db, 1500)
	before, moved := logged(t, db)
	if err := reader.Rollback(); err != nil {
		t.Fatal(err)
	}
	fill(t, db, 5)
	if pages, after := logged(t, db); after != moved || before < 8000 || pages < before {
		t.Errorf("commits moved %d of %d pages", after-moved, pages)
	}
	if err := checkpointer.Round(t.Context()); err != nil {
		t.Fatal(err)
	}
	if pages, moved := logged(t, db); moved != pages {
		t.Errorf("%d of %d pages were moved", moved, pages)
	}
}

// While another connection runs a checkpoint, the checkpointer does nothing, not even on the writing connection.
func TestConcurrentCheckpointIsLeftAlone(t *testing.T) {
	db, path := opened(t)
	beside := sqlite.File(path, "busy_timeout(60000)")
	t.Cleanup(func() { _ = beside.Close() })
	reader := reads(t, beside)
	fill(t, db, 3100)
	writing, err := db.DB().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := writing.Exec("INSERT INTO readings (value) VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { // waits for the writer, once no check below blocks it
		var err error
		for pages := -1; pages < 0 && err == nil; {
			err = beside.DB().QueryRow("PRAGMA wal_checkpoint(FULL)").Scan(new(int), &pages, new(int))
		}
		done <- err
	}()
	for busy := 0; busy == 0; time.Sleep(time.Millisecond) {
		if err := db.DB().QueryRow("PRAGMA wal_checkpoint(PASSIVE)").Scan(&busy, new(int), new(int)); err != nil {
			t.Fatal(err)
		}
	}
	writer := sqlite.File(path, "busy_timeout(0)")
	t.Cleanup(func() { _ = writer.Close() })
	writer.QueryLogFunc = func(_ context.Context, _ time.Duration, statement string, _ *sql.Rows, _ error) {
		t.Errorf("the writing connection ran %s", statement)
	}
	checkpointer := shortened(t, path, writer)
	if err := checkpointer.Round(t.Context()); err != nil {
		t.Error(err)
	}
	if err := errors.Join(writing.Rollback(), reader.Rollback(), <-done); err != nil {
		t.Error(err)
	}
}

// A large transaction that commits while the checkpointer waits for the writing connection is checkpointed concurrently, in the next round.
func TestLargeTransactionIsCheckpointedConcurrently(t *testing.T) {
	db, round := checkpointed(t)
	fill(t, db, 3100)
	before, _ := logged(t, db)
	db.DB().SetMaxOpenConns(1)
	writing, err := db.DB().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 4000 {
		if _, err := writing.Exec("INSERT INTO readings (value) VALUES (zeroblob(1900))"); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		round()
	}()
	for db.DB().Stats().WaitCount == 0 {
		time.Sleep(time.Millisecond)
	}
	if err := writing.Commit(); err != nil {
		t.Fatal(err)
	}
	<-done
	if pages, moved := logged(t, db); moved > before {
		t.Errorf("the writing connection moved %d of %d pages", moved, pages)
	}
	round()
	if pages, moved := logged(t, db); moved != pages {
		t.Errorf("%d of %d pages were moved", moved, pages)
	}
}

// Under heavy writes the log grows up to its limit without delaying writers. It restarts when there are fewer writes.
func TestLogGrowsUnderHeavyWrites(t *testing.T) {
	db, path := opened(t)
	writer := sqlite.File(path, "busy_timeout(0)")
	t.Cleanup(func() { _ = writer.Close() })
	statements := 0
	writer.QueryLogFunc = func(context.Context, time.Duration, string, *sql.Rows, error) { statements++ }
	checkpointer := shortened(t, path, writer)
	var reader *sql.Tx // prevents the checkpoint of later pages
	checkpointer.Aside().QueryLogFunc = func(_ context.Context, _ time.Duration, statement string, _ *sql.Rows, _ error) {
		if strings.Contains(statement, "PASSIVE") && reader != nil {
			_ = reader.Rollback() // read-only
			reader = nil
		}
	}
	round := func(rows, concurrent int) (pages, moved int) {
		t.Helper()
		fill(t, db, rows)
		if concurrent > 0 {
			reader = reads(t, db)
			fill(t, db, concurrent)
		}
		if err := checkpointer.Round(t.Context()); err != nil {
			t.Fatal(err)
		}
		return logged(t, db)
	}
	for i := range 2 {
		if pages, moved := round(longLog, 100); pages < (i+1)*longLog || pages-moved < 100 || statements > 0 {
			t.Errorf("%d of %d pages were moved; %d statements on the writing connection", moved, pages, statements)
		}
	}
	if pages, moved := round(2*longLog, 100); moved != pages || pages < 10*longLog || statements != 2 {
		t.Errorf("very long log: %d of %d pages were moved; %d statements on the writing connection", moved, pages, statements)
	}
	if pages, moved := round(longLog, 100); pages > 4*longLog || pages-moved < 100 || statements != 2 {
		t.Errorf("after the log restarted: %d of %d pages were moved; %d statements on the writing connection", moved, pages, statements)
	}
	for i, then := range []int{2, 4} { // fewer pages than the threshold since the last round, then none
		if pages, moved := round(100*(1-i), 0); statements != then || i == 1 && moved != pages {
			t.Errorf("fewer writes: %d of %d pages were moved; %d statements on the writing connection", moved, pages, statements)
		}
	}
}

// A failed checkpoint is retried after a delay and logged once.
func TestCheckpointerRetriesFailures(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data.db")
	if err := os.WriteFile(path, bytes.Repeat([]byte("no database "), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		var output strings.Builder
		tries := 0
		checkpointer := sqlite.NewCheckpointer(path, nil)
		checkpointer.Aside().QueryLogFunc = func(context.Context, time.Duration, string, *sql.Rows, error) { tries++ }
		checkpointer.Run(ctx, slog.New(slog.NewTextHandler(&output, nil)))
		if tries < 5 || tries > 20 {
			t.Errorf("%d attempts in a minute", tries)
		}
		if lines := strings.Count(output.String(), "\n"); lines != 1 {
			t.Errorf("logged %s", output.String())
		}
	})
}

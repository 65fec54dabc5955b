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
		if _, err := db.NewQuery("INSERT INTO readings (value) VALUES (zeroblob(1900))").Execute(); err != nil {
			t.Fatal(err)
		}
	}
}

// longLog is from how many pages on a log is moved in these tests.
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
	checkpointer.Shorten(longLog, 50, 10*longLog)
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

// reads begins to read what is there, which holds up the moving of everything that comes after.
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
	if pages < longLog || moved != pages {
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
	reader := reads(t, db)
	fill(t, db, 4000)
	round()
	pages, moved := logged(t, db)
	if pages < 4000 || moved > 100 {
		t.Fatalf("%d of %d pages were moved while somebody read what was before", moved, pages)
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

// Nor does a commit of a log that grew so long that SQLite would have it moved there.
func TestNoCommitMovesAVeryLongLog(t *testing.T) {
	db, path := opened(t)
	beside := sqlite.File(path, "busy_timeout(10000)")
	t.Cleanup(func() { _ = beside.Close() })
	db.DB().SetMaxOpenConns(1)
	if _, err := db.NewQuery("PRAGMA wal_autocheckpoint(7000)").Execute(); err != nil {
		t.Fatal(err)
	}
	checkpointer := shortened(t, path, db)
	checkpointer.Shorten(longLog, 50, 3*longLog)
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

// Who moves the log already is left to it: once they are done, the writer's place must not be taken for what is left.
func TestLogThatAnotherMovesIsLeftToThem(t *testing.T) {
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
	go func() { // it waits for whoever writes, once none of the looks below is in its way
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
	writer.QueryLogFunc = func(_ context.Context, _ time.Duration, asked string, _ *sql.Rows, _ error) {
		t.Errorf("the writer is asked for %s", asked)
	}
	checkpointer := shortened(t, path, writer)
	if err := checkpointer.Round(t.Context()); err != nil {
		t.Error(err)
	}
	if err := errors.Join(writing.Rollback(), reader.Rollback(), <-done); err != nil {
		t.Error(err)
	}
}

// While the writer's place is waited for, a large transaction may be committed: it is moved beside the writer, as all else.
func TestLargeTransactionIsNotMovedByTheWriter(t *testing.T) {
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
		t.Errorf("the writer moved %d of %d pages", moved, pages)
	}
	round()
	if pages, moved := logged(t, db); moved != pages {
		t.Errorf("%d of %d pages were moved", moved, pages)
	}
}

// While much comes in as fast as it is moved, nobody waits: the log grows, until it is very long. Once less comes in it is begun anew.
func TestLogGrowsWhileMuchComesIn(t *testing.T) {
	db, path := opened(t)
	writer := sqlite.File(path, "busy_timeout(0)")
	t.Cleanup(func() { _ = writer.Close() })
	asked := 0
	writer.QueryLogFunc = func(context.Context, time.Duration, string, *sql.Rows, error) { asked++ }
	checkpointer := shortened(t, path, writer)
	var reader *sql.Tx // holds up the moving of what comes in after it
	checkpointer.Aside().QueryLogFunc = func(_ context.Context, _ time.Duration, asked string, _ *sql.Rows, _ error) {
		if strings.Contains(asked, "PASSIVE") && reader != nil {
			_ = reader.Rollback() // it only read
			reader = nil
		}
	}
	round := func(rows, meanwhile int) (pages, moved int) {
		t.Helper()
		fill(t, db, rows)
		if meanwhile > 0 {
			reader = reads(t, db)
			fill(t, db, meanwhile)
		}
		if err := checkpointer.Round(t.Context()); err != nil {
			t.Fatal(err)
		}
		return logged(t, db)
	}
	for i := range 2 {
		if pages, moved := round(longLog, 100); pages < (i+1)*longLog || pages-moved < 100 || asked > 0 {
			t.Errorf("%d of %d pages were moved; the writer was asked %d times", moved, pages, asked)
		}
	}
	if pages, moved := round(2*longLog, 100); moved != pages || pages < 10*longLog || asked != 2 {
		t.Errorf("a very long log: %d of %d pages were moved; the writer was asked %d times", moved, pages, asked)
	}
	if pages, moved := round(longLog, 100); pages > 4*longLog || pages-moved < 100 || asked != 2 {
		t.Errorf("a log that was begun anew: %d of %d pages were moved; the writer was asked %d times", moved, pages, asked)
	}
	for i, then := range []int{2, 4} { // less than a log's length came in since the last look, then nothing
		if pages, moved := round(100*(1-i), 0); asked != then || i == 1 && moved != pages {
			t.Errorf("less comes in: %d of %d pages were moved; the writer was asked %d times", moved, pages, asked)
		}
	}
}

// What fails is tried again at leisure, and said once.
func TestCheckpointerThatFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data.db")
	if err := os.WriteFile(path, bytes.Repeat([]byte("no database "), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		var said strings.Builder
		tries := 0
		checkpointer := sqlite.NewCheckpointer(path, nil)
		checkpointer.Aside().QueryLogFunc = func(context.Context, time.Duration, string, *sql.Rows, error) { tries++ }
		checkpointer.Run(ctx, slog.New(slog.NewTextHandler(&said, nil)))
		if tries < 5 || tries > 20 {
			t.Errorf("it was tried %d times in a minute", tries)
		}
		if lines := strings.Count(said.String(), "\n"); lines != 1 {
			t.Errorf("said was %s", said.String())
		}
	})
}

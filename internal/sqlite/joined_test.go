//go:build sqlite_in_c && cgo && linux

package sqlite_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	_ "github.com/mattn/go-sqlite3" // its connections write the log without joining

	"github.com/vigilhealth/vigil/internal/sqlite"
)

// writer is one connection that writes.
type writer struct {
	*sql.Conn
	t    testing.TB
	path string
}

// Exec lets [run] use a writer.
func (w writer) Exec(text string, args ...any) (sql.Result, error) {
	return w.ExecContext(context.Background(), text, args...)
}

func (w writer) number(text string) (n int) {
	w.t.Helper()
	if err := w.QueryRowContext(context.Background(), text).Scan(&n); err != nil {
		w.t.Errorf("%s: %v", text, err)
	}
	return n
}

// connected opens a database with joined writes, like the service, or with SQLite's own, and with a page cache of 10 pages.
func connected(t testing.TB, path, synchronous string, joined bool) writer {
	t.Helper()
	opened, err := sql.Open("sqlite3", path)
	if joined {
		served, failed := sqlite.Open(path, synchronous)
		opened, err = served.DB(), failed
	}
	if err != nil {
		t.Fatal(err)
	}
	conn, err := opened.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = conn.Close(), opened.Close() })
	w := writer{conn, t, path}
	for _, pragma := range []string{"busy_timeout(10000)", "page_size(2048)", "journal_mode(WAL)", "wal_autocheckpoint(0)", "cache_size(10)", "secure_delete(ON)"} {
		run(t, w, "PRAGMA "+pragma)
	}
	if !joined {
		run(t, w, "PRAGMA synchronous("+synchronous+")")
	}
	return w
}

// pair returns two new databases with the same table, one with joined writes and one without.
func pair(t *testing.T, synchronous string) (joined, plain writer) {
	t.Helper()
	joined = connected(t, filepath.Join(t.TempDir(), "data.db"), synchronous, true)
	plain = connected(t, filepath.Join(t.TempDir(), "data.db"), synchronous, false)
	for _, w := range []writer{joined, plain} {
		run(t, w, table)
		run(t, w, "INSERT INTO readings VALUES (-1, '')") // writes are joined from the second commit on
		run(t, w, "DELETE FROM readings")
	}
	return joined, plain
}

const (
	table = "CREATE TABLE readings (n INTEGER PRIMARY KEY, value BLOB)"
	sums  = "SELECT COUNT(*) + IFNULL(SUM(n * LENGTH(value)), 0) FROM readings"
)

// fill inserts rows of 3,900 bytes.
func (w writer) fill(first, rows int) {
	w.t.Helper()
	for n := range rows {
		run(w.t, w, "INSERT INTO readings VALUES (?, ?)", first+n, bytes.Repeat([]byte{byte(n)}, 3900))
	}
}

// frames returns the valid frames of a log without salts and checksums.
func (w writer) frames() []string {
	w.t.Helper()
	log, err := os.ReadFile(w.path + "-wal")
	if err != nil {
		w.t.Fatal(err)
	}
	var busy, count, moved int
	if err := w.QueryRowContext(w.t.Context(), "PRAGMA wal_checkpoint(NOOP)").Scan(&busy, &count, &moved); err != nil {
		w.t.Fatal(err)
	}
	const header, frame, page = 32, 24, 2048
	found := []string{string(log[:12])}
	for n := range count {
		at := log[header+n*(frame+page):]
		found = append(found, string(at[:8])+string(at[frame:frame+page]))
	}
	return found
}

// wantWhole checks a copy of the database and its log without the shared memory, as after a power loss.
func (w writer) wantWhole(rows int) {
	w.t.Helper()
	path := filepath.Join(w.t.TempDir(), "copy.db")
	for _, ending := range []string{"", "-wal"} {
		content, err := os.ReadFile(w.path + ending)
		if err != nil {
			w.t.Fatal(err)
		}
		if err := os.WriteFile(path+ending, content, 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
	wantWhole(w.t, path, rows)
}

func wantWhole(t testing.TB, path string, rows int) {
	t.Helper()
	copied := connected(t, path, "FULL", false)
	var result string
	if err := copied.QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&result); err != nil || result != "ok" {
		t.Errorf("the database is %q (%v)", result, err)
	}
	if is := copied.number("SELECT COUNT(*) FROM readings"); is != rows {
		t.Errorf("%d rows, want %d", is, rows)
	}
}

// The log equals SQLite's own for random writes, rollbacks and reads, also beyond the size of the page cache and of the buffer.
func TestJoinedLogEqualsSQLite(t *testing.T) {
	joined, plain := pair(t, "FULL")
	random := rand.New(rand.NewPCG(7, 11))
	under, last := 0, 0 // savepoints; the last row
	step := func() (text string, args []any) {
		last++
		value := bytes.Repeat([]byte{byte(last)}, random.IntN(9000))
		switch kind := random.IntN(40); {
		case kind == 0 && under == 0, kind < 3 && under > 0 && under < 4:
			under++
			return fmt.Sprint("SAVEPOINT s", under), nil
		case kind < 6 && under > 0:
			return fmt.Sprint("ROLLBACK TO s", 1+random.IntN(under)), nil
		case kind < 7 && under > 0:
			under = 0
			return "RELEASE s1", nil
		case kind < 8 && under > 0:
			under = 0
			return "ROLLBACK", nil
		case kind < 20:
			return "UPDATE readings SET value = ? WHERE n = ?", []any{value, random.IntN(last)}
		case kind < 24:
			return "DELETE FROM readings WHERE n = ?", []any{random.IntN(last)}
		}
		return "INSERT OR REPLACE INTO readings VALUES (?, ?)", []any{last, value}
	}
	for range 1500 {
		text, args := step()
		_, first := joined.Exec(text, args...)
		_, second := plain.Exec(text, args...)
		if fmt.Sprint(first) != fmt.Sprint(second) {
			t.Fatalf("%s: %v, and with SQLite %v", text, first, second)
		}
		if last%7 == 0 {
			if first, second := joined.number(sums), plain.number(sums); first != second {
				t.Fatalf("%s: sums of %d, and with SQLite %d", text, first, second)
			}
		}
	}
	for _, w := range []writer{joined, plain} {
		if under > 0 {
			run(t, w, "COMMIT")
		}
	}
	ours, theirs := joined.frames(), plain.frames()
	if len(ours) != len(theirs) || len(ours) < 500 {
		t.Fatalf("%d frames, and with SQLite %d", len(ours), len(theirs))
	}
	for n := range ours {
		if ours[n] != theirs[n] {
			t.Fatalf("frame %d of %d differs from SQLite's", n, len(ours))
		}
	}
	joined.wantWhole(joined.number("SELECT COUNT(*) FROM readings"))
}

// Writes are visible to all connections after the commit, and before it only to the writer, even if they are already in the log.
func TestJoinedVisibility(t *testing.T) {
	for _, synchronous := range []string{"FULL", "NORMAL", "OFF"} {
		joined, _ := pair(t, synchronous)
		others := []writer{connected(t, joined.path, "FULL", false), connected(t, joined.path, "FULL", true)}
		wants := func(rows, own int) {
			t.Helper()
			for _, w := range append(others, joined) {
				want := rows
				if w == joined {
					want = own
				}
				if is := w.number("SELECT COUNT(*) FROM readings WHERE LENGTH(value) > 0"); is != want {
					t.Errorf("%s: %d rows, want %d", synchronous, is, want)
				}
			}
		}
		rows := 0
		for round, size := range []int{1, 2, 30, 200, 3} {
			run(t, joined, "BEGIN IMMEDIATE")
			joined.fill(1000*round, size)
			wants(rows, rows+size)
			run(t, joined, "SAVEPOINT more")
			joined.fill(1000*round+500, 25)
			run(t, joined, "ROLLBACK TO more")
			wants(rows, rows+size)
			if round == 3 {
				run(t, joined, "ROLLBACK")
				size = 0
			} else {
				run(t, joined, "COMMIT")
			}
			rows += size
			wants(rows, rows)
		}
		joined.wantWhole(rows)
	}
}

// Writes that were rolled back never overwrite later commits of another connection in the log.
func TestJoinedBufferEndsWithLock(t *testing.T) {
	joined, _ := pair(t, "FULL")
	other := connected(t, joined.path, "FULL", false)
	for round, size := range []int{15, 40, 150} { // less than one buffer, more than one, several
		run(t, joined, "BEGIN IMMEDIATE")
		joined.fill(1000*round, size)
		run(t, joined, "ROLLBACK")
		other.fill(1000*round, 10)
		if is := joined.number("SELECT COUNT(*) FROM readings"); is != 10*(2*round+1) {
			t.Errorf("%d rows in round %d", is, round)
		}
		joined.fill(1000*round+500, 10)
		joined.wantWhole(10 * (2*round + 2))
	}
}

// A log restarts after a checkpoint, and is truncated to its limit.
func TestJoinedLogRestarts(t *testing.T) {
	joined, _ := pair(t, "FULL")
	run(t, joined, "PRAGMA journal_size_limit(100000)")
	for round := range 3 {
		joined.fill(1000*round, 100)
		run(t, joined, "PRAGMA wal_checkpoint(PASSIVE)")
		joined.fill(1000*round+500, 1)
		if log, err := os.Stat(joined.path + "-wal"); err != nil || log.Size() != 100_000 {
			t.Errorf("the log has %d bytes (%v)", log.Size(), err)
		}
		joined.wantWhole(101 * (round + 1))
	}
	run(t, joined, "PRAGMA wal_checkpoint(TRUNCATE)")
	joined.wantWhole(303)
	run(t, joined, "PRAGMA journal_mode(DELETE)") // without a log
	joined.fill(5000, 20)
	run(t, joined, "PRAGMA journal_mode(WAL)")
	joined.fill(6000, 20)
	joined.wantWhole(343)
}

// Writes are joined only if commits wait for the disk, and from the second commit on: a few write calls instead of two for each page.
func TestJoinedWrites(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for _, tt := range []struct {
		synchronous string
		later       []string
		fewer       bool
	}{
		{"FULL", nil, true},
		{"NORMAL", nil, false},
		{"OFF", nil, false},
		{"NORMAL", []string{"PRAGMA synchronous = extra"}, true},
		{"FULL", []string{"PRAGMA main.synchronous = 1"}, false},
		{"FULL", []string{"PRAGMA synchronous"}, true},
		{"NORMAL", []string{"BEGIN", "PRAGMA synchronous = FULL", "COMMIT"}, false}, // rejected in a transaction
		{"FULL", []string{"BEGIN IMMEDIATE", "PRAGMA synchronous = OFF", "COMMIT"}, true},
	} {
		joined, plain := pair(t, tt.synchronous)
		writes := func(w writer) (each []int) {
			run(t, w, "PRAGMA cache_size(-8000)")
			for _, text := range tt.later {
				_, _ = w.Exec(text)
			}
			for round := range 3 {
				before := written(t)
				run(t, w, "BEGIN IMMEDIATE")
				w.fill(100*round, 50)
				run(t, w, "COMMIT")
				each = append(each, written(t)-before)
			}
			return each
		}
		ours, theirs := writes(joined), writes(plain)
		if slices.Min(theirs) < 100 || tt.fewer && ours[2] > 9 || !tt.fewer && slices.Min(ours) < 100 {
			t.Errorf("%s, then %q: %v writes, and with SQLite %v", tt.synchronous, tt.later, ours, theirs)
		}
	}
}

// written returns the number of write calls of the current thread, to which the test must be locked.
func written(t *testing.T) int {
	t.Helper()
	counters, err := os.ReadFile("/proc/thread-self/io")
	if err != nil {
		t.Skip(err)
	}
	_, after, _ := strings.Cut(string(counters), "syscw: ")
	line, _, _ := strings.Cut(after, "\n")
	n, err := strconv.Atoi(line)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// BenchmarkCommit changes 45 pages, as many as a single reading.
func BenchmarkCommit(b *testing.B) {
	for name, joined := range map[string]bool{"joined": true, "plain": false} {
		b.Run(name, func(b *testing.B) {
			w := connected(b, filepath.Join(b.TempDir(), "data.db"), "FULL", joined)
			run(b, w, table)
			run(b, w, "PRAGMA cache_size(-8000)")
			w.fill(0, 44)
			run(b, w, "PRAGMA wal_autocheckpoint(8000)")
			for b.Loop() {
				run(b, w, "UPDATE readings SET value = randomblob(3900)")
			}
		})
	}
}

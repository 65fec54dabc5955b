//go:build sqlite_in_c && cgo && linux

package sqlite_test

import (
	"bufio"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/vigilhealth/vigil/internal/sqlite"
)

// A process that is killed between commits has stored every acknowledged row.
func TestJoinedKilled(t *testing.T) {
	if path := os.Getenv("VIGIL_TEST_COMMITS"); path != "" {
		commitForEver(t, path)
	}
	path := filepath.Join(t.TempDir(), "data.db")
	run(t, connected(t, path, "FULL", true), table)
	acknowledged := 0
	for round := range 8 {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestJoinedKilled$")
		child.Env = append(os.Environ(), "VIGIL_TEST_COMMITS="+path)
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		output := bufio.NewScanner(out)
		for lines := 0; lines < 20+7*round && output.Scan(); lines++ {
			if _, err := fmt.Sscanf(output.Text(), "stored %d", &acknowledged); err != nil {
				t.Fatalf("the child process printed %q", output.Text())
			}
		}
		if err := child.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for output.Scan() { // rows acknowledged before the kill
			_, _ = fmt.Sscanf(output.Text(), "stored %d", &acknowledged)
		}
		_ = child.Wait() // killed
		rows := connected(t, path, "FULL", false).number("SELECT COUNT(*) FROM readings")
		if last := connected(t, path, "FULL", true).number("SELECT MAX(n) FROM readings"); rows < acknowledged || rows != last {
			t.Errorf("%d rows up to number %d, %d acknowledged", rows, last, acknowledged)
		}
		wantWhole(t, path, rows)
	}
}

// commitForEver stores rows in transactions of different sizes, rolls some back, and prints the number of rows after each commit.
func commitForEver(t *testing.T, path string) {
	w := connected(t, path, "FULL", true)
	stored := w.number("SELECT COUNT(*) FROM readings")
	for round := 0; ; round++ {
		size := []int{1, 3, 1, 12, 50}[round%5]
		run(t, w, "BEGIN IMMEDIATE")
		w.fill(stored+1, size)
		if round%4 == 3 {
			run(t, w, "ROLLBACK")
			continue
		}
		run(t, w, "COMMIT")
		stored += size
		if _, err := fmt.Fprintln(os.Stdout, "stored", stored); err != nil {
			return
		}
	}
}

// limitFiles limits the size of files that this process writes.
func limitFiles(t *testing.T, bytes uint64) {
	t.Helper()
	if err := unix.Prlimit(0, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: bytes, Max: math.MaxUint64}, nil); err != nil {
		t.Fatal(err)
	}
}

// On a full disk, a commit fails and stores nothing, wherever in the transaction the error occurs. Later commits succeed, also on the same connection.
func TestJoinedDiskFails(t *testing.T) {
	for name, tt := range map[string]struct {
		room int // bytes by which the log may still grow
		fill func(w writer) error
	}{
		"at the commit":                {0, func(w writer) error { return w.try("UPDATE readings SET value = zeroblob(100)") }},
		"with a part of the commit":    {6000, func(w writer) error { return w.try("UPDATE readings SET value = zeroblob(3000) WHERE n < 5") }},
		"when the buffer is full":      {140_000, func(w writer) error { return w.transaction(w.insert(40)) }},
		"while the cache overflows":    {20_000, func(w writer) error { return w.transaction(w.insert(200)) }},
		"in the middle of a statement": {20_000, func(w writer) error { return w.transaction(w.insert(30), doubles, w.insert(30)) }},
		"at a read of the written pages": {20_000, func(w writer) error {
			return w.transaction(w.insert(25), "SELECT SUM(LENGTH(value)) FROM readings", w.insert(3))
		}},
		"between savepoints": {20_000, func(w writer) error {
			return w.transaction(w.insert(10), "SAVEPOINT s", w.insert(20), "ROLLBACK TO s", "SELECT SUM(LENGTH(value)) FROM readings", w.insert(1))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			joined, _ := pair(t, "FULL")
			joined.fill(0, 20)
			log, err := os.Stat(joined.path + "-wal")
			if err != nil {
				t.Fatal(err)
			}
			want := joined.number(sums)
			limitFiles(t, uint64(log.Size())+uint64(tt.room))
			failed := tt.fill(joined)
			limitFiles(t, math.MaxUint64)
			if !sqlite.IsStorageFailure(failed) {
				t.Errorf("on a full disk: %v", failed)
			}
			joined.wantStored(want, 20)
		})
	}
}

const (
	doubles = "UPDATE readings SET value = zeroblob(2 * LENGTH(value))"
	// copies reads pages that are in the log already; without space for them, SQLite rolls back only this statement.
	copies = "INSERT INTO readings SELECT n + 1000, value FROM readings WHERE true ORDER BY n"
)

func (w writer) try(text string) error {
	_, err := w.Exec(text)
	return err
}

// insert returns a statement that inserts a number of rows of 3,900 bytes.
func (w writer) insert(rows int) string {
	return fmt.Sprintf(`WITH RECURSIVE more(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM more WHERE n < %d)
		INSERT INTO readings (value) SELECT zeroblob(3900) FROM more`, rows)
}

// transaction runs statements up to the commit, continues after errors as long as SQLite permits, and returns the last error.
func (w writer) transaction(texts ...string) (failed error) {
	over := false
	for _, text := range append(append([]string{"BEGIN IMMEDIATE"}, texts...), "COMMIT") {
		if err := w.try(text); err != nil {
			failed = err
		}
		if err := w.Raw(func(conn any) error { over = conn.(driver.Validator).IsValid(); return nil }); err != nil || over {
			return errors.Join(failed, err)
		}
	}
	return errors.Join(failed, w.try("ROLLBACK"))
}

// wantStored checks the stored rows on several connections, then stores more rows and checks again.
func (w writer) wantStored(want, rows int) {
	w.t.Helper()
	other := connected(w.t, w.path, "FULL", false)
	for _, reader := range []writer{w, other} {
		if is := reader.number(sums); is != want {
			w.t.Errorf("sums of %d, want %d", is, want)
		}
	}
	w.wantWhole(rows)
	w.fill(10_000, 10)
	other.fill(20_000, 10)
	w.fill(30_000, 50)
	w.wantWhole(rows + 70)
}

// smallDisk returns a database on a file system of 4 MB, with functions that fill the file system and free the space again.
func smallDisk(t *testing.T) (joined writer, fill, free func()) {
	t.Helper()
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=4m"); err != nil {
		t.Skipf("mounting a file system requires root: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	joined = connected(t, filepath.Join(disk, "data.db"), "FULL", true)
	run(t, joined, table)
	joined.fill(0, 20)
	path := filepath.Join(disk, "filler")
	fill = func() {
		filler, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = filler.Close() }() // the disk is full
		if _, err := io.Copy(filler, zeros{}); err == nil {
			t.Fatal("a full disk accepts a write")
		}
	}
	free = func() {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	return joined, fill, free
}

// TestJoinedDiskRunsFull uses a file system that is full and then has space again.
func TestJoinedDiskRunsFull(t *testing.T) {
	joined, fill, free := smallDisk(t)
	want := joined.number(sums)
	fill()
	for _, failed := range []error{joined.try(joined.insert(3)), joined.transaction(joined.insert(20), joined.insert(30)), joined.try(doubles)} {
		if !sqlite.IsStorageFailure(failed) {
			t.Errorf("on a full disk: %v", failed)
		}
	}
	free()
	joined.wantStored(want, 20)
}

// If the disk is full in a statement that SQLite rolls back alone, and has space again before the commit, the lost writes of the transaction can be
// neither read nor committed.
func TestJoinedDiskIsFullTemporarily(t *testing.T) {
	for _, then := range []string{"", "SELECT SUM(LENGTH(value)) FROM readings"} {
		joined, fill, free := smallDisk(t)
		want := joined.number(sums)
		run(t, joined, "BEGIN IMMEDIATE")
		run(t, joined, joined.insert(20))
		fill()
		if failed := joined.try(copies); !sqlite.IsStorageFailure(failed) {
			t.Errorf("on a full disk: %v", failed)
		}
		free()
		if then != "" && joined.try(then) == nil {
			t.Error("lost writes were read")
		}
		if joined.try("COMMIT") == nil {
			t.Error("a transaction with lost writes was committed")
		}
		joined.wantStored(want, 20)
	}
}

// zeros is an endless reader.
type zeros struct{}

// Read implements [io.Reader].
func (zeros) Read(into []byte) (int, error) {
	clear(into)
	return len(into), nil
}

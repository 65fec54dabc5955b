package sqlite_test

import (
	"database/sql"
	"database/sql/driver"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/internal/sqlite"
)

func open(t testing.TB) *dbx.DB {
	t.Helper()
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "data.db"), "OFF")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	run(t, db.DB(), "CREATE TABLE numbers (n INTEGER PRIMARY KEY, word TEXT)")
	return db
}

func run(t testing.TB, db interface {
	Exec(string, ...any) (sql.Result, error)
}, text string, args ...any,
) {
	t.Helper()
	if _, err := db.Exec(text, args...); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// The same text is run repeatedly, in and out of transactions, nested in its own rows, after a schema change, and beyond the size of the cache.
func TestStatementsAreReused(t *testing.T) {
	db := open(t).DB()
	db.SetMaxOpenConns(1)
	for i := range 300 {
		run(t, db, "INSERT INTO numbers VALUES (?, ?)", i, fmt.Sprint("word ", i))
		run(t, db, fmt.Sprintf("UPDATE numbers SET word = 'own %d' WHERE n = %d", i, i)) // a different text each time
	}
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	const list = "SELECT n FROM numbers WHERE n < ? ORDER BY n"
	rows, err := tx.Query(list, 3)
	if err != nil {
		t.Fatal(err)
	}
	var seen []int
	for rows.Next() {
		var n, inner int
		if err := rows.Scan(&n); err != nil {
			t.Fatal(err)
		}
		if err := tx.QueryRow(list, 1).Scan(&inner); err != nil || inner != 0 {
			t.Errorf("inside: %d (%v)", inner, err)
		}
		seen = append(seen, n)
	}
	if err := rows.Err(); err != nil || fmt.Sprint(seen) != "[0 1 2]" {
		t.Errorf("saw %v (%v)", seen, err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	run(t, db, "ALTER TABLE numbers ADD COLUMN more TEXT DEFAULT 'yes'")
	var more string
	if err := db.QueryRow("SELECT more FROM numbers WHERE n = ?", 299).Scan(&more); err != nil || more != "yes" {
		t.Errorf("after a change of the schema: %q (%v)", more, err)
	}
}

// A statement that failed works the next time.
func TestStatementAfterError(t *testing.T) {
	db := open(t).DB()
	db.SetMaxOpenConns(1)
	const insert = "INSERT INTO numbers VALUES (?, ?)"
	run(t, db, insert, 1, "one")
	if _, err := db.Exec(insert, 1, "again"); err == nil {
		t.Fatal("stored twice")
	}
	run(t, db, insert, 2, nil)
	if _, err := db.Exec("SELECT nothing FROM nowhere"); err == nil {
		t.Error("an invalid statement returned no error")
	}
	var count int
	if err := db.QueryRow("SELECT COUNT(*) FROM numbers WHERE word IS NULL").Scan(&count); err != nil || count != 1 {
		t.Errorf("%d rows without a word (%v): an argument of the failed call stayed", count, err)
	}
}

func TestManyReadersOneWriter(t *testing.T) {
	db := open(t).DB()
	db.SetMaxOpenConns(4)
	var group sync.WaitGroup
	for worker := range 8 {
		group.Go(func() {
			for i := range 50 {
				if _, err := db.Exec("INSERT INTO numbers VALUES (?, 'x')", worker*1000+i); err != nil {
					t.Error(err)
				}
				var count int
				if err := db.QueryRow("SELECT COUNT(*) FROM numbers WHERE n / 1000 = ?", worker).Scan(&count); err != nil || count != i+1 {
					t.Errorf("worker %d sees %d rows of its own, not %d (%v)", worker, count, i+1, err)
				}
			}
		})
	}
	group.Wait()
}

func BenchmarkStatement(b *testing.B) {
	for name, connect := range map[string]func(string) (*dbx.DB, error){
		"remembered": func(path string) (*dbx.DB, error) { return sqlite.Open(path, "OFF") },
		"forgotten":  func(path string) (*dbx.DB, error) { return sqlite.OpenUncached(path), nil },
	} {
		b.Run(name, func(b *testing.B) {
			db, err := connect(filepath.Join(b.TempDir(), "data.db"))
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = db.Close() }()
			db.DB().SetMaxOpenConns(1)
			run(b, db.DB(), "CREATE TABLE numbers (n INTEGER PRIMARY KEY, word TEXT)")
			run(b, db.DB(), "INSERT INTO numbers VALUES (1, 'one')")
			for b.Loop() {
				var word string
				if err := db.DB().QueryRow("SELECT a.word FROM numbers a LEFT JOIN numbers b ON b.n = a.n WHERE a.n = ?", 1).Scan(&word); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// borrower stores the Run that it was lent.
type borrower struct{ run sqlite.Run }

func (b *borrower) Borrow(run sqlite.Run) { b.run = run }

// A borrower of a transaction's connection writes in the transaction: a rollback reverts its writes, and other users are not affected.
func TestBorrowedConnection(t *testing.T) {
	db := open(t).DB()
	for i, ends := range []func(*sql.Tx) error{(*sql.Tx).Rollback, (*sql.Tx).Commit} {
		tx, err := db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		var exec borrower
		run(t, tx, "", &exec)
		for n := range 3 {
			args := []driver.NamedValue{{Ordinal: 1, Value: int64(n)}, {Ordinal: 2, Value: "a word; another"}}
			if affected, err := exec.run("INSERT INTO numbers VALUES (?, ?) ON CONFLICT DO NOTHING", args, nil); affected != 1 || err != nil {
				t.Errorf("%d rows (%v)", affected, err)
			}
		}
		if affected, err := exec.run("UPDATE numbers SET word = 'w'", nil, nil); affected != 3 || err != nil {
			t.Errorf("%d rows were changed (%v)", affected, err)
		}
		if _, err := exec.run("UPDATE numbers SET word = 'x' WHERE n = 0; UPDATE numbers SET word = 'y' WHERE n = 1", nil, nil); err != nil {
			t.Error(err)
		}
		answer := make([]driver.Value, 2)
		rows, err := exec.run("UPDATE numbers SET word = word || '.' WHERE n >= ? RETURNING n, word", []driver.NamedValue{{Ordinal: 1, Value: int64(1)}}, answer)
		if rows != 2 || err != nil || answer[0] != int64(1) || answer[1] != "y." {
			t.Errorf("%d rows are returned, the first %v (%v)", rows, answer, err)
		}
		if rows, err := exec.run("SELECT n, word FROM numbers WHERE word = 'w.'", nil, answer); rows != 1 || err != nil || answer[0] != int64(2) {
			t.Errorf("%d rows are found, the first %v (%v)", rows, answer, err)
		}
		if rows, err := exec.run("SELECT n, word FROM numbers WHERE n > 9", nil, answer); rows != 0 || err != nil {
			t.Errorf("%d rows are found where there are none (%v)", rows, err)
		}
		if _, err := exec.run("SELECT n FROM numbers", nil, answer); err == nil {
			t.Error("an answer with the wrong number of columns is accepted")
		}
		for text, why := range map[string]string{"INSERT INTO numbers VALUES (0, '')": "UNIQUE", "UPDATE missing SET n = 1": "no such table", "no SQL": "syntax"} {
			if _, err := exec.run(text, nil, nil); err == nil || !strings.Contains(err.Error(), why) {
				t.Errorf("%s: %v", text, err)
			}
		}
		if err := ends(tx); err != nil {
			t.Fatal(err)
		}
		var words string
		if err := db.QueryRow("SELECT COALESCE(group_concat(word, '' ORDER BY n), '') FROM numbers").Scan(&words); err != nil || words != []string{"", "xy.w."}[i] {
			t.Errorf("the words are %q (%v)", words, err)
		}
	}
}

// lentIn returns the Run of a transaction in a new database, open until the end of the test.
func lentIn(t *testing.T) sqlite.Run {
	t.Helper()
	tx, err := open(t).DB().Begin()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	var exec borrower
	run(t, tx, "", &exec)
	return exec.run
}

// ordered returns values as arguments in order.
func ordered(values ...any) (args []driver.NamedValue) {
	for i, value := range values {
		args = append(args, driver.NamedValue{Ordinal: i + 1, Value: value})
	}
	return args
}

// Values of every kind are stored unchanged, by a cached statement as by a new one.
func TestBorrowedConnectionValues(t *testing.T) {
	exec := lentIn(t)
	if _, err := exec("CREATE TABLE cells (v)", nil, nil); err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 3, 8, 7, 30, 0, 0, time.UTC)
	for round := range 2 {
		for _, tt := range []struct {
			value any
			want  string // the value that SQLite returns
		}{
			{nil, "NULL"},
			{int64(0), "0"},
			{int64(math.MinInt64), "-9223372036854775808"},
			{int64(math.MaxInt64), "9223372036854775807"},
			{true, "1"},
			{false, "0"},
			{98.6, "98.6"},
			{-0.5, "-0.5"},
			{"", "''"},
			{"it's; ümläut ?1", "'it''s; ümläut ?1'"},
			{strings.Repeat("x", 5000), "'" + strings.Repeat("x", 5000) + "'"},
			{[]byte{}, "X''"},
			{[]byte(nil), "NULL"},
			{[]byte{0, 255, 0}, "X'00FF00'"},
		} {
			if rows, err := exec("INSERT INTO cells VALUES (?)", ordered(tt.value), nil); rows != 1 || err != nil {
				t.Errorf("%v: %d rows (%v)", tt.value, rows, err)
			}
			is := make([]driver.Value, 1)
			if rows, err := exec("SELECT quote(v) FROM cells ORDER BY rowid DESC LIMIT 1", nil, is); rows != 1 || err != nil || is[0] != tt.want {
				t.Errorf("%v is stored as %v in round %d (%v)", tt.value, is[0], round, err)
			}
		}
		if _, err := exec("INSERT INTO cells VALUES (?)", ordered(at), nil); err != nil {
			t.Errorf("a time, which goes through the driver: %v", err)
		}
	}
	several := ordered("first", int64(2), nil, []byte("fourth"), "fifth")
	if rows, err := exec("INSERT INTO cells VALUES (?1 || ?5), (?2), (?3), (?4)", several, nil); rows != 4 || err != nil {
		t.Errorf("%d rows (%v)", rows, err)
	}
	is := make([]driver.Value, 1)
	const last = "SELECT group_concat(quote(v), ' ') FROM (SELECT v FROM cells ORDER BY rowid DESC LIMIT 4)"
	if _, err := exec(last, nil, is); err != nil || is[0] != "X'666F75727468' NULL 2 'firstfifth'" {
		t.Errorf("several at once are %v (%v)", is[0], err)
	}
}

// A failed statement returns SQLite's text, and works the next time.
func TestBorrowedConnectionErrors(t *testing.T) {
	exec := lentIn(t)
	const insert = "INSERT INTO numbers VALUES (?, ?)"
	for range 2 {
		for i, args := range [][]driver.NamedValue{ordered(int64(1), "one"), ordered(int64(1), "again"), ordered(int64(2)), nil} {
			rows, err := exec(insert, args, nil)
			switch {
			case i == 0 && (rows != 1 || err != nil), i > 0 && err == nil:
				t.Errorf("%d values: %d rows (%v)", len(args), rows, err)
			case i == 1 && (!strings.Contains(err.Error(), "UNIQUE constraint failed: numbers.n") || sqlite.IsStorageFailure(err)):
				t.Errorf("a row that is there: %v", err)
			}
		}
		if rows, err := exec("DELETE FROM numbers", nil, nil); rows != 1 || err != nil {
			t.Errorf("%d rows were there (%v)", rows, err)
		}
	}
}

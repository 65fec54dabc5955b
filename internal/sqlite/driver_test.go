package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/internal/sqlite"
)

// Both drivers open a database with the same settings.
func TestConnectionSettings(t *testing.T) {
	for synchronous, number := range map[string]int{"OFF": 0, "NORMAL": 1, "FULL": 2} {
		opened, err := sqlite.Open(filepath.Join(t.TempDir(), "data.db"), synchronous)
		if err != nil {
			t.Fatal(err)
		}
		for pragma, want := range map[string]any{
			"synchronous": number, "journal_mode": "wal", "foreign_keys": 1, "wal_autocheckpoint": 250000, "cache_size": -4000,
			"temp_store": 2, "journal_size_limit": 200000000, "encoding": "UTF-8", "page_size": 2048, "auto_vacuum": 0, "recursive_triggers": 0,
		} {
			switch want := want.(type) {
			case int:
				var is int
				if err := opened.DB().QueryRow("PRAGMA " + pragma).Scan(&is); err != nil || is != want {
					t.Errorf("%s is %d, want %d (%v)", pragma, is, want, err)
				}
			case string:
				var is string
				if err := opened.DB().QueryRow("PRAGMA " + pragma).Scan(&is); err != nil || is != want {
					t.Errorf("%s is %q, want %q (%v)", pragma, is, want, err)
				}
			}
		}
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A connection beside one that holds the write lock nearly all the time gets its turn.
func TestLockBesideBusyWriter(t *testing.T) {
	if !sqlite.InC {
		t.Skip("SQLite translated to Go has only SQLite's own handler of locks")
	}
	path := filepath.Join(t.TempDir(), "data.db")
	busy, err := sqlite.Open(path, "OFF")
	if err != nil {
		t.Fatal(err)
	}
	beside, err := sqlite.Open(path, "OFF")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := busy.NewQuery("CREATE TABLE counts (n INTEGER)").Execute(); err != nil {
		t.Fatal(err)
	}
	done, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-done:
				ended <- errors.Join(busy.Close(), beside.Close())
				return
			default:
			}
			if err := busy.Transactional(func(tx *dbx.Tx) error { time.Sleep(5 * time.Millisecond); return nil }); err != nil {
				t.Error(err)
			}
		}
	}()
	for range 10 {
		if _, err := beside.NewQuery("INSERT INTO counts VALUES (1)").Execute(); err != nil {
			t.Error(err)
		}
	}
	close(done)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// The compile options on which collection rules and query plans depend.
func TestCompileOptions(t *testing.T) {
	rows, err := open(t).DB().Query("SELECT compile_options FROM pragma_compile_options")
	if err != nil {
		t.Fatal(err)
	}
	var options []string
	for rows.Next() {
		var option string
		if err := rows.Scan(&option); err != nil {
			t.Fatal(err)
		}
		options = append(options, option)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	for _, option := range []string{"ENABLE_STAT4", "ENABLE_MATH_FUNCTIONS"} {
		if !slices.Contains(options, option) {
			t.Errorf("SQLite was built without %s: %q", option, options)
		}
	}
}

// SQL cannot change SQLite's internal structures.
func TestDefensive(t *testing.T) {
	db := open(t).DB()
	db.SetMaxOpenConns(1)
	run(t, db, "PRAGMA writable_schema = ON")
	if _, err := db.Exec("UPDATE sqlite_schema SET sql = 'CREATE TABLE numbers (n)' WHERE name = 'numbers'"); err == nil {
		t.Error("the schema table was written directly")
	}
	if _, err := db.Exec("SELECT load_extension('x')"); err == nil {
		t.Error("an extension was loaded")
	}
}

// A read transaction neither waits for writers nor blocks them, and sees one snapshot.
func TestReadsDuringWrites(t *testing.T) {
	db := open(t).DB()
	writer, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	reader, err := db.BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	count := func() (n int) {
		if err := reader.QueryRow("SELECT COUNT(*) FROM numbers").Scan(&n); err != nil {
			t.Error(err)
		}
		return n
	}
	if n := count(); n != 0 {
		t.Errorf("%d rows before the write", n)
	}
	run(t, writer, "INSERT INTO numbers VALUES (1, 'one'); INSERT INTO numbers VALUES (2, 'two');")
	if err := writer.Commit(); err != nil {
		t.Fatal(err)
	}
	if n := count(); n != 0 {
		t.Errorf("%d rows in the older snapshot", n)
	}
	if err := reader.Rollback(); err != nil {
		t.Error(err)
	}
	var n int
	if err := db.QueryRow("SELECT COUNT(*) FROM numbers").Scan(&n); err != nil || n != 2 {
		t.Errorf("%d rows after a text of two statements (%v)", n, err)
	}
}

// A statement with unread result rows is finished: its connection sees later writes of others.
func TestUnreadRows(t *testing.T) {
	db := open(t).DB()
	db.SetMaxOpenConns(2)
	run(t, db, "INSERT INTO numbers VALUES (1, 'one'), (2, 'two')")
	one, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = one.Close() }()
	for i, text := range []string{
		"SELECT n FROM numbers", "SELECT 1 FROM numbers LIMIT 1", "PRAGMA table_info(numbers)", "INSERT INTO numbers VALUES (100, 'hundred') RETURNING n",
		"WITH some AS (SELECT n FROM numbers) SELECT n FROM some", " pragma wal_checkpoint(PASSIVE)", "PRAGMA user_version = 1", "PRAGMA optimize",
	} {
		if _, err := one.ExecContext(t.Context(), text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		statement, err := one.PrepareContext(t.Context(), strings.Replace(text, "100", "101", 1))
		if err != nil {
			t.Fatal(err)
		}
		result, err := statement.ExecContext(t.Context())
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if n, err := result.RowsAffected(); strings.HasPrefix(text, "INSERT") && (err != nil || n != 1) {
			t.Errorf("%s: %d rows (%v)", text, n, err)
		}
		run(t, db, "INSERT INTO numbers VALUES (?, 'later')", 1000+i) // on the other connection
		var last int
		if err := one.QueryRowContext(t.Context(), "SELECT MAX(n) FROM numbers").Scan(&last); err != nil || last != 1000+i {
			t.Errorf("after %s its connection sees %d as the last row (%v)", text, last, err)
		}
		tx, err := one.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		run(t, tx, "UPDATE numbers SET word = 'changed' WHERE n = 1")
		if err := tx.Commit(); err != nil {
			t.Errorf("after %s: %v", text, err)
		}
		if err := statement.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A canceled query ends soon with the reason, and its connection remains usable.
func TestCanceled(t *testing.T) {
	db := open(t).DB()
	db.SetMaxOpenConns(1)
	const long = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000000) SELECT COUNT(*) FROM n"
	for range 5 {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		var n int
		err := db.QueryRowContext(ctx, long).Scan(&n)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) && (err == nil || err.Error() != "interrupted" && err.Error() != "interrupted (9)") {
			t.Errorf("canceled: %v", err)
		}
		if err := db.QueryRow("SELECT 7").Scan(&n); err != nil || n != 7 {
			t.Errorf("next query: %d (%v)", n, err)
		}
	}
}

// Values are read with the type with which they were stored, regardless of the declared column type, as PocketBase and Vigil expect.
func TestValues(t *testing.T) {
	db := open(t).DB()
	run(t, db, "CREATE TABLE kinds (t TEXT, j JSON, b BOOLEAN, n NUMERIC, r REAL, i INTEGER)")
	run(t, db, "INSERT INTO kinds VALUES (?, ?, ?, ?, ?, ?)", "2026-03-08T07:30:00.000000Z", `{"a":1}`, true, 98.6, 2.0, int64(1)<<53)
	var text, json string
	var yes bool
	var numeric, real float64
	var integer int64
	if err := db.QueryRow("SELECT * FROM kinds").Scan(&text, &json, &yes, &numeric, &real, &integer); err != nil {
		t.Fatal(err)
	}
	if text != "2026-03-08T07:30:00.000000Z" || json != `{"a":1}` || !yes || numeric != 98.6 || real != 2 || integer != int64(1)<<53 {
		t.Error("values read:", text, json, yes, numeric, real, integer)
	}
	var any1, any2 any
	if err := db.QueryRow("SELECT t, CAST(? AS BLOB) FROM kinds", []byte{0, 255}).Scan(&any1, &any2); err != nil {
		t.Fatal(err)
	}
	if _, ok := any1.(string); !ok {
		t.Errorf("text is a %T", any1)
	}
	if b, ok := any2.([]byte); !ok || len(b) != 2 {
		t.Errorf("a blob is %v", any2)
	}
}

// Constraint errors have the texts that PocketBase and Vigil search for.
func TestErrors(t *testing.T) {
	db := open(t).DB()
	run(t, db, "CREATE UNIQUE INDEX words ON numbers (word)")
	run(t, db, "INSERT INTO numbers VALUES (1, 'one')")
	for text, want := range map[string]string{
		"INSERT INTO numbers VALUES (2, 'one')": "UNIQUE constraint failed: numbers.word",
		"INSERT INTO missing VALUES (1)":        "no such table: missing",
	} {
		_, err := db.Exec(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if err := db.QueryRow("SELECT n FROM numbers WHERE n = 9").Scan(new(int)); !errors.Is(err, sql.ErrNoRows) {
		t.Error(err)
	}
}

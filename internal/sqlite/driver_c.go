//go:build sqlite_in_c && cgo

package sqlite

/*
#cgo darwin LDFLAGS: -Wl,-undefined,dynamic_lookup

// These functions are defined in the driver's C code and resolved when the program is linked. They are weak, because cgo links this package without it.
typedef struct sqlite3 sqlite3;
extern int sqlite3_auto_extension(void (*)(void)) __attribute__((weak));
extern int sqlite3_db_config(sqlite3 *, int, ...) __attribute__((weak));
extern int sqlite3_config(int, ...) __attribute__((weak));
extern int register_joined_vfs(void); // joined.c

static int defend(sqlite3 *db, char **message, const void *api) {
	return sqlite3_db_config(db, 1010, 1, (int *)0); // SQLITE_DBCONFIG_DEFENSIVE
}

// configure runs before the first connection. It turns off memory statistics, which are unused and take a lock that all connections share.
static int configure(void) {
	int failed = sqlite3_config(9, 0); // SQLITE_CONFIG_MEMSTATUS
	if (!failed) failed = sqlite3_auto_extension((void (*)(void))defend);
	return failed ? failed : register_joined_vfs();
}
*/
import "C"

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strings"
	"unsafe"

	"github.com/mattn/go-sqlite3"
)

// InC reports whether SQLite is compiled from C, as opposed to translated to Go.
const InC = true

// sqliteDriver is the driver. Its connections are in SQLite's defensive mode, for which the driver has no option.
var sqliteDriver = func() driver.Driver {
	if C.configure() != 0 {
		panic("SQLite cannot be set up: out of memory, or already initialized")
	}
	return &sqlite3.SQLiteDriver{}
}()

// OnConnect, if not nil, is called for each new connection; only the benchmark sets it.
var OnConnect func(path string, to *sqlite3.SQLiteConn)

// open opens a connection without a mutex: a connection serves one goroutine at a time, and SQLite would lock the mutex for every bound value. Writes to
// the log are joined, see joined.c.
func (c connector) open() (session, error) {
	opened, err := sqliteDriver.Open(c.path + "?_mutex=no&vfs=joined")
	if err != nil {
		return session{}, err
	}
	inner, ok := opened.(*sqlite3.SQLiteConn)
	if !ok {
		return session{}, fmt.Errorf("the SQLite driver opened a %T", opened)
	}
	for _, pragma := range c.pragmas {
		if _, err := inner.Exec("PRAGMA "+pragma, nil); err != nil {
			return session{}, errors.Join(fmt.Errorf("%s: %w", pragma, err), inner.Close())
		}
	}
	if err := setLockTimeout(inner); err != nil {
		return session{}, errors.Join(err, inner.Close())
	}
	if mayCommit, guarded := commitGuard(c.path); guarded {
		inner.RegisterCommitHook(func() int {
			if mayCommit() {
				return 0
			}
			return 1
		})
	}
	if OnConnect != nil {
		OnConnect(c.path, inner)
	}
	return session{inner, &argBuffer{}}, nil
}

// session is a connection in database/sql's pool.
type session struct {
	*sqlite3.SQLiteConn
	args *argBuffer
}

// ResetSession implements [driver.SessionResetter].
func (session) ResetSession(context.Context) error { return nil }

// IsValid implements [driver.Validator]. A connection with an open transaction is not reused.
func (s session) IsValid() bool { return s.AutoCommit() }

// PrepareContext implements [driver.ConnPrepareContext].
func (s session) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	opened, err := s.SQLiteConn.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	inner, ok := opened.(*sqlite3.SQLiteStmt)
	if !ok {
		return nil, errors.Join(fmt.Errorf("the SQLite driver prepared a %T", opened), opened.Close())
	}
	upper := strings.ToUpper(strings.TrimSpace(text))
	return prepared{inner, handleOf(inner), s.args, inner.Readonly() || strings.HasPrefix(upper, "PRAGMA") || strings.Contains(upper, "RETURNING")}, nil
}

// prepared is a statement that reads all of its result rows in ExecContext. The driver stops at the first row and leaves the statement open, after which
// the connection would keep reading an old snapshot, or could not commit.
type prepared struct {
	*sqlite3.SQLiteStmt
	handle      unsafe.Pointer // sqlite3_stmt; nil if unknown
	args        *argBuffer     // shared by the connection
	returnsRows bool
}

// ExecContext implements [driver.StmtExecContext].
func (p prepared) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	if !p.returnsRows {
		return p.SQLiteStmt.ExecContext(ctx, args)
	}
	rows, err := p.QueryContext(ctx, args)
	if err != nil {
		return nil, err
	}
	row, affected := make([]driver.Value, len(rows.Columns())), driver.RowsAffected(0)
	for err = rows.Next(row); err == nil; err = rows.Next(row) {
		affected++
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return affected, errors.Join(err, rows.Close())
}

// BeginTx implements [driver.ConnBeginTx]. A read-only transaction takes no write lock.
func (s session) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	begin := "BEGIN IMMEDIATE"
	if o.ReadOnly {
		begin = "BEGIN"
	}
	if _, err := s.ExecContext(ctx, begin, nil); err != nil {
		if !s.AutoCommit() { // canceled after the transaction began
			err = errors.Join(err, transaction{s.SQLiteConn}.Rollback())
		}
		return nil, err
	}
	return transaction{s.SQLiteConn}, nil
}

// transaction is an open transaction.
type transaction struct{ conn *sqlite3.SQLiteConn }

// Commit implements [driver.Tx]. It rolls back if the commit fails, because database/sql treats the transaction as finished.
func (t transaction) Commit() error {
	_, err := t.conn.Exec("COMMIT", nil)
	if err != nil && !t.conn.AutoCommit() {
		err = errors.Join(err, t.Rollback())
	}
	return err
}

// Rollback implements [driver.Tx].
func (t transaction) Rollback() error {
	_, err := t.conn.Exec("ROLLBACK", nil)
	return err
}

// runningCopy is a running copy of a database.
type runningCopy struct {
	*sqlite3.SQLiteBackup
	target driver.Conn
}

func copyTo(inner connection, target string) (runningCopy, error) {
	source, ok := inner.(session)
	if !ok {
		return runningCopy{}, fmt.Errorf("the SQLite driver's %T does not support backups", inner)
	}
	opened, err := connector{path: target, pragmas: []string{"journal_mode(OFF)", "synchronous(OFF)"}}.open()
	if err != nil {
		return runningCopy{}, err
	}
	started, err := opened.Backup("main", source.SQLiteConn, "main")
	if err != nil {
		return runningCopy{}, errors.Join(err, opened.Close())
	}
	return runningCopy{started, opened}, nil
}

// Step copies pages and reports whether there are more.
func (c runningCopy) Step(pages int32) (more bool, err error) {
	done, err := c.SQLiteBackup.Step(int(pages))
	return !done, err
}

// Finish ends the copy.
func (c runningCopy) Finish() error { return errors.Join(c.SQLiteBackup.Finish(), c.target.Close()) }

// errorCode returns the SQLite error code of an error, or 0 if it is not an SQLite error.
func errorCode(err error) int {
	if sqliteErr, ok := errors.AsType[sqlite3.Error](err); ok {
		return int(sqliteErr.Code)
	}
	return 0
}

// extendedCode returns the extended SQLite error code of an error, or 0 if it is not an SQLite error.
func extendedCode(err error) int {
	if sqliteErr, ok := errors.AsType[sqlite3.Error](err); ok {
		return int(sqliteErr.ExtendedCode)
	}
	return 0
}

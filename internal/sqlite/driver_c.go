//go:build sqlite_in_c && cgo

package sqlite

/*
#cgo darwin LDFLAGS: -Wl,-undefined,dynamic_lookup

// What is called here is in the driver's C, with which the program is linked in the end: weak, since this package alone links without it.
typedef struct sqlite3 sqlite3;
extern int sqlite3_auto_extension(void (*)(void)) __attribute__((weak));
extern int sqlite3_db_config(sqlite3 *, int, ...) __attribute__((weak));
extern int sqlite3_config(int, ...) __attribute__((weak));
extern int add_joined(void); // joined.c

static int defend(sqlite3 *db, char **message, const void *api) {
	return sqlite3_db_config(db, 1010, 1, (int *)0); // SQLITE_DBCONFIG_DEFENSIVE
}

// set_up comes before the first connection. Counting what is allocated takes a lock that all connections share, and nobody asks for the sum.
static int set_up(void) {
	int failed = sqlite3_config(9, 0); // SQLITE_CONFIG_MEMSTATUS
	if (!failed) failed = sqlite3_auto_extension((void (*)(void))defend);
	return failed ? failed : add_joined();
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

// InC reports whether SQLite is what its authors wrote, and not its translation to Go.
const InC = true

// registered opens connections whose SQL cannot touch what SQLite keeps for itself: the driver has no word for that.
var registered = func() driver.Driver {
	if C.set_up() != 0 {
		panic("SQLite cannot be set up") // out of memory, or in use already, before anything began
	}
	return &sqlite3.SQLiteDriver{}
}()

// Connected is told of each new connection, unless nil; only the benchmark sets it.
var Connected func(path string, to *sqlite3.SQLiteConn)

// open makes a connection without a lock of its own: a connection serves one goroutine at a time, and SQLite would take the lock for each value that
// is bound. Its writes into the log are joined, see joined.c.
func (c connector) open() (session, error) {
	opened, err := registered.Open(c.path + "?_mutex=no&vfs=joined")
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
	if Connected != nil {
		Connected(c.path, inner)
	}
	return session{inner, &bounds{}}, nil
}

// session is a connection between two borrowers: nothing of one is left for the next.
type session struct {
	*sqlite3.SQLiteConn
	bounds *bounds
}

// ResetSession implements [driver.SessionResetter].
func (session) ResetSession(context.Context) error { return nil }

// IsValid implements [driver.Validator]: one that was left within a transaction is not used again.
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
	return prepared{inner, handleOf(inner), s.bounds, inner.Readonly() || strings.HasPrefix(upper, "PRAGMA") || strings.Contains(upper, "RETURNING")}, nil
}

// prepared is a statement that reads to the end what it answers, though nobody asks for it: the driver stops at the first row and leaves it there.
// From then on its connection would see the database as it was at that moment, or commit nothing.
type prepared struct {
	*sqlite3.SQLiteStmt
	handle  unsafe.Pointer // SQLite's own; nil if it is not known
	bounds  *bounds        // of its connection
	answers bool
}

// ExecContext implements [driver.StmtExecContext].
func (p prepared) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	if !p.answers {
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

// BeginTx implements [driver.ConnBeginTx]. Who only reads takes no lock that others want.
func (s session) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	begin := "BEGIN IMMEDIATE"
	if o.ReadOnly {
		begin = "BEGIN"
	}
	if _, err := s.ExecContext(ctx, begin, nil); err != nil {
		if !s.AutoCommit() { // cancelled a moment too late
			err = errors.Join(err, transaction{s.SQLiteConn}.Rollback())
		}
		return nil, err
	}
	return transaction{s.SQLiteConn}, nil
}

// transaction is one under way.
type transaction struct{ conn *sqlite3.SQLiteConn }

// Commit implements [driver.Tx]. What cannot be committed is over all the same, as database/sql takes it.
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

// copying is a copy of a database under way.
type copying struct {
	*sqlite3.SQLiteBackup
	target driver.Conn
}

func copyTo(inner connection, target string) (copying, error) {
	source, ok := inner.(session)
	if !ok {
		return copying{}, fmt.Errorf("the SQLite driver's %T cannot copy", inner)
	}
	opened, err := connector{path: target, pragmas: []string{"journal_mode(OFF)", "synchronous(OFF)"}}.open()
	if err != nil {
		return copying{}, err
	}
	started, err := opened.Backup("main", source.SQLiteConn, "main")
	if err != nil {
		return copying{}, errors.Join(err, opened.Close())
	}
	return copying{started, opened}, nil
}

// Step copies some pages and reports whether there are more.
func (c copying) Step(pages int32) (more bool, err error) {
	done, err := c.SQLiteBackup.Step(int(pages))
	return !done, err
}

// Finish ends the copy.
func (c copying) Finish() error { return errors.Join(c.SQLiteBackup.Finish(), c.target.Close()) }

// codeOf is SQLite's number of an error; 0 when it is none of SQLite's.
func codeOf(err error) int {
	if refused, ok := errors.AsType[sqlite3.Error](err); ok {
		return int(refused.Code)
	}
	return 0
}

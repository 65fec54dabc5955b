package sqlite

import (
	"container/list"
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"strings"
	"sync/atomic"
)

// maxCached bounds the cached statements of one connection.
const maxCached = 128

// connection holds the interfaces of the driver's connections that PocketBase needs.
type connection interface {
	driver.Conn
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.ConnBeginTx
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// statement holds the interfaces of the driver's statements.
type statement interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// conn is a connection with a cache of prepared statements. It makes database/sql prepare every statement, so that all go through the cache. A connection
// serves one goroutine at a time.
type conn struct {
	connection
	cached map[string]*list.Element
	order  *list.List    // of *idleStatement, most recently used first
	damage *atomic.Int64 // counts statements that fail because of damage; may be nil
}

// idleStatement is a cached statement that is not in use.
type idleStatement struct {
	text string
	statement
}

func newConn(inner connection, damage *atomic.Int64) *conn {
	return &conn{connection: inner, cached: map[string]*list.Element{}, order: list.New(), damage: damage}
}

// BeginTx implements [driver.ConnBeginTx].
func (c *conn) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	tx, err := c.connection.BeginTx(ctx, options)
	return tx, c.note(err)
}

// ExecContext implements [driver.ExecerContext] for texts of several statements, of which only the first could be prepared, and for a [Borrower].
func (c *conn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	if c.lend(text, args) {
		return driver.RowsAffected(0), nil
	}
	if !strings.Contains(strings.TrimRight(text, "; \t\r\n"), ";") {
		return nil, driver.ErrSkip
	}
	result, err := c.connection.ExecContext(ctx, text, args)
	return result, c.note(err)
}

// Prepare implements [driver.Conn].
func (c *conn) Prepare(text string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), text)
}

// PrepareContext implements [driver.ConnPrepareContext]. A cached statement is used by one caller at a time; a concurrent one with the
// same text is prepared again.
func (c *conn) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	if element, ok := c.cached[text]; ok {
		delete(c.cached, text)
		found := c.order.Remove(element).(*idleStatement)
		return &activeStatement{statement: found.statement, text: text, conn: c}, nil
	}
	prepared, err := c.connection.PrepareContext(ctx, text)
	if err != nil {
		return nil, c.note(err)
	}
	capable, ok := prepared.(statement)
	if !ok {
		return prepared, nil
	}
	return &activeStatement{statement: capable, text: text, conn: c}, nil
}

// release returns a statement to the cache.
func (c *conn) release(text string, s statement) error {
	if _, there := c.cached[text]; there {
		return s.Close()
	}
	c.cached[text] = c.order.PushFront(&idleStatement{text, s})
	if c.order.Len() <= maxCached {
		return nil
	}
	oldest := c.order.Remove(c.order.Back()).(*idleStatement)
	delete(c.cached, oldest.text)
	return oldest.Close()
}

// Close implements [driver.Conn].
func (c *conn) Close() error {
	for element := c.order.Front(); element != nil; element = element.Next() {
		_ = element.Value.(*idleStatement).Close() // closing the connection frees the statement
	}
	c.order.Init()
	clear(c.cached)
	return c.connection.Close()
}

// activeStatement is a statement in use; Close returns it to the cache.
type activeStatement struct {
	statement
	text   string
	conn   *conn
	closed bool
}

// ExecContext implements [driver.StmtExecContext].
func (s *activeStatement) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	result, err := s.statement.ExecContext(ctx, args)
	return result, s.conn.note(err)
}

// QueryContext implements [driver.StmtQueryContext].
func (s *activeStatement) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	opened, err := s.statement.QueryContext(ctx, args)
	if inner, ok := opened.(typedRows); ok && err == nil {
		return watchedRows{inner, s.conn}, nil
	}
	return opened, s.conn.note(err)
}

// typedRows holds the interfaces of the drivers' rows that PocketBase needs.
type typedRows interface {
	driver.Rows
	driver.RowsColumnTypeDatabaseTypeName
}

// watchedRows note the errors of rows: SQLite reads the database only when a row is fetched.
type watchedRows struct {
	typedRows
	conn *conn
}

// Next implements [driver.Rows].
func (w watchedRows) Next(row []driver.Value) error {
	err := w.typedRows.Next(row)
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	return w.conn.note(err)
}

// Close implements [driver.Stmt].
func (s *activeStatement) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	return s.conn.release(s.text, s.statement)
}

package sqlite

import (
	"container/list"
	"context"
	"database/sql/driver"
	"strings"
)

// remembered bounds the statements that one connection remembers.
const remembered = 128

// connection is what the driver's connections can do and PocketBase relies on.
type connection interface {
	driver.Conn
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.ConnBeginTx
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// statement is what the driver's statements can do.
type statement interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// conn is a connection that remembers its statements: it makes database/sql prepare each, and so come by here. A connection serves one goroutine at
// a time.
type conn struct {
	connection
	known map[string]*list.Element
	order *list.List // of *idle, the last used first
}

// idle is a prepared statement that waits for its text to come again; it is not in use.
type idle struct {
	text string
	statement
}

func newConn(inner connection) *conn {
	return &conn{connection: inner, known: map[string]*list.Element{}, order: list.New()}
}

// ExecContext implements [driver.ExecerContext] for texts of several statements, of which only the first could be prepared, and for those who borrow.
func (c *conn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	if c.lend(text, args) {
		return driver.RowsAffected(0), nil
	}
	if !strings.Contains(strings.TrimRight(text, "; \t\r\n"), ";") {
		return nil, driver.ErrSkip
	}
	return c.connection.ExecContext(ctx, text, args)
}

// Prepare implements [driver.Conn].
func (c *conn) Prepare(text string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), text)
}

// PrepareContext implements [driver.ConnPrepareContext]. A statement is handed to one caller at a time; a second one of the
// same text, meanwhile, is prepared anew.
func (c *conn) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	if element, ok := c.known[text]; ok {
		delete(c.known, text)
		found := c.order.Remove(element).(*idle)
		return &lent{statement: found.statement, text: text, conn: c}, nil
	}
	prepared, err := c.connection.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	capable, ok := prepared.(statement)
	if !ok {
		return prepared, nil
	}
	return &lent{statement: capable, text: text, conn: c}, nil
}

// takeBack takes a statement back for the next who asks for its text.
func (c *conn) takeBack(text string, s statement) error {
	if _, there := c.known[text]; there {
		return s.Close()
	}
	c.known[text] = c.order.PushFront(&idle{text, s})
	if c.order.Len() <= remembered {
		return nil
	}
	oldest := c.order.Remove(c.order.Back()).(*idle)
	delete(c.known, oldest.text)
	return oldest.Close()
}

// Close implements [driver.Conn].
func (c *conn) Close() error {
	for element := c.order.Front(); element != nil; element = element.Next() {
		_ = element.Value.(*idle).Close() // the connection goes with it
	}
	c.order.Init()
	clear(c.known)
	return c.connection.Close()
}

// lent is a statement in use; closing it gives it back.
type lent struct {
	statement
	text   string
	conn   *conn
	closed bool
}

// Close implements [driver.Stmt].
func (l *lent) Close() error {
	if l.closed {
		return nil
	}
	l.closed = true
	return l.conn.takeBack(l.text, l.statement)
}

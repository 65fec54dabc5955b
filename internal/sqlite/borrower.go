package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
)

// Run executes a statement on a borrowed connection and returns the number of rows it changed. If
// answer is not empty, the statement is a query: its first row is stored in answer, and the number
// of its rows is returned.
type Run = func(text string, args []driver.NamedValue, answer []driver.Value) (rows int64, err error)

// Borrower is the only argument of a statement with an empty text. Instead of running it, the
// connection calls Borrow, which may use run until the current transaction ends. It is for
// transactions with many short statements: database/sql costs as much for each as the statement
// itself.
type Borrower interface {
	Borrow(run Run)
}

// CheckNamedValue implements [driver.NamedValueChecker]. It accepts a Borrower and leaves all other values to the default.
func (c *conn) CheckNamedValue(value *driver.NamedValue) error {
	if _, borrows := value.Value.(Borrower); borrows {
		return nil
	}
	return driver.ErrSkip
}

// lend calls the Borrower in args and reports whether there is one.
func (c *conn) lend(text string, args []driver.NamedValue) bool {
	if text != "" || len(args) != 1 {
		return false
	}
	borrower, borrows := args[0].Value.(Borrower)
	if borrows {
		borrower.Borrow(c.run)
	}
	return borrows
}

// boundRunner is a statement that can bind all values and run in one call without the driver. done is false if the caller must use the driver instead.
type boundRunner interface {
	runBound(args []driver.NamedValue) (rows int64, done bool, err error)
}

// run is the [Run] of this connection.
func (c *conn) run(text string, args []driver.NamedValue, answer []driver.Value) (rows int64, err error) {
	rows, err = c.runCached(text, args, answer)
	return rows, c.note(err)
}

// runCached runs a statement, which it caches like all others.
func (c *conn) runCached(text string, args []driver.NamedValue, answer []driver.Value) (rows int64, err error) {
	if element, known := c.cached[text]; known {
		c.order.MoveToFront(element)
		return execute(element.Value.(*idleStatement).statement, args, answer)
	}
	result, err := c.ExecContext(context.Background(), text, args)
	if errors.Is(err, driver.ErrSkip) {
		return c.prepareAndRun(text, args, answer)
	}
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

func (c *conn) prepareAndRun(text string, args []driver.NamedValue, answer []driver.Value) (rows int64, err error) {
	opened, err := c.PrepareContext(context.Background(), text)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	taken, ok := opened.(*activeStatement)
	if !ok {
		return 0, fmt.Errorf("a %T cannot execute statements", opened)
	}
	return execute(taken.statement, args, answer)
}

func execute(able statement, args []driver.NamedValue, answer []driver.Value) (rows int64, err error) {
	if len(answer) > 0 {
		return first(able, args, answer)
	}
	if bound, ok := able.(boundRunner); ok {
		if rows, done, err := bound.runBound(args); done {
			return rows, err
		}
	}
	result, err := able.ExecContext(context.Background(), args)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// first stores the first row of a query in answer and counts all rows. It reads all rows, because a statement takes full effect only when it is read to
// the end.
func first(query statement, args []driver.NamedValue, answer []driver.Value) (count int64, err error) {
	rows, err := query.QueryContext(context.Background(), args)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	if columns := len(rows.Columns()); columns != len(answer) {
		return 0, fmt.Errorf("the query returns %d columns, and answer has room for %d", columns, len(answer))
	}
	row := answer
	for {
		switch err := rows.Next(row); {
		case errors.Is(err, io.EOF):
			return count, nil
		case err != nil:
			return count, err
		}
		if count++; count == 1 {
			row = make([]driver.Value, len(answer))
		}
	}
}

package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
)

// Run executes a statement on a lent connection and returns how many rows it wrote. Where answer has room, the statement answers, and what it says
// first is put there; then the rows are those that it answered.
type Run = func(text string, args []driver.NamedValue, answer []driver.Value) (rows int64, err error)

// Borrower is the only argument of a statement without a text: instead of running it, the connection is lent, until the transaction under way
// ends. What database/sql does for every statement costs as much as a short one itself; who stores many in one transaction goes past it.
type Borrower interface {
	Borrow(run Run)
}

// CheckNamedValue implements [driver.NamedValueChecker]: all but a borrower is as ever.
func (c *conn) CheckNamedValue(value *driver.NamedValue) error {
	if _, borrows := value.Value.(Borrower); borrows {
		return nil
	}
	return driver.ErrSkip
}

// lend answers a borrower.
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

// runsBound is a statement that can be run with all of its values at once, past the driver. It may leave one to the driver, and says so.
type runsBound interface {
	runBound(args []driver.NamedValue) (rows int64, done bool, err error)
}

// run is the [Run] of this connection; a statement is remembered like all others.
func (c *conn) run(text string, args []driver.NamedValue, answer []driver.Value) (rows int64, err error) {
	if element, known := c.known[text]; known {
		c.order.MoveToFront(element)
		return execute(element.Value.(*idle).statement, args, answer)
	}
	result, err := c.ExecContext(context.Background(), text, args)
	if errors.Is(err, driver.ErrSkip) {
		return c.runAnew(text, args, answer)
	}
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

func (c *conn) runAnew(text string, args []driver.NamedValue, answer []driver.Value) (rows int64, err error) {
	opened, err := c.PrepareContext(context.Background(), text)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	taken, ok := opened.(*lent)
	if !ok {
		return 0, fmt.Errorf("a %T executes nothing", opened)
	}
	return execute(taken.statement, args, answer)
}

func execute(able statement, args []driver.NamedValue, answer []driver.Value) (rows int64, err error) {
	if len(answer) > 0 {
		return first(able, args, answer)
	}
	if bound, ok := able.(runsBound); ok {
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

// first puts what a statement answers first into answer, and counts all that it answers: what is not read to the end is not done.
func first(asked statement, args []driver.NamedValue, answer []driver.Value) (count int64, err error) {
	rows, err := asked.QueryContext(context.Background(), args)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	if columns := len(rows.Columns()); columns != len(answer) {
		return 0, fmt.Errorf("%d columns are answered, and there is room for %d", columns, len(answer))
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

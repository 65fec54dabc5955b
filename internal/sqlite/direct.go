package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
)

// Borrower is the only argument of a statement without a text: instead of running it, the connection is lent, until the transaction under way
// ends. What database/sql does for every statement costs as much as a short one itself; who stores many in one transaction goes past it.
type Borrower interface {
	Borrow(run func(text string, args []driver.NamedValue) (affected int64, err error))
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

// run executes a statement that is remembered like all others.
func (c *conn) run(text string, args []driver.NamedValue) (affected int64, err error) {
	result, err := c.ExecContext(context.Background(), text, args)
	if errors.Is(err, driver.ErrSkip) {
		result, err = c.execRemembered(text, args)
	}
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

func (c *conn) execRemembered(text string, args []driver.NamedValue) (driver.Result, error) {
	prepared, err := c.PrepareContext(context.Background(), text)
	if err != nil {
		return nil, err
	}
	executes, ok := prepared.(driver.StmtExecContext)
	if !ok {
		return nil, errors.Join(fmt.Errorf("a %T executes nothing", prepared), prepared.Close())
	}
	result, err := executes.ExecContext(context.Background(), args)
	return result, errors.Join(err, prepared.Close())
}

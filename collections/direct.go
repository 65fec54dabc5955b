package collections

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// underway is the transaction in which remembered statements run. What writes goes to its connection, past what database/sql does for every statement.
type underway struct {
	dbx.Executor
	run    func(text string, args []driver.NamedValue, answer []driver.Value) (rows int64, err error)
	values []driver.NamedValue // of the last statement, to be used again
	answer [1]driver.Value     // likewise
}

// enter begins with a transaction.
func (u *underway) enter(transaction dbx.Executor) {
	u.Executor, u.run = transaction, nil
	if _, err := transaction.Exec("", u); err != nil {
		u.run = nil // this kind of connection does not lend itself
	}
}

// Borrow takes the connection of the transaction; see internal/sqlite.
func (u *underway) Borrow(run func(text string, args []driver.NamedValue, answer []driver.Value) (rows int64, err error)) {
	u.run = run
}

// Exec implements [dbx.Executor].
func (u *underway) Exec(text string, args ...any) (sql.Result, error) {
	if u.run == nil {
		return u.Executor.Exec(text, args...)
	}
	if err := u.convert(args); err != nil {
		return nil, err
	}
	affected, err := u.run(text, u.values, nil)
	return driver.RowsAffected(affected), err
}

func (u *underway) convert(args []any) error {
	u.values = u.values[:0]
	for i, arg := range args {
		switch v := arg.(type) {
		case nil, string, int64, float64, bool, []byte: // as they are
		case int:
			arg = int64(v)
		case *float64:
			if arg = nil; v != nil {
				arg = *v
			}
		default:
			value, err := driver.DefaultParameterConverter.ConvertValue(arg)
			if err != nil {
				return fmt.Errorf("value %d: %w", i+1, err)
			}
			arg = value
		}
		u.values = append(u.values, driver.NamedValue{Ordinal: i + 1, Value: arg})
	}
	return nil
}

// said executes a statement that answers one row of one whole number.
func (u *underway) said(text string, args []any) (number int64, err error) {
	if u.run == nil {
		return saidBy(u.Executor, text, args)
	}
	if err := u.convert(args); err != nil {
		return 0, err
	}
	rows, err := u.run(text, u.values, u.answer[:])
	if err != nil {
		return 0, err
	}
	number, whole := u.answer[0].(int64)
	if rows != 1 || !whole {
		return 0, fmt.Errorf("%d rows are answered, the first a %T", rows, u.answer[0])
	}
	return number, nil
}

// Write executes one of the few statements that every reading comes to, whose parameters are question marks, in the order of args, and returns how
// many rows it wrote: dbx would have each value found by its name.
func Write(tx core.App, text string, args ...any) (affected int64, err error) {
	executor, err := executorOf(tx)
	if err != nil {
		return 0, err
	}
	result, err := executor.Exec(text, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// WriteReturning is [Write] for a statement that returns one row of one whole number, or of one condition as 0 or 1.
func WriteReturning(tx core.App, text string, args ...any) (number int64, err error) {
	executor, err := executorOf(tx)
	if err != nil {
		return 0, err
	}
	if under, remembers := executor.(*underway); remembers {
		return under.said(text, args)
	}
	return saidBy(executor, text, args)
}

func saidBy(executor dbx.Executor, text string, args []any) (number int64, err error) {
	rows, err := executor.Query(text, args...)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	count := 0
	for ; rows.Next(); count++ {
		if err := rows.Scan(&number); err != nil {
			return 0, err
		}
	}
	if err := rows.Err(); err != nil {
		return 0, err
	}
	if count != 1 {
		return 0, fmt.Errorf("%d rows are answered", count)
	}
	return number, nil
}

// executorOf is what executes within a transaction.
func executorOf(tx core.App) (dbx.Executor, error) {
	builder := tx.NonconcurrentDB()
	switch open := builder.(type) {
	case *Statements:
		return &open.under, nil
	case *dbx.Tx:
		builder = open.Builder
	case *dbx.DB:
		builder = open.Builder
	}
	executes, ok := builder.(interface{ Executor() dbx.Executor })
	if !ok {
		return nil, fmt.Errorf("a %T executes nothing", builder)
	}
	return executes.Executor(), nil
}

// InsertRow is [Write] for a row whose columns are not always the same.
func InsertRow(tx core.App, table string, row dbx.Params) error {
	columns := slices.Sorted(maps.Keys(row))
	values := make([]any, len(columns))
	for i, column := range columns {
		values[i] = row[column]
	}
	_, err := Write(tx, "INSERT INTO "+table+" ("+strings.Join(columns, ", ")+") VALUES (?"+strings.Repeat(", ?", len(columns)-1)+")", values...)
	return err
}

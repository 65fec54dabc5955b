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

// rawConn runs the cached statements of one transaction. Writes go directly to the driver connection and skip the per-statement cost of
// database/sql.
type rawConn struct {
	dbx.Executor
	run    func(text string, args []driver.NamedValue, answer []driver.Value) (rows int64, err error)
	values []driver.NamedValue // of the last statement, reused
	result [1]driver.Value     // reused
}

// begin starts using a transaction.
func (c *rawConn) begin(transaction dbx.Executor) {
	c.Executor, c.run = transaction, nil
	if _, err := transaction.Exec("", c); err != nil {
		c.run = nil // the driver does not expose its connection
	}
}

// Borrow receives the connection of the transaction; see internal/sqlite.
func (c *rawConn) Borrow(run func(text string, args []driver.NamedValue, answer []driver.Value) (rows int64, err error)) {
	c.run = run
}

// Exec implements [dbx.Executor].
func (c *rawConn) Exec(text string, args ...any) (sql.Result, error) {
	if c.run == nil {
		return c.Executor.Exec(text, args...)
	}
	if err := c.convert(args); err != nil {
		return nil, err
	}
	affected, err := c.run(text, c.values, nil)
	return driver.RowsAffected(affected), err
}

func (c *rawConn) convert(args []any) error {
	c.values = c.values[:0]
	for i, arg := range args {
		switch v := arg.(type) {
		case nil, string, int64, float64, bool, []byte: // driver types
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
		c.values = append(c.values, driver.NamedValue{Ordinal: i + 1, Value: arg})
	}
	return nil
}

// queryInteger runs a statement that returns one row with one integer.
func (c *rawConn) queryInteger(text string, args []any) (number int64, err error) {
	if c.run == nil {
		return queryInteger(c.Executor, text, args)
	}
	if err := c.convert(args); err != nil {
		return 0, err
	}
	rows, err := c.run(text, c.values, c.result[:])
	if err != nil {
		return 0, err
	}
	number, whole := c.result[0].(int64)
	if rows != 1 || !whole {
		return 0, fmt.Errorf("the statement returned %d rows, the first value a %T", rows, c.result[0])
	}
	return number, nil
}

// Write runs one of the few statements on the path of every reading and returns the number of rows written. Parameters are question marks in
// the order of args, because dbx would look up each value by name.
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

// WriteReturning is [Write] for a statement that returns one row with one integer, or one condition as 0 or 1.
func WriteReturning(tx core.App, text string, args ...any) (number int64, err error) {
	executor, err := executorOf(tx)
	if err != nil {
		return 0, err
	}
	if under, remembers := executor.(*rawConn); remembers {
		return under.queryInteger(text, args)
	}
	return queryInteger(executor, text, args)
}

func queryInteger(executor dbx.Executor, text string, args []any) (number int64, err error) {
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
		return 0, fmt.Errorf("the statement returned %d rows", count)
	}
	return number, nil
}

// executorOf returns the executor of a transaction.
func executorOf(tx core.App) (dbx.Executor, error) {
	builder := tx.NonconcurrentDB()
	switch open := builder.(type) {
	case *StatementCache:
		return &open.conn, nil
	case *dbx.Tx:
		builder = open.Builder
	case *dbx.DB:
		builder = open.Builder
	}
	executes, ok := builder.(interface{ Executor() dbx.Executor })
	if !ok {
		return nil, fmt.Errorf("%T has no executor", builder)
	}
	return executes.Executor(), nil
}

// InsertRow is [Write] for a row with varying columns.
func InsertRow(tx core.App, table string, row dbx.Params) error {
	columns := slices.Sorted(maps.Keys(row))
	values := make([]any, len(columns))
	for i, column := range columns {
		values[i] = row[column]
	}
	_, err := Write(tx, "INSERT INTO "+table+" ("+strings.Join(columns, ", ")+") VALUES (?"+strings.Repeat(", ?", len(columns)-1)+")", values...)
	return err
}

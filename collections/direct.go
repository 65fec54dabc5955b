package collections

import (
	"database/sql"
	"database/sql/driver"
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
	run    func(text string, args []driver.NamedValue) (affected int64, err error)
	values []driver.NamedValue // of the last statement, to be used again
}

// enter begins with a transaction.
func (u *underway) enter(transaction dbx.Executor) {
	u.Executor, u.run = transaction, nil
	if _, err := transaction.Exec("", u); err != nil {
		u.run = nil // this kind of connection does not lend itself
	}
}

// Borrow takes the connection of the transaction; see internal/sqlite.
func (u *underway) Borrow(run func(text string, args []driver.NamedValue) (affected int64, err error)) {
	u.run = run
}

// Exec implements [dbx.Executor].
func (u *underway) Exec(text string, args ...any) (sql.Result, error) {
	if u.run == nil {
		return u.Executor.Exec(text, args...)
	}
	u.values = u.values[:0]
	for i, arg := range args {
		value, err := driver.DefaultParameterConverter.ConvertValue(arg)
		if err != nil {
			return nil, fmt.Errorf("value %d: %w", i+1, err)
		}
		u.values = append(u.values, driver.NamedValue{Ordinal: i + 1, Value: value})
	}
	affected, err := u.run(text, u.values)
	return driver.RowsAffected(affected), err
}

// Write executes one of the few statements that every reading comes to, whose parameters are question marks, in the order of args, and returns how
// many rows it wrote: dbx would have each value found by its name.
func Write(tx core.App, text string, args ...any) (affected int64, err error) {
	builder := tx.NonconcurrentDB()
	switch open := builder.(type) {
	case *Statements:
		return affectedBy(&open.under, text, args)
	case *dbx.Tx:
		builder = open.Builder
	case *dbx.DB:
		builder = open.Builder
	}
	executes, ok := builder.(interface{ Executor() dbx.Executor })
	if !ok {
		return 0, fmt.Errorf("a %T executes nothing", builder)
	}
	return affectedBy(executes.Executor(), text, args)
}

func affectedBy(executor dbx.Executor, text string, args []any) (int64, error) {
	result, err := executor.Exec(text, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
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

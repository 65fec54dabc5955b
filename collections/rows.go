package collections

import (
	"encoding/json"
	"fmt"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// exec runs a writing statement. what describes the action in the error.
func exec(tx core.App, what, statement string, params dbx.Params) error {
	_, err := tx.NonconcurrentDB().NewQuery(statement).Bind(params).Execute()
	return wrap(err, "%s", what)
}

// execCounted is exec, and returns the number of rows changed.
func execCounted(tx core.App, what, statement string, params dbx.Params) (int64, error) {
	result, err := tx.NonconcurrentDB().NewQuery(statement).Bind(params).Execute()
	if err != nil {
		return 0, wrap(err, "%s", what)
	}
	return result.RowsAffected()
}

// update changes columns of the rows that match a condition.
func update(tx core.App, what, table string, changes dbx.Params, where dbx.Expression) error {
	_, err := tx.NonconcurrentDB().Update(table, changes, where).Execute()
	return wrap(err, "%s", what)
}

// updateCounted is update, and returns the number of rows changed.
func updateCounted(tx core.App, what, table string, changes dbx.Params, where dbx.Expression) (int64, error) {
	result, err := tx.NonconcurrentDB().Update(table, changes, where).Execute()
	if err != nil {
		return 0, wrap(err, "%s", what)
	}
	return result.RowsAffected()
}

// insert adds a row as given.
func insert(tx core.App, what, table string, row dbx.Params) error {
	_, err := tx.NonconcurrentDB().Insert(table, row).Execute()
	return wrap(err, "%s", what)
}

// remove deletes the rows that match a condition.
func remove(tx core.App, what, table string, where dbx.Expression) error {
	_, err := tx.NonconcurrentDB().Delete(table, where).Execute()
	return wrap(err, "%s", what)
}

// queryAll scans all rows of a query into structs, by their db tags.
func queryAll[T any](app core.App, what, query string, params dbx.Params) (found []T, err error) {
	err = app.DB().NewQuery(query).Bind(params).All(&found)
	return found, wrap(err, "%s", what)
}

// queryValue scans the single value of a query that always returns one row.
func queryValue[T any](app core.App, what, query string, params dbx.Params) (found T, err error) {
	err = app.DB().NewQuery(query).Bind(params).Row(&found)
	return found, wrap(err, "%s", what)
}

// queryColumn scans the only column of a query.
func queryColumn[T any](app core.App, what, query string, params dbx.Params) (found []T, err error) {
	err = app.DB().NewQuery(query).Bind(params).Column(&found)
	return found, wrap(err, "%s", what)
}

// rowQuery is a text query or a query builder.
type rowQuery interface{ Rows() (*dbx.Rows, error) }

// eachRow calls each for every row of a query.
func eachRow(what string, query rowQuery, each func(*dbx.Rows) error) error {
	rows, err := query.Rows()
	if err != nil {
		return wrap(err, "%s", what)
	}
	defer rows.Close() //nolint:errcheck // rows.Err below reports the error
	for rows.Next() {
		if err := each(rows); err != nil {
			return wrap(err, "%s", what)
		}
	}
	return wrap(rows.Err(), "%s", what)
}

// readMap scans a query of two columns, key and value, into a map.
func readMap[V any](what string, query rowQuery) (map[string]V, error) {
	found := map[string]V{}
	err := eachRow(what, query, func(rows *dbx.Rows) error {
		var key string
		var value V
		err := rows.Scan(&key, &value)
		found[key] = value
		return err
	})
	return found, err
}

// setOf converts a list to a set.
func setOf(texts []string) map[string]bool {
	set := make(map[string]bool, len(texts))
	for _, text := range texts {
		set[text] = true
	}
	return set
}

// wrap adds context to an error; nil stays nil.
func wrap(err error, what string, about ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(what+": %w", append(about, err)...)
}

// IgnoreNotFound returns nil for an error that means "no row", else err.
func IgnoreNotFound(err error) error {
	if IsNotFound(err) {
		return nil
	}
	return err
}

func jsonList(list []string) string {
	if list == nil {
		list = []string{}
	}
	text, err := json.Marshal(list)
	if err != nil {
		return "[]" // unreachable: strings always encode
	}
	return string(text)
}

// inIDs matches the ids that [idParams] binds.
const inIDs = " IN (SELECT value FROM json_each({:ids}))"

func idParams(ids []string) dbx.Params { return dbx.Params{"ids": jsonList(ids)} }

// idIn matches any number of ids with one parameter.
func idIn(ids []string) dbx.Expression {
	return dbx.NewExp("id IN (SELECT value FROM json_each({:ids}))", dbx.Params{"ids": jsonList(ids)})
}

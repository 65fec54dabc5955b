package collections

import (
	"fmt"
	"slices"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// proxy is a pointer to a record type of this package.
type proxy[T any] interface {
	*T
	core.RecordProxy
}

// dated is a record of a collection that has [ColumnCreatedAt] and, where it can change, [ColumnUpdatedAt].
type dated struct{ core.BaseRecordProxy }

func (r *dated) CreatedAt() time.Time { return instantOf(r, ColumnCreatedAt) }
func (r *dated) UpdatedAt() time.Time { return instantOf(r, ColumnUpdatedAt) }

// aboutPatient is one that has [ColumnPatient], too.
type aboutPatient struct{ dated }

func (r *aboutPatient) PatientID() string { return r.GetString(ColumnPatient) }

// as reads a record as one of a type.
func as[T any, P proxy[T]](record *core.Record) P {
	typed := P(new(T))
	typed.SetProxyRecord(record)
	return typed
}

// allAs reads records as those of a type.
func allAs[T any, P proxy[T]](records []*core.Record) (typed []P) {
	for _, record := range records {
		typed = append(typed, as[T, P](record))
	}
	return typed
}

// fresh returns an unsaved record with values; of a numbered collection, with the next number.
func fresh[T any, P proxy[T]](app core.App, collection string, values map[string]any) (P, error) {
	record, err := New(app, collection)
	if err == nil && slices.Contains(Numbered, collection) {
		record.Id, err = NextID(app, collection)
	}
	if err != nil {
		return nil, err
	}
	record.Load(values)
	return as[T, P](record), nil
}

// store stores a new record with values, and returns it.
func store(tx core.App, what, collection string, values map[string]any) (*core.Record, error) {
	record, err := fresh[core.BaseRecordProxy](tx, collection, values)
	if err != nil {
		return nil, err
	}
	return record.ProxyRecord(), wrap(tx.Save(record), "%s", what)
}

// find finds the record that a condition names.
func find[T any, P proxy[T]](app core.App, collection string, where dbx.Expression) (P, error) {
	found := P(new(T))
	if err := app.RecordQuery(collection).AndWhere(where).Limit(1).One(found); err != nil {
		return nil, fmt.Errorf("find %s: %w", spoken(collection), err)
	}
	return found, nil
}

// findWhole is find for a record that is of no use unless all of it can be read.
func findWhole[T any, P proxy[T]](app core.App, collection string, where dbx.Expression) (P, error) {
	found, err := find[T, P](app, collection, where)
	if err != nil {
		return nil, err
	}
	return found, Readable(found.ProxyRecord())
}

// listOf finds the records for which a condition holds, in an order.
func listOf[T any, P proxy[T]](app core.App, collection string, where dbx.Expression, order ...string) (found []P, err error) {
	err = app.RecordQuery(collection).AndWhere(where).OrderBy(order...).All(&found)
	return found, wrap(err, "list %s", collection)
}

// pageOf returns a page of the records for which a condition holds, in an order, and how many there are in all.
func pageOf[T any, P proxy[T]](app core.App, collection string, where dbx.Expression, order []string, offset, limit int) (page []P, total int, err error) {
	if total, err = (Conditions{where}).Count(app, collection); err != nil {
		return nil, 0, err
	}
	err = app.RecordQuery(collection).AndWhere(where).OrderBy(order...).Offset(int64(offset)).Limit(int64(limit)).All(&page)
	return page, total, wrap(err, "list %s", collection)
}

// exec executes a statement that writes, and says what was being done when it cannot.
func exec(tx core.App, what, statement string, params dbx.Params) error {
	_, err := tx.NonconcurrentDB().NewQuery(statement).Bind(params).Execute()
	return wrap(err, "%s", what)
}

// change is exec for who asks how many rows there were to change.
func change(tx core.App, what, statement string, params dbx.Params) (int64, error) {
	result, err := tx.NonconcurrentDB().NewQuery(statement).Bind(params).Execute()
	if err != nil {
		return 0, wrap(err, "%s", what)
	}
	return result.RowsAffected()
}

// instantOf is the instant in a column of a record.
func instantOf(record interface{ GetString(column string) string }, column string) time.Time {
	return ParseInstant(record.GetString(column))
}

// update changes columns of the rows for which a condition holds.
func update(tx core.App, what, table string, changes dbx.Params, where dbx.Expression) error {
	_, err := tx.NonconcurrentDB().Update(table, changes, where).Execute()
	return wrap(err, "%s", what)
}

// updateCounted is update for who asks how many rows there were to change.
func updateCounted(tx core.App, what, table string, changes dbx.Params, where dbx.Expression) (int64, error) {
	result, err := tx.NonconcurrentDB().Update(table, changes, where).Execute()
	if err != nil {
		return 0, wrap(err, "%s", what)
	}
	return result.RowsAffected()
}

// insert adds a row as it is.
func insert(tx core.App, what, table string, row dbx.Params) error {
	_, err := tx.NonconcurrentDB().Insert(table, row).Execute()
	return wrap(err, "%s", what)
}

// remove removes the rows for which a condition holds.
func remove(tx core.App, what, table string, where dbx.Expression) error {
	_, err := tx.NonconcurrentDB().Delete(table, where).Execute()
	return wrap(err, "%s", what)
}

// queryAll reads what a query finds.
func queryAll[T any](app core.App, what, query string, params dbx.Params) (found []T, err error) {
	err = app.DB().NewQuery(query).Bind(params).All(&found)
	return found, wrap(err, "%s", what)
}

// queryValue reads the value of a query that finds one row and one column, always.
func queryValue[T any](app core.App, what, query string, params dbx.Params) (found T, err error) {
	err = app.DB().NewQuery(query).Bind(params).Row(&found)
	return found, wrap(err, "%s", what)
}

// queryColumn reads the one column of what a query finds.
func queryColumn[T any](app core.App, what, query string, params dbx.Params) (found []T, err error) {
	err = app.DB().NewQuery(query).Bind(params).Column(&found)
	return found, wrap(err, "%s", what)
}

// rowQuery is a query, written out or put together.
type rowQuery interface{ Rows() (*dbx.Rows, error) }

// eachRow goes through what a query finds.
func eachRow(what string, query rowQuery, each func(*dbx.Rows) error) error {
	rows, err := query.Rows()
	if err != nil {
		return wrap(err, "%s", what)
	}
	defer rows.Close() //nolint:errcheck // Err below tells what went wrong
	for rows.Next() {
		if err := each(rows); err != nil {
			return wrap(err, "%s", what)
		}
	}
	return wrap(rows.Err(), "%s", what)
}

// readMap reads a query of two columns, the second by the first.
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

// setOf tells of each text whether it is among some.
func setOf(texts []string) map[string]bool {
	set := make(map[string]bool, len(texts))
	for _, text := range texts {
		set[text] = true
	}
	return set
}

// wrap says what was being done when an error came; nil stays nil.
func wrap(err error, what string, about ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(what+": %w", append(about, err)...)
}

// unlessMissing is err, or nil where it says that no row was found.
func unlessMissing(err error) error {
	if Missing(err) {
		return nil
	}
	return err
}

// Insert stores a new record as it is, past the hooks of its collection: for the engine whose rules those hooks would call.
func Insert(tx core.App, record *core.Record) error {
	columns, err := record.DBExport(tx)
	if err == nil {
		_, err = tx.DB().Insert(record.Collection().Name, columns).Execute()
	}
	if err != nil {
		return fmt.Errorf("store into %s: %w", record.Collection().Name, err)
	}
	record.MarkAsNotNew()
	return nil
}

// Update stores the named columns of a record as they are, past the hooks of its collection.
func Update(tx core.App, record *core.Record, columns ...string) error {
	all, err := record.DBExport(tx)
	if err == nil {
		changed := dbx.Params{}
		for _, column := range columns {
			changed[column] = all[column]
		}
		_, err = tx.DB().Update(record.Collection().Name, changed, dbx.HashExp{"id": record.Id}).Execute()
	}
	return wrap(err, "update %s", record.Collection().Name)
}

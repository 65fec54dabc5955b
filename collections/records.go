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

// datedRecord is a record with [ColumnCreatedAt] and, if it can change, [ColumnUpdatedAt].
type datedRecord struct{ core.BaseRecordProxy }

func (r *datedRecord) CreatedAt() time.Time { return instantOf(r, ColumnCreatedAt) }
func (r *datedRecord) UpdatedAt() time.Time { return instantOf(r, ColumnUpdatedAt) }

// patientRecord is a datedRecord that also has [ColumnPatient].
type patientRecord struct{ datedRecord }

func (r *patientRecord) PatientID() string { return r.GetString(ColumnPatient) }

// as converts a record to a record type.
func as[T any, P proxy[T]](record *core.Record) P {
	typed := P(new(T))
	typed.SetProxyRecord(record)
	return typed
}

// allAs converts records to a record type.
func allAs[T any, P proxy[T]](records []*core.Record) (typed []P) {
	for _, record := range records {
		typed = append(typed, as[T, P](record))
	}
	return typed
}

// newRecord returns an unsaved record with values. In a numbered collection it takes the next number.
func newRecord[T any, P proxy[T]](app core.App, collection string, values map[string]any) (P, error) {
	record, err := NewRecord(app, collection)
	if err == nil && slices.Contains(Numbered, collection) {
		record.Id, err = NextID(app, collection)
	}
	if err != nil {
		return nil, err
	}
	record.Load(values)
	return as[T, P](record), nil
}

// store saves a new record with values and returns it.
func store(tx core.App, what, collection string, values map[string]any) (*core.Record, error) {
	record, err := newRecord[core.BaseRecordProxy](tx, collection, values)
	if err != nil {
		return nil, err
	}
	return record.ProxyRecord(), wrap(tx.Save(record), "%s", what)
}

// find returns the first record that matches a condition.
func find[T any, P proxy[T]](app core.App, collection string, where dbx.Expression) (P, error) {
	found := P(new(T))
	if err := app.RecordQuery(collection).AndWhere(where).Limit(1).One(found); err != nil {
		return nil, fmt.Errorf("find %s: %w", singularName(collection), err)
	}
	return found, nil
}

// findReadable is find for a record that is useless unless all its sealed values open.
func findReadable[T any, P proxy[T]](app core.App, collection string, where dbx.Expression) (P, error) {
	found, err := find[T, P](app, collection, where)
	if err != nil {
		return nil, err
	}
	return found, Readable(found.ProxyRecord())
}

// listOf returns the records that match a condition, in an order.
func listOf[T any, P proxy[T]](app core.App, collection string, where dbx.Expression, order ...string) (found []P, err error) {
	err = app.RecordQuery(collection).AndWhere(where).OrderBy(order...).All(&found)
	return found, wrap(err, "list %s", collection)
}

// pageOf returns one page of the records that match a condition, and the total.
func pageOf[T any, P proxy[T]](app core.App, collection string, where dbx.Expression, order []string, offset, limit int) (page []P, total int, err error) {
	if total, err = (Conditions{where}).Count(app, collection); err != nil {
		return nil, 0, err
	}
	err = app.RecordQuery(collection).AndWhere(where).OrderBy(order...).Offset(int64(offset)).Limit(int64(limit)).All(&page)
	return page, total, wrap(err, "list %s", collection)
}

// pageOfRows is pageOf for some columns, which are scanned into structs by their db tags.
func pageOfRows[T any](app core.App, table string, columns []string, where Conditions, order []string, offset, limit int) (page []T, total int, err error) {
	if total, err = where.Count(app, table); err != nil {
		return nil, 0, err
	}
	err = app.DB().Select(columns...).From(table).Where(AllOf(where)).OrderBy(order...).Offset(int64(offset)).Limit(int64(limit)).All(&page)
	return page, total, wrap(err, "list %s", table)
}

// instantOf parses the time in a column of a record.
func instantOf(record interface{ GetString(column string) string }, column string) time.Time {
	return ParseInstant(record.GetString(column))
}

// Insert stores a new record without running the hooks of its collection. It is for the engine that those hooks would call.
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

// Update stores the named columns of a record without running the hooks of its collection.
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

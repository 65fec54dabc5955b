package collections

import (
	"fmt"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

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

// Package changes knows what was committed, in the order of the commits, and where a reader stands in it. What is told is noted by triggers beside the
// tables themselves, in the transaction of the change, so that there is no way to write that bypasses it; a row's number is given under the one
// lock for writing, so that whoever has read up to a number has missed nothing before it. It refuses to know what the things look like: a change
// names a thing, and whoever may read the thing reads it.
// Source: docs/decisions/changes.md, "Triggers".
package changefeed

import (
	"slices"
	"strconv"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// Change is that something was made, changed or removed.
type Change struct {
	Seq    int64
	Type   string // one of [Types]
	Record string // the id under which the API has it
	Kind   string // created, updated or deleted
	Event  string // the name under which webhooks know it; "" for none
	// Patient is whom it is about; "" for nobody.
	Patient string
	At      time.Time

	mark uint64 // of the row
}

// ID is the id as the API writes it: a number where it is one.
func (c Change) ID() any {
	if number, err := strconv.ParseInt(c.Record, 10, 64); err == nil && collections.NumberedChange(c.Type) {
		return number
	}
	return c.Record
}

// Cursor is the place behind this change.
func (c Change) Cursor() Cursor { return Cursor{c.Seq, c.mark} }

func read(row collections.Change) Change {
	return Change{
		Seq: row.Seq, Type: row.Type, Record: row.Record, Kind: row.Change, Event: row.Event, Patient: row.Patient, At: collections.ParseInstant(row.At), mark: mark(row),
	}
}

// Types are all types, in order.
func Types() []string { return slices.Clone(types) }

var types = collections.ChangeTypes()

// After are the changes after a place, in the order of their commits, at most limit of them; of some types, or of all when types is nil.
func After(app core.App, seq int64, types []string, limit int) ([]Change, error) {
	rows, err := collections.ChangesAfter(app, seq, collections.ChangeFilter{Types: types}, limit)
	return views(rows), err
}

// Last is the number of the newest change, as a place to start from; 1 before the first.
func Last(app core.App) (int64, error) {
	row, err := collections.LastChange(app)
	return row.Seq, err
}

func views(rows []collections.Change) []Change {
	found := make([]Change, len(rows))
	for i, row := range rows {
		found[i] = read(row)
	}
	return found
}

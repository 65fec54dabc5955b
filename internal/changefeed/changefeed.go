// Package changefeed reads the committed changes in commit order and keeps cursors into them. Triggers on the tables record each change in the
// transaction that makes it, so no write can bypass them. Change numbers are assigned under the single write lock, so a reader that has read up to a
// number has missed none before it.
// A change only identifies a resource. The package does not render resources and does not check who may read them.
// Source: docs/decisions/changes.md, "Triggers".
package changefeed

import (
	"slices"
	"strconv"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// Change is the creation, update or deletion of a resource.
type Change struct {
	Seq    int64
	Type   string // one of [Types]
	Record string // the id in the API
	Kind   string // created, updated or deleted
	Event  string // the webhook event; "" for none
	// Patient is the patient concerned; "" for none.
	Patient string
	At      time.Time

	fingerprint uint64 // of the stored row
}

// ID returns the id as the API encodes it: a number for numbered resources.
func (c Change) ID() any {
	if number, err := strconv.ParseInt(c.Record, 10, 64); err == nil && collections.NumberedChange(c.Type) {
		return number
	}
	return c.Record
}

// Cursor returns the position after this change.
func (c Change) Cursor() Cursor { return Cursor{c.Seq, c.fingerprint} }

func newChange(row collections.Change) Change {
	return Change{
		Seq: row.Seq, Type: row.Type, Record: row.Record, Kind: row.Change, Event: row.Event, Patient: row.Patient, At: collections.ParseInstant(row.At), fingerprint: fingerprint(row),
	}
}

// Types lists all resource types in order.
func Types() []string { return slices.Clone(types) }

var types = collections.ChangeTypes()

// After returns at most limit changes after a position, in commit order. If types is not nil, only changes of these types are returned.
func After(app core.App, seq int64, types []string, limit int) ([]Change, error) {
	rows, err := collections.ChangesAfter(app, seq, collections.ChangeFilter{Types: types}, limit)
	return newChanges(rows), err
}

// LastSeq returns the number of the newest change, a position to start from. It is 1 before the first change.
func LastSeq(app core.App) (int64, error) {
	row, err := collections.LastChange(app)
	return row.Seq, err
}

func newChanges(rows []collections.Change) []Change {
	found := make([]Change, len(rows))
	for i, row := range rows {
		found[i] = newChange(row)
	}
	return found
}

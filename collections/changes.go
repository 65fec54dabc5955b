package collections

import (
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// Change is one committed create, update or delete. It names the object and contains none of its data.
type Change struct {
	Seq    int64  `db:"seq"`
	Type   string `db:"type"`
	Record string `db:"record"` // id in the API
	Change string `db:"change"`
	Event  string `db:"event"` // "" for none
	// Patient is the patient that the change is about, or "".
	Patient string `db:"patient"`
	At      string `db:"at"`
}

var changeColumns = []string{"seq", "type", "record", "change", "event", ColumnPatient, "at"}

// ChangesTable is the table of changes. It is not a collection.
const ChangesTable = "changes"

// ChangeFilter narrows changes; zero values do not narrow, except an empty, non-nil list of types.
type ChangeFilter struct {
	Types []string // nil for all
	// Team selects the patients of a user's care teams (record id), and changes about no patient.
	Team string
	UpTo int64 // last position
}

// ChangesAfter returns up to limit changes after a position, in commit order. It does not wait for the writer.
func ChangesAfter(app core.App, seq int64, f ChangeFilter, limit int) (found []Change, err error) {
	where := Conditions{dbx.NewExp("seq > {:after} AND type != ''", dbx.Params{"after": seq})}
	if f.Types != nil {
		where = append(where, AnyOf("type", f.Types))
	}
	if f.Team != "" {
		where = append(where, dbx.Or(dbx.HashExp{ColumnPatient: ""}, OnCareTeam(ColumnPatient, f.Team)))
	}
	if f.UpTo != 0 {
		where = append(where, dbx.NewExp("seq <= {:upto}", dbx.Params{"upto": f.UpTo}))
	}
	err = app.ConcurrentDB().Select(changeColumns...).From(ChangesTable).Where(AllOf(where)).OrderBy("seq").Limit(int64(limit)).All(&found)
	return found, wrap(err, "read changes")
}

// ChangeAt returns the row at a position.
func ChangeAt(app core.App, seq int64) (Change, error) {
	return changeWhere(app, "seq = {:seq}", seq, "seq")
}

// ChangeUpTo returns the newest row at or before a position.
func ChangeUpTo(app core.App, seq int64) (Change, error) {
	return changeWhere(app, "seq <= {:seq}", seq, "seq DESC")
}

// FirstChange returns the oldest kept row, which may be a placeholder.
func FirstChange(app core.App) (Change, error) { return changeWhere(app, "seq >= {:seq}", 0, "seq") }

// LastChange returns the newest row, which may be a placeholder.
func LastChange(app core.App) (Change, error) {
	return changeWhere(app, "seq >= {:seq}", 0, "seq DESC")
}

func changeWhere(app core.App, where string, seq int64, order string) (found Change, err error) {
	err = app.ConcurrentDB().Select(changeColumns...).From(ChangesTable).Where(dbx.NewExp(where, dbx.Params{"seq": seq})).OrderBy(order).Limit(1).One(&found)
	return found, wrap(err, "read a change")
}

// MarkChangePosition records the last position at a time.
func MarkChangePosition(app core.App, now time.Time) error {
	return exec(app, "mark the changes", `INSERT INTO change_marks (at, seq) SELECT {:now}, MAX(seq) FROM changes WHERE TRUE ON CONFLICT DO NOTHING`,
		dbx.Params{"now": FormatInstant(now)})
}

// RemoveChanges deletes up to limit of the oldest changes. It deletes only changes before the last mark that is older than a time, so a caller
// that polls more often keeps a valid cursor. The newest change is never deleted, and the kept ones have no gap.
func RemoveChanges(app core.App, before time.Time, limit int) (removed int, err error) {
	params := dbx.Params{"before": FormatInstant(before), "limit": limit}
	err = app.RunInTransaction(func(tx core.App) error {
		n, err := execCounted(tx, "remove old changes", `DELETE FROM changes WHERE seq < (SELECT MIN(seq) FROM changes) + {:limit}
			AND seq < (SELECT MAX(seq) FROM change_marks WHERE at < {:before})`, params)
		if err != nil {
			return err
		}
		removed = int(n)
		return exec(tx, "remove old marks", `DELETE FROM change_marks WHERE at < {:before} AND seq < (SELECT MIN(seq) FROM changes)`, params)
	})
	return removed, err
}

// WithoutChanges runs work in a transaction and deletes the changes that it recorded. It is for writes that change no value, such as sealing
// values under another key.
func WithoutChanges(tx core.App, work func() error) error {
	var last int64
	if err := tx.NonconcurrentDB().NewQuery(`SELECT COALESCE(MAX(seq), 0) FROM changes`).Row(&last); err != nil {
		return fmt.Errorf("note the last change: %w", err)
	}
	if err := work(); err != nil {
		return err
	}
	return remove(tx, "delete changes of unchanged values", ChangesTable, dbx.NewExp("seq > {:last}", dbx.Params{"last": last}))
}

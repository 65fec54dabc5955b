package collections

import (
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// Change is that something was made, changed or removed, as it was committed. It names things and holds nothing of them.
type Change struct {
	Seq    int64  `db:"seq"`
	Type   string `db:"type"`
	Record string `db:"record"` // the id under which the API has it
	Change string `db:"change"`
	Event  string `db:"event"` // "" for none
	// Patient is whom it is about; "" for nobody.
	Patient string `db:"patient"`
	At      string `db:"at"`
}

var changeColumns = []string{"seq", "type", "record", "change", "event", ColumnPatient, "at"}

// ChangeFilter narrows what is read; zero values do not, but for types that are named and none.
type ChangeFilter struct {
	Types []string // nil for all
	// Team keeps what is about nobody, and the patients whose care team this user (record id) belongs to.
	Team string
	UpTo int64 // the last place that is looked at
}

// ChangesAfter are the changes after a place, in the order of their commits, at most limit of them. It reads beside the writer and never waits for it.
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
	err = app.ConcurrentDB().Select(changeColumns...).From("changes").Where(Every(where)).OrderBy("seq").Limit(int64(limit)).All(&found)
	return found, wrap(err, "read changes")
}

// ChangeAt is the row at a place.
func ChangeAt(app core.App, seq int64) (Change, error) {
	return changeWhere(app, "seq = {:seq}", seq, "seq")
}

// ChangeUpTo is the newest row that is not behind a place.
func ChangeUpTo(app core.App, seq int64) (Change, error) {
	return changeWhere(app, "seq <= {:seq}", seq, "seq DESC")
}

// FirstChange is the oldest row that is kept, which may be of nothing.
func FirstChange(app core.App) (Change, error) { return changeWhere(app, "seq >= {:seq}", 0, "seq") }

// LastChange is the newest row, which may be of nothing.
func LastChange(app core.App) (Change, error) {
	return changeWhere(app, "seq >= {:seq}", 0, "seq DESC")
}

func changeWhere(app core.App, where string, seq int64, order string) (found Change, err error) {
	err = app.ConcurrentDB().Select(changeColumns...).From("changes").Where(dbx.NewExp(where, dbx.Params{"seq": seq})).OrderBy(order).Limit(1).One(&found)
	return found, wrap(err, "read a change")
}

// MarkChanges notes how far the changes have gone.
func MarkChanges(app core.App, now time.Time) error {
	return exec(app, "mark the changes", `INSERT INTO change_marks (at, seq) SELECT {:now}, MAX(seq) FROM changes ON CONFLICT DO NOTHING`,
		dbx.Params{"now": Instant(now)})
}

// What may expire of them. A change goes when the one after it is from before a mark that is older than {:before}: whoever asks at least that often keeps a
// place that is still there, and the newest stays for ever. The oldest go first, so that what is kept has no gap.
var (
	ExpiredChanges = Expired{
		Table: "changes", key: "seq",
		where: `seq < (SELECT MIN(seq) FROM changes) + 500 AND seq < (SELECT MAX(seq) FROM change_marks WHERE at < {:before})`,
	}
	ExpiredChangeMarks = Expired{
		Table: "change_marks", key: "at", where: `at < {:before} AND seq < (SELECT MAX(seq) FROM change_marks WHERE at < {:before})`,
	}
)

// Untold runs work inside a transaction so that what it changes is no change for those who follow: values that stay what they are, under another key.
func Untold(tx core.App, work func() error) error {
	var last int64
	if err := tx.NonconcurrentDB().NewQuery(`SELECT COALESCE(MAX(seq), 0) FROM changes`).Row(&last); err != nil {
		return fmt.Errorf("note the last change: %w", err)
	}
	if err := work(); err != nil {
		return err
	}
	return remove(tx, "take back what is no change", "changes", dbx.NewExp("seq > {:last}", dbx.Params{"last": last}))
}

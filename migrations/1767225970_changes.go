package migrations

import "github.com/pocketbase/pocketbase/core"

// What was changed, in the order of the commits. It is no collection: nobody may change it in the dashboard, and only triggers write it. They are
// made when the data folder is opened, from one declaration, since the columns that they look at grow with the kinds of readings.
//
// It is as small as can be, for every reading adds a row. A number is one more than the largest, and the row that has it is never removed, so that none
// is given twice; there is no constraint but the key, and nothing that SQLite would compute. The first row is of nothing: it gives a reader who has
// seen no change yet a place that is this database's alone.
//
// Marks say how far the changes went on a day: what is older goes by them, whatever the clocks said that stamped the rows.
func init() {
	step("1767225970_changes.go", func(app core.App) error {
		return execute(app,
			`CREATE TABLE changes (seq INTEGER PRIMARY KEY, type TEXT, record TEXT, change TEXT, event TEXT, patient TEXT, at TEXT)`,
			`CREATE TABLE change_marks (at TEXT PRIMARY KEY NOT NULL, seq INTEGER NOT NULL) WITHOUT ROWID`,
			`INSERT INTO changes (type, record, change, event, patient, at) VALUES ('', lower(hex(randomblob(16))), '', '', '', '')`,
		)
	})
}

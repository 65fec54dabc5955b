package migrations

import "github.com/pocketbase/pocketbase/core"

// What was changed, in the order of the commits. It is no collection: nobody may change it in the dashboard, and only triggers write it. They are
// made when the data folder is opened, from one declaration, since the columns that they look at grow with the kinds of readings.
//
// The first row is of nothing: it gives a reader who has seen no change yet a place that is this database's alone. No constraint but the key: each
// would be checked for every reading.
func init() {
	step("1767225970_changes.go", func(app core.App) error {
		return execute(app,
			`CREATE TABLE changes (seq INTEGER PRIMARY KEY AUTOINCREMENT, nonce INTEGER DEFAULT (random() >> 24), type TEXT, record TEXT, change TEXT,
				event TEXT, patient TEXT, at TEXT DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')))`,
			`INSERT INTO changes (type, record, change, event, patient) VALUES ('', '', '', '', '')`,
		)
	})
}

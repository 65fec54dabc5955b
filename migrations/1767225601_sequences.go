package migrations

import "github.com/pocketbase/pocketbase/core"

// Plain tables that are nobody's business in the dashboard: number sequences, sealed keys, and the two tables of
// days and counts that are kept in the transaction of each reading.
func init() {
	step("1767225601_sequences.go", func(app core.App) error {
		return execute(app,
			`CREATE TABLE sequences (name TEXT PRIMARY KEY NOT NULL, value INTEGER NOT NULL) WITHOUT ROWID`,
			`CREATE TABLE sealed_keys (name TEXT PRIMARY KEY NOT NULL, sealed TEXT NOT NULL) WITHOUT ROWID`,
			// The days with data of a patient, in the patient's time zone: the evidence behind device billing.
			`CREATE TABLE reading_days (patient TEXT NOT NULL, day TEXT NOT NULL, observation_type TEXT NOT NULL,
				first_observation TEXT NOT NULL, readings INTEGER NOT NULL, device_readings INTEGER NOT NULL,
				PRIMARY KEY (patient, day, observation_type)) WITHOUT ROWID`,
			// Readings per day of measurement in the practice's time zone: exact totals without scans.
			`CREATE TABLE daily_counts (day TEXT NOT NULL, observation_type TEXT NOT NULL, status TEXT NOT NULL,
				readings INTEGER NOT NULL, PRIMARY KEY (day, observation_type, status)) WITHOUT ROWID`,
		)
	})
}

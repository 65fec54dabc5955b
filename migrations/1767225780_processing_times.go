package migrations

import "github.com/pocketbase/pocketbase/core"

// How long readings took from receipt to storage, by quarter of an hour (its start, UTC): how many took so many milliseconds and what they
// took together. Written once for each transaction of readings, so that a day's figures are read from a few hundred rows. What this version
// finds of the last day is counted once.
func init() {
	step("1767225780_processing_times.go", func(app core.App) error {
		return execute(app,
			`CREATE TABLE processing_times (bucket TEXT NOT NULL, ms INTEGER NOT NULL, readings INTEGER NOT NULL, total_us INTEGER NOT NULL,
				PRIMARY KEY (bucket, ms)) WITHOUT ROWID`,
			`INSERT INTO processing_times (bucket, ms, readings, total_us)
				SELECT strftime('%Y-%m-%dT%H:', created_at) || printf('%02d', CAST(strftime('%M', created_at) AS INTEGER) / 15 * 15) || ':00.000000Z',
					CAST(ROUND(processing_ms) AS INTEGER), COUNT(*), CAST(SUM(ROUND(processing_ms * 1000)) AS INTEGER)
				FROM observations WHERE processing_ms IS NOT NULL AND created_at > strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-1 day') GROUP BY 1, 2`,
		)
	})
}

package migrations

import "github.com/pocketbase/pocketbase/core"

// Which encryption keys stored values need, so that a start without one of them is refused instead of showing people without names;
// and which keys the running service holds, so that no command beside it seals what it could not open.
func init() {
	step("1767225810_ring_keys.go", func(app core.App) error {
		return execute(app,
			// A value that only this key opens, and how often a process has begun to seal under it.
			`CREATE TABLE ring_keys (key_id TEXT PRIMARY KEY NOT NULL, sealed TEXT NOT NULL, uses INTEGER NOT NULL) WITHOUT ROWID`,
			`CREATE TABLE service_keys (key_id TEXT PRIMARY KEY NOT NULL, sealed TEXT NOT NULL, seals INTEGER NOT NULL) WITHOUT ROWID`,
		)
	})
}

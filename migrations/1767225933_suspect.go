package migrations

import "github.com/pocketbase/pocketbase/core"

// A weight has more bounds than that of its change.
func init() {
	step("1767225933_suspect.go", func(app core.App) error {
		// The practice's starting values, to be signed off by its medical director. A bound that is there stays, and a group that is off.
		return execute(app, `UPDATE thresholds SET bounds = json_insert(bounds, '$.weight.daily_change_kg', 1.4, '$.weight.over_target_kg', 2.3)
			WHERE patient = '' AND json_valid(bounds) AND json_type(bounds, '$.weight') = 'object'`)
	})
}

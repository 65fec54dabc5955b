package migrations

import "github.com/pocketbase/pocketbase/core"

// A patient's readings of all kinds are found where each kind stands in order of time, so the same once more without kinds goes: every reading entered it in
// a place of its own.
func init() {
	step("1767225992_readings_by_kind.go", func(app core.App) error {
		return dropIndexes(app, "observations", "patient_time")
	})
}

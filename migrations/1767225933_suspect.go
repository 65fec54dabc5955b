package migrations

import (
	"fmt"
	"slices"

	"github.com/pocketbase/pocketbase/core"
)

// A reading may be suspect, which is none of those that hold; a weight has more bounds than that of its change.
func init() {
	step("1767225933_suspect.go", func(app core.App) error {
		observations, err := app.FindCollectionByNameOrId("observations")
		if err != nil {
			return fmt.Errorf("find observations: %w", err)
		}
		status := observations.Fields.GetByName("status").(*core.SelectField)
		status.Values = append(slices.Clone(status.Values), "suspect")
		if err := (&table{Collection: observations}).save(app); err != nil {
			return err
		}
		// The practice's starting values, to be signed off by its medical director. A bound that is there stays, and a group that is off.
		return execute(app, `UPDATE thresholds SET bounds = json_insert(bounds, '$.weight.daily_change_kg', 1.4, '$.weight.over_target_kg', 2.3)
			WHERE patient = '' AND json_valid(bounds) AND json_type(bounds, '$.weight') = 'object'`)
	})
}

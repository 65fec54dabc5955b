package migrations

import "github.com/pocketbase/pocketbase/core"

// The scores that are there were made by another formula: without a time of scoring they are worked out anew when the program starts.
func init() {
	step("1767225930_triage_bands.go", func(app core.App) error {
		return execute(app, `UPDATE triage_scores SET scored_at = ''`)
	})
}

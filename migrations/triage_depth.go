package migrations

import "github.com/pocketbase/pocketbase/core"

// Scores of an earlier formula are computed again at the next start: depth by parameter, and a graded band of warnings.
func init() {
	register("1767227410_triage_depth.go", func(app core.App) error {
		return execute(app, `UPDATE triage_scores SET scored_at = ''`)
	})
}

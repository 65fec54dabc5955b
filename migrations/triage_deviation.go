package migrations

import "github.com/pocketbase/pocketbase/core"

// Scores of an earlier formula are computed again at the next start: deviation by parameter, and one kind of value counted once.
func init() {
	register("1795950370_triage_deviation.go", func(app core.App) error {
		return execute(app, `UPDATE triage_scores SET scored_at = ''`)
	})
}

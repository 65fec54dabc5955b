package jobs

import (
	"context"

	"github.com/pocketbase/pocketbase/core"
)

// cleanExports deletes expired bulk exports.
func cleanExports(e Engines, _ context.Context, app core.App) (counts, error) {
	removed, err := e.Exports.Sweep(app, e.Clock.Now().UTC())
	return counts{"removed": removed}, err
}

package jobs

import (
	"context"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// cleanExports deletes expired bulk exports.
func cleanExports(e Engines, _ context.Context, app core.App) (counts, error) {
	removed, err := e.Exports.Sweep(app, e.Clock.Now().UTC())
	return counts{"removed": removed}, err
}

// purgeIdempotencyKeys deletes expired answers.
func purgeIdempotencyKeys(e Engines, ctx context.Context, app core.App) (counts, error) {
	gone, err := collections.PurgeIdempotencyKeys(ctx, app, e.Clock.Now().UTC())
	return counts{"gone": gone}, err
}

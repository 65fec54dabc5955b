package jobs

import (
	"context"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/idempotency"
)

// forgetKeys removes the answers that nobody can ask for again.
func forgetKeys(e Engines, ctx context.Context, app core.App) (counts, error) {
	gone, err := idempotency.Sweep(ctx, app, e.Clock.Now().UTC())
	return counts{"gone": gone}, err
}

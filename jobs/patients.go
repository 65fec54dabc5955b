package jobs

import (
	"context"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/patients"
)

// keepAges lets the practice's thresholds hold for whoever has come of age.
func keepAges(e Engines, ctx context.Context, app core.App) (counts, error) {
	seen, changed, err := patients.KeepAgeGroups(ctx, app, e.Clock.Now().UTC(), e.Zone)
	return counts{"seen": seen, "changed": changed}, err
}

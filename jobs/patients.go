package jobs

import (
	"context"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/patients"
)

// updateAges applies the practice's thresholds to patients who have become adults.
func updateAges(e Engines, ctx context.Context, app core.App) (counts, error) {
	seen, changed, err := patients.UpdateAgeGroups(ctx, app, e.Clock.Now().UTC(), e.Zone)
	return counts{"seen": seen, "changed": changed}, err
}

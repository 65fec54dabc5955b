package migrations

import (
	"fmt"

	"github.com/pocketbase/pocketbase/core"
)

func init() { register("1795975001_caregiver_index.go", addCaregiverIndex) }

// addCaregiverIndex adds an index by patient, which also has the accesses that ended.
func addCaregiverIndex(app core.App) error {
	caregivers, err := app.FindCollectionByNameOrId("caregivers")
	if err != nil {
		return fmt.Errorf("find the caregivers: %w", err)
	}
	caregivers.AddIndex("idx_caregivers_patient", false, "`patient`", "")
	if err := app.Save(caregivers); err != nil {
		return fmt.Errorf("store the collection %s: %w", caregivers.Name, err)
	}
	return nil
}

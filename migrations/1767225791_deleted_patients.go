package migrations

import (
	"fmt"

	"github.com/pocketbase/pocketbase/core"
)

// Lists leave out what belongs to deleted patients, who are few: they are found without reading everyone.
func init() {
	step("1767225791_deleted_patients.go", func(app core.App) error {
		patients, err := app.FindCollectionByNameOrId("patients")
		if err != nil {
			return fmt.Errorf("find patients: %w", err)
		}
		patients.AddIndex("idx_patients_deleted", false, "id", "deleted_at != ''")
		if err := app.Save(patients); err != nil {
			return fmt.Errorf("index of deleted patients: %w", err)
		}
		return nil
	})
}

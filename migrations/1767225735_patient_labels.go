package migrations

import (
	"fmt"

	"github.com/pocketbase/pocketbase/core"
)

// Wherever the dashboard names a patient it shows the name beside the medical record number: from the number alone it is too easy
// to pick the wrong person.
func init() {
	step("1767225735_patient_labels.go", func(app core.App) error {
		patients, err := app.FindCollectionByNameOrId("patients")
		if err != nil {
			return fmt.Errorf("find patients: %w", err)
		}
		for _, name := range []string{"first_name", "last_name"} {
			if field, ok := patients.Fields.GetByName(name).(interface{ SetPresentable(bool) }); ok {
				field.SetPresentable(true)
			}
		}
		return app.Save(patients)
	})
}

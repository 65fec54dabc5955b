package migrations

import "github.com/pocketbase/pocketbase/core"

func init() { register("1795950400_named_practitioners.go", addNamedPractitioners) }

// addNamedPractitioners adds practitioners of other practices: who referred a patient, and who ordered the monitoring.
func addNamedPractitioners(app core.App) error {
	err := changeCollection(app, "patients", []string{
		`{"name": "referring_provider", "type": "phi", "id": "phi3318400201", "help": "npi, first_name, last_name. Encrypted at rest.", "max": 1000, "purpose": "patients.referring_provider"}`,
	})
	if err != nil {
		return err
	}
	return changeCollection(app, "orders", []string{
		`{"name": "ordering_provider", "type": "phi", "id": "phi3318400202", "help": "npi, first_name, last_name, if not the author. Encrypted at rest.", "max": 1000, "purpose": "orders.ordering_provider"}`,
	})
}

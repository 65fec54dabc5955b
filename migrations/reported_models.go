package migrations

import "github.com/pocketbase/pocketbase/core"

func init() { register("1795953000_reported_models.go", addReportedModels) }

// addReportedModels adds the model that a device's own events state, beside the one a person
// entered. A device that no person registered has only the reported one. Who wrote the model of any
// other device is unknown, so it counts as a person's and must not be lost.
func addReportedModels(app core.App) error {
	err := changeCollection(app, "devices", []string{
		`{"name": "reported_model", "type": "text", "id": "text2054077147", "help": "As its gateway states it; model is what a person entered.", "max": 100}`,
	})
	if err != nil {
		return err
	}
	return execute(app, `UPDATE devices SET reported_model = model, model = '' WHERE status = 'discovered' AND model != ''`)
}

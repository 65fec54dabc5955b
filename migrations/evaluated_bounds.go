package migrations

import (
	"encoding/json"

	"github.com/pocketbase/pocketbase/core"
)

func init() { register("1795943100_evaluated_bounds.go", addEvaluatedBounds) }

// addEvaluatedBounds adds the bounds by which a reading was evaluated. Readings from before have none, since the bounds of that time are unknown.
func addEvaluatedBounds(app core.App) error {
	observations, err := app.FindCollectionByNameOrId("observations")
	if err != nil {
		return err
	}
	const field = `{"name": "evaluated_bounds", "type": "phi", "id": "phi1795943100", "max": 2000, "purpose": "observations.evaluated_bounds",
		"help": "The bounds in force when it was evaluated, as JSON by parameter. Encrypted at rest."}`
	if err := observations.Fields.AddMarshaledJSON(json.RawMessage(field)); err != nil {
		return err
	}
	return app.Save(observations)
}

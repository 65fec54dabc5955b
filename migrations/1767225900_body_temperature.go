package migrations

import (
	"fmt"
	"slices"

	"github.com/pocketbase/pocketbase/core"
)

// Body temperature is a kind of reading.
func init() {
	step("1767225900_body_temperature.go", func(app core.App) error {
		for name, field := range map[string]string{
			"observations": "observation_type", "transmissions": "observation_type", "devices": "kind", "snoozes": "type",
		} {
			collection, err := app.FindCollectionByNameOrId(name)
			if err != nil {
				return fmt.Errorf("find %s: %w", name, err)
			}
			kinds := collection.Fields.GetByName(field).(*core.SelectField)
			kinds.Values = append(slices.Clone(kinds.Values), "body_temperature")
			t := &table{Collection: collection}
			if name == "observations" {
				t.optional("temperature_c", "Degrees Celsius, 25 to 45.")
			}
			if err := t.save(app); err != nil {
				return err
			}
		}
		// The practice's starting values, to be signed off by its medical director.
		return execute(app, `UPDATE thresholds SET bounds = json_set(bounds, '$.body_temperature',
				json('{"critical_low": 35, "low": 36, "high": 38, "critical": 39.1}'))
			WHERE patient = '' AND json_valid(bounds) AND json_type(bounds, '$.body_temperature') IS NULL`)
	})
}

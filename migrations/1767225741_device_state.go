package migrations

import (
	"fmt"

	"github.com/pocketbase/pocketbase/core"
)

// What a device measures, how its battery stands and what was said about it; set-up goes with the assignment, so that the
// evidence outlives it; and one missed_reading alert for each patient and date.
func init() {
	step("1767225741_device_state.go", func(app core.App) error {
		for name, change := range map[string]func(*core.Collection){
			"devices": func(c *core.Collection) {
				c.Fields.Add(
					choice("kind", "What it measures, as its type or its first reading says.", "blood_pressure", "weight", "pulse_oximetry", "blood_glucose"),
					instant("battery_at", "Time of the event that told the battery's level."),
					choice("battery_told", "The worst level an alert was raised for since the battery was last full.", "low", "critical"),
				)
			},
			"device_assignments": func(c *core.Collection) {
				c.Fields.Add(instant("setup_completed_at", "Patient education done."), text("setup_completed_by", 254, "E-mail address."))
			},
			"alerts": func(c *core.Collection) {
				c.AddIndex("idx_alerts_missed", true, "patient, parameter", "type = 'missed_reading'")
			},
		} {
			collection, err := app.FindCollectionByNameOrId(name)
			if err != nil {
				return fmt.Errorf("find %s: %w", name, err)
			}
			change(collection)
			if err := app.Save(collection); err != nil {
				return fmt.Errorf("collection %s: %w", name, err)
			}
		}
		return nil
	})
}

package migrations

import (
	"fmt"

	"github.com/pocketbase/pocketbase/core"
)

func init() { register("1795939260_device_clocks.go", addClockDoubts) }

// addClockDoubts adds the newest time that a device's own clock reported, and whether an alert is about a reading with a doubtful time. The
// first is estimated for devices in use: the older of their last reading, which a person may have typed, and of the last sign of life.
func addClockDoubts(app core.App) error {
	for name, field := range map[string]core.Field{
		"devices": &core.TextField{Name: "newest_measured_at", Help: "The newest time of its own readings. UTC, as 2026-01-15T13:45:00.000000Z.", Max: 27},
		"alerts":  &core.BoolField{Name: "time_in_doubt", Help: "Its reading is dated by receipt until a person confirms it."},
	} {
		collection, err := app.FindCollectionByNameOrId(name)
		if err != nil {
			return fmt.Errorf("find the collection %s: %w", name, err)
		}
		collection.Fields.Add(field)
		if err := app.Save(collection); err != nil {
			return fmt.Errorf("store the collection %s: %w", name, err)
		}
	}
	return execute(app, `UPDATE devices SET newest_measured_at = MIN(last_reading_at, last_seen_at) WHERE last_seen_at != ''`)
}

package migrations

import "github.com/pocketbase/pocketbase/core"

func init() { register("1795965001_event_measurements.go", addEventMeasurements) }

// addEventMeasurements adds the index that finds the quarantined forms of one measurement: each stored reading looks for them.
func addEventMeasurements(app core.App) error {
	return changeCollection(app, "gateway_events", nil,
		"CREATE INDEX `idx_gateway_events_measurement` ON `gateway_events` (device_id, timestamp) WHERE device_id != '' AND status != 'handled'")
}

package migrations

import "github.com/pocketbase/pocketbase/core"

func init() { register("1795943200_typed_values.go", addTypedValues) }

// addTypedValues adds the index that finds a patient's quarantined events.
func addTypedValues(app core.App) error {
	return changeCollection(app, "gateway_events", nil, "CREATE INDEX `idx_gateway_events_patient` ON `gateway_events` (patient, received_at) WHERE patient != ''")
}

package migrations

import "github.com/pocketbase/pocketbase/core"

func init() { register("1795978000_quarantine_critical.go", addQuarantineCritical) }

// addQuarantineCritical adds the mark of quarantined events with a dangerous value that no alert is about, and the index that counts the pending ones.
func addQuarantineCritical(app core.App) error {
	return changeCollection(app, "gateway_events",
		[]string{`{"name": "critical", "type": "bool", "id": "bool1464146891", "help": "It has a value beyond a critical bound that no alert is about."}`},
		"CREATE INDEX `idx_gateway_events_critical` ON `gateway_events` (status, received_at) WHERE critical = TRUE")
}

package migrations

import "github.com/pocketbase/pocketbase/core"

func init() { register("1795950500_received_at.go", addReceivedAt) }

// addReceivedAt adds when a reading was received that was stored later, by a person or a replay. Those that wait for their time get it from
// their event.
func addReceivedAt(app core.App) error {
	err := changeCollection(app, "observations", []string{
		`{"name": "received_at", "type": "text", "id": "text2716401621", "help": "When its event was received, if a person or a replay stored it later. UTC, as 2026-01-15T13:45:00.000000Z.", "max": 27}`,
	})
	if err != nil {
		return err
	}
	return execute(app, `UPDATE observations SET received_at = COALESCE((SELECT MIN(e.received_at) FROM gateway_events e WHERE e.observation = observations.id), '')
		WHERE status = 'suspect' AND suspect_reason = 'device_clock'`)
}

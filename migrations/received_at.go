package migrations

import "github.com/pocketbase/pocketbase/core"

func init() { register("1795950500_received_at.go", addReceivedAt) }

// addReceivedAt adds when a reading was received that a person or a replay stored later. Readings
// that wait for their time get it from their event.
func addReceivedAt(app core.App) error {
	err := changeCollection(app, "observations", []string{
		`{"name": "received_at", "type": "text", "id": "text2716401621", "help": "When its event was received, if a person or a replay stored it later. UTC, as 2026-01-15T13:45:00.000000Z.", "max": 27}`,
	})
	if err != nil {
		return err
	}
	return execute(app, `UPDATE observations SET received_at = e.first FROM (
			SELECT observation, MIN(received_at) AS first FROM gateway_events WHERE observation != '' GROUP BY observation
		) e WHERE e.observation = observations.id AND observations.status = 'suspect' AND observations.suspect_reason = 'device_clock'
			AND e.first < observations.created_at`)
}

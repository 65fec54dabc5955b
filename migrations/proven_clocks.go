package migrations

import "github.com/pocketbase/pocketbase/core"

func init() { register("1795950410_proven_clocks.go", addProvenClocks) }

// addProvenClocks adds when a reading last proved the clock of its device, and whether a late alert escalates. A device in use is proven if its
// last reading arrived within an hour of its time, unless its clock is in doubt now.
func addProvenClocks(app core.App) error {
	err := changeCollection(app, "devices", []string{
		`{"name": "clock_proven_at", "type": "text", "id": "text2716401611", "help": "When a reading last arrived within an hour of its time. UTC, as 2026-01-15T13:45:00.000000Z.", "max": 27}`,
	})
	if err != nil {
		return err
	}
	err = changeCollection(app, "alerts", []string{
		`{"name": "escalates_late", "type": "bool", "id": "bool2716401612", "help": "Its reading is late and opens an escalation all the same: nothing proves the clock of its device."}`,
	})
	if err != nil {
		return err
	}
	return execute(app, `UPDATE devices SET clock_proven_at = last_seen_at WHERE clock_wrong_at = '' AND last_seen_at != '' AND (
		SELECT julianday(o.created_at) - julianday(o.measured_at) FROM observations o WHERE o.device_id = devices.device_id AND o.source = 'gateway'
		ORDER BY o.measured_at DESC LIMIT 1) <= 1.0 / 24`)
}

package migrations

import "github.com/pocketbase/pocketbase/core"

func init() { register("1796100010_patient_zones.go", addEarlierZones) }

// addEarlierZones adds the earlier time zones of a patient: days with data keep the zone in which they were.
func addEarlierZones(app core.App) error {
	return changeCollection(app, "patients", []string{
		`{"name": "earlier_zones", "type": "json", "id": "json1796100010", "help": "zone, until: the time zones before the present one.", "maxSize": 65536}`,
	})
}

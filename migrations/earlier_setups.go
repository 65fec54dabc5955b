package migrations

import "github.com/pocketbase/pocketbase/core"

func init() { register("1796100030_earlier_setups.go", addEarlierSetups) }

// addEarlierSetups adds the set-ups of an assignment before the latest: of an earlier episode of care, or billed.
func addEarlierSetups(app core.App) error {
	return changeCollection(app, "device_assignments", []string{
		`{"name": "earlier_setups", "type": "json", "id": "json1796100030", "help": "at, by: the set-ups before the latest.", "maxSize": 65536}`,
	})
}

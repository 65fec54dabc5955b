package migrations

import "github.com/pocketbase/pocketbase/core"

func init() { register("1795950600_left_out.go", addLeftOut) }

// addLeftOut adds the fields of a reading's event that could not be read.
func addLeftOut(app core.App) error {
	return changeCollection(app, "observations", []string{
		`{"name": "left_out", "type": "text", "id": "text1795950600", "help": "Fields of its event that could not be read, separated by spaces.", "max": 500}`,
	})
}

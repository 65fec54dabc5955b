package migrations

import (
	"encoding/json"
	"fmt"

	"github.com/pocketbase/pocketbase/core"
)

func init() { register("1796120000_event_positions.go", addEventPositions) }

// eventPositionsCollection is how far the practice has stored the events of a stream. The id is the stream's name.
const eventPositionsCollection = `{"id": "pbc_1796120010", "type": "base", "name": "event_positions", "system": false, "fields": [
	{"name": "id", "type": "text", "id": "text3208210256", "max": 64, "min": 1, "pattern": "^[A-Za-z0-9._-]+$", "primaryKey": true, "required": true, "system": true},
	{"name": "sequence", "type": "number", "id": "number1796120011", "help": "All events of the practice up to this sequence of the stream are stored.", "onlyInt": true, "min": 0},
	{"name": "published_at", "type": "text", "id": "text1796120012", "help": "When the stream stored that event: UTC, as 2026-01-15T13:45:00.000000Z.", "max": 27}]}`

// addEventPositions adds the position in the event stream, from which a restored database reads the stream again.
func addEventPositions(app core.App) error {
	added := &core.Collection{}
	if err := json.Unmarshal([]byte(eventPositionsCollection), added); err != nil {
		return err
	}
	if err := app.Save(added); err != nil {
		return fmt.Errorf("store the collection %s: %w", added.Name, err)
	}
	return nil
}

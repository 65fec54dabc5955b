package alerts

import (
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/validate"
)

// MaxBulk limits the alerts of one request. Source: docs/decisions/alerts.md, "Several at once".
const MaxBulk = 200

// BulkSelection holds the public numbers of the alerts of a bulk request, without duplicates, and an optional note.
type BulkSelection struct {
	Numbers []int64
	Notes   phi.Text
}

// BulkBody is the body of a request about several alerts.
type BulkBody struct {
	AlertIDs validate.Field[[]validate.Integer] `json:"alert_ids"`
	Notes    validate.String                    `json:"notes"`
}

// Read checks the body.
func (b BulkBody) Read(c *validate.Checks) BulkSelection {
	chosen := BulkSelection{Notes: readNote(c, "notes", b.Notes)}
	chosen.Numbers = readAlertIDs(c, b.AlertIDs)
	return chosen
}

// UndoBody is the body of a request to undo actions on alerts.
type UndoBody struct {
	AlertIDs validate.Field[[]validate.Integer] `json:"alert_ids"`
}

// Read checks the body.
func (b UndoBody) Read(c *validate.Checks) []int64 { return readAlertIDs(c, b.AlertIDs) }

func readAlertIDs(c *validate.Checks, list validate.Field[[]validate.Integer]) (numbers []int64) {
	if len(list.Value) == 0 && !list.Wrong() {
		c.Reject("alert_ids", "Choose at least one alert.")
	}
	seen := map[int64]bool{}
	for name, sent := range validate.Items(c, "alert_ids", list, MaxBulk, "Must be a list of the ids of alerts.") {
		if number := c.Integer(name, sent, true); number != nil && !seen[*number] {
			seen[*number] = true
			numbers = append(numbers, *number)
		}
	}
	return numbers
}

package alerts

import (
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/validate"
)

// MostAtOnce bounds what one request acts on. Source: docs/decisions/alerts.md, "Several at once".
const MostAtOnce = 200

// Chosen are the public numbers of alerts that something is done with at once, each once, with one note or "".
type Chosen struct {
	Numbers []int64
	Notes   phi.Text
}

// ChosenBody is the body of a request about several alerts.
type ChosenBody struct {
	AlertIDs validate.Field[[]validate.Integer] `json:"alert_ids"`
	Notes    validate.String                    `json:"notes"`
}

// Read checks the body.
func (b ChosenBody) Read(c *validate.Checks) Chosen {
	chosen := Chosen{Notes: readNote(c, "notes", b.Notes)}
	chosen.Numbers = readNumbers(c, b.AlertIDs)
	return chosen
}

// UndoBody is the body of a request to undo what was done with alerts.
type UndoBody struct {
	AlertIDs validate.Field[[]validate.Integer] `json:"alert_ids"`
}

// Read checks the body.
func (b UndoBody) Read(c *validate.Checks) []int64 { return readNumbers(c, b.AlertIDs) }

// readNumbers reads the numbers of alerts.
func readNumbers(c *validate.Checks, list validate.Field[[]validate.Integer]) (numbers []int64) {
	if len(list.Value) == 0 && !list.Wrong() {
		c.Reject("alert_ids", "Choose at least one alert.")
	}
	seen := map[int64]bool{}
	for name, sent := range validate.Items(c, "alert_ids", list, MostAtOnce, "Must be a list of the ids of alerts.") {
		if number := c.Integer(name, sent, true); number != nil && !seen[*number] {
			seen[*number] = true
			numbers = append(numbers, *number)
		}
	}
	return numbers
}

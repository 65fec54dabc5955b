package alerts

import (
	"fmt"

	"github.com/vigilhealth/vigil/internal/input"
	"github.com/vigilhealth/vigil/internal/phi"
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
	AlertIDs input.Field[[]input.Integer] `json:"alert_ids"`
	Notes    input.String                 `json:"notes"`
}

// Read checks the body.
func (b ChosenBody) Read(c *input.Checks) Chosen {
	chosen := Chosen{Notes: readNote(c, "notes", b.Notes)}
	chosen.Numbers = readNumbers(c, b.AlertIDs)
	return chosen
}

// UndoBody is the body of a request to undo what was done with alerts.
type UndoBody struct {
	AlertIDs input.Field[[]input.Integer] `json:"alert_ids"`
}

// Read checks the body.
func (b UndoBody) Read(c *input.Checks) []int64 { return readNumbers(c, b.AlertIDs) }

// readNumbers reads the numbers of alerts.
func readNumbers(c *input.Checks, list input.Field[[]input.Integer]) (numbers []int64) {
	const name = "alert_ids"
	switch {
	case !list.Given() && list.Sent() && !list.Null():
		c.Reject(name, "Must be a list of the ids of alerts.")
	case len(list.Value) == 0:
		c.Reject(name, "Choose at least one alert.")
	case len(list.Value) > MostAtOnce:
		c.Reject(name, fmt.Sprintf("Ensure this field has no more than %d items.", MostAtOnce))
	default:
		seen := make(map[int64]bool, len(list.Value))
		for i, sent := range list.Value {
			number := c.Integer(fmt.Sprintf("%s.%d", name, i), sent, true)
			if number != nil && !seen[*number] {
				seen[*number] = true
				numbers = append(numbers, *number)
			}
		}
	}
	return numbers
}

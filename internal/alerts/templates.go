package alerts

import (
	"encoding/json"
	"fmt"

	"github.com/vigilhealth/vigil/internal/input"
	"github.com/vigilhealth/vigil/internal/phi"
)

// ReadBounds checks the bounds of a template, in the form of a change without its reason; complaints go under name. It needs at least one
// group. Source: docs/decisions/alerts.md, "Templates".
func (b ChangeBody) ReadBounds(c *input.Checks, name string) Bounds {
	inner := input.NewChecks()
	bounds := Bounds(b.readGroups(inner).groups)
	for field, message := range bounds.Complaints(func(string) bool { return false }) {
		if len(inner.Fields[field]) == 0 {
			inner.Reject(field, message)
		}
	}
	for field, messages := range inner.Fields {
		for _, message := range messages {
			c.Reject(name+"."+field, message)
		}
	}
	if len(bounds) == 0 && len(inner.Fields) == 0 {
		c.Reject(name, "Must have at least one group of bounds.")
	}
	return bounds
}

// Encode is the stored form.
func (b Bounds) Encode() (string, error) {
	text, err := json.Marshal(b)
	if err != nil {
		return "", fmt.Errorf("encode bounds: %w", err)
	}
	return string(text), nil
}

// Equal reports whether two sets of bounds say the same.
func (b Bounds) Equal(other Bounds) bool { return b.equal(other) }

// FromTemplate is the change that gives a patient the bounds of a template: of each of its groups nothing that was set before stays, and
// the other groups are as they were.
func FromTemplate(bounds Bounds, reason phi.Text) Change {
	return Change{groups: bounds, whole: true, Reason: reason}
}

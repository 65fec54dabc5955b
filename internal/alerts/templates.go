package alerts

import (
	"encoding/json"
	"fmt"

	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/validate"
)

// ReadBounds checks the bounds of a template, in the form of a change without its reason; complaints go under name. What is
// misspelt would be a bound that nobody misses until it is needed, so that it is refused here, and a template needs at least one bound or a
// group that is switched off. Source: docs/decisions/alerts.md, "Templates".
func (b ChangeBody) ReadBounds(c *validate.Checks, name string) Bounds {
	inner := validate.NewChecks()
	bounds := Bounds(b.readGroups(inner).groups)
	for _, group := range Groups {
		for field := range member[map[string]validate.Number](b, group).Value {
			if _, read := bounds[group][field]; !read {
				inner.Reject(group+"."+field, "There is no such bound.")
			}
		}
	}
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
	if bounds.Silent() && len(inner.Fields) == 0 {
		c.Reject(name, "Must have at least one bound.")
	}
	return bounds
}

// Silent reports whether there is neither a bound nor a group that is switched off.
func (b Bounds) Silent() bool {
	for _, fields := range b {
		if fields == nil || len(fields) > 0 {
			return false
		}
	}
	return true
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

// FromTemplate is the change that gives a patient the bounds of a template: of each of its groups nothing that was set before stays but the
// patient's target, and the other groups are as they were.
func FromTemplate(bounds Bounds, reason phi.Text) Change {
	return Change{groups: bounds, whole: true, Reason: reason}
}

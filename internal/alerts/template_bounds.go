package alerts

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/validate"
)

// ReadBounds checks a template's bounds: it needs one, or a group that is switched off. Errors are
// reported under name. Source: docs/decisions/alerts.md, "Templates".
func (b ThresholdChangeBody) ReadBounds(c *validate.Checks, name string) Bounds {
	inner := validate.NewChecks()
	bounds := Bounds(b.readGroups(inner).groups)
	for field, message := range bounds.Problems(func(string) bool { return false }) {
		if len(inner.Fields[field]) == 0 {
			inner.Reject(field, message)
		}
	}
	for field, messages := range inner.Fields {
		for _, message := range messages {
			c.Reject(name+"."+field, message)
		}
	}
	if bounds.IsEmpty() && len(inner.Fields) == 0 {
		c.Reject(name, "Must have at least one bound.")
	}
	return bounds
}

// IsEmpty reports whether there is neither a bound nor a group that is switched off.
func (b Bounds) IsEmpty() bool {
	for _, fields := range b {
		if fields == nil || len(fields) > 0 {
			return false
		}
	}
	return true
}

// Encode returns the stored form.
func (b Bounds) Encode() (string, error) {
	text, err := json.Marshal(b)
	if err != nil {
		return "", fmt.Errorf("encode bounds: %w", err)
	}
	return string(text), nil
}

// Loosened lists the bounds that a clinician set and the template would loosen. A value from a
// template applied earlier (given) does not count. Fields are named as in vital-config.
func Loosened(tx core.App, patientID string, bounds Bounds, given []Bounds) (looser []ChangedBound, err error) {
	s, err := loadStored(tx, patientID)
	if err != nil {
		return nil, err
	}
	after := InForce(s.practice, FromTemplate(bounds, "").applyTo(s.own))
	for _, f := range boundFields {
		value := s.own[f.group][f.field]
		isGiven := slices.ContainsFunc(given, func(b Bounds) bool { return equalBounds(b[f.group][f.field], value) })
		if value == nil || isGiven || !f.isLimit() {
			continue
		}
		if now := f.inForce(after); now == nil || f.isStricter(*value, now) {
			looser = append(looser, ChangedBound{f.Name(), value, now})
		}
	}
	return looser, nil
}

// FromTemplate returns the change that applies a template: it replaces the template's groups, except the patient's target, and keeps the
// others.
func FromTemplate(bounds Bounds, reason phi.Text) ThresholdChange {
	return ThresholdChange{groups: bounds, replacesGroups: true, Reason: reason}
}

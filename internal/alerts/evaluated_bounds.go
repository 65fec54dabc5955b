package alerts

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/vigilhealth/vigil/internal/vitals"
)

// EvaluatedBounds are the bounds by which a reading was evaluated, by parameter name. A change
// parameter has the limit over its target and, by rule name, the breached bound: high for a gain,
// critical for a critical gain, low for a loss; empty if it was compared and breached none.
type EvaluatedBounds map[string]vitals.Limits

// BoundsFor returns the bounds in force for the values of a reading, and those that its findings met.
func BoundsFor(r vitals.Reading, t Thresholds, findings []Finding) EvaluatedBounds {
	bounds := EvaluatedBounds{}
	for _, p := range vitals.ThresholdParameters {
		switch limits := t.Limits(p).ForMeal(r.Qualifier(vitals.MealContext)); {
		case r.Value(p) == nil:
		case p.Change != nil:
			bounds.addChange(p, t.Change(p), findings)
		case limits != (vitals.Limits{}):
			bounds[p.Name] = limits
		}
	}
	return bounds
}

// addChange adds the limit over the target, and the rule that a change met.
func (b EvaluatedBounds) addChange(p *vitals.Parameter, rule ChangeRule, findings []Finding) {
	if rule.Target != nil && rule.Over != nil {
		b[p.Name] = vitals.Limits{High: new(vitals.RoundHundredths(*rule.Target + *rule.Over))}
	}
	for _, f := range findings {
		switch {
		case f.Type != p.Group || f.Parameter == p.Name+overTarget:
		case !f.Breached():
			b[p.Name+windowChange] = vitals.Limits{}
		case f.Level == Critical:
			b[f.Parameter] = vitals.Limits{Critical: &f.Threshold}
		case f.Value < 0:
			b[f.Parameter] = vitals.Limits{Low: &f.Threshold}
		default:
			b[f.Parameter] = vitals.Limits{High: &f.Threshold}
		}
	}
}

// With returns the bounds with those of a part of the reading that arrived later. The first evaluation of a value stays.
func (b EvaluatedBounds) With(later EvaluatedBounds) EvaluatedBounds {
	all := maps.Clone(later)
	maps.Copy(all, b)
	return all
}

// storedLimits is the stored form of [vitals.Limits], in which the bound of fasting values has its place.
type storedLimits struct {
	CriticalLow *float64 `json:"critical_low,omitempty"`
	Low         *float64 `json:"low,omitempty"`
	High        *float64 `json:"high,omitempty"`
	Critical    *float64 `json:"critical,omitempty"`
}

// Encode returns the stored form; "" for none.
func (b EvaluatedBounds) Encode() (string, error) {
	if len(b) == 0 {
		return "", nil
	}
	stored := map[string]storedLimits{}
	for name, limits := range b {
		stored[name] = storedLimits{limits.CriticalLow, limits.Low, limits.High, limits.Critical}
	}
	text, err := json.Marshal(stored)
	if err != nil {
		return "", fmt.Errorf("encode evaluated bounds: %w", err)
	}
	return string(text), nil
}

// ParseEvaluatedBounds reads the stored form; it returns none if the text is empty or damaged.
func ParseEvaluatedBounds(text string) EvaluatedBounds {
	var stored map[string]storedLimits
	if text == "" || json.Unmarshal([]byte(text), &stored) != nil {
		return nil
	}
	bounds := EvaluatedBounds{}
	for name, limits := range stored {
		bounds[name] = vitals.Limits{CriticalLow: limits.CriticalLow, Low: limits.Low, High: limits.High, Critical: limits.Critical}
	}
	return bounds
}

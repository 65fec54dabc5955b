package alerts

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/vigilhealth/vigil/internal/vitals"
)

// EvaluatedBounds are the bounds by which the values of a reading were evaluated, by the name of the parameter. A value without any bound, such
// as a weight, which is watched for changes, has none.
type EvaluatedBounds map[string]vitals.Limits

// BoundsFor returns the bounds in force for the values of a reading.
func BoundsFor(r vitals.Reading, t Thresholds) EvaluatedBounds {
	bounds := EvaluatedBounds{}
	for _, p := range vitals.Watched {
		if limits := t.Of(p).At(r.Qualifier(vitals.MealContext)); r.Value(p) != nil && p.Change == nil && limits != (vitals.Limits{}) {
			bounds[p.Name] = limits
		}
	}
	return bounds
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

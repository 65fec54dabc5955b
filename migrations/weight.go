package migrations

import "github.com/pocketbase/pocketbase/core"

func init() { register("1795939202_weight.go", addWeightRules) }

// addWeightRules adds the bounds of changes over weeks: losses to the practice's defaults, unless it watches no weight, and gains to the template
// for heart failure.
func addWeightRules(app core.App) error {
	if err := execute(app,
		`UPDATE thresholds SET bounds = json_set(bounds, '$.weight.loss_30_days_percent', 5) WHERE patient = '' AND json_valid(bounds)
			AND json_type(bounds, '$.weight') = 'object' AND json_type(bounds, '$.weight.loss_30_days_percent') IS NULL`,
		`UPDATE thresholds SET bounds = json_set(bounds, '$.weight.loss_90_days_percent', 7.5) WHERE patient = '' AND json_valid(bounds)
			AND json_type(bounds, '$.weight') = 'object' AND json_type(bounds, '$.weight.loss_90_days_percent') IS NULL`,
	); err != nil {
		return err
	}
	return addToTemplate(app, "heart_failure", shippedBounds{
		group: "weight", fields: map[string]float64{"change_threshold_kg": 2, "change_window_days": 7, "critical_change_kg": 4},
		added:  map[string]float64{"daily_change_kg": 1.35, "slow_gain_kg": 3, "slow_gain_critical_kg": 5},
		source: "American Heart Association, self-check plan for heart failure: 3 lb in a day, below 1.36 kg",
	})
}

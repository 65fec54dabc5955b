package vitals

import (
	"math/big"
	"time"
)

// Weight is watched for changes, not for bounds.
const Weight Kind = "weight"

// WeightKg is sent in kilograms or pounds. Source: docs/decisions/observations.md, "Weight in pounds" and docs/decisions/alerts.md, "Weight
// rule". The default critical change is twice the threshold, hence twice its range.
var WeightKg = &Parameter{
	Name: "weight", Column: "weight_kg", Label: "Weight", Range: Range{20, 500, UnitKg}, OfAdults: true,
	Units:    []Unit{{Field: "weight_lbs", Name: UnitPounds, Words: []string{"lb", UnitPounds}, Convert: KgFromPounds}},
	Abnormal: "abnormal weight", Group: string(Weight),
	Change: &Change{
		Threshold: "change_threshold_kg", Critical: "critical_change_kg", Window: "change_window_days",
		ThresholdRange: Range{0.2, 50, UnitKg}, CriticalRange: Range{0.2, 100, UnitKg}, WindowRange: Range{1, 30, "days"},
		DefaultThreshold: 2.3, DefaultWindow: 7,
		Daily: "daily_change_kg", Target: "target_kg", Over: "over_target_kg",
		DailyRange: Range{0.2, 50, UnitKg}, TargetRange: Range{20, 500, UnitKg}, OverRange: Range{0.2, 100, UnitKg},
		DefaultDaily: 1.4, DefaultOver: 2.3,
		SlowGain: "slow_gain_kg", SlowCritical: "slow_gain_critical_kg",
		SlowGainRange: Range{0.2, 50, UnitKg}, SlowCriticalRange: Range{0.2, 100, UnitKg},
		Losses: []Loss{
			{Field: "loss_30_days_percent", Days: 30, Range: Range{1, 50, UnitPercent}, Default: 5},
			{Field: "loss_90_days_percent", Days: 90, Range: Range{1, 50, UnitPercent}, Default: 7.5},
		},
	},
	Suspect: &SuspectRule{
		Prompt: "Who stood on the scale?", Days: 30, Among: 7, AtLeast: 3, Percent: 2, Amount: 2, Within: 24 * time.Hour,
	},
	FHIR: &Quantity{Decimals: 2, Unit: "kg", UCUM: "kg"},
}

func init() {
	register(Definition{
		Kind: Weight, Position: 2, Required: []*Parameter{WeightKg},
		Words: []string{"body_weight"}, Devices: []string{"weight_scale", "scale"},
		Stale: Stale{Days: 5, Of: []*Parameter{WeightKg}, Decimals: 1},
		FHIR: Form{
			Profile: "us-core-body-weight", Codes: []Code{{"29463-7", "Body weight"}}, Value: WeightKg,
			Device: Code{"19892000", "Scale, device"},
		},
	})
}

// kgPerPound is exact. Source: docs/decisions/observations.md, "Weight in pounds" (NIST SP 811, appendix B: 1 lb = 0.45359237 kg).
var kgPerPound = big.NewRat(45_359_237, 100_000_000)

// KgFromPounds converts pounds to kilograms, half up to two decimals: 165 lb is 74.84 kg.
func KgFromPounds(pounds float64) float64 { return convert(pounds, zero, kgPerPound, Decimals) }

// PoundsFromKg converts half up to one decimal: 88.5 kg is 195.1 lb.
func PoundsFromKg(kg float64) float64 { return convert(kg, zero, new(big.Rat).Inv(kgPerPound), 1) }

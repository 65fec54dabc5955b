package vitals

// PulseOximetry is the oxygen saturation, usually with the pulse.
const PulseOximetry Kind = "pulse_oximetry"

// What an oximeter measures besides the pulse. Source: docs/decisions/observations.md, "Pulse-oximetry and glucose fields".
var (
	SpO2 = &Parameter{
		Name: "spo2", Column: "spo2", Label: "SpO2", Range: Range{50, 100, UnitPercent},
		Abnormal: "low oxygen saturation", AbnormalHigh: "high oxygen saturation", HighFrom: 96,
		Group: string(PulseOximetry), Bounds: []Bound{CriticalLow, Low, High}, Defaults: Limits{CriticalLow: new(88.0), Low: new(92.0)},
		AnyAge: Limits{CriticalLow: new(89.0)},
		FHIR:   &Quantity{Decimals: 1, Unit: "%", UCUM: "%"},
	}
	PerfusionIndex = &Parameter{
		Name: "perfusion_index", Column: "perfusion_index", Label: "Perfusion index", Range: Range{0, 20, UnitPercent},
		FHIR: &Quantity{Code: Code{"61006-3", "Perfusion index Tissue by Pulse oximetry"}, Decimals: 2, Unit: "%", UCUM: "%"},
	}
)

// weakSignal is the perfusion index below which an oximeter's values are in doubt. Source: docs/decisions/alerts.md, "Weak signal".
const weakSignal = 0.3

// HasWeakSignal reports a perfusion index below 0.3 %. A reading without an index does not count as
// weak.
func (r *Reading) HasWeakSignal() bool {
	index := r.Value(PerfusionIndex)
	return index != nil && *index < weakSignal
}

func init() {
	register(Definition{
		Kind: PulseOximetry, Position: 3,
		Required: []*Parameter{SpO2}, Optional: []*Parameter{Pulse, PerfusionIndex}, Side: PerfusionIndex,
		Words: []string{"pulse_ox", "spo2", "oximetry", "oxygen_saturation"}, FieldAliases: map[*Parameter]string{Pulse: "pulse_rate"},
		Devices: []string{"pulse_oximeter"},
		Stale:   Stale{Days: 5, Of: []*Parameter{SpO2, Pulse}, Decimals: 2},
		FHIR: Form{
			Profile: "us-core-pulse-oximetry", Value: SpO2, Device: Code{"448703006", "Pulse oximeter"},
			Codes: []Code{ // US Core requires both
				{"59408-5", "Oxygen saturation in Arterial blood by Pulse oximetry"}, {"2708-6", "Oxygen saturation in Arterial blood"},
			},
		},
	})
}

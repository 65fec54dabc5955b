package vitals

import "github.com/vigilhealth/vigil/internal/validate"

// BloodPressure is measured by a cuff, usually with the pulse.
const BloodPressure Kind = "blood_pressure"

// What a cuff measures. The bounds: docs/decisions/alerts.md, "Default thresholds".
var (
	Systolic = &Parameter{
		Name: "systolic", Column: "systolic", Label: "Systolic", Range: Range{60, 300, UnitMmHg},
		Abnormal: "abnormal blood pressure", Group: string(BloodPressure), Prefix: "systolic_", Bounds: allBounds,
		Defaults: Limits{CriticalLow: new(80.0), Low: new(90.0), High: new(140.0), Critical: new(180.0)},
		AnyAge:   Limits{Critical: new(180.0)},
		FHIR:     &Quantity{Code{"8480-6", "Systolic blood pressure"}, 0, "mmHg", "mm[Hg]"},
	}
	Diastolic = &Parameter{
		Name: "diastolic", Column: "diastolic", Label: "Diastolic", Range: Range{30, 200, UnitMmHg},
		Group: string(BloodPressure), Prefix: "diastolic_", Bounds: allBounds,
		Defaults: Limits{CriticalLow: new(40.0), Low: new(50.0), High: new(90.0), Critical: new(120.0)},
		AnyAge:   Limits{Critical: new(120.0)},
		FHIR:     &Quantity{Code{"8462-4", "Diastolic blood pressure"}, 0, "mmHg", "mm[Hg]"},
	}
	// Pulse has alerts and thresholds of its own, from any device.
	Pulse = &Parameter{
		Name: "pulse", Column: "pulse", Label: "Pulse", Range: Range{30, 250, UnitBPM},
		Abnormal: "abnormal heart rate", Group: "pulse", Bounds: allBounds, Defaults: Limits{CriticalLow: new(40.0), Low: new(50.0), High: new(110.0), Critical: new(130.0)},
		AnyAge: Limits{CriticalLow: new(40.0), Critical: new(220.0)},
		FHIR:   &Quantity{Code{"8867-4", "Heart rate"}, 0, "beats/minute", "/min"}, StandaloneProfile: "us-core-heart-rate",
	}
	// IrregularHeartbeat is a bit of the cuff's measurement status. Source: docs/decisions/fhir.md, "Irregular heartbeat in FHIR".
	IrregularHeartbeat = &Qualifier{
		Name: "irregular_heartbeat", Notice: "The device reported an irregular heartbeat.", Bit: Code{"8410608.2", "irregular-pulse"},
	}
)

func init() {
	register(Definition{
		Kind: BloodPressure, Position: 1,
		Required: []*Parameter{Systolic, Diastolic}, Optional: []*Parameter{Pulse}, Qualifiers: []*Qualifier{IrregularHeartbeat},
		// Source: docs/decisions/observations.md, "Cross-field checks".
		CheckCoherence: func(r Reading, c *validate.Checks) {
			if systolic, diastolic := r.Value(Systolic), r.Value(Diastolic); systolic != nil && diastolic != nil && *diastolic >= *systolic {
				c.Reject("diastolic", "Must be lower than systolic.")
			}
		},
		Words: []string{"bp"}, Devices: []string{"blood_pressure_monitor", "bp_monitor"},
		Stale: Stale{Days: 5, Of: []*Parameter{Systolic, Diastolic}, Also: []*Parameter{Pulse}, Decimals: 2},
		FHIR: Form{
			Profile: "us-core-blood-pressure", Codes: []Code{{"85354-9", "Blood pressure panel with all children optional"}},
			Device: Code{"258057004", "Non-invasive blood pressure monitor"},
		},
	})
}

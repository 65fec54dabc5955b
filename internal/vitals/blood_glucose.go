package vitals

import "math/big"

// BloodGlucose is measured in capillary blood, in relation to meals.
const BloodGlucose Kind = "blood_glucose"

// Values of MealContext.
const (
	MealFasting = "fasting"
	MealBefore  = "before_meal"
	MealAfter   = "after_meal"
	MealBedtime = "bedtime"
	MealRandom  = "random"
)

// Values of Comparator for a meter that shows LO or HI: the true value is beyond the given one.
const (
	ComparatorBelow = "<"
	ComparatorAbove = ">"
)

// What a meter measures. The ends of the range in mmol/L convert to those in mg/dL. Source: docs/decisions/observations.md, "Pulse-oximetry
// and glucose fields", "Glucose units" and docs/decisions/gateway.md, "`values` shapes".
var (
	GlucoseMgDL = &Parameter{
		Name: "glucose", Column: "glucose_mg_dl", Label: "Glucose", Range: Range{20, 600, UnitMgDL},
		Units: []Unit{{
			Field: "glucose_mmol_l", Name: UnitMmolL, Words: []string{UnitMmolL}, Range: Range{1.1, 33.3, UnitMmolL},
			Convert: MgDLFromMmolL, Back: MmolLFromMgDL,
		}},
		DisplayWords: []DisplayWord{
			{"HI", 600, ComparatorAbove}, {"HIGH", 600, ComparatorAbove}, {"LO", 20, ComparatorBelow}, {"LOW", 20, ComparatorBelow},
		},
		Abnormal: "abnormal glucose level",
		Group:    string(BloodGlucose), Bounds: []Bound{CriticalLow, Low, FastingHigh, High, Critical},
		Defaults: Limits{CriticalLow: new(54.0), Low: new(70.0), High: new(250.0), Critical: new(300.0)},
		AnyAge:   Limits{CriticalLow: new(54.0), Critical: new(300.0)},
		FHIR:     &Quantity{Decimals: 0, Unit: "mg/dL", UCUM: "mg/dL"},
	}
	// MealContext: bedtime has only text in FHIR, since the published tables disagree on its code. Source: docs/decisions/fhir.md, "Meal
	// context in FHIR"; ISO/IEEE 11073-10101; HL7 Personal Health Device guide.
	MealContext = &Qualifier{
		Name: "meal_context", Words: []string{MealFasting, MealBefore, MealAfter, MealBedtime, MealRandom}, Latest: true,
		AltField: "meal_marker", AltWords: [][2]string{{"pre_meal", MealBefore}, {"post_meal", MealAfter}},
		ComponentCode: Code{"8417864", "MDC_CTXT_GLU_MEAL"},
		Answers: map[string]Answer{
			MealBefore: {"8417868", "Before meal"}, MealAfter: {"8417872", "After meal"}, MealFasting: {"8417876", "Fasting"},
			MealRandom: {"8417880", "Random"}, MealBedtime: {Text: "Bedtime"},
		},
	}
	Comparator = &Qualifier{Name: "comparator", Words: []string{ComparatorBelow, ComparatorAbove}, Internal: true, Latest: true}
)

func init() {
	register(Definition{
		Kind: BloodGlucose, Position: 4, Required: []*Parameter{GlucoseMgDL}, Qualifiers: []*Qualifier{MealContext, Comparator},
		Words: []string{"glucose"}, Devices: []string{"glucose_meter", "glucometer"},
		Stale: Stale{Days: 3, Of: []*Parameter{GlucoseMgDL}, Decimals: 2},
		FHIR: Form{
			Profile: "us-core-observation-clinical-result", Laboratory: true, Value: GlucoseMgDL,
			Codes: []Code{
				{"41653-7", "Glucose [Mass/volume] in Capillary blood by Glucometer"}, {"2339-0", "Glucose [Mass/volume] in Blood"},
			},
			Device: Code{"337414009", "Blood glucose meter"},
		},
	})
}

// 1 mmol/L of glucose = 18.0156 mg/dL. Source: docs/decisions/observations.md, "Glucose units".
var (
	mgDLPerMmolL = big.NewRat(180_156, 10_000)
	mmolLPerMgDL = new(big.Rat).Inv(mgDLPerMmolL)
)

// MgDLFromMmolL converts glucose from mmol/L to mg/dL, half up to an integer: 5.6 mmol/L is 101 mg/dL.
func MgDLFromMmolL(mmolL float64) float64 { return convert(mmolL, zero, mgDLPerMmolL, 0) }

// MmolLFromMgDL converts glucose from mg/dL to mmol/L, half up to one decimal: 101 mg/dL is 5.6 mmol/L.
func MmolLFromMgDL(mgDL float64) float64 { return convert(mgDL, zero, mmolLPerMgDL, 1) }

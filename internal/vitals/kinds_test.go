package vitals

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/vigilhealth/vigil/internal/validate"
)

// Rows stored under these keys must be found after any change of the definitions.
func TestValuesKeysOfStoredRows(t *testing.T) {
	for want, r := range map[string]Reading{
		"blood_pressure systolic=128 diastolic=82.5 pulse=71 irregular_heartbeat=false": pressure(128, 82.5).With(Pulse, 71).WithQualifier(IrregularHeartbeat, No),
		"weight weight_kg=74.84":                                                Reading{Kind: Weight}.With(WeightKg, 74.84),
		"pulse_oximetry pulse=60 spo2=97 perfusion_index=4.25":                  Reading{Kind: PulseOximetry}.With(SpO2, 97).With(Pulse, 60).With(PerfusionIndex, 4.25),
		"blood_glucose glucose_mg_dl=600 meal_context=before_meal comparator=>": Reading{Kind: BloodGlucose}.With(GlucoseMgDL, 600).WithQualifier(MealContext, MealBefore).WithQualifier(Comparator, ComparatorAbove),
	} {
		if got := r.ValuesKey(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// The order of the contract's lists does not depend on file names.
func TestListOrders(t *testing.T) {
	var watched []string
	for _, p := range ThresholdParameters {
		watched = append(watched, p.Name)
	}
	if got := strings.Join(KindNames[:4], " "); got != "blood_pressure weight pulse_oximetry blood_glucose" {
		t.Errorf("kinds: %s", got)
	}
	if got := strings.Join(watched, " "); !strings.HasPrefix(got, "systolic diastolic pulse spo2 glucose") || !strings.HasSuffix(got, " weight") {
		t.Errorf("watched: %s", got)
	}
}

// Every definition is complete.
func TestRegisteredKinds(t *testing.T) {
	words := map[string]bool{}
	for i, d := range Definitions {
		if d.Position != i+1 || len(d.Required) == 0 || d.Stale.Days == 0 || d.FHIR.Profile == "" || len(d.FHIR.Codes) == 0 || d.Main().Group == "" {
			t.Errorf("%s is declared by halves", d.Kind)
		}
		for _, word := range slices.Concat([]string{string(d.Kind)}, d.Words) {
			if words[word] || word != strings.ToLower(word) {
				t.Errorf("%s: the word %q", d.Kind, word)
			}
			words[word] = true
		}
		for _, p := range d.All {
			if p.Group != "" && (p.FHIR == nil || p.Label == "" || (p.Change == nil) == (len(p.Bounds) == 0)) {
				t.Errorf("%s of %s has thresholds and is declared by halves", p.Name, d.Kind)
			}
			last := p.Range.Min
			for _, side := range p.Bounds {
				if bound := p.Defaults.Bound(side); bound == nil { // set for a patient only
					continue
				} else if *bound < last || *bound > p.Range.Max {
					t.Errorf("%s: the default of %s is out of order", p.Name, side)
				} else {
					last = *bound
				}
			}
			for _, unit := range p.Units {
				if low, high := unit.Convert(unit.Range.Min), unit.Convert(unit.Range.Max); unit.Range != (Range{}) && (low != p.Range.Min || high != p.Range.Max) {
					t.Errorf("%s: %s from %v to %v is another range", p.Name, unit.Name, low, high)
				}
			}
		}
	}
}

// A reading of any kind in range passes from a caller and from a gateway, with the same result.
func TestReadingsOfEveryKind(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SampledFrom(Definitions).Draw(t, "kind")
		api, sent := map[string]any{}, map[string]any{}
		want := Reading{Kind: d.Kind}
		for _, p := range d.All {
			if slices.Contains(d.Required, p) || rapid.Bool().Draw(t, "has "+p.Name) {
				value := RoundHalfUp(rapid.Float64Range(p.Range.Min, p.Range.Max).Draw(t, p.Name), Decimals)
				api[p.Column], sent[p.Name], want = value, value, want.With(p, value)
			}
		}
		for _, m := range d.Qualifiers {
			if !m.IsFlag() && rapid.Bool().Draw(t, "has "+m.Name) {
				word := rapid.SampledFrom(m.Words).Draw(t, m.Name)
				api[m.Name], want = word, want.WithQualifier(m, word)
			}
		}
		c := validate.NewChecks()
		if want.Check(c); c.Err() != nil {
			return // incoherent
		}
		got := d.Read(c, body(t, api))
		if got.Check(c); c.Err() != nil || !got.SameValues(want) || got.OriginalValue != nil {
			t.Fatalf("%v became %s (%v)", api, got.ValuesKey(), c.Fields)
		}
		for _, m := range d.Qualifiers {
			want.SetQualifier(m, "") // gateways send some of them in their own words
		}
		units, _ := d.Units()
		if got := d.ReadGateway(c, c, body(t, sent), units[0]); c.Err() != nil || !got.SameValues(want) {
			t.Fatalf("%v is sent and became %s (%v)", sent, got.ValuesKey(), c.Fields)
		}
	})
}

// Every other unit is converted in the same way for callers and gateways; the original value is kept, and two units are rejected.
func TestOtherUnits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SampledFrom(Definitions).Draw(t, "kind")
		if len(d.Main().Units) == 0 {
			return
		}
		p, unit := d.Main(), rapid.SampledFrom(d.Main().Units).Draw(t, "unit")
		value := RoundHalfUp(rapid.Float64Range(0, 1200).Draw(t, "value"), 1)
		c, again := validate.NewChecks(), validate.NewChecks()
		got := d.Read(c, body(t, map[string]any{unit.Field: value}))
		sent := d.ReadGateway(again, again, body(t, map[string]any{p.Name: value}), unit.Words[0])
		if (c.Err() == nil) != (again.Err() == nil) {
			t.Fatalf("%v %s: %v, but %v", value, unit.Name, c.Fields, again.Fields)
		}
		if c.Err() == nil && (!got.SameValues(sent) || *got.Value(p) != unit.Convert(value) || *got.OriginalValue != value || *sent.OriginalValue != value) {
			t.Fatalf("%v %s became %s and %s", value, unit.Name, got.ValuesKey(), sent.ValuesKey())
		}
		c = validate.NewChecks()
		if d.Read(c, body(t, map[string]any{unit.Field: value, p.Column: value})); len(c.Fields[unit.Field]) != 1 {
			t.Fatalf("both units: %v", c.Fields)
		}
	})
}

func body(t *rapid.T, members map[string]any) (b Body) {
	raw, err := json.Marshal(members)
	if err == nil {
		err = json.Unmarshal(raw, &b)
	}
	if err != nil {
		t.Fatal(fmt.Errorf("%v: %w", members, err))
	}
	return b
}

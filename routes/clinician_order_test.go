package routes_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"
)

// clinicianSet is a list of patients in the order in which a clinician would attend to them.
type clinicianSet struct {
	Name, About string
	// Least is the agreement that is required; 0 for 0.85.
	Least    float64
	Patients []struct {
		Name, Why    string
		Acknowledged bool
		Readings     []map[string]float64
	}
}

// gatewayKinds are the kinds of readings by a value that only they have.
var gatewayKinds = map[string]string{
	"systolic": "blood_pressure", "spo2": "pulse_oximetry", "glucose_value": "blood_glucose", "temperature": "body_temperature", "weight": "weight",
}

// The list orders sets of patients nearly as the clinician who wrote them down before: Kendall's τ is at least 0.85 for each, unless the set states
// less and why. The sets
// and the reasons for their order are in internal/triage/testdata.
func TestClinicianOrder(t *testing.T) {
	stored, err := os.ReadFile("../internal/triage/testdata/clinician_order.json")
	if err != nil {
		t.Fatal(err)
	}
	var sets []clinicianSet
	if err := json.Unmarshal(stored, &sets); err != nil {
		t.Fatal(err)
	}
	for _, set := range sets {
		c := newScoringClinic(t)
		c.now = c.now.AddDate(0, 0, 1)
		for i := len(set.Patients) - 1; i >= 0; i-- { // equal scores must not profit from the order of enrollment
			p := set.Patients[i]
			patient := c.enroll(object{"first_name": fmt.Sprint(i)})
			for _, reading := range p.Readings {
				c.storeSetReading(patient, reading)
			}
			if p.Acknowledged {
				c.answerAll(patient)
			}
		}
		scores := make([]float64, len(set.Patients))
		var listed []string
		for _, row := range c.rescoredRows() {
			var place int
			if _, err := fmt.Sscan(row["patient_name"].(string), &place); err != nil {
				t.Fatal(err)
			}
			scores[place] = -float64(len(listed)) // the place in the list, which has no ties
			listed = append(listed, fmt.Sprintf("%v %s", row["risk_score"], set.Patients[place].Name))
		}
		tau := kendall(scores)
		t.Logf("%s: τ = %.2f\n%q", set.Name, tau, listed)
		if least := cmp.Or(set.Least, 0.85); tau < least {
			t.Errorf("%s: τ is %.2f, want %.2f", set.Name, tau, least)
		}
	}
}

// storeSetReading stores one reading of a set, as a device sends it.
func (c *clinic) storeSetReading(patient string, reading map[string]float64) {
	c.t.Helper()
	kind, values := "", ""
	for _, name := range []string{"systolic", "diastolic", "spo2", "glucose_value", "temperature", "weight", "pulse_rate"} {
		value, measured := reading[name]
		if !measured {
			continue
		}
		if kind == "" {
			kind = gatewayKinds[name]
		}
		field := map[string]string{"pulse_rate": "pulse", "glucose_value": "glucose"}[name]
		if field == "" {
			field = name
		}
		if values != "" {
			values += ","
		}
		values += fmt.Sprintf("%q:%v", field, value)
	}
	now := c.now
	c.now = now.Add(-time.Duration(reading["minutes_ago"]) * time.Minute) // the device sent it at once
	c.measureSign(patient, vitalSign{kind, values, 0})
	c.now = now
}

// rescoredRows ranks all patients again and returns the rows of the list, the most urgent first.
func (c *clinic) rescoredRows() []object {
	c.t.Helper()
	c.rescored()
	return c.request("nurse", "GET", "/triage/patients/?page_size=100", nil).results()
}

// kendall returns Kendall's τ between an order and the descending order of its values: 1 if they agree, -1 if they are opposite.
func kendall(values []float64) float64 {
	concordant, pairs := 0, 0
	for i := range values {
		for k := i + 1; k < len(values); k++ {
			pairs++
			switch {
			case values[i] > values[k]:
				concordant++
			case values[i] < values[k]:
				concordant--
			}
		}
	}
	return float64(concordant) / float64(pairs)
}

func TestKendall(t *testing.T) {
	for want, values := range map[float64][]float64{1: {3, 2, 1}, -1: {1, 2, 3}} {
		if got := kendall(slices.Clone(values)); got != want {
			t.Errorf("%v: %v, want %v", values, got, want)
		}
	}
}

package routes_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// orderedReading is a reading of any kind, some minutes before now.
type orderedReading struct {
	kind   string
	ago    int
	values object
}

func (r orderedReading) body(patient string, start time.Time) object {
	body := object{"patient_id": patient, "measured_at": start.Add(-time.Duration(r.ago) * time.Minute).Format(time.RFC3339)}
	for name, value := range r.values {
		body[name] = value
	}
	return body
}

func (r orderedReading) String() string {
	return fmt.Sprintf("%s %v %d min ago", r.kind, r.values, r.ago)
}

// openAfter plays readings in an order, as a batch or one by one with some of them twice, and returns the open alerts.
func openAfter(t *testing.T, rules ingest.Rules, list []orderedReading, order []int, batch bool, random *rand.Rand) []string {
	t.Helper()
	c := newClinicWithRules(t, rules)
	c.t = t
	patient := c.enroll(object{})
	c.now = c.now.AddDate(0, 3, 0)
	start := c.now
	if batch {
		var readings []object
		for _, i := range order {
			body := list[i].body(patient, start)
			body["type"] = list[i].kind
			readings = append(readings, body)
		}
		c.request(authz.Nurse, "POST", "/ingestion/batch/", object{"readings": readings}).want(200).wantAt(object{"rejected": 0.0})
	} else {
		for n, i := range order {
			c.now = start.Add(time.Duration(n) * time.Second)
			path := "/ingestion/" + strings.ReplaceAll(list[i].kind, "_", "-") + "/"
			for range 1 + random.IntN(5)/4 {
				if code := c.request(authz.Nurse, "POST", path, list[i].body(patient, start)).status; code != 200 && code != 201 {
					t.Fatalf("%v: %d", list[i], code)
				}
			}
		}
	}
	var open []string
	for _, alert := range c.request(authz.Nurse, "GET", "/alerts/"+query("patient_id", patient, "status", "active", "page_size", "100"), nil).results() {
		open = append(open, fmt.Sprint(alert["type"], " ", alert["level"], " ", alert["parameter"], " ", alert["value"], " at ", alert["threshold"]))
	}
	slices.Sort(open)
	return open
}

func randomReading(random *rand.Rand, kinds []string, minutes int) orderedReading {
	r := orderedReading{kind: kinds[random.IntN(len(kinds))], ago: 1 + random.IntN(minutes)}
	switch r.kind {
	case "blood_pressure":
		values := [][3]int{{186, 96, 70}, {126, 78, 70}, {150, 92, 72}, {124, 76, 71}, {192, 112, 95}, {84, 50, 132}, {128, 80, 110}}
		v := values[random.IntN(len(values))]
		r.values = object{"systolic": v[0], "diastolic": v[1], "pulse": v[2]}
		if random.IntN(3) == 0 {
			r.values["device_id"] = "BP-1"
		}
	case "pulse_oximetry":
		r.values = object{"spo2": []int{85, 96, 91, 95, 97}[random.IntN(5)], "pulse": []int{72, 72, 124, 140}[random.IntN(4)]}
	case "blood_glucose":
		r.values = object{"glucose_mg_dl": []int{48, 110, 310, 66, 120, 420}[random.IntN(6)]}
	case "body_temperature":
		r.values = object{"temperature_c": []float64{39.4, 37, 38.2, 36.8}[random.IntN(4)]}
	case "weight":
		r.values = object{"weight_kg": float64(800+random.IntN(40)) / 10}
	}
	return r
}

// The same readings give the same open alerts in any order of arrival, one by one or in a batch, with repeats, late readings among them.
func TestOpenAlertsDoNotDependOnTheOrderOfArrival(t *testing.T) {
	all := []string{"blood_pressure", "pulse_oximetry", "blood_glucose", "body_temperature", "weight"}
	for seed := range vigiltest.Rounds(60, 12) {
		random := rand.New(rand.NewPCG(uint64(seed), 4101))
		kinds := all
		if i := random.IntN(2 * len(all)); i < len(all) {
			kinds = all[i : i+1]
		}
		minutes := []int{50, 300, 1300, 1300, 6 * 1440}[random.IntN(5)]
		rules := clinicRules
		rules.EarlyWarning = random.IntN(2) == 0
		var list []orderedReading
		for range 4 + random.IntN(4) {
			r := randomReading(random, kinds, minutes)
			if !slices.ContainsFunc(list, func(other orderedReading) bool { return other.ago == r.ago }) {
				list = append(list, r)
			}
		}
		slices.SortFunc(list, func(a, b orderedReading) int { return b.ago - a.ago })
		inOrder := make([]int, len(list))
		for i := range inOrder {
			inOrder[i] = i
		}
		want := openAfter(t, rules, list, inOrder, false, random)
		for round := range 4 {
			order := random.Perm(len(list))
			if got := openAfter(t, rules, list, order, round == 3, random); !slices.Equal(got, want) {
				t.Errorf("seed %d, %v, order %v, batch %v: open are\n%q, want\n%q", seed, list, order, round == 3, got, want)
			}
		}
	}
}

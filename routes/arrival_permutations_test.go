package routes_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// outcomeOf is what a clinician sees of a patient, by value: the open alerts, the level in the triage list and the open escalations.
type outcomeOf struct {
	alerts      []string
	level       string
	escalations []string
}

// equals compares outcomes. A person is called by a critical alert that an older reading withdraws, and ends the escalation: until then the patient
// is critical.
func (o outcomeOf) equals(want outcomeOf, withdrawn bool) bool {
	if withdrawn && len(want.escalations) == 0 {
		want.level, want.escalations = o.level, o.escalations
	}
	return fmt.Sprint(o) == fmt.Sprint(want)
}

func (c *clinic) hasWithdrawnCritical(patient string) bool {
	c.t.Helper()
	return slices.ContainsFunc(c.request(authz.Nurse, "GET", "/alerts/"+query("patient_id", patient, "level", "critical", "page_size", "100"), nil).results(),
		func(a object) bool { return a["resolution_reason"] == "withdrawn" })
}

func (c *clinic) outcomeFor(patient string) (seen outcomeOf) {
	c.t.Helper()
	for _, a := range c.request(authz.Nurse, "GET", "/alerts/"+query("patient_id", patient, "status", "active", "page_size", "100"), nil).results() {
		shown := fmt.Sprint(a["type"], " ", a["level"], " ", a["parameter"])
		if !alerts.IsSlowChange(fmt.Sprint(a["parameter"])) { // which reading of a day shows it first depends on the order
			shown += fmt.Sprint(" ", a["value"], " at ", a["threshold"])
		}
		seen.alerts = append(seen.alerts, shown)
	}
	slices.Sort(seen.alerts)
	for _, row := range c.request(authz.Nurse, "GET", "/triage/patients/"+query("patient_id", patient), nil).results() {
		seen.level = fmt.Sprint(row["risk_level"])
	}
	for _, e := range c.request(authz.Nurse, "GET", "/escalations/"+query("patient_id", patient, "active", "true"), nil).results() {
		seen.escalations = append(seen.escalations, fmt.Sprint(e["priority"], " ", e["status"]))
	}
	return seen
}

// permutations are all orders of n readings, or a random choice of them.
func permutations(n, limit int, random *rand.Rand) (orders [][]int) {
	var grow func(prefix []int)
	grow = func(prefix []int) {
		if len(prefix) == n {
			orders = append(orders, slices.Clone(prefix))
			return
		}
		for i := range n {
			if !slices.Contains(prefix, i) {
				grow(append(slices.Clip(prefix), i))
			}
		}
	}
	grow(nil)
	rest := orders[1:] // the first is in order
	random.Shuffle(len(rest), func(i, k int) { rest[i], rest[k] = rest[k], rest[i] })
	return orders[:min(len(orders), limit)]
}

// The same readings of any kind give the same open alerts, triage level and escalations in each order of arrival: also weights that may be another
// person's, and the first weights of a patient.
func TestPermutationsOfArrival(t *testing.T) {
	kinds := []string{"weight", "blood_pressure", "weight", "pulse_oximetry", "blood_glucose", "body_temperature"}
	for seed := range vigiltest.Rounds(200, 6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(uint64(seed), 410))
			rules := clinicRules
			rules.EarlyWarning = random.IntN(2) == 0
			c := newClinicWithRules(t, rules)
			c.t = t
			c.now = c.now.AddDate(0, 3, 0)
			start, chosen := c.now, kinds[seed%len(kinds):seed%len(kinds)+1]
			if random.IntN(4) == 0 {
				chosen = kinds
			}
			list := randomReadings(random, chosen)
			var want outcomeOf
			for round, order := range permutations(len(list), vigiltest.Rounds(60, 20), random) {
				c.now = start.AddDate(0, -1, 0)
				patient := c.enroll(object{"mrn": fmt.Sprint("ORDER-", round)})
				for n, i := range order {
					c.now = start.Add(time.Duration(n) * time.Second)
					c.request(authz.Nurse, "POST", "/ingestion/"+strings.ReplaceAll(list[i].kind, "_", "-")+"/", list[i].body(patient, start)).want(201)
				}
				c.now = start.Add(time.Minute)
				if seen := c.outcomeFor(patient); round == 0 {
					want = seen
				} else if !seen.equals(want, c.hasWithdrawnCritical(patient)) {
					t.Fatalf("%v, order %v: is\n%q, want\n%q", list, order, seen, want)
				}
			}
		})
	}
}

// randomReadings are three to six readings of some kinds, in order of measurement.
func randomReadings(random *rand.Rand, kinds []string) (list []orderedReading) {
	minutes := []int{50, 300, 1300, 6 * 1440, 20 * 1440}[random.IntN(5)]
	usual := 60 + random.IntN(40)
	for size := 3 + random.IntN(4); len(list) < size; {
		r := randomReading(random, kinds, minutes)
		if r.kind == "weight" {
			r.values = object{"weight_kg": float64(10*usual+[]int{0, 5, 14, 21, 30, 48, -25, 160, 165, -170, -168}[random.IntN(11)]) / 10}
		}
		if !slices.ContainsFunc(list, func(other orderedReading) bool { return other.ago == r.ago }) {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b orderedReading) int { return b.ago - a.ago })
	return list
}

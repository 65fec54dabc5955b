package routes_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// openInAnyOrder are a clinic's open alerts. A change over weeks is dated by the day: which of its readings shows it first depends on the order.
const openInAnyOrder = `SELECT type || ' ' || level || ' ' || parameter || ' ' ||
	CASE WHEN parameter LIKE '%_loss' OR parameter LIKE '%_slow_gain' THEN substr(measured_at, 1, 10) ELSE measured_at END
	FROM alerts WHERE status = 'active' ORDER BY 1`

// Readings of a cuff that two people use and of a scale, delivered one by one in any order within the hour, give the same open alerts.
func TestOrderOfCuffsAndWeights(t *testing.T) {
	base := clock.AddDate(0, 0, 60)
	cuff := [][3]int{{118, 75, 62}, {124, 80, 66}, {152, 92, 88}, {184, 110, 95}, {186, 121, 60}, {160, 85, 64}, {116, 70, 84}}
	kilograms := []float64{80, 80.5, 81, 82.4, 83.2, 84.9, 77.4, 79, 62, 62.5}
	type event struct {
		about, body string
		at, arrives time.Time
	}
	for seed := range vigiltest.Rounds(120, 6) {
		random := rand.New(rand.NewPCG(uint64(seed), 77))
		var events []event
		for i, minute := range random.Perm(150)[:4+random.IntN(8)] {
			at := base.Add(-time.Duration(1+minute) * time.Minute)
			if i%3 == 2 {
				kg := kilograms[random.IntN(len(kilograms))]
				events = append(events, event{fmt.Sprint(kg, " kg"), tenovi("weight", "S-1", "GW-1", at, fmt.Sprintf(`"value_1":"%v","value_2":null`, kg*2.2046226)), at, at})
				continue
			}
			v := cuff[random.IntN(len(cuff))]
			both := tenovi("blood_pressure", "T-1", "GW-1", at, fmt.Sprintf(`"value_1":"%d","value_2":"%d"`, v[0], v[1])) + "," + pulse("T-1", "GW-1", at, v[2])
			events = append(events, event{fmt.Sprint(v), both, at, at})
		}
		slices.SortFunc(events, func(a, b event) int { return a.at.Compare(b.at) })
		story, want := fmt.Sprint(events), []string(nil)
		for round := range 3 {
			c := newIngestingClinic(t)
			c.t = t
			c.enroll(object{"gateway_patient_id": "GW-1"})
			for days := 30; days > 22; days -= 2 {
				c.now = base.AddDate(0, 0, -days)
				c.sendVendor(t, "tenovi", pressure("T-1", "GW-1", c.now, 120)).wantStatuses("accepted")
				c.sendVendor(t, "tenovi", tenovi("weight", "S-1", "GW-1", c.now, `"value_1":"176.4","value_2":null`)).wantStatuses("accepted")
			}
			c.now = base
			for _, e := range events {
				c.sendVendor(t, "tenovi", "["+e.body+"]").want(200)
			}
			if got := c.queryRows(t, openInAnyOrder); round == 0 {
				want = got
			} else if !slices.Equal(got, want) {
				t.Fatalf("seed %d, round %d of %s: open are %q, in order %q", seed, round, story, got, want)
			}
			for i := range events { // an order in which no reading is more than an hour before another that came first
				events[i].arrives = events[i].at.Add(time.Duration(random.IntN(59)) * time.Minute)
			}
			slices.SortFunc(events, func(a, b event) int { return a.arrives.Compare(b.arrives) })
		}
	}
}

package routes_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// sicker are signs that score 5 and 7, each with the values of the other devices that make the sum.
var sicker = map[string][]vitalSign{
	"5": {{"blood_pressure", `"systolic":98,"diastolic":62,"pulse":112`, 3 * time.Minute}, {"pulse_oximetry", `"spo2":95`, 2 * time.Minute}},
	"7": {{"blood_pressure", `"systolic":93,"diastolic":62,"pulse":115`, 3 * time.Minute}, {"pulse_oximetry", `"spo2":92`, 2 * time.Minute}, {"body_temperature", `"temperature":38.6`, time.Minute}},
}

// Values of unproven or doubtful clocks count in any order of arrival, also after the alerts that they raised were acknowledged.
func TestStoryEarlyWarningInAnyOrderOfArrival(t *testing.T) {
	for sum, signs := range sicker {
		for slow := range signs {
			for _, doubted := range []bool{false, true} {
				for last := range signs {
					t.Run(fmt.Sprint("sum ", sum, ", slow ", slow, ", doubted ", doubted, ", last ", last), func(t *testing.T) {
						c := newScoringClinic(t)
						patient := c.enroll(object{"gateway_patient_id": "gw-1"})
						c.now = c.now.AddDate(0, 1, 0)
						if doubted { // the clock was right hours ago
							c.slowSign(wellSigns[slow], 0)
							c.now = c.now.Add(2 * time.Hour)
						}
						order := slices.DeleteFunc([]int{0, 1, 2}[:len(signs)], func(i int) bool { return i == last })
						for _, i := range append(order, last) {
							if c.now = c.now.Add(time.Minute); i == slow {
								c.slowSign(signs[i], 48*time.Hour)
							} else {
								c.measureSign(patient, signs[i])
							}
							if i != last {
								c.acknowledgeAll(patient)
							}
						}
						if got := c.earlyWarnings(patient); len(got) == 0 || !strings.HasPrefix(got[len(got)-1], sum) || !strings.HasSuffix(got[len(got)-1], " active") {
							t.Errorf("early warnings %q", got)
						}
					})
				}
			}
		}
	}
}

func (c *clinic) acknowledgeAll(patient string) {
	c.t.Helper()
	for _, a := range c.request(authz.Nurse, "GET", "/alerts/"+query("patient_id", patient, "status", "active"), nil).results() {
		c.request(authz.Nurse, "POST", "/alerts/"+formatID(a)+"/acknowledge/", nil).want(200)
	}
}

// In any order of arrival, one by one or several in a delivery, the same readings of devices with a right, an unproven and a doubtful clock give the
// same open alerts.
func TestOrderOfArrivalDoesNotMatter(t *testing.T) {
	for seed := range vigiltest.Rounds(60, 6) {
		random := rand.New(rand.NewPCG(uint64(seed), 44))
		behind := map[string]time.Duration{}
		for _, s := range wellSigns {
			behind[s.kind] = []time.Duration{0, 0, 48 * time.Hour, 30 * time.Hour}[random.IntN(4)]
		}
		doubted := random.IntN(2) == 0
		signs := []vitalSign{
			{"blood_pressure", fmt.Sprintf(`"systolic":%d,"diastolic":62,"pulse":%d`, 92+random.IntN(24), 88+random.IntN(40)), 3 * time.Minute},
			{"pulse_oximetry", fmt.Sprintf(`"spo2":%d`, 90+random.IntN(8)), 2 * time.Minute},
			{"body_temperature", fmt.Sprintf(`"temperature":%.1f`, 36.8+3*random.Float64()), time.Minute},
		}
		// Within a minute they are one delivery, 90 seconds apart they are not: each with its own reference.
		want := map[bool][]string{}
		for round, order := range [][]int{{0, 1, 2}, {0, 1, 2}, {0, 2, 1}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}, {2, 1, 0}, {1, 2, 0}} {
			apart := round%2 == 1
			c := newScoringClinic(t)
			patient := c.enroll(object{"gateway_patient_id": "gw-1"})
			c.now = c.now.AddDate(0, 1, 0)
			for _, s := range wellSigns {
				if doubted || behind[s.kind] == 0 {
					c.slowSign(s, 0)
				}
			}
			c.now = c.now.Add(25 * time.Hour)
			for _, i := range order {
				if apart {
					c.now = c.now.Add(90 * time.Second)
				}
				c.slowSign(signs[i], behind[signs[i].kind])
			}
			got := c.openAlerts(patient)
			slices.Sort(got)
			if round < 2 {
				want[apart] = got
			} else if !slices.Equal(got, want[apart]) {
				t.Fatalf("seed %d, %v, behind by %v, doubted %v, order %v: open are %q, want %q", seed, signs, behind, doubted, order, got, want[apart])
			}
		}
	}
}

// A hub's memory, of devices without a proven clock, has an illness of days ago that is over, or values that were never measured together: no score.
func TestStoryBacklogOfUnprovenClocksRaisesNoScore(t *testing.T) {
	const day = 24 * time.Hour
	ill, well := septic, wellSigns
	at := func(s vitalSign, ago time.Duration) vitalSign { return vitalSign{s.kind, s.values, ago + s.ago} }
	for name, test := range map[string]struct {
		backlog []vitalSign
		want    int
	}{
		"an illness that is over":   {[]vitalSign{at(ill[0], 5*day), at(ill[1], 5*day), at(ill[2], 5*day), at(well[0], 2*day), at(well[1], 2*day), at(well[2], 2*day)}, 0},
		"over but for a fever":      {[]vitalSign{at(ill[0], 5*day), at(ill[1], 5*day), at(ill[2], 5*day), at(well[0], 2*day), at(well[1], 2*day)}, 0},
		"never together":            {[]vitalSign{at(sicker["5"][0], 5*day), at(sicker["5"][1], 3*day)}, 0},
		"together, and the newest":  {[]vitalSign{at(well[0], 5*day), at(sicker["5"][0], 2*day), at(sicker["5"][1], 2*day)}, 1},
		"hours ago, and it is over": {[]vitalSign{at(ill[0], 5*time.Hour), at(ill[1], 5*time.Hour), at(well[0], 2*time.Hour), at(well[1], 2*time.Hour)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := newScoringClinic(t)
			patient := c.enroll(object{"gateway_patient_id": "GW-1"})
			c.now = c.now.AddDate(0, 1, 0)
			var events []string
			for _, s := range test.backlog {
				events = append(events, c.tenoviSigns(s)...)
			}
			slices.Reverse(events)
			c.sendVendor(t, "tenovi", "["+strings.Join(events, ",")+"]").want(200)
			if got := c.earlyWarnings(patient); len(got) != test.want {
				t.Errorf("early warnings %q, escalations %q", got, c.statEscalations(t))
			}
		})
	}
}

// A device without a proven clock that repeats its values, before or after an acknowledgment, raises no further alert of the run; its own values in range
// end it.
func TestStoryUnprovenRepeats(t *testing.T) {
	for _, acknowledged := range []bool{false, true} {
		for _, every := range []time.Duration{4 * time.Minute, 10 * time.Second, 50 * time.Second} {
			t.Run(fmt.Sprint("acknowledged ", acknowledged, ", every ", every), func(t *testing.T) {
				c := newScoringClinic(t)
				patient := c.enroll(object{"gateway_patient_id": "gw-1"})
				c.now = c.now.AddDate(0, 1, 0)
				send := func(signs []vitalSign) {
					for _, s := range signs {
						c.slowSign(s, 48*time.Hour)
					}
					c.now = c.now.Add(every)
				}
				for range 4 {
					send(septic)
					if acknowledged {
						c.acknowledgeAll(patient)
					}
				}
				if got := slices.DeleteFunc(c.earlyWarnings(patient), func(a string) bool { return !strings.HasPrefix(a, "8/7") }); len(got) != 1 {
					t.Errorf("early warnings %q", got)
				}
				send(wellSigns)
				if got := c.earlyWarnings(patient); slices.ContainsFunc(got, func(a string) bool { return strings.HasSuffix(a, " active") }) {
					t.Errorf("after its own values in range: %q", got)
				}
			})
		}
	}
}

// tenoviSigns are the events of a hub about one reading.
func (c *clinic) tenoviSigns(s vitalSign) (events []string) {
	c.t.Helper()
	var values map[string]float64
	if err := json.Unmarshal([]byte("{"+s.values+"}"), &values); err != nil {
		c.t.Fatal(err)
	}
	device, at := "T-"+s.kind, c.now.Add(-s.ago)
	if systolic, measured := values["systolic"]; measured {
		return []string{pressure(device, "GW-1", at, int(systolic)), pulse(device, "GW-1", at, int(values["pulse"]))}
	}
	if saturation, measured := values["spo2"]; measured {
		return []string{tenovi("spo2", device, "GW-1", at, fmt.Sprintf(`"value_1":"%v","value_2":null`, saturation))}
	}
	return []string{tenovi("temperature", device, "GW-1", at, fmt.Sprintf(`"value_1":"%.1f","value_2":null`, values["temperature"]*1.8+32))}
}

// An older value that arrives after the alert corrects it: what is open is the score of the readings in order of measurement.
func TestStoryEarlyWarningCorrectedByOlderValue(t *testing.T) {
	const minute = time.Minute
	for name, test := range map[string]struct {
		signs  []vitalSign // in order of measurement
		orders [][]int
		want   string
	}{
		"critical without the older pulse": {[]vitalSign{
			{"pulse_oximetry", `"spo2":88`, 49 * minute},
			{"blood_pressure", `"systolic":124,"diastolic":80,"pulse":45`, 41 * minute},
			{"blood_pressure", `"systolic":124,"diastolic":80,"pulse":70`, 39 * minute},
			{"body_temperature", `"temperature":34.8`, 26 * minute},
		}, [][]int{{0, 1, 2, 3}, {0, 1, 3, 2}, {1, 0, 3, 2}, {3, 1, 0, 2}, {3, 2, 1, 0}}, "6/5 warning active"},
		"a smaller sum": {[]vitalSign{
			{"pulse_oximetry", `"spo2":91`, 30 * minute},
			{"body_temperature", `"temperature":39.3`, 20 * minute},
			{"body_temperature", `"temperature":37.0`, 18 * minute},
			{"blood_pressure", `"systolic":124,"diastolic":80,"pulse":70`, 10 * minute},
		}, [][]int{{0, 1, 2, 3}, {0, 1, 3, 2}, {3, 1, 0, 2}}, ""},
	} {
		for _, order := range test.orders {
			c := newScoringClinic(t)
			patient := c.enroll(object{"gateway_patient_id": "gw-1"})
			c.now = c.now.AddDate(0, 1, 0)
			for _, i := range order {
				c.measureSign(patient, test.signs[i])
			}
			var open []string
			for _, alert := range c.earlyWarnings(patient) {
				if strings.HasSuffix(alert, "active") {
					open = append(open, alert)
				}
			}
			if got := strings.Join(open, ", "); test.want == "" {
				test.want = got
			} else if got != test.want {
				t.Errorf("%s, order %v: open are %q, want %q", name, order, got, test.want)
			}
		}
	}
}

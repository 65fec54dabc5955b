package routes_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// With any clock of a device, a value beyond a critical bound that arrives live is notified and has a stat escalation: after any
// readings at a right clock, for any kind, at any distance from the true time.
func TestDangerIsToldWhateverTheClock(t *testing.T) {
	for seed := range vigiltest.Rounds(200, 8) {
		random := rand.New(rand.NewPCG(uint64(seed), 41))
		c := newIngestingClinic(t)
		c.t = t
		patient := c.enroll(object{"gateway_patient_id": "gw-1"})
		c.now = c.now.Add(time.Duration(random.IntN(60*24)) * time.Hour)
		reading := func(dangerous bool, at time.Time) string {
			values := []int{96, 72, 122}
			if dangerous {
				values = []int{70 + random.IntN(18), 131 + random.IntN(90), 181 + random.IntN(80)}
			}
			if seed%2 == 0 {
				return oximeterEvent("D-1", "gw-1", values[0], values[1], at)
			}
			return cuffEvent("D-1", "gw-1", values[2], at)
		}
		for i := range random.IntN(5) {
			c.postEvent(t, reading(false, c.now)).want(200)
			c.now = c.now.Add(time.Duration(1+i) * time.Hour)
		}
		offset := []time.Duration{
			0, -time.Duration(random.IntN(24*60)) * time.Minute, -time.Duration(24+random.IntN(24*400)) * time.Hour,
			c.now.Sub(time.Date(1970, 1, 1, 0, 3, 0, 0, time.UTC)) * -1, c.now.Sub(time.Date(2019, 1, 1, 0, 0, 0, 0, time.UTC)) * -1,
			time.Duration(6+random.IntN(24*60)) * time.Minute,
		}[random.IntN(6)]
		for range 1 + random.IntN(3) {
			c.now = c.now.Add(time.Minute)
			status := c.postEvent(t, reading(true, c.now.Add(offset))).status
			about := fmt.Sprintf("seed %d, clock %s, answered %d", seed, offset, status)
			if stats := c.statEscalations(t); !slices.Equal(stats, []string{"stat open system"}) {
				t.Fatalf("%s: escalations %q", about, stats)
			}
			if notified := c.pushes(t); !slices.Contains(notified, "alert_raised critical") {
				t.Fatalf("%s: notified %q", about, notified)
			}
			if row := c.score(patient); row["risk_level"] != "critical" || row["risk_score"].(float64) < 86 {
				t.Fatalf("%s: ranked %v", about, row)
			}
		}
	}
}

// A clock that was never right: each reading of the device, also the ones before the danger, has the same distance from the true time, or one
// that drifts. Alone or after several, one by one or in one delivery, a value beyond a critical bound is pushed at once.
func TestDangerIsToldByAClockThatWasNeverRight(t *testing.T) {
	offsets := []time.Duration{90 * time.Minute, 5 * time.Hour, 25 * time.Hour, 50 * time.Hour, 12 * 24 * time.Hour, 92 * 24 * time.Hour, 300 * 24 * time.Hour}
	for seed := range vigiltest.Rounds(120, 8) {
		random := rand.New(rand.NewPCG(uint64(seed), 43))
		c := newIngestingClinic(t)
		c.t = t
		patient := c.enroll(object{"gateway_patient_id": "gw-1"})
		c.now = c.now.AddDate(1, 0, random.IntN(60))
		behind, drift := offsets[random.IntN(len(offsets))], time.Duration(random.IntN(3))*time.Minute
		batched := seed%3 == 2
		about := fmt.Sprintf("seed %d, behind by %s, drifts by %s, batched %v", seed, behind, drift, batched)
		var delivery []string
		send := func(at time.Time, spo2, pulse int) {
			c.now = at
			behind += drift
			event := pressure("T-1", "gw-1", at.Add(-behind), 122)
			if spo2 < 90 {
				event = pressure("T-1", "gw-1", at.Add(-behind), 181+random.IntN(70))
			}
			if delivery = append(delivery, event); !batched || spo2 < 90 {
				c.sendVendor(t, "tenovi", "["+strings.Join(delivery, ",")+"]").want(200)
				delivery = nil
			}
		}
		for range random.IntN(6) {
			send(c.now.Add(time.Duration(1+random.IntN(20))*time.Hour), 97, 70)
		}
		for range 1 + random.IntN(3) {
			send(c.now.Add(time.Duration(1+random.IntN(9))*time.Minute), 80, 140)
			if stats := c.statEscalations(t); !slices.Equal(stats, []string{"stat open system"}) {
				t.Fatalf("%s: escalations %q", about, stats)
			}
			if notified := c.pushes(t); !slices.Contains(notified, "alert_raised critical") {
				t.Fatalf("%s: notified %q", about, notified)
			}
			if row := c.score(patient); row["risk_level"] != "critical" || row["risk_score"].(float64) < 86 {
				t.Fatalf("%s: ranked %v", about, row)
			}
		}
	}
}

// The readings of several devices, shuffled within a delivery, give the same open alerts as in order: a hub's memory may be sent in any order.
func TestOrderWithinADeliveryDoesNotMatter(t *testing.T) {
	for seed := range vigiltest.Rounds(20, 2) {
		random := rand.New(rand.NewPCG(uint64(seed), 42))
		size := 40
		if seed == 0 {
			size = 100
		}
		var events []string
		base := clock.AddDate(0, 0, 40)
		for i, minute := range random.Perm(size) {
			at := base.Add(-time.Duration(1+minute*3) * time.Minute)
			events = append(events, pressure(fmt.Sprint("T-", i%3), "GW-1", at, []int{118, 124, 150, 152, 184, 186, 78}[random.IntN(7)]))
		}
		var want []string
		for round := range 3 {
			c := newIngestingClinic(t)
			c.t = t
			patient := c.enroll(object{"gateway_patient_id": "GW-1"})
			c.now = base
			for i := range 3 { // each device worked before
				c.sendVendor(t, "tenovi", pressure(fmt.Sprint("T-", i), "GW-1", base.AddDate(0, 0, -9), 120)).wantStatuses("accepted")
			}
			c.sendVendor(t, "tenovi", "["+strings.Join(events, ",")+"]").want(200)
			got := c.queryRows(t, `SELECT type || ' ' || level || ' ' || measured_at FROM alerts WHERE status = 'active' ORDER BY 1`)
			if round == 0 {
				want = got
			} else if !slices.Equal(got, want) {
				t.Fatalf("seed %d, round %d: open are %q, want %q", seed, round, got, want)
			}
			if suspects := c.queryRows(t, `SELECT COUNT(*) FROM observations WHERE review_state = 'suspect'`); suspects[0] != "0" {
				t.Fatalf("seed %d: %s of %s are in doubt", seed, suspects, patient)
			}
			random.Shuffle(len(events), func(i, k int) { events[i], events[k] = events[k], events[i] })
		}
	}
}

// A clock that jumps between readings: to 1970, to the first of January, by an hour of daylight saving, some hours, days or months behind or ahead, and
// back to the right time. Any kind of danger that arrives live is notified and escalates: at the latest with the next reading where the first looks
// like a backlog of one (docs/decisions/devices.md, "Doubtful time", limits).
func TestDangerIsToldByAJumpingClock(t *testing.T) {
	for seed := range vigiltest.Rounds(200, 6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(uint64(seed), 44))
			c := newIngestingClinic(t)
			c.t = t
			c.enroll(object{"gateway_patient_id": "gw-1"})
			c.now = c.now.Add(time.Duration(random.IntN(330*24)) * time.Hour)
			kinds := []struct{ kind, unit, usual, danger string }{
				{"blood_pressure", "mmHg", `"systolic":122,"diastolic":80,"pulse":70`, fmt.Sprintf(`"systolic":%d,"diastolic":100,"pulse":84`, 181+random.IntN(80))},
				{"blood_pressure", "mmHg", `"systolic":122,"diastolic":80,"pulse":70`, fmt.Sprintf(`"systolic":%d,"diastolic":41,"pulse":84`, 66+random.IntN(14))},
				{"pulse_oximetry", "%", `"spo2":97,"pulse":70`, fmt.Sprintf(`"spo2":%d,"pulse":84`, 70+random.IntN(18))},
				{"blood_glucose", "mg/dL", `"glucose":110`, fmt.Sprintf(`"glucose":%d`, 22+random.IntN(32))},
				{"body_temperature", "degC", `"temperature":36.8`, `"temperature":39.8`},
			}
			k := kinds[random.IntN(len(kinds))]
			offset := func() time.Duration {
				january := time.Date(c.now.Year(), 1, 1, 0, 7, 0, 0, time.UTC)
				return []time.Duration{
					0, -time.Hour, time.Hour, -time.Duration(1+random.IntN(23*60)) * time.Minute, -time.Duration(24+random.IntN(9000)) * time.Hour,
					time.Duration(6+random.IntN(400*1440)) * time.Minute, january.Sub(c.now), time.Date(1970, 1, 1, 0, 9, 0, 0, time.UTC).Sub(c.now),
				}[random.IntN(8)]
			}
			story := k.danger
			for range random.IntN(5) {
				at := c.now.Add(offset())
				story += " usual " + at.Sub(c.now).String()
				c.postEvent(t, measured("D-1", "gw-1", k.kind, k.unit, at, k.usual))
				c.now = c.now.Add(time.Duration(1+random.IntN(40)) * time.Hour)
			}
			behind := offset()
			for i := range 3 {
				c.now = c.now.Add(time.Duration(2+random.IntN(5)) * time.Minute)
				story += fmt.Sprint(" danger ", behind)
				status := c.postEvent(t, measured("D-1", "gw-1", k.kind, k.unit, c.now.Add(behind), k.danger)).status
				if notified := c.pushes(t); !slices.Contains(notified, "alert_raised critical") {
					t.Fatalf("%s, answered %d: notified %q", story, status, notified)
				}
				if stats := c.statEscalations(t); !slices.Equal(stats, []string{"stat open system"}) && (i > 0 || behind >= 0) {
					t.Fatalf("%s, answered %d: escalations %q", story, status, stats)
				}
			}
		})
	}
}

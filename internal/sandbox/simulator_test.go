package sandbox

import (
	"bytes"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/internal/vitals"
)

var simulatedNoon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.FixedZone("EST", -5*3600))

// planned returns the events of n measurements, one a second.
func planned(t *testing.T, s *Simulator, n int) (events []Event, bodies [][]byte) {
	t.Helper()
	for i := range n {
		for _, event := range s.Next(simulatedNoon.Add(time.Duration(i) * time.Second)) {
			body, err := event.Body()
			if err != nil {
				t.Fatal(err)
			}
			events, bodies = append(events, event), append(bodies, body)
		}
	}
	return events, bodies
}

func TestIDs(t *testing.T) {
	got := []string{GatewayPatientID(1), HubID(12), DeviceID(1, vitals.BloodPressure), DeviceID(40, vitals.Weight), DeviceID(7, vitals.PulseOximetry), DeviceID(10000, vitals.BloodGlucose)}
	want := []string{"GW-0001", "HUB-0012", "DEV-0001-BP", "DEV-0040-WT", "DEV-0007-OX", "DEV-10000-BG"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestSimulatorIsDeterministic(t *testing.T) {
	_, a := planned(t, NewSimulator(SimulatedPatients(20), 7, nil), 500)
	_, b := planned(t, NewSimulator(SimulatedPatients(20), 7, nil), 500)
	_, c := planned(t, NewSimulator(SimulatedPatients(20), 8, nil), 500)
	if !slices.EqualFunc(a, b, bytes.Equal) {
		t.Error("the same seed gave other events")
	}
	if slices.EqualFunc(a, c, bytes.Equal) {
		t.Error("another seed gave the same events")
	}
}

func TestFaultRates(t *testing.T) {
	rates := map[DeliveryFault]float64{
		FaultDuplicate: 0.10, FaultClockSkew: 0.08, FaultArtifact: 0.06, FaultUnknownPatient: 0.05, FaultStaleHeader: 0.04, FaultLostAnswer: 0.03,
	}
	const n = 1000
	events, _ := planned(t, NewSimulator(SimulatedPatients(50), 3, rates), n)
	seen := map[DeliveryFault]int{}
	for _, event := range events {
		if event.Fault != FaultNone {
			seen[event.Fault]++
		}
	}
	seen[FaultDuplicate] /= 2 // each is two events
	for flaw, rate := range rates {
		sigma := math.Sqrt(n * rate * (1 - rate))
		if off := math.Abs(float64(seen[flaw]) - n*rate); off > 3.5*sigma {
			t.Errorf("%s: %d of %d, want about %g", flaw, seen[flaw], n, n*rate)
		}
	}
	perfect, _ := planned(t, NewSimulator(SimulatedPatients(50), 3, map[DeliveryFault]float64{}), n)
	if slices.ContainsFunc(perfect, func(e Event) bool { return e.Fault != FaultNone }) {
		t.Error("flaws although their rates are zero")
	}
}

// The service parses every event: events without a fault are accepted, artifacts rejected, and two share a deduplication key only if one
// duplicates the other.
func TestGatewayParsesEvents(t *testing.T) {
	service := gateway.ContractAdapter{MaxFuture: 15 * time.Minute}
	patients := SimulatedPatients(12)
	events, bodies := planned(t, NewSimulator(patients, 11, nil), 3000)
	keys := map[string][]byte{}
	kinds, batteryLow := map[vitals.Kind]int{}, 0
	for i, event := range events {
		parsed, err := service.Parse(bodies[i], simulatedNoon.Add(time.Hour))
		if (err != nil) != (event.Fault == FaultArtifact) {
			t.Fatalf("flaw %q, error %v: %s", event.Fault, err, bodies[i])
		}
		if event.EventType == gateway.DeviceBatteryLow {
			batteryLow++
			continue
		}
		if err != nil {
			continue
		}
		kinds[parsed.Reading.Kind]++
		if earlier, again := keys[parsed.Key()]; again && (event.Fault != FaultDuplicate || !bytes.Equal(earlier, bodies[i])) {
			t.Errorf("two readings share a key: %s and %s", earlier, bodies[i])
		}
		keys[parsed.Key()] = bodies[i]
	}
	if len(kinds) != len(vitals.Kinds) || batteryLow == 0 {
		t.Errorf("kinds %v, %d low batteries", kinds, batteryLow)
	}
}

func TestClockSkewAndLatency(t *testing.T) {
	simulator := NewSimulator(SimulatedPatients(40), 5, nil)
	var ahead, behind bool
	for i := range 2000 {
		now := simulatedNoon.Add(time.Duration(i) * time.Minute)
		event := simulator.Next(now)[0]
		age := now.Sub(event.Timestamp)
		low, high := minLatency, maxLatency+time.Second
		if event.Fault == FaultClockSkew {
			low, high = low-maxSkew, high+maxSkew
			ahead, behind = ahead || age < 0, behind || age > maxLatency+time.Second
		}
		if age < low || age > high {
			t.Errorf("flaw %q: reading is %s old", event.Fault, age)
		}
	}
	if !ahead || !behind {
		t.Errorf("clocks ahead: %t, behind: %t", ahead, behind)
	}
}

func TestSimulatorWithoutPatients(t *testing.T) {
	if events := NewSimulator(nil, 1, nil).Next(simulatedNoon); events != nil {
		t.Errorf("events without patients: %v", events)
	}
	// Patient 3 measures about one day in three; alone, there is something every day.
	lonely := SimulatedPatients(3, vitals.BloodPressure)[2:]
	for day := range 30 {
		if len(NewSimulator(lonely, 1, nil).Next(simulatedNoon.AddDate(0, 0, day))) == 0 {
			t.Errorf("day %d: nothing", day)
		}
	}
}

// With any number of patients and any rate, a device never measures twice in one second.
func TestManyMeasurementsOfOneDevice(t *testing.T) {
	simulator := NewSimulator(SimulatedPatients(1, vitals.BloodPressure), 1, map[DeliveryFault]float64{})
	seen := map[time.Time]bool{}
	for range 3000 {
		at := simulator.Next(simulatedNoon)[0].Timestamp
		if seen[at] {
			t.Fatalf("two measurements at %s", at)
		}
		seen[at] = true
	}
}

func TestHistory(t *testing.T) {
	const days = 30
	patients := SimulatedPatients(40)
	high, forgetful, billable := 0, 0, 0
	for _, patient := range patients {
		readings := History(patient, days, 42, simulatedNoon)
		if again := History(patient, days, 42, simulatedNoon); len(again) != len(readings) || !again[0].SameValues(readings[0]) {
			t.Fatalf("patient %d: the same seed gave another history", patient.Number)
		}
		measured, alarming, keys := map[int64]bool{}, false, map[string]bool{}
		for i, reading := range readings {
			measured[dayNumber(reading.MeasuredAt.In(simulatedNoon.Location()))] = true
			systolic := reading.Value(vitals.Systolic)
			alarming = alarming || systolic != nil && *systolic >= 140
			key := reading.DeviceID + reading.MeasuredAt.String()
			switch {
			case keys[key]:
				t.Errorf("two readings of %s at %s", reading.DeviceID, reading.MeasuredAt)
			case i > 0 && reading.MeasuredAt.Before(readings[i-1].MeasuredAt):
				t.Errorf("patient %d: out of order", patient.Number)
			case reading.MeasuredAt.After(simulatedNoon.Add(-historyGap)):
				t.Errorf("reading after the end: %s", reading.MeasuredAt)
			}
			keys[key] = true
		}
		if len(measured) > days {
			t.Errorf("patient %d measured on %d days", patient.Number, len(measured))
		}
		if alarming {
			high++
		}
		if len(measured) >= 16 {
			billable++
		} else {
			forgetful++
		}
		if profiles[patient.Number%10].adherence == 1 && len(measured) != days {
			t.Errorf("patient %d, who never misses, measured on %d days", patient.Number, len(measured))
		}
	}
	if high < 8 || high > 30 || forgetful < 3 || billable < 25 {
		t.Errorf("of 40: %d crossed 140 mmHg, %d below 16 days, %d billable", high, forgetful, billable)
	}
}

func TestHeartFailureWeightCrossesItsThreshold(t *testing.T) {
	var gain float64
	readings := History(SimulatedPatients(4, vitals.Weight)[3], 60, 42, simulatedNoon)
	for i, late := range readings {
		for _, early := range readings[:i] {
			if late.MeasuredAt.Sub(early.MeasuredAt) < 7*24*time.Hour {
				gain = max(gain, *late.Value(vitals.WeightKg)-*early.Value(vitals.WeightKg))
			}
		}
	}
	if gain < 2.3 || gain > 6 {
		t.Errorf("most gained within a week: %.1f kg", gain)
	}
}

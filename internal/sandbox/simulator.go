package sandbox

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// DeliveryFault is a fault of a gateway event.
type DeliveryFault string

// The faults; an event has at most one.
const (
	FaultNone           DeliveryFault = ""
	FaultDuplicate      DeliveryFault = "duplicate"       // sent twice, byte for byte
	FaultClockSkew      DeliveryFault = "clock_skew"      // the device's clock is minutes off
	FaultArtifact       DeliveryFault = "artefact"        // a value outside every range
	FaultUnknownPatient DeliveryFault = "unknown_patient" // an unknown patient and device
	FaultStaleHeader    DeliveryFault = "stale_header"    // first sent with a timestamp header two hours old
	FaultLostAnswer     DeliveryFault = "lost_answer"     // the gateway misses the first answer, and retries
)

// deliveryFaults is the order of random draws.
var deliveryFaults = []DeliveryFault{FaultDuplicate, FaultClockSkew, FaultArtifact, FaultUnknownPatient, FaultStaleHeader, FaultLostAnswer}

// DefaultFaultRates is the frequency of each fault, as a share of all measurements.
var DefaultFaultRates = map[DeliveryFault]float64{
	FaultDuplicate:      0.03,
	FaultClockSkew:      0.02,
	FaultArtifact:       0.01,
	FaultUnknownPatient: 0.005,
	FaultStaleHeader:    0.005,
	FaultLostAnswer:     0.01,
}

const (
	// The delay between a measurement and its webhook call.
	minLatency, maxLatency = 30 * time.Second, 90 * time.Second
	maxSkew                = 15 * time.Minute // in both directions
	staleHeaderAge         = 2 * time.Hour
	batteryPerReading      = 0.2 // percent
	batteryLow             = 20  // percent
	batteryReplaced        = 5   // percent
)

// Event is one planned webhook call: Body is what is signed and sent.
type Event struct {
	gateway.Measurement
	Fault DeliveryFault
	// HeaderAge is the age of the first attempt's timestamp header; 0 except for FaultStaleHeader.
	HeaderAge time.Duration
}

// Simulator plans the events of a gateway. It is deterministic: the same patients, seed, faults and times give the same events. It is not
// safe for concurrent use.
type Simulator struct {
	luck  *rand.Rand
	homes []*household
	turns []measurementSlot // the next measurements of this round
	rates map[DeliveryFault]float64
}

type household struct {
	simulatedBody
	SimulatedPatient
	devices []*device
}

type device struct {
	SimulatedDevice
	battery float64
	used    map[int64]bool // the seconds with a reading: a device measures at most once in one
}

type measurementSlot struct {
	household *household
	device    *device
}

// NewSimulator returns a simulator of these patients; nil rates are DefaultFaultRates.
func NewSimulator(patients []SimulatedPatient, seed uint64, rates map[DeliveryFault]float64) *Simulator {
	if rates == nil {
		rates = DefaultFaultRates
	}
	s := &Simulator{luck: rand.New(rand.NewPCG(mix(seed, 1), mix(seed, 2))), rates: rates}
	for _, patient := range patients {
		h := &household{simulatedBody: newSimulatedBody(seed, patient.Number), SimulatedPatient: patient}
		for i, d := range patient.Devices {
			charge := 25 + 75*h.dice(topicDevice, int64(i)).Float64()
			h.devices = append(h.devices, &device{SimulatedDevice: d, battery: charge, used: map[int64]bool{}})
		}
		s.homes = append(s.homes, h)
	}
	return s
}

// Next plans one measurement and returns its events in sending order: the measurement, its duplicate if it has that fault, and
// device.battery_low when the battery becomes low. It returns none without a device. The zone of now decides the hour and the day.
func (s *Simulator) Next(now time.Time) []Event {
	if len(s.turns) == 0 {
		s.schedule(now)
	}
	if len(s.turns) == 0 {
		return nil
	}
	next := s.turns[0]
	s.turns = s.turns[1:]

	flaw := s.drawFault()
	at := now.Add(-minLatency - time.Duration(s.luck.Int64N(int64(maxLatency-minLatency))))
	skew := time.Duration(s.luck.Int64N(int64(2*maxSkew))) - maxSkew
	if flaw == FaultClockSkew {
		at = at.Add(skew)
	}
	at = next.device.free(at)
	low := next.device.drain()

	event := Event{Measurement: next.measurement(at, -55-s.luck.IntN(40)), Fault: flaw}
	switch flaw {
	case FaultArtifact:
		corruptValues(&event.Measurement)
	case FaultUnknownPatient:
		stranger := s.luck.IntN(1000)
		event.PatientID = fmt.Sprintf("GW-STRANGER-%03d", stranger)
		event.DeviceID = fmt.Sprintf("DEV-STRANGER-%03d-%s", stranger, modelsOf(next.device.Kind).suffix)
	case FaultStaleHeader:
		event.HeaderAge = staleHeaderAge
	}
	events := []Event{event}
	if flaw == FaultDuplicate {
		events = append(events, event)
	}
	if low {
		events = append(events, Event{Measurement: next.event(gateway.DeviceBatteryLow, at)})
	}
	return events
}

// schedule starts a round: every device of the patients who measure today, in random order. If none does, all do, so that a simulator of
// one patient always sends something.
func (s *Simulator) schedule(now time.Time) {
	nobody := !slices.ContainsFunc(s.homes, func(h *household) bool { return len(h.devices) > 0 && h.measuresOn(now) })
	for _, h := range s.homes {
		for _, d := range h.devices {
			if nobody || h.measuresOn(now) {
				s.turns = append(s.turns, measurementSlot{h, d})
			}
		}
	}
	s.luck.Shuffle(len(s.turns), func(i, j int) { s.turns[i], s.turns[j] = s.turns[j], s.turns[i] })
}

func (s *Simulator) drawFault() DeliveryFault {
	draw := s.luck.Float64()
	for _, flaw := range deliveryFaults {
		if draw < s.rates[flaw] {
			return flaw
		}
		draw -= s.rates[flaw]
	}
	return FaultNone
}

// free returns the first second from at on in which the device has not measured.
func (d *device) free(at time.Time) time.Time {
	at = at.Truncate(time.Second)
	for d.used[at.Unix()] {
		at = at.Add(time.Second)
	}
	d.used[at.Unix()] = true
	if len(d.used) > 2048 {
		maps.DeleteFunc(d.used, func(second int64, _ bool) bool { return second < at.Add(-time.Hour).Unix() })
	}
	return at
}

// drain uses some of the battery and reports whether it has just become low. An empty one is replaced.
func (d *device) drain() (becameLow bool) {
	before := d.battery
	if d.battery -= batteryPerReading; d.battery < batteryReplaced {
		d.battery = 100
	}
	return before >= batteryLow && d.battery < batteryLow
}

// event returns the members that every event of the device has.
func (s measurementSlot) event(eventType gateway.EventType, at time.Time) gateway.Measurement {
	return gateway.Measurement{
		EventType:    eventType,
		DeviceID:     s.device.ID,
		PatientID:    s.household.GatewayID,
		Timestamp:    at.UTC(),
		DeviceModel:  s.device.Model,
		BatteryLevel: new(int(s.device.battery)),
		HubID:        s.household.HubID,
	}
}

// measurement returns a reading in the device's own units: every second scale weighs in pounds, every third meter measures in mmol/L.
// Source: docs/decisions/gateway.md, "`values` shapes".
func (s measurementSlot) measurement(at time.Time, signal int) gateway.Measurement {
	r := s.household.reading(s.device.Kind, s.device.ID, at)
	kind := r.Kind.Definition()
	m := s.event(gateway.MeasurementCreated, at)
	m.MeasurementType, m.SignalStrength, m.Unit = string(r.Kind), &signal, kind.Main().Range.Unit
	foreign := modelsOf(r.Kind).usesOtherUnit
	for _, p := range kind.All {
		value := *r.Value(p)
		if p == kind.Main() && len(p.Units) > 0 && foreign != nil && foreign(s.household.Number) {
			m.Unit, value = p.Units[0].Name, inUnit(p.Units[0], value)
		}
		m.Values.Add(p.Name, value)
	}
	for _, mark := range kind.Qualifiers {
		if word := r.Qualifier(mark); mark.IsFlag() {
			m.Values.Add(mark.Name, word == vitals.Yes)
		} else if word != "" && !mark.Internal {
			m.Values.Add(mark.Name, word)
		}
	}
	return m
}

// inUnit returns a value as shown by a device with another unit.
func inUnit(unit vitals.Unit, value float64) float64 {
	if unit.Back != nil {
		return unit.Back(value)
	}
	return tenths(value / unit.Convert(1000) * 1000)
}

// corruptValues replaces the values by ones outside every range: a slipped cuff, a bag on the scale, a cold finger, a wet strip.
func corruptValues(m *gateway.Measurement) {
	main := vitals.Kind(m.MeasurementType).Definition().Main()
	m.Values = nil
	m.Values.Add(main.Name, main.Range.Min/100)
}

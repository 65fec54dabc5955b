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

// Flaw is one way for a gateway event to be less than perfect.
type Flaw string

// The flaws; an event has at most one.
const (
	FlawNone           Flaw = ""
	FlawDuplicate      Flaw = "duplicate"       // sent twice, byte for byte
	FlawClockSkew      Flaw = "clock_skew"      // the device's clock is minutes off
	FlawArtefact       Flaw = "artefact"        // a value outside every range
	FlawUnknownPatient Flaw = "unknown_patient" // a patient and device nobody knows
	FlawStaleHeader    Flaw = "stale_header"    // first sent with a timestamp header two hours old
	FlawLostAnswer     Flaw = "lost_answer"     // the gateway misses the first answer, and retries
)

// flaws in the order in which the dice are read.
var flaws = []Flaw{FlawDuplicate, FlawClockSkew, FlawArtefact, FlawUnknownPatient, FlawStaleHeader, FlawLostAnswer}

// DefaultFlaws is how often each flaw happens, as a share of all measurements.
var DefaultFlaws = map[Flaw]float64{
	FlawDuplicate:      0.03,
	FlawClockSkew:      0.02,
	FlawArtefact:       0.01,
	FlawUnknownPatient: 0.005,
	FlawStaleHeader:    0.005,
	FlawLostAnswer:     0.01,
}

const (
	// A reading reaches the gateway's webhook this long after it was taken.
	minLatency, maxLatency = 30 * time.Second, 90 * time.Second
	maxSkew                = 15 * time.Minute // either way
	staleHeaderAge         = 2 * time.Hour
	batteryPerReading      = 0.2 // percent
	batteryLow             = 20  // percent
	batteryReplaced        = 5   // percent
)

// Event is one webhook call to be made: Body is what is signed and sent.
type Event struct {
	gateway.Measurement
	Flaw Flaw
	// HeaderAge is how old the timestamp header of the first attempt is; 0 for all but FlawStaleHeader.
	HeaderAge time.Duration
}

// Simulator plans what a gateway would send. It is deterministic: the same patients, seed, flaws and times give
// the same events. It is not safe for concurrent use.
type Simulator struct {
	luck  *rand.Rand
	homes []*household
	turns []turn // who measures next, in this round
	rates map[Flaw]float64
}

type household struct {
	wearer
	SimulatedPatient
	devices []*device
}

type device struct {
	SimulatedDevice
	battery float64
	used    map[int64]bool // the seconds that have a reading: a device measures at most once in one
}

type turn struct {
	household *household
	device    *device
}

// NewSimulator returns a simulator of these patients; nil rates are DefaultFlaws.
func NewSimulator(patients []SimulatedPatient, seed uint64, rates map[Flaw]float64) *Simulator {
	if rates == nil {
		rates = DefaultFlaws
	}
	s := &Simulator{luck: rand.New(rand.NewPCG(mix(seed, 1), mix(seed, 2))), rates: rates}
	for _, patient := range patients {
		h := &household{wearer: newWearer(seed, patient.Number), SimulatedPatient: patient}
		for i, d := range patient.Devices {
			charge := 25 + 75*h.dice(topicDevice, int64(i)).Float64()
			h.devices = append(h.devices, &device{SimulatedDevice: d, battery: charge, used: map[int64]bool{}})
		}
		s.homes = append(s.homes, h)
	}
	return s
}

// Next plans one measurement and returns its events in sending order: the measurement, the same again when it is
// duplicated, and device.battery_low when the battery has just become low. It returns none without any device.
// The zone of now decides the hour and the day.
func (s *Simulator) Next(now time.Time) []Event {
	if len(s.turns) == 0 {
		s.deal(now)
	}
	if len(s.turns) == 0 {
		return nil
	}
	next := s.turns[0]
	s.turns = s.turns[1:]

	flaw := s.drawFlaw()
	at := now.Add(-minLatency - time.Duration(s.luck.Int64N(int64(maxLatency-minLatency))))
	skew := time.Duration(s.luck.Int64N(int64(2*maxSkew))) - maxSkew
	if flaw == FlawClockSkew {
		at = at.Add(skew)
	}
	at = next.device.free(at)
	low := next.device.drain()

	event := Event{Measurement: next.measurement(at, -55-s.luck.IntN(40)), Flaw: flaw}
	switch flaw {
	case FlawArtefact:
		spoil(&event.Measurement)
	case FlawUnknownPatient:
		stranger := s.luck.IntN(1000)
		event.PatientID = fmt.Sprintf("GW-STRANGER-%03d", stranger)
		event.DeviceID = fmt.Sprintf("DEV-STRANGER-%03d-%s", stranger, makeOf(next.device.Kind).suffix)
	case FlawStaleHeader:
		event.HeaderAge = staleHeaderAge
	}
	events := []Event{event}
	if flaw == FlawDuplicate {
		events = append(events, event)
	}
	if low {
		events = append(events, Event{Measurement: next.event(gateway.DeviceBatteryLow, at)})
	}
	return events
}

// deal starts a round: every device whose owner measures today, in random order. When nobody does, everybody does,
// since a simulator of one forgetful patient should still send something.
func (s *Simulator) deal(now time.Time) {
	nobody := !slices.ContainsFunc(s.homes, func(h *household) bool { return len(h.devices) > 0 && h.measuresOn(now) })
	for _, h := range s.homes {
		for _, d := range h.devices {
			if nobody || h.measuresOn(now) {
				s.turns = append(s.turns, turn{h, d})
			}
		}
	}
	s.luck.Shuffle(len(s.turns), func(i, j int) { s.turns[i], s.turns[j] = s.turns[j], s.turns[i] })
}

func (s *Simulator) drawFlaw() Flaw {
	draw := s.luck.Float64()
	for _, flaw := range flaws {
		if draw < s.rates[flaw] {
			return flaw
		}
		draw -= s.rates[flaw]
	}
	return FlawNone
}

// free is the first second from at on in which the device has not measured yet.
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

// drain uses up a little of the battery and reports whether it has just become low. An empty one is replaced.
func (d *device) drain() (becameLow bool) {
	before := d.battery
	if d.battery -= batteryPerReading; d.battery < batteryReplaced {
		d.battery = 100
	}
	return before >= batteryLow && d.battery < batteryLow
}

// event is what every event of the device carries.
func (t turn) event(eventType gateway.EventType, at time.Time) gateway.Measurement {
	return gateway.Measurement{
		EventType:    eventType,
		DeviceID:     t.device.ID,
		PatientID:    t.household.GatewayID,
		Timestamp:    at.UTC(),
		DeviceModel:  t.device.Model,
		BatteryLevel: new(int(t.device.battery)),
		HubID:        t.household.HubID,
	}
}

// measurement is a reading in the device's own units: every second scale weighs in pounds, every third meter
// measures in mmol/L. Source: docs/decisions/gateway.md, "`values` shapes".
func (t turn) measurement(at time.Time, signal int) gateway.Measurement {
	r := t.household.reading(t.device.Kind, t.device.ID, at)
	kind := r.Kind.Definition()
	m := t.event(gateway.MeasurementCreated, at)
	m.MeasurementType, m.SignalStrength, m.Unit = string(r.Kind), &signal, kind.Main().Range.Unit
	foreign := makeOf(r.Kind).foreign
	for _, p := range kind.All {
		value := *r.Value(p)
		if p == kind.Main() && len(p.Units) > 0 && foreign != nil && foreign(t.household.Number) {
			m.Unit, value = p.Units[0].Name, inUnit(p.Units[0], value)
		}
		m.Values.Add(p.Name, value)
	}
	for _, mark := range kind.Marks {
		if word := r.Says(mark); mark.Flag() {
			m.Values.Add(mark.Name, word == vitals.Yes)
		} else if word != "" && !mark.Unsent {
			m.Values.Add(mark.Name, word)
		}
	}
	return m
}

// inUnit is a value as a device shows it that measures in another unit.
func inUnit(unit vitals.Unit, value float64) float64 {
	if unit.Back != nil {
		return unit.Back(value)
	}
	return tenths(value / unit.Convert(1000) * 1000)
}

// spoil replaces the values by one no range admits: a cuff that slipped, a bag on the scale, a cold finger, a wet strip.
func spoil(m *gateway.Measurement) {
	main := vitals.Kind(m.MeasurementType).Definition().Main()
	m.Values = nil
	m.Values.Add(main.Name, main.Range.Min/100)
}

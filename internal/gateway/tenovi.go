package gateway

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/internal/config"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// Tenovi is the vendor with a measurement webhook that sends one metric per object, and related ones as an array or separately. Source: the
// vendor's developer documentation, "Measurement Webhooks" and the pages of its devices.
const Tenovi Vendor = "tenovi"

type tenovi struct {
	sharedSecret
	maxFuture time.Duration
}

func newTenovi(settings config.Gateway, maxFuture time.Duration) Adapter {
	return tenovi{sharedSecret{settings.TenoviSecret.Reveal(), []string{"Authorization", "X-Api-Key"}}, maxFuture}
}

// tenoviMeasurement is one metric. The gateway's hardware_uuid is our hub; it changes when a gateway is replaced.
type tenoviMeasurement struct {
	Metric    scalar                       `json:"metric"`
	Name      scalar                       `json:"device_name"`
	Device    scalar                       `json:"hwi_device_id"`
	Patient   scalar                       `json:"patient_id"`
	Hub       scalar                       `json:"hardware_uuid"`
	Sensor    scalar                       `json:"sensor_code"`
	First     scalar                       `json:"value_1"`
	Second    scalar                       `json:"value_2"`
	Created   scalar                       `json:"created"`
	Timestamp scalar                       `json:"timestamp"`
	Dummy     scalar                       `json:"dummy_data"`
	Filter    validate.Field[tenoviFilter] `json:"filter_params"`
}

type tenoviFilter struct {
	Index    scalar `json:"measurement_index"`
	Meal     scalar `json:"meal_context"`
	Alert    scalar `json:"alert"`
	Location scalar `json:"measurement_location"`
}

// tenoviShape is what the vendor documents.
var tenoviShape = shape{
	"metric": nil, "device_name": nil, "hwi_device_id": nil, "patient_id": nil, "hardware_uuid": nil, "sensor_code": nil, "value_1": nil,
	"value_2": nil, "created": nil, "timestamp": nil, "dummy_data": nil,
	"filter_params": {"measurement_index": nil, "meal_context": nil, "alert": nil, "measurement_location": nil},
}

// tenoviMetric is a metric in the contract's words: the measurement type, its values and their unit.
type tenoviMetric struct{ kind, first, second, unit string }

// The metrics that make readings. A second value without a name is a standard deviation.
var tenoviMetrics = map[string]tenoviMetric{
	"blood_pressure":   {"blood_pressure", "systolic", "diastolic", ""},
	"spo2":             {"pulse_oximetry", "spo2", "", vitals.UnitPercent},
	"weight":           {"weight", "weight", "", vitals.UnitPounds},
	"glucose":          {"blood_glucose", "glucose", "", vitals.UnitMgDL},
	"body_temperature": {"body_temperature", "temperature", "", "F"},
	"temperature":      {"body_temperature", "temperature", "", "F"},
}

// The metrics that are part of another's reading, and those that are no vital sign.
const (
	tenoviPulse           = "pulse"
	tenoviIrregular       = "irregular_heartbeat"
	tenoviPerfusion       = "perfusion_index"
	tenoviBattery         = "battery_percentage"
	tenoviOximeter        = "11" // the sensor code
	maxTenoviMeasurements = 100  // measurements in one delivery
)

var (
	tenoviParts    = map[string][]string{"blood_pressure": {tenoviPulse, tenoviIrregular}, "pulse_oximetry": {tenoviPulse, tenoviPerfusion}}
	tenoviActivity = []string{"steps", "sleep", "heart_rate_statistics"}
	tenoviMeals    = map[scalar]scalar{"pre-prandial": "before_meal", "post-prandial": "after_meal", "fasting": "fasting"}
)

// tenoviSpellings are the metrics with a meaning here, by their folded names.
var tenoviSpellings = func() map[string]string {
	spellings := map[string]string{}
	for _, known := range slices.Concat(
		slices.Collect(maps.Keys(tenoviMetrics)), tenoviActivity, []string{tenoviPulse, tenoviIrregular, tenoviPerfusion, tenoviBattery},
	) {
		spellings[fold(known)] = known
	}
	return spellings
}()

func (m tenoviMeasurement) metric() string {
	return cmp.Or(tenoviSpellings[fold(string(m.Metric))], strings.ToLower(string(m.Metric)))
}

// likelyMetric returns what an unknown metric may be, for an alert: that of a kind with its name, or, of two values that only a cuff sends, a blood
// pressure.
func (m tenoviMeasurement) likelyMetric() tenoviMetric {
	if d, known := kindOf(m.metric()); known {
		for _, metric := range tenoviMetrics {
			if metric.kind == string(d.Kind) {
				return metric
			}
		}
	}
	first, second := m.First.number(), m.Second.number()
	if first != nil && second != nil && *first > *second && vitals.Systolic.Range.Contains(*first) && vitals.Diastolic.Range.Contains(*second) {
		return tenoviMetrics["blood_pressure"]
	}
	return tenoviMetric{}
}

// kind returns the kind of reading that the metric makes or belongs to; "" for any other metric.
func (m tenoviMeasurement) kind() string {
	switch metric := m.metric(); {
	case metric == tenoviIrregular, metric == tenoviPulse && m.Sensor != tenoviOximeter:
		return "blood_pressure"
	case metric == tenoviPulse, metric == tenoviPerfusion:
		return "pulse_oximetry"
	default:
		return tenoviMetrics[metric].kind
	}
}

func (m tenoviMeasurement) isPart() bool {
	return m.parameter() != nil || m.metric() == tenoviIrregular
}

// parameter returns the parameter of a separately sent value; nil for any other metric.
func (m tenoviMeasurement) parameter() *vitals.Parameter {
	switch m.metric() {
	case tenoviPulse:
		return vitals.Pulse
	case tenoviPerfusion:
		return vitals.PerfusionIndex
	}
	return nil
}

// isTest reports whether the value is not a patient's: the vendor's test data, or a meter's control solution.
func (m tenoviMeasurement) isTest() bool {
	return strings.EqualFold(string(m.Dummy), "true") || strings.EqualFold(string(m.Filter.Value.Location), "control solution")
}

func (m tenoviMeasurement) timestamp() scalar { return cmp.Or(m.Timestamp, m.Created) }

// belongsTo reports whether both are of one reading. Those of different patients are matched separately.
func (m tenoviMeasurement) belongsTo(o tenoviMeasurement) bool {
	return m.isTest() == o.isTest() && m.Device == o.Device && m.Patient == o.Patient && m.Hub == o.Hub && m.timestamp() == o.timestamp() && m.Filter.Value.Index == o.Filter.Value.Index && m.kind() == o.kind()
}

// endOfTime is later than any event: future times are checked when an event is parsed.
var endOfTime = time.Date(9999, time.December, 31, 0, 0, 0, 0, time.UTC)

// Split joins each reading with its parts. What is invalid stays separate, so that a wrong pulse does not reject a blood pressure, or the
// reverse.
func (t tenovi) Split(body []byte) [][]byte {
	body = readable(body)
	all := tenoviShape.objects(body, maxTenoviMeasurements)
	if len(all) < 2 {
		return split(body, tenoviShape.messagesOf)
	}
	read := make([]tenoviMeasurement, len(all))
	used := make([]bool, len(all))
	for i, raw := range all {
		read[i], _ = decode[tenoviMeasurement](raw) // what is no object has no metric and stays separate
	}
	var bodies [][]byte
	for i, main := range read {
		if main.isPart() || main.kind() == "" {
			continue
		}
		if _, err := t.parseReading(main, nil, all[i], endOfTime); err != nil {
			continue
		}
		group, metrics := []json.RawMessage{all[i]}, []string{main.metric()}
		for j, other := range read {
			if used[j] || !other.isPart() || !other.belongsTo(main) || slices.Contains(metrics, other.metric()) || other.checkValue() != nil {
				continue
			}
			used[j] = true
			group, metrics = append(group, all[j]), append(metrics, other.metric())
		}
		used[i] = true
		bodies = append(bodies, joinBodies(group))
	}
	for i := range all {
		if !used[i] {
			bodies = append(bodies, all[i])
		}
	}
	return bodies
}

// joinBodies returns one measurement as received, or several as an array.
func joinBodies(group []json.RawMessage) []byte {
	if len(group) == 1 {
		return group[0]
	}
	body := []byte{'['}
	for i, raw := range group {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, raw...)
	}
	return append(body, ']')
}

// Parse parses one of the bodies of Split.
func (t tenovi) Parse(body []byte, now time.Time) (Event, error) {
	group := tenoviShape.objects(body, maxTenoviMeasurements)
	if len(group) == 0 {
		return Event{Vendor: Tenovi}, fault.New(fault.Invalid, "parse_error", "The request body must be a measurement or a list of measurements.")
	}
	parts := make([]tenoviMeasurement, len(group))
	for i, raw := range group {
		var err error
		if parts[i], err = decode[tenoviMeasurement](raw); err != nil {
			return Event{Vendor: Tenovi}, err
		}
	}
	if len(parts) == 1 && parts[0].isPart() {
		return t.parsePart(parts[0], body, now)
	}
	return t.parseReading(parts[0], parts[1:], body, now)
}

func (t tenovi) parseReading(main tenoviMeasurement, additions []tenoviMeasurement, body []byte, now time.Time) (Event, error) {
	w := main.toContract()
	metric := tenoviMetrics[main.metric()]
	for _, addition := range additions {
		if err := addition.checkValue(); err != nil || !addition.isPart() || !addition.belongsTo(main) {
			return Event{Vendor: Tenovi}, fault.New(fault.Invalid, "parse_error", "The measurements do not belong together.").Because(err)
		}
		if addition.metric() == tenoviIrregular {
			w.values[tenoviIrregular] = addition.irregular() == vitals.Yes
		} else {
			w.values[addition.metric()] = *addition.First.number()
		}
	}
	event, err := w.parse(body, t.maxFuture, now)
	event.Index = string(main.Filter.Value.Index)
	switch {
	case event.Reading != nil:
		event.Parts = tenoviParts[metric.kind]
	case event.Implausible != nil:
		event.Implausible.Parts = tenoviParts[metric.kind]
	}
	return event, err
}

// parsePart parses a value that was sent without its reading.
func (t tenovi) parsePart(m tenoviMeasurement, body []byte, now time.Time) (Event, error) {
	w := m.toContract()
	w.values = nil
	if m.isTest() {
		return w.parse(body, t.maxFuture, now)
	}
	w.event["event_type"] = string(DeviceConnected) // which requires a device and a time
	event, err := w.parse(body, t.maxFuture, now)
	named := err == nil || event.onlyFutureClock(err)
	if err == nil {
		err = m.checkValue()
	}
	event.Type, event.MeasurementType, event.measurement = MeasurementCreated, m.metric(), m.kind()
	event.Part, event.Index = m.metric(), string(m.Filter.Value.Index)
	if err != nil {
		if p, number := m.parameter(), m.First.number(); named && p != nil && number != nil {
			if outside := p.OutOfRange(*number); outside != nil || event.isFutureClock && p.Range.Contains(*number) {
				event.Implausible = event.newImplausible(vitals.Reading{Kind: vitals.Kind(event.measurement)}.With(p, *number), outside)
			}
		}
		return event, err
	}
	reading := vitals.Reading{Kind: vitals.Kind(event.measurement), DeviceID: event.DeviceID, MeasuredAt: event.At}
	if event.Part == tenoviIrregular {
		reading.SetQualifier(vitals.IrregularHeartbeat, m.irregular())
	} else {
		*reading.ValuePtr(m.parameter()) = m.First.number()
	}
	event.Reading = &reading
	return event, nil
}

// checkValue returns the error of a separately sent value.
func (m tenoviMeasurement) checkValue() error {
	number := m.First.number()
	switch {
	case number == nil:
		return fault.Field("value_1", "A valid number is required.")
	case m.parameter() != nil && !m.parameter().Range.Contains(*number):
		return fault.Field("value_1", m.parameter().Range.Message())
	}
	return nil
}

func (m tenoviMeasurement) irregular() string {
	if *m.First.number() != 0 {
		return vitals.Yes
	}
	return vitals.No
}

// number returns the number in the text with two decimals, or nil.
func (s scalar) number() *float64 {
	number, err := strconv.ParseFloat(string(s), 64)
	if err != nil || math.IsInf(number, 0) || math.IsNaN(number) {
		return nil
	}
	return new(vitals.RoundHalfUp(number, 2))
}

// toContract converts a measurement to the contract's format. What a watch counts or a pill box reports is no reading.
func (m tenoviMeasurement) toContract() vendorEvent {
	metric, filter := m.metric(), m.Filter.Value
	mapping := tenoviMetrics[metric]
	w := vendorEvent{
		vendor: Tenovi,
		event: texts(map[string]scalar{
			"event_type": scalar(MeasurementCreated), "device_id": m.Device, "hub_id": m.Hub, "patient_id": m.Patient,
			"measurement_type": m.Metric, "timestamp": m.timestamp(), "device_model": m.Name,
		}),
		values: numbers(map[string]scalar{mapping.first: m.First, mapping.second: m.Second}), unit: mapping.unit,
		fieldNames: map[string]string{
			"device_id": "hwi_device_id", "hub_id": "hardware_uuid", "measurement_type": "metric", "device_model": "device_name",
			mapping.first: "value_1", mapping.second: "value_2", "battery_level": "value_1", "meal_context": "filter_params.meal_context",
		},
	}
	switch {
	case m.isTest():
		w.event["event_type"] = "measurement.test"
	case slices.Contains(tenoviActivity, metric) || strings.HasPrefix(metric, "pillbox"):
		w.event["event_type"] = metric
	case metric == tenoviBattery:
		w.event["event_type"] = string(DeviceConnected)
		if level := scalar(strings.TrimSuffix(string(m.First), "%")).number(); level != nil {
			w.event["battery_level"] = int(math.Round(*level))
		} else if m.First != "" {
			w.event["battery_level"] = string(m.First) // rejected by the rules
		}
	case mapping.kind != "":
		w.event["measurement_type"] = mapping.kind
	default:
		likely := m.likelyMetric()
		w.values, w.unit = numbers(map[string]scalar{likely.first: m.First, likely.second: m.Second}), likely.unit
		if _, supported := kindOf(metric); supported { // the vendor documents no meaning for it
			w.event["measurement_type"] = "tenovi." + metric
		}
	}
	if filter.Meal != "" && metric == "glucose" {
		w.values["meal_context"] = string(translate(tenoviMeals, filter.Meal)) // what the rules cannot read is left out
	}
	if filter.Alert == "sensor_result_above_range" && metric == "glucose" {
		w.values["glucose"] = "HI"
	}
	return w
}

package gateway

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/internal/config"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// Telli is the vendor Telli Health, with devices on the cellular network: readings in two versions of its API, and the status of
// second-generation devices. Source: the vendor's published OpenAPI description, its webhooks.
const Telli Vendor = "telli"

type telli struct {
	sharedSecret
	maxFuture time.Duration
}

func newTelli(settings config.Gateway, maxFuture time.Duration) Adapter {
	return telli{sharedSecret{settings.TelliSecret.Reveal(), []string{"X-Api-Key"}}, maxFuture}
}

// telliBody is any of its messages, by readingType or type.
type telliBody struct {
	ReadingType scalar                      `json:"readingType"`
	Type        scalar                      `json:"type"`
	Device      scalar                      `json:"deviceId"`
	Time        scalar                      `json:"time"` // Unix milliseconds
	Data        validate.Field[telliValues] `json:"data"`
	State       validate.Field[telliState]  `json:"devdata"`
}

// telliState is a device's status.
type telliState struct {
	Battery scalar `json:"batt"` // 0 to 10, or pwr while charging
	Grade   scalar `json:"r"`    // of the signal
}

// telliValues are the values of all kinds. An oximeter's battery, rsrp and pi have no unit in the description.
type telliValues struct {
	Systolic    scalar `json:"systolic"`
	Diastolic   scalar `json:"diastolic"`
	Pulse       scalar `json:"pulse"`
	Arrhythmia  scalar `json:"arrhythmia"`
	SpO2        scalar `json:"spo2"`
	Glucose     scalar `json:"glucose"`
	Period      scalar `json:"readingPeriod"`
	Weight      scalar `json:"weight"`
	Temperature scalar `json:"temperature"`
	Unit        scalar `json:"unit"`
	Battery     scalar `json:"battery"`
	RSRP        scalar `json:"rsrp"`
	PI          scalar `json:"pi"`
}

var (
	telliFlags = map[scalar]scalar{"0": "false", "1": "true"}
	telliMeals = map[scalar]scalar{"before": "before_meal", "after": "after_meal"}
	// Types that show that the device is alive, including the answer to a setting and a cleared reminder.
	telliStatusTypes = []string{"heartbeat", "remindercleared", "settingsresponse"}
)

// telliShape is what the vendor documents.
var telliShape = shape{
	"readingType": nil, "type": nil, "deviceId": nil, "time": nil, "devdata": {"batt": nil, "r": nil},
	"data": {
		"systolic": nil, "diastolic": nil, "pulse": nil, "arrhythmia": nil, "spo2": nil, "glucose": nil, "readingPeriod": nil, "weight": nil,
		"temperature": nil, "unit": nil, "battery": nil, "rsrp": nil, "pi": nil,
	},
}

// Split returns the body: a message is one event. Several are read, too.
func (telli) Split(body []byte) [][]byte { return split(readable(body), telliShape.messagesOf) }

// Parse parses one message.
func (t telli) Parse(body []byte, now time.Time) (Event, error) {
	raw := telliShape.conform(body)
	sent, err := decode[telliBody](raw)
	if err != nil {
		return Event{Vendor: Telli}, err
	}
	w := sent.toContract()
	w.addUndocumented(raw, "data", telliShape["data"])
	return w.parse(body, t.maxFuture, now)
}

func (b telliBody) toContract() vendorEvent {
	w := vendorEvent{
		vendor: Telli,
		event: texts(map[string]scalar{
			"event_type": scalar(MeasurementCreated), "device_id": b.Device, "timestamp": b.timestamp(), "measurement_type": b.ReadingType,
		}),
		fieldNames: map[string]string{"device_id": "deviceId", "timestamp": "time", "measurement_type": "readingType", "unit": "data.unit"},
	}
	b.setSideValues(&w)
	switch kind := strings.ToLower(string(b.Type)); {
	case b.ReadingType != "" || kind == "" && b.Data.Given():
		b.setMeasurement(&w)
	case slices.Contains(telliStatusTypes, kind):
		w.event["event_type"] = string(DeviceConnected)
	default: // such as the answer to a query about a device
		w.event["event_type"] = "telli." + cmp.Or(kind, "message")
	}
	for _, name := range []string{"systolic", "diastolic", "pulse", "spo2", "glucose", "weight", "temperature"} {
		w.fieldNames[name] = "data." + name
	}
	w.fieldNames["irregular_heartbeat"], w.fieldNames["meal_context"] = "data.arrhythmia", "data.readingPeriod"
	return w
}

// setSideValues converts what describes the device and its signal. What has no unit is left out by name.
func (b telliBody) setSideValues(w *vendorEvent) {
	state, values := b.State.Value, b.Data.Value
	tenths, err := strconv.Atoi(string(state.Battery))
	switch {
	case err == nil:
		w.event["battery_level"], w.fieldNames["battery_level"] = tenths*10, "devdata.batt"
	case state.Battery != "" && !strings.EqualFold(string(state.Battery), "pwr"), state.Battery == "" && values.Battery != "":
		w.leftOut = append(w.leftOut, "battery_level")
	}
	if state.Grade != "" || values.RSRP != "" {
		w.leftOut = append(w.leftOut, "signal_strength")
	}
	if values.PI != "" {
		w.leftOut = append(w.leftOut, vitals.PerfusionIndex.Name)
	}
}

// setMeasurement converts the values of a reading to the contract's format. Glucose without a unit, as first-generation meters send it, is
// in mg/dL. A mat's sleep is no vital sign; any other type is quarantined.
func (b telliBody) setMeasurement(w *vendorEvent) {
	v := b.Data.Value
	switch kind := fold(string(b.ReadingType)); kind {
	case "bloodpressure":
		if w.event["measurement_type"] = "blood_pressure"; isKPa(string(v.Unit)) {
			w.unit = string(v.Unit)
		}
		w.values = numbers(map[string]scalar{
			"systolic": v.Systolic, "diastolic": v.Diastolic, "pulse": v.Pulse, "irregular_heartbeat": translate(telliFlags, v.Arrhythmia),
		})
	case "spo2":
		w.event["measurement_type"], w.unit = "pulse_oximetry", vitals.UnitPercent
		w.values = numbers(map[string]scalar{"spo2": v.SpO2, "pulse": v.Pulse})
	case "weight":
		w.event["measurement_type"], w.unit = "weight", string(v.Unit)
		w.values = numbers(map[string]scalar{"weight": v.Weight})
	case "bloodglucose":
		w.event["measurement_type"], w.unit = "blood_glucose", cmp.Or(string(v.Unit), vitals.UnitMgDL)
		w.values = numbers(map[string]scalar{"glucose": v.Glucose, "meal_context": translate(telliMeals, v.Period)})
	case "temperature":
		w.event["measurement_type"], w.unit = "body_temperature", string(v.Unit)
		w.values = numbers(map[string]scalar{"temperature": v.Temperature})
	case "sleepingmatactivity", "sleepingmatduration":
		w.event["event_type"] = "telli." + kind
	default: // for an alert
		w.unit = string(v.Unit)
		w.values = numbers(map[string]scalar{
			"systolic": v.Systolic, "diastolic": v.Diastolic, "pulse": v.Pulse, "spo2": v.SpO2, "weight": v.Weight, "glucose": v.Glucose, "temperature": v.Temperature,
		})
	}
}

// translate returns the contract's word for the vendor's, or the vendor's own, which the rules then reject.
func translate(words map[scalar]scalar, word scalar) scalar {
	if translated, ok := words[word]; ok {
		return translated
	}
	return word
}

// timestamp returns the time in the contract's format; an invalid number of milliseconds, or one that is the number of a year, is kept and rejected
// by the rules.
func (b telliBody) timestamp() scalar {
	ms, err := strconv.ParseFloat(string(b.Time), 64)
	if err != nil || ms != math.Trunc(ms) || ms < 0 || ms > 253402300799999 || ms >= 1900 && ms <= 2200 { // up to the year 9999
		return b.Time
	}
	return scalar(validate.FormatInstant(time.UnixMilli(int64(ms))))
}

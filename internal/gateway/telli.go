package gateway

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/internal/config"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// Telli is the vendor Telli Health, whose devices send over the cellular network: readings in two versions of its interface, and
// what second-generation devices say of themselves. Source: the vendor's published OpenAPI description, its webhooks.
const Telli Vendor = "telli"

type telli struct {
	sharedSecret
	maxFuture time.Duration
}

func newTelli(settings config.Gateway, maxFuture time.Duration) Adapter {
	return telli{sharedSecret{settings.TelliSecret.Reveal(), []string{"X-Api-Key"}}, maxFuture}
}

// telliBody is any of its messages; which one, readingType or type says.
type telliBody struct {
	ReadingType scalar                      `json:"readingType"`
	Type        scalar                      `json:"type"`
	Device      scalar                      `json:"deviceId"`
	Time        scalar                      `json:"time"` // Unix milliseconds
	Data        validate.Field[telliValues] `json:"data"`
	State       validate.Field[telliState]  `json:"devdata"`
}

// telliState is what a device says of itself. Its signal is a grade and no strength, so it is left out.
type telliState struct {
	Battery scalar `json:"batt"` // 0 to 10, or pwr while it charges
}

// telliValues are those of all kinds. An oximeter's battery, rsrp and pi have no unit in the description, so they are left out.
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
}

var (
	telliFlags = map[scalar]scalar{"0": "false", "1": "true"}
	telliMeals = map[scalar]scalar{"before": "before_meal", "after": "after_meal"}
	// Each of them shows that the device is there: the answer to a setting and a reminder that was cleared, too.
	telliSigns = []string{"heartbeat", "remindercleared", "settingsresponse"}
)

// Split returns the body: a message is one event.
func (telli) Split(body []byte) [][]byte { return [][]byte{body} }

// Parse reads one message.
func (t telli) Parse(body []byte, now time.Time) (Event, error) {
	sent, err := decode[telliBody](body)
	if err != nil {
		return Event{Vendor: Telli}, err
	}
	return sent.words().parse(body, t.maxFuture, now)
}

func (b telliBody) words() words {
	w := words{
		vendor: Telli,
		event: texts(map[string]scalar{
			"event_type": scalar(MeasurementCreated), "device_id": b.Device, "timestamp": b.at(), "measurement_type": b.ReadingType,
		}),
		names:  map[string]string{"device_id": "deviceId", "timestamp": "time", "measurement_type": "readingType", "unit": "data.unit"},
		asides: []string{"battery_level", "values.pulse", "values.irregular_heartbeat", "values.meal_context"},
	}
	if tenths, err := strconv.Atoi(string(b.State.Value.Battery)); err == nil {
		w.event["battery_level"], w.names["battery_level"] = tenths*10, "devdata.batt"
	}
	switch kind := strings.ToLower(string(b.Type)); {
	case b.ReadingType != "":
		b.measure(&w)
	case slices.Contains(telliSigns, kind):
		w.event["event_type"] = string(DeviceConnected)
	default: // what it told when it was asked about a device, for one
		w.event["event_type"] = "telli." + cmp.Or(kind, "message")
	}
	for _, name := range []string{"systolic", "diastolic", "pulse", "spo2", "glucose", "weight", "temperature"} {
		w.names[name] = "data." + name
	}
	w.names["irregular_heartbeat"], w.names["meal_context"] = "data.arrhythmia", "data.readingPeriod"
	return w
}

// measure puts the values of a reading into the words of the contract. A glucose without a unit, as first-generation meters send
// it, is in mg/dL. A mat's sleep is no vital sign; any other type waits for a person.
func (b telliBody) measure(w *words) {
	v := b.Data.Value
	switch kind := strings.ToLower(string(b.ReadingType)); kind {
	case "bloodpressure":
		w.event["measurement_type"], w.unit = "blood_pressure", vitals.UnitMmHg
		w.values = numbers(map[string]scalar{
			"systolic": v.Systolic, "diastolic": v.Diastolic, "pulse": v.Pulse, "irregular_heartbeat": or(telliFlags, v.Arrhythmia),
		})
	case "spo2":
		w.event["measurement_type"], w.unit = "pulse_oximetry", vitals.UnitPercent
		w.values = numbers(map[string]scalar{"spo2": v.SpO2, "pulse": v.Pulse})
	case "weight":
		w.event["measurement_type"], w.unit = "weight", string(v.Unit)
		w.values = numbers(map[string]scalar{"weight": v.Weight})
	case "bloodglucose":
		w.event["measurement_type"], w.unit = "blood_glucose", cmp.Or(string(v.Unit), vitals.UnitMgDL)
		w.values = numbers(map[string]scalar{"glucose": v.Glucose, "meal_context": or(telliMeals, v.Period)})
	case "temperature":
		w.event["measurement_type"], w.unit = "body_temperature", string(v.Unit)
		w.values = numbers(map[string]scalar{"temperature": v.Temperature})
	case "sleepingmatactivity", "sleepingmatduration":
		w.event["event_type"] = "telli." + kind
	}
}

// or is the contract's word for the vendor's, or the vendor's own, about which the rules complain.
func or(known map[scalar]scalar, word scalar) scalar {
	if ours, ok := known[word]; ok {
		return ours
	}
	return word
}

// at is the time as the contract writes it; what is no number of milliseconds stays, and is complained about.
func (b telliBody) at() scalar {
	ms, err := strconv.ParseInt(string(b.Time), 10, 64)
	if err != nil || ms < 0 || ms > 253402300799999 { // the year 9999
		return b.Time
	}
	return scalar(validate.FormatInstant(time.UnixMilli(ms)))
}

package gateway

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vitals"
)

var adapter = ContractAdapter{MaxFuture: 5 * time.Minute}

// with returns the JSON of a valid event with some members replaced; nil removes a member.
func with(t testing.TB, base string, changes map[string]any) string {
	t.Helper()
	var members map[string]any
	if err := json.Unmarshal([]byte(base), &members); err != nil {
		t.Fatal(err)
	}
	for name, value := range changes {
		if value == nil {
			delete(members, name)
		} else {
			members[name] = value
		}
	}
	raw, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

type change = map[string]any

func parse(t testing.TB, raw string) Event {
	t.Helper()
	event, err := adapter.Parse([]byte(raw), now)
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return event
}

// fieldErrors parses and returns "field: message" lines, sorted.
func fieldErrors(t testing.TB, raw string) []string {
	t.Helper()
	event, err := adapter.Parse([]byte(raw), now)
	if err == nil {
		return nil
	}
	if event.Reading != nil {
		t.Errorf("%s: a reading came with a complaint", raw)
	}
	if got := wantFault(t, err, fault.Invalid); got != "validation_error" {
		t.Fatalf("%s: %s", raw, got)
	}
	var lines []string
	var invalid *fault.Error
	errors.As(err, &invalid)
	for _, name := range slices.Sorted(maps.Keys(invalid.Fields)) {
		lines = append(lines, name+": "+strings.Join(invalid.Fields[name], " "))
	}
	return lines
}

// fieldErrorText returns the fields without the messages.
func fieldErrorText(t testing.TB, raw string) string {
	t.Helper()
	lines := fieldErrors(t, raw)
	for i, line := range lines {
		lines[i], _, _ = strings.Cut(line, ":")
	}
	return strings.Join(lines, " ")
}

func TestParseMeasurement(t *testing.T) {
	event := parse(t, vectorBody)
	at := time.Date(2026, 1, 15, 13, 45, 0, 0, time.UTC)
	if event.Type != MeasurementCreated || event.DeviceID != "DEV-1001" || event.PatientID != "GW-77" || event.HubID != "HUB-9" ||
		event.DeviceModel != "BP-7" || *event.BatteryLevel != 84 || *event.SignalStrength != -71 ||
		event.MeasurementType != "blood_pressure" || !event.At.Equal(at) || event.IsUnsupported() {
		t.Errorf("the envelope was misread")
	}
	reading := event.Reading
	if got, want := reading.ValuesKey(), "blood_pressure systolic=128 diastolic=82 pulse=71 irregular_heartbeat=false"; got != want {
		t.Errorf("read %q, want %q", got, want)
	}
	if reading.DeviceID != "DEV-1001" || reading.MeasuredAt != at {
		t.Errorf("device %q at %v", reading.DeviceID, reading.MeasuredAt)
	}
}

func TestParseOtherEvents(t *testing.T) {
	for _, kind := range []EventType{DeviceConnected, DeviceDisconnected, DeviceBatteryLow} {
		least := fmt.Sprintf(`{"event_type":%q,"device_id":"D","timestamp":"2026-01-15T13:45:00Z"}`, kind)
		event := parse(t, least)
		if event.Type != kind || event.DeviceID != "D" || event.HubID != "" || event.BatteryLevel != nil || event.Reading != nil || event.IsUnsupported() {
			t.Errorf("%s was misread", kind)
		}
		full := parse(t, with(t, least, change{"hub_id": "H", "patient_id": "P", "device_model": "M", "battery_level": 7, "signal_strength": 0}))
		if full.HubID != "H" || full.PatientID != "P" || full.DeviceModel != "M" || *full.BatteryLevel != 7 || *full.SignalStrength != 0 {
			t.Errorf("%s was misread in full", kind)
		}
		if got := fieldErrorText(t, fmt.Sprintf(`{"event_type":%q}`, kind)); got != "device_id timestamp" {
			t.Errorf("%s requires %q", kind, got)
		}
	}
	for _, kind := range []EventType{HubOffline, HubHeartbeat} {
		event := parse(t, fmt.Sprintf(`{"event_type":%q,"hub_id":"H","timestamp":"2026-01-15T13:45:00Z","last_seen_at":"2026-01-15T08:30:00-05:00"}`, kind))
		if event.Type != kind || event.HubID != "H" || event.DeviceID != "" {
			t.Errorf("%s was misread", kind)
		}
		if want := time.Date(2026, 1, 15, 13, 30, 0, 0, time.UTC); kind == HubOffline && !event.LastSeenAt.Equal(want) {
			t.Errorf("last seen at %v", event.LastSeenAt)
		}
		if got := fieldErrorText(t, fmt.Sprintf(`{"event_type":%q,"last_seen_at":null}`, kind)); got != "hub_id timestamp" {
			t.Errorf("%s requires %q", kind, got)
		}
	}
	event := parse(t, `{"event_type":"hub.offline","hub_id":"H","timestamp":"2026-01-15T13:45:00Z","last_seen_at":"yesterday"}`)
	if got := strings.Join(event.LeftOut, " "); got != "last_seen_at" {
		t.Errorf("left out %q", got)
	}
}

func TestUnknownEventIsNoError(t *testing.T) {
	event := parse(t, `{"event_type":"firmware.updated","hub_id":"H","device_id":7,"timestamp":"soon","battery_level":"full"}`)
	if event.Type.IsKnown() || event.Type != "firmware.updated" || event.HubID != "H" || event.DeviceID != "" || event.Reading != nil || event.IsUnsupported() {
		t.Error("misread")
	}
}

func TestUnknownMeasurementIsUnsupported(t *testing.T) {
	for _, changes := range []change{
		{"measurement_type": "peak_flow"},
		{"measurement_type": "spirometry", "values": []int{1}, "unit": 5},
		{"measurement_type": "ecg", "values": nil, "unit": nil},
	} {
		event := parse(t, with(t, vectorBody, changes))
		if !event.IsUnsupported() || event.Reading != nil || event.MeasurementType != changes["measurement_type"] || event.DeviceID != "DEV-1001" {
			t.Errorf("%v: misread", changes)
		}
	}
	if got := fieldErrorText(t, with(t, vectorBody, change{"measurement_type": "ecg", "device_id": nil})); got != "device_id" {
		t.Errorf("complained about %q", got)
	}
}

func TestMalformed(t *testing.T) {
	for _, raw := range []string{"", "null", "[]", `"x"`, "{", `{"a":1}{}`, vectorBody[:324], vectorBody + "x", strings.Repeat(`{"a":`, 40) + "1" + strings.Repeat("}", 40)} {
		_, err := adapter.Parse([]byte(raw), now)
		if got := wantFault(t, err, fault.Invalid); got != "parse_error" {
			t.Errorf("%q: %q", raw, got)
		}
	}
}

func TestEnvelopeErrors(t *testing.T) {
	long := func(n int) string { return strings.Repeat("é", n) }
	for _, tc := range []struct {
		name    string
		changes change
		want    string
	}{
		{"no event type", change{"event_type": nil}, "event_type: This field is required."},
		{"event type of the wrong type", change{"event_type": 5}, "event_type: Not a valid string."},
		{"blank", change{"event_type": " "}, "event_type: This field may not be blank."},
		{"no device", change{"device_id": nil}, "device_id: This field is required."},
		{"long device", change{"device_id": long(129)}, "device_id: Ensure this field has no more than 128 characters."},
		{"longest", change{"device_id": long(128), "hub_id": long(128), "patient_id": long(100), "device_model": long(100)}, ""},
		{"no patient", change{"patient_id": nil}, "patient_id: This field is required."},
		{"long patient", change{"patient_id": long(101)}, "patient_id: Ensure this field has no more than 100 characters."},
		{"least", change{"device_model": nil, "battery_level": nil, "signal_strength": nil, "hub_id": nil, "unit": nil}, ""},
		{"battery ends", change{"battery_level": 0, "signal_strength": -150}, ""},
		{"battery ends", change{"battery_level": 100, "signal_strength": 0}, ""},
		{"no time", change{"timestamp": nil}, "timestamp: This field is required."},
		{"epoch", change{"timestamp": 1768484700}, "timestamp: Must be an ISO 8601 date-time."},
		{"epoch text", change{"timestamp": "1768484700"}, "timestamp: Must be an ISO 8601 date-time."},
		{"date", change{"timestamp": "2026-01-15"}, "timestamp: Must be an ISO 8601 date-time."},
		{"no such day", change{"timestamp": "2026-02-30T00:00:00Z"}, "timestamp: Must be an ISO 8601 date-time."},
		{"edge of the future", change{"timestamp": "2026-01-15T13:51:00Z"}, ""},
		{"future", change{"timestamp": "2026-01-15T13:51:01Z"}, "timestamp: Measurement time is in the future."},
		{"old", change{"timestamp": "1900-01-01T00:00:00Z"}, ""},
		{"no type", change{"measurement_type": nil}, "measurement_type: This field is required."},
		{"no values", change{"values": nil}, "values: An object is required."},
		{"values of the wrong type", change{"values": []int{128, 82}}, "values: An object is required."},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := strings.Join(fieldErrors(t, with(t, vectorBody, tc.changes)), " | "); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// A side value that cannot be read never rejects an event: it is left out and named.
// Optional values are read in any spelling, and those of another kind named: a sender learns nothing of what is dropped without an error.
func TestSideSpellings(t *testing.T) {
	for _, tc := range []struct {
		kind, unit string
		values     change
		reading    string
		leftOut    string
		isDanger   bool
	}{
		{values: change{"Pulse": 178}, reading: "pulse=178"},
		{values: change{"heart_rate": 78}, reading: "pulse=78"},
		{values: change{"HeartRate": 78}, reading: "pulse=78"},
		{values: change{"hr": 78}, reading: "pulse=78"},
		{values: change{"pulseRate": 78, "IrregularHeartbeat": true}, reading: "pulse=78 irregular_heartbeat=true"},
		{values: change{"pulse": 70, "hr": 71}, reading: "pulse=70"},
		{values: change{"SpO2": 79}, leftOut: "spo2", isDanger: true},
		{values: change{"SPO2": 97}, leftOut: "spo2"},
		{values: change{"Spo2": 97, "SPO2": 79}},
		{kind: "pulse_oximetry", unit: "%", values: change{"PR": 60, "heartRate": 61, "perfusionIndex": 4.5}, reading: "pulse=61 perfusion_index=4.5"},
		{kind: "glucose", unit: "mg/dL", values: change{"meal_context": "FASTING"}, reading: "meal_context=fasting"},
		{kind: "glucose", unit: "mg/dL", values: change{"mealContext": "Before Meal"}, reading: "meal_context=before_meal"},
		{kind: "glucose", unit: "mg/dL", values: change{"meal_marker": "Post-Meal"}, reading: "meal_context=after_meal"},
		{kind: "glucose", unit: "mg/dL", values: change{"meal_context": "lunch"}, leftOut: "meal_context"},
	} {
		main := map[string]change{"": {"systolic": 120, "diastolic": 76}, "pulse_oximetry": {"spo2": 97}, "glucose": {"glucose": 110}}[tc.kind]
		for name, value := range tc.values {
			main[name] = value
		}
		event := parse(t, with(t, vectorBody, change{"measurement_type": cmp.Or(tc.kind, "blood_pressure"), "unit": cmp.Or(tc.unit, "mmHg"), "values": main}))
		got := event.Reading.ValuesKey()
		for _, want := range strings.Fields(tc.reading) {
			if !strings.Contains(got, want) {
				t.Errorf("%v: read %s, want %s", tc.values, got, want)
			}
		}
		if left := strings.Join(event.LeftOut, " "); left != tc.leftOut || (event.Implausible != nil) != tc.isDanger {
			t.Errorf("%v: left out %q, danger %v", tc.values, left, event.Implausible != nil)
		}
	}
}

func TestSideValues(t *testing.T) {
	long := strings.Repeat("m", 200)
	for _, tc := range []struct {
		kind, unit string
		values     change
		changes    change
		want       string
	}{
		{changes: change{"battery_level": 101}, want: "battery_level"},
		{changes: change{"battery_level": -1}, want: "battery_level"},
		{changes: change{"battery_level": 80.5}, want: "battery_level"},
		{changes: change{"battery_level": "80"}, want: "battery_level"},
		{changes: change{"battery_level": raw("1e999")}, want: "battery_level"},
		{changes: change{"battery_level": []int{80}}, want: "battery_level"},
		{changes: change{"signal_strength": 23}, want: "signal_strength"},
		{changes: change{"signal_strength": -70.5}, want: "signal_strength"},
		{changes: change{"signal_strength": "good"}, want: "signal_strength"},
		{changes: change{"device_model": long}, want: "device_model"},
		{changes: change{"device_model": 7}, want: "device_model"},
		{changes: change{"hub_id": 7}, want: "hub_id"},
		{changes: change{"hub_id": long}, want: "hub_id"},
		{changes: change{"hub_id": change{"id": 1}}, want: "hub_id"},
		{values: change{"irregular_heartbeat": "true"}, want: "irregular_heartbeat"},
		{values: change{"irregular_heartbeat": 1}, want: "irregular_heartbeat"},
		{kind: "pulse_oximetry", unit: "%", values: change{"perfusion_index": 30}, want: "perfusion_index"},
		{kind: "pulse_oximetry", unit: "%", values: change{"perfusion_index": "weak"}, want: "perfusion_index"},
		{kind: "glucose", unit: "mg/dL", values: change{"meal_marker": "lunch"}, want: "meal_marker"},
		{kind: "glucose", unit: "mg/dL", values: change{"meal_context": "before_meal", "meal_marker": "post_meal"}, want: "meal_marker"},
		{
			changes: change{"battery_level": 255, "signal_strength": 91, "device_model": 1, "hub_id": false}, values: change{"irregular_heartbeat": 0},
			want: "battery_level device_model hub_id signal_strength irregular_heartbeat",
		},
	} {
		main := map[string]change{"": {"systolic": 212, "diastolic": 126}, "pulse_oximetry": {"spo2": 84}, "glucose": {"glucose": 40}}[tc.kind]
		body := with(t, vectorBody, change{"measurement_type": cmp.Or(tc.kind, "blood_pressure"), "unit": cmp.Or(tc.unit, "mmHg"), "values": main})
		good := parse(t, body)
		for name, value := range tc.values {
			main[name] = value
		}
		event := parse(t, with(t, with(t, body, change{"values": main}), tc.changes))
		if got := strings.Join(event.LeftOut, " "); got != tc.want {
			t.Errorf("%v %v: left out %q, want %q", tc.changes, tc.values, got, tc.want)
		}
		if event.Reading == nil || !event.Reading.SameValues(*good.Reading) || event.ID() != good.ID() {
			t.Errorf("%v %v: the reading is another", tc.changes, tc.values)
		}
	}
}

// The values of a rejected measurement are read as far as possible, for any error.
func TestRejectedValues(t *testing.T) {
	for _, tc := range []struct {
		changes           change
		want, rejectedFor string
		incomplete        bool
	}{
		{change{"timestamp": "soon"}, "blood_pressure systolic=128 diastolic=82 pulse=71 irregular_heartbeat=false", "timestamp", false},
		{change{"timestamp": nil, "unit": "kPa"}, "blood_pressure systolic=128 diastolic=82 pulse=71 irregular_heartbeat=false", "timestamp unit", false},
		{change{"device_id": 7}, "blood_pressure systolic=128 diastolic=82 pulse=71 irregular_heartbeat=false", "device_id", false},
		{change{"values": change{"systolic": 212, "diastolic": "?"}}, "blood_pressure systolic=212", "values.diastolic", true},
		{change{"values": change{"systolic": "212", "diastolic": "126"}}, "blood_pressure systolic=212 diastolic=126", "values.diastolic values.systolic", false},
		{change{"values": change{"systolic": 212, "diastolic": 126, "pulse": "x"}}, "blood_pressure systolic=212 diastolic=126", "values.pulse", false},
		{change{"values": change{"systolic": 310, "diastolic": 126}}, "blood_pressure systolic=310 diastolic=126", "", false},
		{change{"values": change{"systolic": 310, "diastolic": true}}, "blood_pressure systolic=310", "values.diastolic", true},
		{change{"values": change{}}, "", "", false},
		{sugar(41, nil, nil), "blood_glucose glucose_mg_dl=41", "unit", false},
		{sugar(2.1, nil, nil), "blood_glucose glucose_mg_dl=38/mmol/L", "unit", false},
		{sugar(22, "g", nil), "blood_glucose glucose_mg_dl=22", "unit", false}, // 22 mg/dL or 396 mg/dL
		{thermometer("temperature", 104, nil), "body_temperature temperature_c=40/°F", "unit", false},
		{weight("weight", 80, nil), "", "", false},
	} {
		event, err := adapter.Parse([]byte(with(t, vectorBody, tc.changes)), now)
		got, rejectedFor, incomplete := "", "", false
		if i := event.Implausible; i != nil {
			got, rejectedFor, incomplete = strings.TrimSuffix(i.Reading.ValuesKey()+"/"+i.Reading.OriginalUnit, "/"), strings.Join(i.RejectedFor, " "), i.IsIncomplete
		}
		if err == nil || event.Reading != nil || got != tc.want || rejectedFor != tc.rejectedFor || incomplete != tc.incomplete {
			t.Errorf("%v: %v, %q for %q (%t), want %q for %q (%t)", tc.changes, err, got, rejectedFor, incomplete, tc.want, tc.rejectedFor, tc.incomplete)
		}
	}
}

func TestEveryWrongFieldAtOnce(t *testing.T) {
	raw := `{"event_type":"measurement.created","device_id":7,"patient_id":null,"measurement_type":"bp",
		"values":{"systolic":"128","diastolic":201,"pulse":true,"irregular_heartbeat":1},"unit":"kPa","timestamp":"now",
		"device_model":1,"battery_level":200,"signal_strength":5,"hub_id":false}`
	want := "battery_level device_id device_model hub_id patient_id signal_strength timestamp unit " +
		"values.diastolic values.irregular_heartbeat values.pulse values.systolic"
	if got := fieldErrorText(t, raw); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, want := fieldErrorText(t, `{"event_type":"measurement.created"}`), "device_id measurement_type patient_id timestamp values"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// The parsed part is returned with the fault: the list of rejected events shows it.
func TestRejectedEventIsPartlyRead(t *testing.T) {
	event, err := adapter.Parse([]byte(with(t, vectorBody, change{"values": change{"systolic": 400, "diastolic": 82}})), now)
	if err == nil || event.DeviceID != "DEV-1001" || event.MeasurementType != "blood_pressure" || event.At.IsZero() || event.Reading != nil {
		t.Errorf("got %v", err)
	}
}

func TestTimesAroundDST(t *testing.T) {
	// New York turned its clocks back on 2025-11-02 at 06:00 UTC: 01:30 came twice.
	before := parse(t, with(t, vectorBody, change{"timestamp": "2025-11-02T01:30:00-04:00"}))
	after := parse(t, with(t, vectorBody, change{"timestamp": "2025-11-02T01:30:00-05:00"}))
	if after.At.Sub(before.At) != time.Hour || before.Key() == after.Key() {
		t.Error("the two half past ones are one")
	}
	if utc := parse(t, with(t, vectorBody, change{"timestamp": "2025-11-02T05:30:00Z"})); utc.Key() != before.Key() || utc.ID() != before.ID() {
		t.Error("one instant has two keys")
	}
	// and forward on 2025-03-09 at 07:00 UTC: 02:30 local does not exist, but is an instant with an offset
	skipped := parse(t, with(t, vectorBody, change{"timestamp": "2025-03-09T02:30:00-05:00"}))
	if want := time.Date(2025, 3, 9, 7, 30, 0, 0, time.UTC); skipped.Reading.MeasuredAt != want {
		t.Errorf("measured at %v", skipped.Reading.MeasuredAt)
	}
	for text, want := range map[string]string{
		"2026-01-15 13:45:00":               "2026-01-15T13:45:00Z", // no offset is UTC
		"2026-01-15t13:45:00.123456789z":    "2026-01-15T13:45:00.123456Z",
		"2016-12-31T23:59:60Z":              "2016-12-31T23:59:59.999Z",
		"2026-01-16T03:30:00+13:45":         "2026-01-15T13:45:00Z",
		" 2026-01-15T13:45:00.500+00:00 \t": "2026-01-15T13:45:00.500Z",
	} {
		if got := validate.FormatInstant(parse(t, with(t, vectorBody, change{"timestamp": text})).At); got != want {
			t.Errorf("%s became %s, want %s", text, got, want)
		}
	}
}

func TestKey(t *testing.T) {
	keys := map[string]string{
		vectorBody: "measurement.created|DEV-1001|2026-01-15T13:45:00Z|blood_pressure",
		`{"event_type":"device.connected","device_id":"a|b","hub_id":"H","timestamp":"2026-01-15T13:45:00.25Z"}`: "device.connected|a%7Cb|2026-01-15T13:45:00.250Z",
		`{"event_type":"hub.heartbeat","device_id":"D","hub_id":"H","timestamp":"2026-01-15T13:45:00Z"}`:         "hub.heartbeat|H|2026-01-15T13:45:00Z",
		with(t, vectorBody, change{"measurement_type": "Peak_Flow"}):                                             "measurement.created|DEV-1001|2026-01-15T13:45:00Z|peak_flow",
	}
	for raw, want := range keys {
		if got := parse(t, raw).Key(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestRepeatedEventHasSameKey(t *testing.T) {
	first := parse(t, vectorBody)
	for name, changes := range map[string]change{
		"fraction of a second": {"timestamp": "2026-01-15T13:45:00.9Z"},
		"offset":               {"timestamp": "2026-01-15T14:45:00+01:00"},
		"alias":                {"measurement_type": "bp"},
		"other values":         {"values": change{"systolic": 140, "diastolic": 90}},
		"other patient":        {"patient_id": "GW-78"},
		"spaces":               {"device_id": " DEV-1001 "},
	} {
		if repeat := parse(t, with(t, vectorBody, changes)); repeat.Key() != first.Key() || repeat.ID() != first.ID() {
			t.Errorf("%s: another event", name)
		}
	}
	for name, changes := range map[string]change{
		"second":  {"timestamp": "2026-01-15T13:45:01Z"},
		"device":  {"device_id": "dev-1001"},
		"type":    {"measurement_type": "oximetry", "values": change{"spo2": 97}, "unit": "%"},
		"event":   {"event_type": "device.connected"},
		"unknown": {"event_type": "measurement.updated"},
	} {
		if other := parse(t, with(t, vectorBody, changes)); other.Key() == first.Key() || other.ID() == first.ID() {
			t.Errorf("%s: taken for a repeat", name)
		}
	}
	one, two := parse(t, `{"event_type":"x","n":1}`), parse(t, `{"event_type":"x","n":2}`)
	if one.ID() == two.ID() || one.ID() != parse(t, `{"event_type":"x","n":1}`).ID() {
		t.Error("ignored events differ by their bytes")
	}
}

func TestID(t *testing.T) {
	id, err := uuid.Parse(parse(t, vectorBody).ID())
	if err != nil || id.Version() != 8 || id.Variant() != uuid.RFC4122 {
		t.Errorf("%v is not a version 8 UUID: %v", id, err)
	}
	if got, want := id.String(), "e6ce82a4-bb08-8fe7-8b19-ecf4148d8b64"; got != want {
		t.Errorf("the id of a stored event changed to %s", got)
	}
}

func TestRepeatedGlucoseIsRefused(t *testing.T) {
	body := with(t, vectorBody, change{"measurement_type": "glucose", "unit": "mg/dL", "values": raw(`{"glucose":"HI","glucose":100}`)})
	_, err := adapter.Parse([]byte(body), now)
	if refused, ok := errors.AsType[*fault.Error](err); !ok || len(refused.Fields["values.glucose"]) != 1 {
		t.Errorf("answered %v", err)
	}
}

func TestEventDoesNotPrint(t *testing.T) {
	event := parse(t, vectorBody)
	if got := fmt.Sprintf("%v %+v %#v %s", event, event, &event, event.LogValue()); strings.Contains(got, "GW-77") || !strings.Contains(got, "[event]") {
		t.Errorf("printed %s", got)
	}
}

// Parse never panics; it returns a fault, or an event with a valid reading and a stable id.
func FuzzParse(f *testing.F) {
	f.Add([]byte(vectorBody))
	for _, seed := range measurements {
		f.Add([]byte(with(f, vectorBody, seed.changes)))
	}
	f.Add([]byte(`{"event_type":"hub.offline","hub_id":"H","timestamp":"2016-12-31T23:59:60Z","last_seen_at":"2016-12-31 23:00:00"}`))
	f.Add([]byte(`{"event_type":"x|y"}`))
	f.Add([]byte(`{"event_type":"measurement.created","values":{"glucose":"HI"},"values":null,"battery_level":1e3}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		event, err := adapter.Parse(raw, now)
		if err != nil {
			if got := wantFault(t, err, fault.Invalid); got != "parse_error" && got != "validation_error" || event.Reading != nil {
				t.Errorf("refused with %q", got)
			}
			return
		}
		if again, _ := adapter.Parse(raw, now); event.ID() != again.ID() || event.Type == "" {
			t.Errorf("%q and %q are one event", event.Key(), again.Key())
		}
		if (event.Reading != nil) != (event.Type == MeasurementCreated && !event.IsUnsupported()) {
			t.Errorf("%s: reading %t", event.Key(), event.Reading != nil)
		}
		if event.Reading == nil {
			return
		}
		c := validate.NewChecks()
		event.Reading.Check(c)
		if err := c.Err(); err != nil || event.Reading.MeasuredAt.After(now.Add(adapter.MaxFuture)) || event.Reading.DeviceID == "" {
			t.Errorf("%s: %v", event.Reading.ValuesKey(), err)
		}
		if !slices.Contains(vitals.Kinds, event.Reading.Kind) {
			t.Errorf("kind %q", event.Reading.Kind)
		}
	})
}

package routes_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/vigilhealth/vigil/internal/authz"
)

// inUTF16 returns a text in UTF-16 with or without its mark.
func inUTF16(order binary.AppendByteOrder, text string) string {
	var encoded []byte
	for _, unit := range utf16.Encode([]rune(text)) {
		encoded = order.AppendUint16(encoded, unit)
	}
	return string(encoded)
}

// Several events in one body are judged and answered one by one: a bad one costs the others nothing, and each has its own key.
func TestStorySeveralEventsInOneDelivery(t *testing.T) {
	const events = 4 // the third one is unreadable, the last one dangerous
	for name, pack := range map[string]func(list []string) string{
		"list":            func(list []string) string { return "[" + strings.Join(list, ",") + "]" },
		"envelope":        func(list []string) string { return `{"events":[` + strings.Join(list, ",") + `]}` },
		"envelope of two": func(list []string) string { return `{"count":4,"data":{"items":[` + strings.Join(list, ",") + `]}}` },
		"documents":       func(list []string) string { return strings.Join(list, "\n") },
		"list in a text":  func(list []string) string { return encodedText("[" + strings.Join(list, ",") + "]") },
		"texts in a list": func(list []string) string {
			return "[" + encodedText(list[0]) + "," + strings.Join(list[1:], ",") + "]"
		},
		"in UTF-16":       func(list []string) string { return inUTF16(binary.LittleEndian, "\ufeff["+strings.Join(list, ",")+"]") },
		"UTF-16, no mark": func(list []string) string { return inUTF16(binary.BigEndian, "["+strings.Join(list, ",")+"]") },
		"type outside": func(list []string) string {
			return `{"event_type":"measurement.created","data":[` + strings.ReplaceAll(strings.Join(list, ","), `"event_type":"measurement.created",`, "") + `]}`
		},
		"with a side value": func(list []string) string {
			return "[" + strings.ReplaceAll(strings.Join(list, ","), `"device_model":"M"`, `"battery_level":NaN`) + "]"
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newIngestingClinic(t)
			c.t = t
			patient := c.enroll(object{"gateway_patient_id": "GW-1"})
			var list []string
			for i := range events {
				values := fmt.Sprintf(`{"systolic":%d,"diastolic":80}`, []int{121, 122, 0, 206}[i])
				if i == 2 {
					values = `{"diastolic":80}`
				}
				list = append(list, fmt.Sprintf(`{"event_type":"measurement.created","device_id":"DEV-%d","patient_id":"GW-1","measurement_type":"blood_pressure","device_model":"M","values":%s,"timestamp":%q}`,
					i, values, c.now.Add(time.Duration(i-events)*time.Minute).Format(time.RFC3339)))
			}
			for _, want := range []string{"accepted accepted rejected accepted", "duplicate duplicate rejected duplicate"} {
				answer := c.postEvent(t, pack(list)).want(200).object()
				var got []string
				for _, result := range answer["results"].([]any) {
					got = append(got, fmt.Sprint(result.(object)["status"]))
				}
				if strings.Join(got, " ") != want || answer["status"] != strings.Fields(want)[0] || answer["event_id"] == "" {
					t.Errorf("answered %v, want %s", answer, want)
				}
			}
			c.request(authz.Nurse, "GET", "/ingestion/observations/?patient_id="+patient, nil).want(200).wantAt(object{"count": 3.0})
			c.wantTold(t, name, patient, true)
		})
	}
}

func encodedText(s string) string { return fmt.Sprintf("%q", s) }

// One event in an envelope, or with what serializers write outside of JSON, is read; what is left out is named.
func TestStorySerializers(t *testing.T) {
	event := func(c *clinic, kind, values, more string) string {
		return fmt.Sprintf(`{"event_type":"measurement.created","device_id":"DEV-1","patient_id":"GW-1","measurement_type":%q,"values":%s%s,"timestamp":%q}`,
			kind, values, more, c.now.Add(-time.Minute).Format(time.RFC3339))
	}
	const high = `{"systolic":206,"diastolic":126}`
	for name, test := range map[string]struct {
		kind, values, more string
		pack               func(string) string
		status             int
		leftOut            []any
	}{
		"an envelope":              {"blood_pressure", high, "", func(s string) string { return `{"data":` + s + `}` }, 200, nil},
		"an envelope as a text":    {"blood_pressure", high, "", func(s string) string { return `{"payload":` + encodedText(s) + `}` }, 200, nil},
		"a mark":                   {"blood_pressure", high, "", func(s string) string { return "\ufeff" + s }, 200, nil},
		"UTF-16":                   {"blood_pressure", high, "", func(s string) string { return inUTF16(binary.BigEndian, "\ufeff"+s) }, 200, nil},
		"a zero at the end":        {"blood_pressure", high, "", func(s string) string { return s + "\x00" }, 200, nil},
		"a battery of NaN":         {"blood_pressure", high, `,"battery_level":NaN`, nil, 200, []any{"battery_level"}},
		"a signal of -Infinity":    {"blood_pressure", high, `,"signal_strength": -Infinity`, nil, 200, []any{"signal_strength"}},
		"a perfusion index of NaN": {"spo2", `{"spo2":80,"perfusion_index":nan}`, "", nil, 200, []any{"perfusion_index"}},
		"a pressure of NaN":        {"blood_pressure", `{"systolic":206,"diastolic":NaN}`, "", nil, 400, nil},
		"a sign":                   {"blood_pressure", `{"systolic":+206,"diastolic":126}`, "", nil, 400, nil},
		"zeros":                    {"blood_pressure", `{"systolic":206,"diastolic":0126}`, "", nil, 400, nil},
		"a point":                  {"blood_pressure", `{"systolic":206.,"diastolic":126}`, "", nil, 400, nil},
		"a last comma":             {"blood_pressure", `{"systolic":206,"diastolic":126,}`, "", nil, 400, nil},
		"full-width digits":        {"blood_pressure", `{"systolic":"２０６","diastolic":"１２６"}`, "", nil, 400, nil},
		"Arabic digits":            {"blood_pressure", `{"systolic":"٢٠٦","diastolic":"١٢٦"}`, "", nil, 400, nil},
		"the API's kind":           {"oxygen_saturation", `{"spo2":80}`, "", nil, 200, nil},
		"the API's glucose":        {"blood_glucose", `{"glucose_mg_dl":40}`, "", nil, 200, nil},
		"in mmol/L":                {"blood_glucose", `{"glucose_mmol_l":2.1}`, "", nil, 200, nil},
		"the API's temperature":    {"temperature", `{"temperature_f":104.5}`, `,"unit":"F"`, nil, 200, nil},
		"with another unit":        {"body_temperature", `{"temperature_c":40.5}`, `,"unit":"degF"`, nil, 400, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := newIngestingClinic(t)
			c.t = t
			patient := c.enroll(object{"gateway_patient_id": "GW-1"})
			body := event(c, test.kind, test.values, test.more)
			if test.pack != nil {
				body = test.pack(body)
			}
			answer := c.postEvent(t, body).want(test.status)
			if test.status == 200 {
				leftOut, _ := answer.object()["left_out"].([]any)
				if answer.wantAt(object{"status": "accepted"}); !slices.Equal(leftOut, test.leftOut) {
					t.Errorf("left out %v, want %v", leftOut, test.leftOut)
				}
			}
			if name != "with another unit" {
				c.wantTold(t, name, patient, true)
			}
		})
	}
}

// Messages of other vendors in an envelope are read, too, and a value in a member of theirs that is not documented counts.
func TestStoryVendorsEnvelopes(t *testing.T) {
	for _, body := range []string{
		`{"messages":[%s]}`, `{"event":%s}`, `[%s,%s]`, `{"data":{"readings":[%s]}}`,
	} {
		c := newIngestingClinic(t)
		patient := c.enroll(nil)
		c.request(authz.Nurse, "POST", "/devices/assign/", object{"device_id": "d", "patient_id": patient, "device_type": "blood_pressure"}).want(200)
		c.now = c.now.Add(time.Hour)
		message := fmt.Sprintf(`{"readingType":"BloodPressure","deviceId":"d","time":"%d","data":{"systolic":"121","diastolic":"80","pulseRate":"190"}}`, c.now.UnixMilli())
		answer := c.sendVendor(t, "telli", strings.ReplaceAll(body, "%s", message))
		if answer.status != 200 || !strings.Contains(answer.body, `"accepted"`) {
			t.Errorf("%s: %d %s", body, answer.status, answer.body)
		}
		c.wantTold(t, body, patient, true)
	}
}

package routes_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/vigilhealth/vigil/internal/authz"
)

// renamed returns a copy of a JSON value with each member renamed.
func renamed(value any, rename func(string) string) any {
	switch value := value.(type) {
	case map[string]any:
		copied := map[string]any{}
		for name, inner := range value {
			copied[rename(name)] = renamed(inner, rename)
		}
		return copied
	case []any:
		for i, inner := range value {
			value[i] = renamed(inner, rename)
		}
	}
	return value
}

// reworded returns a copy of a JSON value with each inner value changed.
func reworded(value any, change func(any) any) any {
	copied := map[string]any{}
	for name, inner := range value.(map[string]any) {
		if of, isObject := inner.(map[string]any); isObject {
			inner = reworded(of, change)
		}
		copied[name] = change(inner)
	}
	return copied
}

func snake(name string) string {
	var s strings.Builder
	for i, r := range name {
		if i > 0 && unicode.IsUpper(r) {
			s.WriteByte('_')
		}
		s.WriteRune(unicode.ToLower(r))
	}
	return s.String()
}

func camel(name string) string {
	words := strings.Split(name, "_")
	for i, word := range words[1:] {
		words[i+1] = strings.ToUpper(word[:1]) + word[1:]
	}
	return strings.Join(words, "")
}

func nestedText(inner any) any {
	if _, isObject := inner.(map[string]any); isObject {
		text, _ := json.Marshal(inner)
		return string(text)
	}
	return inner
}

// spellings are what careless senders make of a body.
var spellings = map[string]func(any) any{
	"upper": func(v any) any { return renamed(v, strings.ToUpper) },
	"lower": func(v any) any { return renamed(v, strings.ToLower) },
	"camel": func(v any) any { return renamed(v, camel) },
	"snake": func(v any) any { return renamed(v, snake) },
	"title": func(v any) any { return renamed(v, func(n string) string { return strings.ToUpper(n[:1]) + n[1:] }) },
	"kebab": func(v any) any {
		return renamed(v, func(n string) string { return strings.ReplaceAll(snake(n), "_", "-") })
	},
	"nested text":  func(v any) any { return reworded(v, nestedText) },
	"all text":     func(v any) any { return nestedText(v) },
	"lists of one": func(v any) any { return reworded(v, func(inner any) any { return []any{inner} }) },
	"list of one":  func(v any) any { return []any{v} },
	"texts": func(v any) any {
		return reworded(v, func(inner any) any {
			if number, isNumber := inner.(float64); isNumber {
				return fmt.Sprintf("%v", number)
			}
			return inner
		})
	},
}

// Each vendor's events are read in other spellings of their members, with objects written as texts and values in lists of one; the contract's are
// refused with 400, and their dangerous values raise the alert all the same.
func TestStorySpellingsOfSenders(t *testing.T) {
	at := func(c *clinic) time.Time { return c.now.Add(-time.Minute) }
	senders := map[string][]func(c *clinic) string{
		"telli": {
			func(c *clinic) string {
				return telli("BloodPressure", "DEV-1", at(c), `"systolic":206,"diastolic":126,"pulse":88`)
			},
			func(c *clinic) string { return telli("SpO2", "DEV-1", at(c), `"spo2":80,"pulse":88`) },
			func(c *clinic) string {
				return telli("BloodGlucose", "DEV-1", at(c), `"glucose":35,"readingPeriod":"before"`)
			},
			func(c *clinic) string { return telli("Temperature", "DEV-1", at(c), `"temperature":40.5,"unit":"C"`) },
		},
		"tenovi": {
			func(c *clinic) string {
				return tenovi("blood_pressure", "DEV-1", "GW-1", at(c), `"value_1":"206","value_2":"126"`)
			},
			func(c *clinic) string {
				return tenovi("spO2", "DEV-1", "GW-1", at(c), `"value_1":"80","value_2":"1.2"`)
			},
			func(c *clinic) string { return tenovi("glucose", "DEV-1", "GW-1", at(c), `"value_1":"35"`) },
		},
		"webhook": {
			func(c *clinic) string {
				return strayEvent(`"measurement_type":"blood_pressure","unit":"mmHg","values":{"systolic":206,"diastolic":126,"pulse":88}`, at(c))
			},
			func(c *clinic) string {
				return strayEvent(`"measurement_type":"pulse_oximetry","unit":"%","values":{"spo2":80,"pulse_rate":88}`, at(c))
			},
			func(c *clinic) string {
				return strayEvent(`"measurement_type":"blood_glucose","unit":"mg/dL","values":{"glucose":35}`, at(c))
			},
		},
	}
	for sender, events := range senders {
		c, number := newIngestingClinic(t), 0
		for name, spelled := range spellings {
			for _, event := range events {
				number++
				device, gatewayID := fmt.Sprint("DEV-", number), fmt.Sprint("GW-", number)
				patient := c.enroll(object{"gateway_patient_id": gatewayID})
				var value any
				if err := json.Unmarshal([]byte(strings.NewReplacer("DEV-1", device, "GW-1", gatewayID).Replace(event(c))), &value); err != nil {
					t.Fatal(err)
				}
				c.request(authz.Nurse, "POST", "/devices/assign/", object{
					"device_id": device, "patient_id": patient, "device_type": "blood_pressure", "assigned_at": at(c).Add(-time.Hour).Format(time.RFC3339),
				}).want(200)
				body := encoded(t, spelled(value))
				label := fmt.Sprint(sender, " ", name, ": ", body)
				if sender == "webhook" {
					c.postEvent(t, body)
				} else if answer := c.sendVendor(t, sender, body); answer.status != 200 || !strings.Contains(answer.body, `"accepted"`) {
					t.Errorf("%s: %d %s", label, answer.status, answer.body)
				}
				c.wantTold(t, label, patient, true)
			}
		}
	}
}

// What is in no documented member raises the alert, too.
func TestStoryTelliUndocumented(t *testing.T) {
	for _, data := range []string{
		`{"systolic":"206/126"}`, `"206/126"`, `{"bloodPressure":"206/126"}`, `{"sys":206,"Diastolic":126,"systolic":206}`, `["206/126"]`, `{"bp":"206/126 mmHg","battery":5}`,
	} {
		c := newIngestingClinic(t)
		patient := c.enroll(nil)
		c.request(authz.Nurse, "POST", "/devices/assign/", object{"device_id": "d", "patient_id": patient, "device_type": "blood_pressure"}).want(200)
		c.now = c.now.Add(time.Hour)
		c.sendVendor(t, "telli", fmt.Sprintf(`{"readingType":"BloodPressure","deviceId":"d","time":"%d","data":%s}`, c.now.UnixMilli(), data))
		c.wantTold(t, data, patient, true)
	}
}

// A body that is not in UTF-8, or begins with a byte order mark, is refused, and its dangerous values are not lost.
func TestStoryBodyNotInUTF8(t *testing.T) {
	for _, change := range []func(string) string{
		func(s string) string { return strings.Replace(s, "{", "{\"device_model\":\"Omr\xf3n\",", 1) },
	} {
		c := newIngestingClinic(t)
		patient := c.enroll(object{"gateway_patient_id": "GW-1"})
		c.postEvent(t, change(strayEvent(`"measurement_type":"bp","values":{"systolic":206,"diastolic":126}`, c.now.Add(-time.Minute)))).want(400, "parse_error")
		c.wantTold(t, "not in UTF-8", patient, true)
	}
}

package routes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
)

// edited returns an event of the contract's gateway with one part of its text replaced.
func edited(t testing.TB, event, old, replacement string) string {
	t.Helper()
	if !strings.Contains(event, old) {
		t.Fatalf("%s is not in the event", old)
	}
	return strings.Replace(event, old, replacement, 1)
}

// A side value that cannot be read never costs a reading of 212/126, and is named in the answer and in the observation.
func TestStorySideValues(t *testing.T) {
	for i, story := range []struct{ member, leftOut string }{
		{`"battery_level":101`, "battery_level"},
		{`"battery_level":80.5`, "battery_level"},
		{`"battery_level":"80"`, "battery_level"},
		{`"signal_strength":23`, "signal_strength"},
		{`"device_model":{"name":"BP-7"}`, "device_model"},
		{`"hub_id":77`, "hub_id"},
		{`"battery_level":255,"signal_strength":91`, "battery_level signal_strength"},
		{`"battery_level":84`, ""},
	} {
		t.Run(story.member, func(t *testing.T) {
			c := newIngestingClinic(t)
			patient := c.enroll(object{"gateway_patient_id": "gw-1"})
			event := measured("D-1", "gw-1", "blood_pressure", "mmHg", c.now.Add(-time.Minute), `"systolic":212,"diastolic":126,"pulse":70`)
			sent := edited(t, event, "{", fmt.Sprintf("{%s,", story.member))
			for range 2 {
				answer := c.postEvent(t, sent).want(200)
				if got := leftOutOf(answer.object()["left_out"]); got != story.leftOut {
					t.Errorf("%d: left out %q, want %q", i, got, story.leftOut)
				}
			}
			stored := c.request(authz.Nurse, "GET", "/ingestion/observations/"+query("patient_id", patient), nil).results()
			if len(stored) != 1 || leftOutOf(stored[0]["left_out"]) != story.leftOut {
				t.Fatalf("stored are %v", stored)
			}
			if alerts := c.alertsOf(patient, "blood_pressure"); len(alerts) != 1 || alerts[0]["level"] != "critical" {
				t.Errorf("alerts: %v", alerts)
			}
		})
	}
}

func leftOutOf(list any) string {
	names, _ := list.([]any)
	return strings.Trim(fmt.Sprint(names), "[]")
}

// A rejected measurement with a value beyond a critical bound always alerts, for any error; one with good values does not.
func TestStoryRejectedMeasurement(t *testing.T) {
	for _, story := range []struct{ name, old, replacement, field string }{
		{"no time", `"timestamp"`, `"time"`, "timestamp"},
		{"no ISO time", `"timestamp":"`, `"timestamp":"on `, "timestamp"},
		{"another unit", `"mmHg"`, `"bar"`, "unit"},
		{"no device", `"device_id":"D-1"`, `"device_id":7`, "device_id"},
		{"a pulse in words", `"pulse":70`, `"pulse":"fast"`, "values.pulse"},
		{"texts", `"systolic":212`, `"systolic":"212"`, "values.systolic"},
		{"half a pressure", `"diastolic":126`, `"diastolic":null`, "values.diastolic"},
	} {
		t.Run(story.name, func(t *testing.T) {
			for values, alarming := range map[string]bool{`"systolic":212,"diastolic":126,"pulse":70`: true, `"systolic":121,"diastolic":80,"pulse":70`: false} {
				c := newIngestingClinic(t)
				patient := c.enroll(object{"gateway_patient_id": "gw-1"})
				event := measured("D-1", "gw-1", "blood_pressure", "mmHg", c.now.Add(-time.Minute), values)
				old, replacement := story.old, story.replacement
				if !alarming {
					old, replacement = strings.NewReplacer("212", "121", "126", "80").Replace(old), strings.NewReplacer("212", "121", "126", "80").Replace(replacement)
				}
				sent := edited(t, event, old, replacement)
				for range 2 {
					c.postEvent(t, sent).wantFields(story.field)
				}
				list := c.alertsOf(patient, "implausible_reading")
				if !alarming {
					if len(list) > 0 || len(c.statEscalations(t)) > 0 {
						t.Errorf("good values alert: %v", list)
					}
					continue
				}
				if len(list) != 1 || list[0]["level"] != "critical" || !strings.Contains(fmt.Sprint(list[0]["message"]), story.field) {
					t.Fatalf("alerts: %v", list)
				}
				if got := c.statEscalations(t); !slices.Equal(got, []string{"stat open system"}) {
					t.Errorf("escalations: %q", got)
				}
				confirm := "/ingestion/quarantine/" + list[0]["quarantine_id"].(string) + "/confirm/"
				confirmed := c.request(authz.Nurse, "POST", confirm, object{"notes": "Seen on the display."})
				if story.field == "values.diastolic" {
					confirmed.want(400, "invalid_state")
					continue
				}
				confirmed.want(201).wantAt(object{"systolic": 212.0, "diastolic": 126.0, "review_state": "confirmed"})
			}
		})
	}
}

package gateway

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// What no meter shows must never become a value.
func TestRejectsImpossibleValues(t *testing.T) {
	const body = `{"event_type":"measurement.created","device_id":"D","patient_id":"P","timestamp":"2026-01-15T13:45:00Z",%s}`
	for _, tc := range []struct{ members, want string }{
		{`"measurement_type":"bp","values":{"systolic":NaN,"diastolic":80}`, "parse_error"},
		{`"measurement_type":"bp","values":{"systolic":Infinity,"diastolic":80}`, "parse_error"},
		{`"measurement_type":"bp","values":{"systolic":0x78,"diastolic":80}`, "parse_error"},
		{`"measurement_type":"bp","values":{"systolic":012,"diastolic":80}`, "parse_error"},
		{`"measurement_type":"bp","values":{"systolic":1e999,"diastolic":80}`, "values.systolic"},
		{`"measurement_type":"bp","values":{"systolic":1e308,"diastolic":-1e308}`, "values.diastolic values.systolic"},
		{`"measurement_type":"bp","values":{"systolic":` + strings.Repeat("9", 400) + `,"diastolic":80}`, "values.systolic"},
		{`"measurement_type":"bp","values":{"systolic":"NaN","diastolic":80}`, "values.systolic"},
		{`"measurement_type":"bp","values":{"systolic":"HI","diastolic":"LO"}`, "values.diastolic values.systolic"},
		{`"measurement_type":"bp","values":{"systolic":120,"diastolic":80},"unit":"kPa"`, "unit"},
		{`"measurement_type":"weight","values":{"weight":80}`, "unit"},
		{`"measurement_type":"weight","values":{"weight":80},"unit":"st"`, "unit"},
		{`"measurement_type":"weight","values":{"weight":"80"},"unit":"kg"`, "values.weight"},
		{`"measurement_type":"glucose","values":{"glucose":"HI"}`, "unit"},
		{`"measurement_type":"glucose","values":{"glucose":"HIGHER"},"unit":"mg/dL"`, "values.glucose"},
		{`"measurement_type":"glucose","values":{"glucose":100},"unit":"mmol/L"`, "values.glucose"},
		{`"measurement_type":"spo2","values":{"spo2":0.98}`, "values.spo2"},
		{`"measurement_type":"spo2","values":{"spo2":true}`, "values.spo2"},
	} {
		_, err := adapter.Parse(fmt.Appendf(nil, body, tc.members), now)
		if tc.want == "parse_error" {
			if got := wantFault(t, err, fault.Invalid); got != tc.want {
				t.Errorf("%s: %s", tc.members, got)
			}
			continue
		}
		if got := fieldErrorText(t, fmt.Sprintf(body, tc.members)); got != tc.want {
			t.Errorf("%.80s complains about %q, want %q", tc.members, got, tc.want)
		}
	}
	if math.IsNaN(*parse(t, vectorBody).Reading.Value(vitals.Systolic)) {
		t.Error("a good reading is not one any more")
	}
}

// At daylight saving changes an hour exists twice or not at all; the offset decides.
func TestTimesAroundDaylightSaving(t *testing.T) {
	for sent, want := range map[string]string{
		"2025-11-02T01:30:00-04:00":      "2025-11-02T05:30:00Z",
		"2025-11-02T01:30:00-05:00":      "2025-11-02T06:30:00Z",
		"2025-03-09T02:30:00-05:00":      "2025-03-09T07:30:00Z", // an hour that does not exist
		"2025-10-26T02:30:00+01:00":      "2025-10-26T01:30:00Z",
		"2025-06-01T12:00:00+14:00":      "2025-05-31T22:00:00Z",
		"2025-06-01T12:00:00+05:45":      "2025-06-01T06:15:00Z",
		"2025-06-01T12:00:00.123456789Z": "2025-06-01T12:00:00Z",
	} {
		event := parse(t, with(t, vectorBody, change{"timestamp": sent}))
		if got := event.At.Truncate(time.Second).Format(time.RFC3339); got != want {
			t.Errorf("%s is %s, want %s", sent, got, want)
		}
	}
	first := parse(t, with(t, vectorBody, change{"timestamp": "2025-11-02T01:30:00-04:00"}))
	second := parse(t, with(t, vectorBody, change{"timestamp": "2025-11-02T01:30:00-05:00"}))
	if first.ID() == second.ID() {
		t.Error("two readings an hour apart are one")
	}
}

// A truncated body is no event.
func TestTruncatedBody(t *testing.T) {
	for n := range len(vectorBody) {
		if _, err := adapter.Parse([]byte(vectorBody[:n]), now); wantFault(t, err, fault.Invalid) != "parse_error" {
			t.Errorf("the first %d bytes are an event", n)
		}
	}
}

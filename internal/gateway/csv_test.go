package gateway

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/fault"
)

const columns = "device_id,patient_id,measurement_type,timestamp,systolic,diastolic,irregular_heartbeat,glucose,unit,meal_context\n"

// The same measurement gives the same event from a webhook and from a table.
func TestCSVEqualsWebhook(t *testing.T) {
	for _, tc := range []struct{ line, body string }{
		{"D,P,BP,2026-01-10T08:00:00-05:00,120,80.5,yes,,,", `{"measurement_type":"bp","values":{"systolic":120,"diastolic":80.5,"irregular_heartbeat":true}}`},
		{"D,P,glucose,2026-01-10T08:00:00-05:00,,,,HI,mg/dL,pre_meal", `{"measurement_type":"glucose","unit":"mg/dL","values":{"glucose":"HI"}}`},
		{"D,P,BP,20260110T130000Z,0120,080,no,,,", `{"measurement_type":"bp","values":{"systolic":120,"diastolic":80,"irregular_heartbeat":false}}`},
		{`D,P,glucose,2026-01-10T08:00:00-05:00,,,,"hi",MG/DL,fasting`, `{"measurement_type":"glucose","unit":"mg/dL","values":{"glucose":"HI","meal_context":"fasting"}}`},
		{" D , P ,glucose,2026-01-10 13:00:00,,,,5.6,mmol/l,", `{"measurement_type":"glucose","unit":"mmol/L","values":{"glucose":5.6}}`},
	} {
		lines, err := OpenCSV(strings.NewReader("\uFEFF"+columns+tc.line+"\n"), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		line, body, err := lines.Next()
		if line != 2 || err != nil {
			t.Fatalf("line %d: %v", line, err)
		}
		got, err := lines.Parse(body, now)
		want := parse(t, `{"event_type":"measurement.created","device_id":"D","patient_id":"P","timestamp":"2026-01-10T13:00:00Z",`+tc.body[1:])
		if err != nil || got.ID() != want.ID() || got.Reading.ValuesKey() != want.Reading.ValuesKey() {
			t.Errorf("%s: %v", tc.line, err)
		}
		if _, _, err := lines.Next(); !errors.Is(err, io.EOF) {
			t.Errorf("after the last line: %v", err)
		}
	}
}

func TestCSVColumns(t *testing.T) {
	for header, want := range map[string]string{
		"":                                    "column names",
		"device_id,patient_id,timestamp":      "measurement_type is missing",
		strings.Trim(columns, "\n") + ",ssn":  "column 11 has an unknown name",
		strings.Trim(columns, "\n") + ",Unit": "column unit is repeated",
	} {
		if _, err := OpenCSV(strings.NewReader(header), 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", header, err)
		}
	}
}

func FuzzCSV(f *testing.F) {
	for _, seed := range []string{
		"D,P,bp,2026-01-10T08:00:00-05:00,120,80,no,,,", "D,P,glucose,2026-01-10T08:00:00Z,,,,LO,mg/dl,", `"D`, "D,P\n,,,,,,,,,", "D,P,bp,2026-01-10T08:00:00Z,NaN,1e999,,,,",
		"D,P,bp,2026-01-10T08:00:00Z,\"12\n0\",80,,,,", "\r\n\r\n", ";;;",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		lines, err := OpenCSV(strings.NewReader(columns+text), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		for range 1 + strings.Count(text, "\n") + strings.Count(text, "\r") {
			_, body, err := lines.Next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				if got := wantFault(t, err, fault.Invalid); got != "parse_error" {
					t.Fatalf("refused with %q", got)
				}
				continue
			}
			event, err := lines.Parse(body, now)
			if err == nil && (event.Type != MeasurementCreated || (event.Reading == nil) != event.IsUnsupported()) {
				t.Errorf("%q was misread", text)
			}
		}
	})
}

package gateway

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"golang.org/x/text/encoding/unicode"

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
		lines, err := OpenCSV(strings.NewReader("\uFEFF"+columns+tc.line+"\n"), CSVOptions{MaxFuture: time.Minute, Zone: time.UTC})
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
		strings.Trim(columns, "\n") + ",ssn":  "column 11 (K in a spreadsheet) has an unknown name",
		strings.Trim(columns, "\n") + ",Unit": "column unit is repeated",
	} {
		if _, err := OpenCSV(strings.NewReader(header), CSVOptions{MaxFuture: 0, Zone: time.UTC}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", header, err)
		}
	}
}

// Spreadsheets save tables in several forms; each gives the same readings.
func TestCSVOfSpreadsheets(t *testing.T) {
	const head, row = "device_id,patient_id,measurement_type,timestamp,weight,unit", "D,P,weight,2026-01-10T08:00:00-05:00,80.5,kg"
	replace := func(comma string) string {
		return strings.ReplaceAll(head+"\n", ",", comma) + strings.ReplaceAll(strings.ReplaceAll(row, "80.5", "80#5"), ",", comma) + "\n"
	}
	numbered := func(text, decimal string) string { return strings.ReplaceAll(text, "#", decimal) }
	utf16 := func(order unicode.Endianness, text string) string {
		coded, err := unicode.UTF16(order, unicode.UseBOM).NewEncoder().String(text)
		if err != nil {
			t.Fatal(err)
		}
		return coded
	}
	plain := head + "\n" + row + "\n"
	for name, text := range map[string]string{
		"empty columns at the end": head + ",,\n" + row + ",,\n", "empty columns with spaces": head + ", , \n" + row + "\n",
		"rows of commas": head + "\n,,,,,\n" + row + "\n,,,,,\n\n", "a short row": strings.ReplaceAll(plain, ",unit\n", ",unit,pulse\n"),
		"sep": "sep=,\r\n" + strings.ReplaceAll(plain, "\n", "\r\n"), "SEP with a semicolon": "\uFEFFSEP=;\n" + numbered(replace(";"), "."),
		"semicolons and decimal commas": numbered(replace(";"), ","), "tabs": numbered(replace("\t"), "."), "sep with a tab": "sep=\t\n" + numbered(replace("\t"), ","),
		"UTF-16, little endian": utf16(unicode.LittleEndian, numbered(replace("\t"), ".")), "UTF-16, big endian": utf16(unicode.BigEndian, plain),
		"UTF-8 with its mark": "\uFEFF" + plain, "an end mark": plain + "\x1a", "an end mark in a line": plain + "\x1a\r\n", "an end mark after the last cell": strings.TrimSpace(plain) + "\x1a",
		"sep in quotes": "\"sep=;\"\r\n" + numbered(replace(";"), ","), "other spellings": strings.Replace(plain, head, "Device ID,PATIENT-ID,Measurement Type,TimeStamp,Weight,UNIT", 1),
	} {
		lines, err := OpenCSV(strings.NewReader(text), CSVOptions{MaxFuture: time.Minute})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		_, body, err := lines.Next()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		event, err := lines.Parse(body, now)
		if err != nil || event.DeviceID != "D" || event.Reading == nil || !strings.Contains(string(body), `"weight":80.5`) {
			t.Errorf("%s: %s %v", name, body, err)
		}
		if _, _, err := lines.Next(); !errors.Is(err, io.EOF) || lines.Lines != 1 {
			t.Errorf("%s: after the last line: %v, %d lines", name, err, lines.Lines)
		}
	}
}

func TestCSVLines(t *testing.T) {
	const head = "device_id,patient_id,measurement_type,timestamp,systolic,diastolic\n"
	chicago, err := time.LoadLocation("America/Chicago")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenCSV(strings.NewReader(head+"D,P,bp,2026-01-10T08:00:00Z,1,2\nD,P,bp,2026-01-10 08:00,1,2\n"), CSVOptions{}); err == nil || !strings.Contains(err.Error(), "line 3 has a time without an offset in column timestamp") {
		t.Errorf("a time without an offset: %v", err)
	}
	for row, want := range map[string]string{
		"D,P,bp,2026-01-10 08:00,120,80":               "2026-01-10T14:00:00Z",
		"D,P,bp,2026-07-10T08:00:30,120,80":            "2026-07-10T13:00:30Z",
		"D,P,bp,20260110T080000,120,80":                "2026-01-10T14:00:00Z",
		"D,P,bp,2026-01-10T08:00:00+01:00,120,80":      "2026-01-10T07:00:00Z",
		"D,P,bp,2026-03-08 02:30,120,80":               "timestamp", // skipped
		"D,P,bp,2026-11-01 01:30,120,80":               "timestamp", // twice
		"D,P,bp,2026-11-01T01:30:00-06:00,120,80":      "2026-11-01T07:30:00Z",
		"8.60E+14,P,bp,2026-01-10 08:00,120,80":        "device_id",
		"D,\"8,6e+11\",bp,2026-01-10 08:00,120,80":     "patient_id",
		"1E+15,P,bp,2026-01-10 08:00,120,80":           "device_id",
		"860000000000001,P,bp,2026-01-10 08:00,120,80": "2026-01-10T14:00:00Z",
		"D,P,bp,2026-01-10 08:00,120,80,5":             "", // a cell without a column
	} {
		lines, err := OpenCSV(strings.NewReader(head+row+"\n"), CSVOptions{MaxFuture: time.Minute, Zone: chicago})
		if err != nil {
			t.Fatal(err)
		}
		line, body, err := lines.Next()
		if refused, ok := errors.AsType[*fault.Error](err); ok {
			if _, named := refused.Fields[want]; line != 2 || !named && want != "" {
				t.Errorf("%s: line %d: %v", row, line, refused.Fields)
			}
			continue
		}
		event, err := lines.Parse(body, now.AddDate(10, 0, 0))
		if err != nil || event.Reading == nil || event.Reading.MeasuredAt.Format(time.RFC3339) != want {
			t.Errorf("%s: %v, want %s", row, event.Reading, want)
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
		lines, err := OpenCSV(strings.NewReader(columns+text), CSVOptions{MaxFuture: time.Minute, Zone: time.UTC})
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

// What is no table of text is refused with the cause.
func TestCSVOfOtherForms(t *testing.T) {
	const table = "device_id,patient_id,measurement_type,timestamp,systolic,diastolic\nD,P,bp,2026-01-10T08:00:00Z,120,80\n"
	bare, err := unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM).NewEncoder().String(table)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"PK\x03\x04\x14\x00\x06\x00":           "not a table of text",
		"\xd0\xcf\x11\xe0\xa1\xb1":             "not a table of text",
		bare:                                   "UTF-16 without its byte order mark",
		strings.ReplaceAll(table, "\n", "\r"):  "carriage return alone",
		strings.Replace(table, "D", "\xd6", 1): "", // in a line
		strings.Replace(table, "80\n", "80\rD,P,bp,2026-01-11T08:00:00Z,120,80\r", 1): "line 2, column F: the lines end with a carriage return alone",
		strings.Replace(table, "d", "\xd6", 1):                                        "not in UTF-8",
		strings.Replace(table, "\n", "\n\r", 1):                                       "",
		strings.ReplaceAll(table, "\n", "\r\n"):                                       "",
		strings.TrimSpace(strings.Split(table, "\n")[0]):                              "",
	} {
		_, err := OpenCSV(strings.NewReader(text), CSVOptions{MaxFuture: time.Minute})
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
}

// Cells that a spreadsheet wrote for something else are refused by their column, and ="…" is its text.
func TestCSVCellsOfSpreadsheets(t *testing.T) {
	const head = "device_id,patient_id,measurement_type,timestamp,systolic,diastolic,device_model\n"
	for row, want := range map[string]string{
		`="0012",="7",bp,2026-01-10T08:00:00Z,120,80,`:           "0012 7",
		`"=""0012""","=""7""",bp,2026-01-10T08:00:00Z,120,80,`:   "0012 7",
		`D,="P",="bp",="2026-01-10T08:00:00Z",="120",="80",="M"`: "D P",
		`=12,P,bp,2026-01-10T08:00:00Z,120,80,`:                  "device_id",
		`D,#N/A,bp,2026-01-10T08:00:00Z,120,80,`:                 "patient_id",
		`D,P,#REF!,2026-01-10T08:00:00Z,120,80,`:                 "measurement_type",
		`D,P,bp,########,120,80,`:                                "timestamp",
		`D,P,bp,2026-01-10T08:00:00Z,#DIV/0!,80,`:                "systolic",
		`D,P,bp,2026-01-10T08:00:00Z,120,80,#NAME?`:              "device_model",
		"D\xd6,P,bp,2026-01-10T08:00:00Z,120,80,":                "device_id",
		"D,P\uFFFD,bp,2026-01-10T08:00:00Z,120,80,":              "patient_id",
		"D,P,bp,2026-01-10T08:00:00Z,120,80,\xe9":                "device_model",
		`#12,P#,bp,2026-01-10T08:00:00Z,120,80,`:                 "#12 P#",
		`D,P,bp,2026-01-10T08:00:00Z,120,80,,,9`:                 "more cells",
		`D,P"x,bp,2026-01-10T08:00:00Z,120,80,`:                  "quotation mark",
	} {
		lines, err := OpenCSV(strings.NewReader(head+row+"\n"), CSVOptions{MaxFuture: time.Minute})
		if err != nil {
			t.Errorf("%s: %v", row, err)
			continue
		}
		_, body, err := lines.Next()
		refused, isFault := errors.AsType[*fault.Error](err)
		switch {
		case isFault && (refused.Fields[want] != nil || len(refused.Fields) == 0 && strings.Contains(refused.Detail, want)):
			continue
		case err != nil:
			t.Errorf("%s: %v", row, err)
			continue
		}
		if event, err := lines.Parse(body, now); err != nil || event.DeviceID+" "+event.PatientID != want || event.Reading == nil {
			t.Errorf("%s: %s %v", row, body, err)
		}
	}
	for _, lone := range []string{"D\x00\x00\xd8", "D\x00\x00\xdc"} { // half of a surrogate pair
		coded, err := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().String(head + "X,P,bp,2026-01-10T08:00:00Z,120,80,\n")
		if err != nil {
			t.Fatal(err)
		}
		lines, err := OpenCSV(strings.NewReader(strings.Replace(coded, "X\x00", lone, 1)), CSVOptions{MaxFuture: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = lines.Next()
		if refused, ok := errors.AsType[*fault.Error](err); !ok || refused.Fields["device_id"] == nil {
			t.Errorf("%q: %v", lone, err)
		}
	}
}

package fhirserver_test

import (
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/fhirserver"
)

func TestParseExportRequest(t *testing.T) {
	refused := fault.New(fault.Forbidden, "insufficient_scope", "No.")
	everything := "Patient Observation Device Practitioner CareTeam Flag Provenance"
	for _, test := range []struct {
		what, query, prefer string
		level               fhirserver.ExportLevel
		scopes              string // "" is all
		types, ignored      string
		code                string
	}{
		{what: "all types", prefer: "respond-async", types: everything},
		{what: "patient level", prefer: "respond-async", level: fhirserver.PatientLevel, types: everything},
		{what: "synchronous", code: "invalid_parameter"},
		{what: "synchronous, lenient", prefer: "handling=lenient", types: everything},
		{what: "asynchronous and lenient", prefer: "respond-async; handling = lenient", types: everything},
		{what: "different case and list syntax", prefer: "Respond-Async,return=minimal", types: everything},
		{what: "types in any order", query: "_type=Observation,Patient&_type=Observation", prefer: "respond-async", types: "Patient Observation"},
		{what: "audit events by name", query: "_type=AuditEvent", prefer: "respond-async", types: "AuditEvent"},
		{what: "audit events at the patient level", query: "_type=AuditEvent", prefer: "respond-async", level: fhirserver.PatientLevel, code: "unsupported_parameter"},
		{what: "unsupported type", query: "_type=Patient,Condition", prefer: "respond-async", code: "unsupported_parameter"},
		{what: "unsupported type, lenient", query: "_type=Patient,Condition", prefer: "respond-async,handling=lenient", types: "Patient", ignored: "A type"},
		{what: "only unsupported types, lenient", query: "_type=Condition", prefer: "respond-async,handling=lenient", code: "unsupported_parameter"},
		{what: "empty type", query: "_type=", prefer: "respond-async", code: "unsupported_parameter"},
		{what: "only allowed types", prefer: "respond-async", scopes: "Observation Flag", types: "Observation Flag"},
		{what: "type that is not allowed", query: "_type=Patient,Observation", prefer: "respond-async", scopes: "Observation", code: "insufficient_scope"},
		{what: "no type allowed", prefer: "respond-async", scopes: "Group", code: "insufficient_scope"},
		{what: "formats", query: "_outputFormat=application/fhir+ndjson", prefer: "respond-async", types: everything},
		{what: "short format", query: "_outputFormat=ndjson", prefer: "respond-async", types: everything},
		{what: "other format", query: "_outputFormat=text/csv", prefer: "respond-async", code: "invalid_parameter"},
		{what: "unknown parameter", query: "_typeFilter=Patient%3Factive%3Dtrue", prefer: "respond-async", code: "unsupported_parameter"},
		{what: "unknown parameter, lenient", query: "_typeFilter=x&Ada=Lovelace", prefer: "respond-async,handling=lenient", types: everything, ignored: "A parameter _typeFilter"},
		{what: "one patient, lenient", query: "patient=Patient/1", prefer: "respond-async,handling=lenient", code: "unsupported_parameter"},
		{what: "since is not a date", query: "_since=yesterday", prefer: "respond-async,handling=lenient", code: "invalid_parameter"},
		{what: "since without a time", query: "_since=2026-01-01", prefer: "respond-async", code: "invalid_parameter"},
		{what: "since twice", query: "_since=2026-01-01T00:00:00Z&_since=2026-01-01T00:00:00Z", prefer: "respond-async", code: "invalid_parameter"},
	} {
		parameters, err := fhirserver.ParseQuery(test.query)
		if err != nil {
			t.Fatal(err)
		}
		request, err := fhirserver.ParseExportRequest(test.level, parameters, fhirserver.ParsePrefer([]string{test.prefer}), "https://vigil.example.org/", func(kind string) error {
			if test.scopes == "" || strings.Contains(test.scopes, kind) {
				return nil
			}
			return refused
		})
		if code(err) != test.code {
			t.Errorf("%s: %v, want %q", test.what, err, test.code)
			continue
		}
		if err == nil && (strings.Join(request.Types, " ") != test.types || strings.Join(request.Ignored, " ") != test.ignored) {
			t.Errorf("%s: types %v, ignored %v", test.what, request.Types, request.Ignored)
		}
	}
}

func TestParseSince(t *testing.T) {
	want := time.Date(2026, 1, 15, 13, 45, 0, 123456000, time.UTC)
	for _, text := range []string{"2026-01-15T13:45:00.123456Z", "2026-01-15T14:45:00.123456%2B01:00", "2026-01-15T14:45:00.123456+01:00"} {
		parameters, _ := fhirserver.ParseQuery("_since=" + text)
		request, err := fhirserver.ParseExportRequest(fhirserver.SystemLevel, parameters, fhirserver.Prefer{Async: true}, "", func(string) error { return nil })
		if err != nil || !request.Since.Equal(want) {
			t.Errorf("%s: %s, %v", text, request.Since, err)
		}
	}
}

func TestAddBody(t *testing.T) {
	for body, want := range map[string]string{
		`{"resourceType":"Parameters"}`: "Patient Observation Device Practitioner CareTeam Flag Provenance",
		`{"resourceType":"Parameters","parameter":[{"name":"_type","valueString":"Flag"},{"name":"_type","valueString":"Device"}]}`:                      "Device Flag",
		`{"resourceType":"Parameters","parameter":[{"name":"_since","valueInstant":"2026-01-15T13:45:00Z"},{"name":"_type","valueCode":"Flag,Device"}]}`: "Device Flag",
		`{"resourceType":"Parameters","parameter":[{"name":"_since","valueInteger":5}]}`:                                                                 "!invalid_parameter",
		`{"resourceType":"Parameters","parameter":[{"name":"patient","valueReference":{"reference":"Patient/1"}}]}`:                                      "!unsupported_parameter",
		`{"resourceType":"Parameters","parameter":[{"valueString":"Flag"}]}`:                                                                             "!invalid_parameter",
		`{"resourceType":"Bundle"}`: "!invalid_parameter", `[]`: "!invalid_parameter", `{`: "!invalid_parameter",
	} {
		parameters, _ := fhirserver.ParseQuery("")
		err := parameters.AddBody([]byte(body))
		var request fhirserver.ExportRequest
		if err == nil {
			request, err = fhirserver.ParseExportRequest(fhirserver.SystemLevel, parameters, fhirserver.Prefer{Async: true}, "", func(string) error { return nil })
		}
		if got := strings.Join(request.Types, " "); err != nil && "!"+code(err) != want || err == nil && got != want {
			t.Errorf("%s: %s, %v", body, got, err)
		}
	}
}

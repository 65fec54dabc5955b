package fhirserver_test

import (
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/fhirserver"
)

func TestRead(t *testing.T) {
	refused := fault.New(fault.Forbidden, "insufficient_scope", "No.")
	everything := "Patient Observation Device Practitioner CareTeam Flag Provenance"
	for _, test := range []struct {
		what, query, prefer string
		level               fhirserver.Level
		scopes              string // "" is all
		types, ignored      string
		code                string
	}{
		{what: "all", prefer: "respond-async", types: everything},
		{what: "of the patients", prefer: "respond-async", level: fhirserver.Patients, types: everything},
		{what: "not later", code: "invalid_parameter"},
		{what: "not later, and lenient", prefer: "handling=lenient", types: everything},
		{what: "both", prefer: "respond-async; handling = lenient", types: everything},
		{what: "in another spelling", prefer: "Respond-Async,return=minimal", types: everything},
		{what: "types in any order", query: "_type=Observation,Patient&_type=Observation", prefer: "respond-async", types: "Patient Observation"},
		{what: "audit by name", query: "_type=AuditEvent", prefer: "respond-async", types: "AuditEvent"},
		{what: "audit of the patients", query: "_type=AuditEvent", prefer: "respond-async", level: fhirserver.Patients, code: "unsupported_parameter"},
		{what: "no type of ours", query: "_type=Patient,Condition", prefer: "respond-async", code: "unsupported_parameter"},
		{what: "no type of ours, lenient", query: "_type=Patient,Condition", prefer: "respond-async,handling=lenient", types: "Patient", ignored: "A type"},
		{what: "nothing of ours, lenient", query: "_type=Condition", prefer: "respond-async,handling=lenient", code: "unsupported_parameter"},
		{what: "empty type", query: "_type=", prefer: "respond-async", code: "unsupported_parameter"},
		{what: "what is allowed", prefer: "respond-async", scopes: "Observation Flag", types: "Observation Flag"},
		{what: "what is not allowed", query: "_type=Patient,Observation", prefer: "respond-async", scopes: "Observation", code: "insufficient_scope"},
		{what: "nothing is allowed", prefer: "respond-async", scopes: "Group", code: "insufficient_scope"},
		{what: "formats", query: "_outputFormat=application/fhir+ndjson", prefer: "respond-async", types: everything},
		{what: "short format", query: "_outputFormat=ndjson", prefer: "respond-async", types: everything},
		{what: "other format", query: "_outputFormat=text/csv", prefer: "respond-async", code: "invalid_parameter"},
		{what: "unknown", query: "_typeFilter=Patient%3Factive%3Dtrue", prefer: "respond-async", code: "unsupported_parameter"},
		{what: "unknown, lenient", query: "_typeFilter=x&Ada=Lovelace", prefer: "respond-async,handling=lenient", types: everything, ignored: "A parameter _typeFilter"},
		{what: "one patient, lenient", query: "patient=Patient/1", prefer: "respond-async,handling=lenient", code: "unsupported_parameter"},
		{what: "since nonsense", query: "_since=yesterday", prefer: "respond-async,handling=lenient", code: "invalid_parameter"},
		{what: "since a day", query: "_since=2026-01-01", prefer: "respond-async", code: "invalid_parameter"},
		{what: "since twice", query: "_since=2026-01-01T00:00:00Z&_since=2026-01-01T00:00:00Z", prefer: "respond-async", code: "invalid_parameter"},
	} {
		parameters, err := fhirserver.InQuery(test.query)
		if err != nil {
			t.Fatal(err)
		}
		asked, err := fhirserver.Read(test.level, parameters, fhirserver.ReadPrefer([]string{test.prefer}), "https://vigil.example.org/", func(kind string) error {
			if test.scopes == "" || strings.Contains(test.scopes, kind) {
				return nil
			}
			return refused
		})
		if code(err) != test.code {
			t.Errorf("%s: %v, want %q", test.what, err, test.code)
			continue
		}
		if err == nil && (strings.Join(asked.Types, " ") != test.types || strings.Join(asked.Ignored, " ") != test.ignored) {
			t.Errorf("%s: %v, without %v", test.what, asked.Types, asked.Ignored)
		}
	}
}

func TestReadSince(t *testing.T) {
	want := time.Date(2026, 1, 15, 13, 45, 0, 123456000, time.UTC)
	for _, text := range []string{"2026-01-15T13:45:00.123456Z", "2026-01-15T14:45:00.123456%2B01:00", "2026-01-15T14:45:00.123456+01:00"} {
		parameters, _ := fhirserver.InQuery("_since=" + text)
		asked, err := fhirserver.Read(fhirserver.System, parameters, fhirserver.Prefer{Async: true}, "", func(string) error { return nil })
		if err != nil || !asked.Since.Equal(want) {
			t.Errorf("%s: %s, %v", text, asked.Since, err)
		}
	}
}

func TestInBody(t *testing.T) {
	for body, want := range map[string]string{
		`{"resourceType":"Parameters"}`: "Patient Observation Device Practitioner CareTeam Flag Provenance",
		`{"resourceType":"Parameters","parameter":[{"name":"_type","valueString":"Flag"},{"name":"_type","valueString":"Device"}]}`:                      "Device Flag",
		`{"resourceType":"Parameters","parameter":[{"name":"_since","valueInstant":"2026-01-15T13:45:00Z"},{"name":"_type","valueCode":"Flag,Device"}]}`: "Device Flag",
		`{"resourceType":"Parameters","parameter":[{"name":"_since","valueInteger":5}]}`:                                                                 "!invalid_parameter",
		`{"resourceType":"Parameters","parameter":[{"name":"patient","valueReference":{"reference":"Patient/1"}}]}`:                                      "!unsupported_parameter",
		`{"resourceType":"Parameters","parameter":[{"valueString":"Flag"}]}`:                                                                             "!invalid_parameter",
		`{"resourceType":"Bundle"}`: "!invalid_parameter", `[]`: "!invalid_parameter", `{`: "!invalid_parameter",
	} {
		parameters, _ := fhirserver.InQuery("")
		err := parameters.InBody([]byte(body))
		var asked fhirserver.ExportRequest
		if err == nil {
			asked, err = fhirserver.Read(fhirserver.System, parameters, fhirserver.Prefer{Async: true}, "", func(string) error { return nil })
		}
		if got := strings.Join(asked.Types, " "); err != nil && "!"+code(err) != want || err == nil && got != want {
			t.Errorf("%s: %s, %v", body, got, err)
		}
	}
}

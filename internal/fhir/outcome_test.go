package fhir_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/vigilhealth/vigil/internal/fhir"
)

func TestReadOutcome(t *testing.T) {
	for _, test := range []struct {
		name, body  string
		codes       []string
		diagnostics string
	}{
		{
			"one issue", `{"resourceType":"OperationOutcome","issue":[{"severity":"error","code":"not-found","diagnostics":"Patient a-1"}]}`,
			[]string{"not-found"},
			"Patient a-1",
		},
		{
			"order kept, each once", `{"resourceType":"OperationOutcome","issue":[{"code":"value"},{"code":"required"},{"code":"value"}]}`,
			[]string{"value", "required"},
			"",
		},
		{
			"details and diagnostics", `{"resourceType":"OperationOutcome","issue":[{"code":"invalid","details":{"text":"bad"},"diagnostics":"worse"}]}`,
			[]string{"invalid"},
			"bad\nworse",
		},
		{"a code of its own", `{"resourceType":"OperationOutcome","issue":[{"code":"Ada Lovelace is unknown"}]}`, nil, ""},
		{"another resource", `{"resourceType":"Observation","issue":[{"code":"invalid"}]}`, nil, ""},
		{"not JSON", `<html>502</html>`, nil, ""},
		{"wrong shape", `{"resourceType":"OperationOutcome","issue":"invalid"}`, nil, ""},
		{"no issue", `{"resourceType":"OperationOutcome"}`, nil, ""},
		{"empty", ``, nil, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := fhir.ParseOutcome([]byte(test.body))
			if !slices.Equal(got.Codes, test.codes) || got.Diagnostics.Reveal() != test.diagnostics {
				t.Errorf("codes %q, diagnostics %q", got.Codes, got.Diagnostics.Reveal())
			}
		})
	}
}

func TestDiagnosticsAreBounded(t *testing.T) {
	got := fhir.Diagnostics(strings.Repeat("é", 5000)).Reveal()
	if len(got) > 4096 || !utf8.ValidString(got) {
		t.Errorf("%d bytes, valid %v", len(got), utf8.ValidString(got))
	}
}

func FuzzReadOutcome(f *testing.F) {
	f.Add([]byte(`{"resourceType":"OperationOutcome","issue":[{"code":"not-found","details":{"text":"x"},"diagnostics":"y"}]}`))
	f.Add([]byte(`{"resourceType":"OperationOutcome","issue":[null,{}]}`))
	f.Add([]byte("\xff\xfe"))
	f.Fuzz(func(t *testing.T, body []byte) {
		outcome := fhir.ParseOutcome(body)
		for i, code := range outcome.Codes {
			if code == "" || strings.ContainsAny(code, " \n") || slices.Contains(outcome.Codes[:i], code) {
				t.Errorf("codes %q", outcome.Codes)
			}
		}
		if words := outcome.Diagnostics.Reveal(); len(words) > 4096 || !utf8.ValidString(words) {
			t.Errorf("diagnostics of %d bytes", len(words))
		}
	})
}

package emr_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/emr"
)

const statement = `{"resourceType":"CapabilityStatement","fhirVersion":"4.0.1","software":{"name":"Sandbox"},"rest":[
	{"mode":"client","resource":[{"type":"Device","interaction":[{"code":"read"}]}]},
	{"mode":"server","resource":[
		{"type":"Patient","interaction":[{"code":"read"},{"code":"search-type"}]},
		{"type":"Observation","interaction":[{"code":"create"}]},
		{"type":"Basic"}]}]}`

func metadata(replies ...reply) *fakeEMR {
	return &fakeEMR{replies: map[string][]reply{"GET": replies}}
}

func TestMetadata(t *testing.T) {
	fake := metadata(reply{status: 200, body: statement})
	got, err := newClient(t, fake).Metadata(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got.FHIRVersion != "4.0.1" || got.Software != "Sandbox" || len(got.Resources) != 3 || !slices.Equal(got.Resources["Patient"], []string{"read", "search-type"}) {
		t.Errorf("%+v", got)
	}
	if !got.Supports("Patient", "read") || !got.Supports("Observation", "create") || got.Supports("Observation", "read") || got.Supports("Device", "read") {
		t.Errorf("%+v", got.Resources)
	}
	h := fake.requests("fhir")[0]
	if h.url != baseURL+"/metadata" || h.header.Get("Authorization") != "Bearer token-1" || h.header.Get("Accept") != "application/fhir+json" {
		t.Errorf("%s %v", h.url, h.header)
	}
}

// Conditional create is off for an EMR that declares no support, and on for one that declares nothing.
func TestConditionalCreateFollowsMetadata(t *testing.T) {
	says := func(what string) reply {
		return reply{status: 200, body: strings.Replace(statement, `{"type":"Observation",`, `{"type":"Observation",`+what, 1)}
	}
	fake := &fakeEMR{replies: map[string][]reply{
		"GET":  {says(`"conditionalCreate":false,`), says(`"conditionalCreate":true,`), says("")},
		"POST": {{status: 201}, {status: 201}, {status: 201}},
	}}
	client := newClient(t, fake)
	for i, want := range []bool{false, true, true} {
		if _, err := client.Metadata(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, e := deliver(t, client); e != nil {
			t.Fatal(e)
		}
		sent := fake.requests("fhir")
		if got := sent[len(sent)-1].header.Get("If-None-Exist") != ""; got != want {
			t.Errorf("delivery %d is conditional: %t", i, got)
		}
	}
}

func TestLongStatement(t *testing.T) {
	padded := strings.Replace(statement, `"rest"`, `"description":"`+strings.Repeat("x", 3<<20)+`","rest"`, 1)
	if _, err := newClient(t, metadata(reply{status: 200, body: padded})).Metadata(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestMetadataFailures(t *testing.T) {
	for _, test := range []struct {
		reply   reply
		message string
	}{
		{reply{status: 503}, "EMR unavailable (503)"},
		{reply{status: 404}, "EMR unavailable (404)"},
		{reply{status: 403}, "EMR authorization failed (403: insufficient scope)"},
		{reply{status: 200, body: "<html>"}, "EMR unavailable (200)"},
		{reply{status: 200, body: `{"resourceType":"Bundle"}`}, "EMR unavailable (200)"},
	} {
		fake := metadata(test.reply)
		_, err := newClient(t, fake, quickRetries, func(o *emr.Options) { o.Timeout = time.Second }).Metadata(t.Context())
		if e := asError(t, err); e.Message != test.message {
			t.Errorf("%d: %v", test.reply.status, e)
		}
		if got := len(fake.requests("fhir")); got != 1 {
			t.Errorf("%d: %d requests", test.reply.status, got)
		}
	}
}

package emr_test

import (
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/emr"
)

// An EMR that answers is reachable, even if it refuses the request; a foreign page, a 5xx and a refused token are not an answer.
func TestProbe(t *testing.T) {
	for name, test := range map[string]struct {
		reply reply
		there bool
	}{
		"says what it can do":    {reply{status: 200, body: statement}, true},
		"no CapabilityStatement": {reply{status: 404}, true},
		"says it not to us":      {reply{status: 403}, true},
		"is ill":                 {reply{status: 503}, false},
		"a foreign page":         {reply{status: 200, body: "<html>"}, false},
		"is busy":                {reply{status: 429}, false},
	} {
		fake := metadata(test.reply)
		err := newClient(t, fake, quickRetries).Probe(t.Context())
		if (err == nil) != test.there {
			t.Errorf("%s: %v", name, err)
		}
		if got := len(fake.requests("fhir")); got != 1 {
			t.Errorf("%s: %d requests", name, got)
		}
	}
	client, err := emr.New(emr.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	if e := asError(t, client.Probe(t.Context())); e.Code != emr.CodeNotConfigured {
		t.Error(e)
	}
}

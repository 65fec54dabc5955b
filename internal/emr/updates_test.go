package emr_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/emr"
)

const (
	copyID    = "obs-7"
	corrected = `{"resourceType":"Observation","id":"obs-7","status":"entered-in-error","identifier":[{"value":"urn:uuid:1"}]}`
	amended   = `{"resourceType":"Observation","id":"obs-7","meta":{"profile":["p"]},"status":"amended","valueQuantity":{"value":80.50}}`
)

// The EMR's responses to an update, the requests it received, and the result.
func TestUpdateObservation(t *testing.T) {
	const has = `{"resourceType":"Observation","id":"obs-7","meta":{"versionId":"2"},"status":"amended","valueQuantity":{"value":80.5},"issued":"x"}`
	const old = `{"resourceType":"Observation","id":"obs-7","status":"final","valueQuantity":{"value":80.5}}`
	for _, test := range []struct {
		name, resource string
		ambiguous      bool
		copy           int // the status of a read of the copy
		kept           string
		puts           []int // statuses of PUT, in order; 0 breaks the connection
		want           string
		there          bool
		code           string
		unsure         bool
	}{
		{name: "accepted", resource: corrected, puts: []int{200}, copy: 200, kept: old, want: "GET PUT"},
		{name: "accepted as new", resource: corrected, puts: []int{201}, copy: 200, kept: old, want: "GET PUT"},
		{name: "deleted there", resource: corrected, copy: 410, want: "GET", there: true},
		{name: "deleted there, and reading forbidden", resource: corrected, puts: []int{410}, copy: 403, want: "GET PUT", there: true},
		{name: "unknown there", resource: corrected, puts: []int{404}, copy: 404, want: "GET PUT", code: emr.CodeInvalidResource},
		{name: "not supported", resource: corrected, puts: []int{405}, copy: 200, kept: old, want: "GET PUT", code: emr.CodeUpdateRefused},
		{name: "not implemented", resource: corrected, puts: []int{501}, copy: 200, kept: old, want: "GET PUT", code: emr.CodeUpdateRefused},
		{name: "not valid", resource: corrected, puts: []int{422}, copy: 200, kept: old, want: "GET PUT", code: emr.CodeUpdateRefused},
		{name: "no scope", resource: corrected, puts: []int{403}, copy: 200, kept: old, want: "GET PUT", code: emr.CodeUpdateRefused},
		{name: "malformed request", resource: corrected, puts: []int{400}, copy: 200, kept: old, want: "GET PUT", code: emr.CodeInvalidResource},
		{name: "failure, and reading forbidden", resource: corrected, puts: []int{502, 200}, copy: 403, want: "GET PUT GET PUT"},
		{name: "lost, and reading forbidden", resource: corrected, puts: []int{0, 200}, copy: 403, want: "GET PUT GET PUT"},
		{name: "cannot be read", resource: corrected, copy: 503, want: "GET GET GET GET", code: emr.CodeUnavailable},
		{name: "cannot be read, ambiguous", resource: corrected, ambiguous: true, copy: 503, want: "GET GET GET GET", code: emr.CodeUnavailable, unsure: true},
		{name: "ambiguous, there", resource: amended, ambiguous: true, copy: 200, kept: has, want: "GET", there: true},
		{name: "ambiguous, not there", resource: amended, ambiguous: true, copy: 200, kept: old, puts: []int{200}, want: "GET PUT"},
		{name: "ambiguous, deleted", resource: amended, ambiguous: true, copy: 410, want: "GET", there: true},
		{name: "taken, and there", resource: corrected, puts: []int{202}, copy: 200, kept: `{"status":"entered-in-error"}`, want: "GET", there: true},
		{
			name: "taken, and not shown", resource: corrected, puts: []int{202}, copy: 200, kept: old,
			want: "GET PUT GET GET GET", code: emr.CodeOutcomeUnknown, unsure: true,
		},
		{
			name: "always failing", resource: corrected, puts: []int{503}, copy: 200, kept: old,
			want: "GET PUT GET PUT GET PUT GET PUT", code: emr.CodeUnavailable, unsure: true,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			fake := &fakeEMR{replies: map[string][]reply{"GET": {{status: test.copy, body: test.kept}}}}
			for _, status := range test.puts {
				answer := reply{status: status}
				if status == 0 {
					answer.err = errors.New("broken pipe")
				}
				fake.replies["PUT"] = append(fake.replies["PUT"], answer)
			}
			client := newClient(t, fake, func(o *emr.Options) { o.QuickRetryDelays = []time.Duration{1, 1, 1} })
			got, err := client.UpdateObservation(t.Context(), copyID, []byte(test.resource), requestID, test.ambiguous)
			var methods []string
			for _, h := range fake.requests("fhir") {
				methods = append(methods, h.method)
				if h.url != baseURL+"/Observation/"+copyID {
					t.Errorf("requested %s", h.url)
				}
			}
			if strings.Join(methods, " ") != test.want {
				t.Errorf("methods %v, want %s", methods, test.want)
			}
			failure, failed := errors.AsType[*emr.Error](err)
			switch {
			case failed != (test.code != ""), failed && (failure.Code != test.code || failure.Ambiguous != test.unsure):
				t.Errorf("%v, %+v", err, failure)
			case !failed && (got.AlreadyThere != test.there || got.EMRID != copyID):
				t.Errorf("%+v", got)
			}
		})
	}
}

// A page with a success status does not confirm an update.
func TestUpdateRejectsHTMLPage(t *testing.T) {
	client := newClient(t, &fakeEMR{replies: map[string][]reply{"PUT": {{status: 200, body: "<html>"}}}})
	_, err := client.UpdateObservation(t.Context(), copyID, []byte(corrected), requestID, false)
	if failure, ok := errors.AsType[*emr.Error](err); !ok || !failure.Ambiguous {
		t.Errorf("%v", err)
	}
}

package emr_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vigilhealth/vigil/internal/emr"
	"github.com/vigilhealth/vigil/internal/sandbox"
)

// observationJSON is a resource that the sandbox accepts, of a patient in its data.
const observationJSON = `{"resourceType":"Observation","status":"final","identifier":[{"system":"urn:ietf:rfc:3986","value":"urn:uuid:` + observationID + `"}],
	"code":{"coding":[{"system":"http://loinc.org","code":"29463-7"}]},"subject":{"reference":"Patient/pat-1001"},
	"effectiveDateTime":"2026-01-15T13:45:00Z","valueQuantity":{"value":80}}`

// sandboxTransport is the EMR sandbox without a network, so that it follows the clock of a synctest bubble.
type sandboxTransport struct {
	*sandbox.EMR
	failing  []int // the requests, counted from 0, that fail
	fail     func(next http.Handler, w http.ResponseWriter, r *http.Request)
	requests []string
	began    time.Time
}

type roundTripper func(*http.Request) (*http.Response, error)

func (rt roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return rt(r) }

func newSandboxTransport(t *testing.T, changes ...func(*sandbox.EMROptions)) *sandboxTransport {
	t.Helper()
	b := &sandboxTransport{began: time.Now()}
	o := sandbox.EMROptions{
		ClientID: clientID, BaseURL: "https://emr.test", JWKSURL: "https://keys.test/jwks", Now: time.Now,
		Client: &http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Body: io.NopCloser(bytes.NewReader(emr.JWKS(signingKey)))}, nil
		})},
	}
	for _, change := range changes {
		change(&o)
	}
	var err error
	if b.EMR, err = sandbox.NewEMR(o); err != nil {
		t.Fatal(err)
	}
	return b
}

// RoundTrip passes a request to the sandbox, or makes it fail.
func (st *sandboxTransport) RoundTrip(r *http.Request) (answer *http.Response, err error) {
	recorder := httptest.NewRecorder()
	defer func() {
		switch broken := recover(); broken {
		case nil:
			answer = recorder.Result()
		case http.ErrAbortHandler:
			err = io.ErrUnexpectedEOF
		default:
			panic(broken)
		}
	}()
	if r.URL.Path == "/oauth/token" {
		st.ServeHTTP(recorder, r)
		return nil, nil //nolint:nilnil // the deferred function fills them in
	}
	n := len(st.requests)
	st.requests = append(st.requests, r.Method)
	for _, failing := range st.failing {
		if failing == n {
			st.fail(st.EMR, recorder, r)
			return nil, nil //nolint:nilnil // as above
		}
	}
	st.ServeHTTP(recorder, r)
	return nil, nil //nolint:nilnil // as above
}

func (st *sandboxTransport) client(t *testing.T, changes ...func(*emr.Options)) *emr.Client {
	t.Helper()
	return newClient(t, st, append([]func(*emr.Options){quickRetries, func(o *emr.Options) {
		o.BaseURL, o.TokenURL, o.RatePerSecond = "https://emr.test/fhir/demo", "https://emr.test/oauth/token", 0
	}}, changes...)...)
}

// send delivers the one resource.
func (st *sandboxTransport) send(t *testing.T, c *emr.Client) (emr.Created, *emr.Error) {
	t.Helper()
	created, err := c.CreateObservation(t.Context(), observationID, []byte(observationJSON), requestID)
	return created, asError(t, err)
}

// faultModes are the ways a request can fail, with and without being processed.
var faultModes = map[string]func(next http.Handler, w http.ResponseWriter, r *http.Request){
	"500, not done": func(_ http.Handler, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) },
	"500, done": func(next http.Handler, w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(httptest.NewRecorder(), r)
		w.WriteHeader(500)
	},
	"broken off, not done": func(http.Handler, http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	"broken off, done": func(next http.Handler, _ http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	},
}

// Any two failing requests only cost seconds, since a search is retried like a delivery, and the EMR never stores a duplicate.
func TestTwoFailingRequests(t *testing.T) {
	for name, how := range faultModes {
		for _, conditional := range []bool{true, false} {
			for first := range 4 {
				for second := first + 1; second < 5; second++ {
					t.Run(fmt.Sprintf("%s at %d and %d, conditional %t", name, first, second, conditional), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							b := newSandboxTransport(t)
							b.failing, b.fail = []int{first, second}, how
							_, e := b.send(t, b.client(t, func(o *emr.Options) { o.ConditionalCreate = conditional }))
							if took := time.Since(b.began); e != nil || took > 7*time.Second {
								t.Errorf("%v after %s: %v", e, took, b.requests)
							}
							if s := b.Stats(); s.Observations != 1 || s.MostPerIdentifier != 1 {
								t.Errorf("stored %d, %d of one: %v", s.Observations, s.MostPerIdentifier, b.requests)
							}
						})
					})
				}
			}
		}
	}
}

func body(text string) io.ReadCloser { return io.NopCloser(strings.NewReader(text)) }

// discard drops a response that the client does not receive.
type discard struct{}

func (discard) Header() http.Header              { return http.Header{} }
func (discard) Write(answer []byte) (int, error) { return len(answer), nil }
func (discard) WriteHeader(int)                  {}

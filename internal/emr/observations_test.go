package emr_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vigilhealth/vigil/internal/emr"
)

// outcome returns an OperationOutcome with diagnostics that must never be shown.
func outcome(codes ...string) string {
	var issues []string
	for _, code := range codes {
		issues = append(issues, `{"severity":"error","code":"`+code+`","diagnostics":"Ada Lovelace, MRN 42"}`)
	}
	return `{"resourceType":"OperationOutcome","issue":[` + strings.Join(issues, ",") + `]}`
}

func TestCreateRequest(t *testing.T) {
	for _, conditional := range []bool{true, false} {
		fake := replyToPosts()
		client := newClient(t, fake, func(o *emr.Options) { o.BaseURL += "/"; o.ConditionalCreate = conditional })
		if _, e := deliver(t, client); e != nil {
			t.Fatal(e)
		}
		h := fake.requests("fhir")[0]
		if h.method != "POST" || h.url != baseURL+"/Observation" || h.body != observationResource {
			t.Errorf("%s %s %s", h.method, h.url, h.body)
		}
		want := http.Header{
			"Content-Type": {"application/fhir+json"}, "Accept": {"application/fhir+json"},
			"Authorization": {"Bearer token-1"}, "X-Request-Id": {requestID},
		}
		if conditional {
			want["If-None-Exist"] = []string{"identifier=urn:ietf:rfc:3986|urn:uuid:" + observationID}
		}
		if fmt.Sprint(h.header) != fmt.Sprint(want) {
			t.Errorf("header %v, want %v", h.header, want)
		}
	}
}

func TestCreated(t *testing.T) {
	fhirJSON := map[string]string{"Content-Type": "application/fhir+json"}
	at := func(location string) map[string]string { return map[string]string{"Location": location} }
	for _, test := range []struct {
		name  string
		reply reply
		id    string
		there bool
	}{
		{"location with version", reply{status: 201, header: at(baseURL + "/Observation/a-1.9/_history/2")}, "a-1.9", false},
		{"relative location", reply{status: 201, header: at("Observation/77")}, "77", false},
		{"content location", reply{status: 201, header: map[string]string{"Content-Location": "Observation/78"}}, "78", false},
		{"body", reply{status: 201, header: fhirJSON, body: `{"resourceType":"Observation","id":"b-2"}`}, "b-2", false},
		{"location before body", reply{status: 201, header: at("Observation/1"), body: `{"resourceType":"Observation","id":"2"}`}, "1", false},
		{"useless location, body", reply{status: 201, header: at("/Patient/1"), body: `{"resourceType":"Observation","id":"2"}`}, "2", false},
		{"no id", reply{status: 201}, "", false},
		{"malformed body", reply{status: 201, body: `{"resourceType":"Obs`}, "", false},
		{"id of another resource", reply{status: 201, body: `{"resourceType":"OperationOutcome","id":"2"}`}, "", false},
		{"id that is none", reply{status: 201, body: `{"resourceType":"Observation","id":"../x y"}`}, "", false},
		{"there already", reply{status: 200, header: at(baseURL + "/Observation/3")}, "3", true},
		{"there already, no id", reply{status: 200}, "", true},
		{"there already, outcome", reply{status: 200, body: outcome("informational")}, "", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			created, e := deliver(t, newClient(t, replyToPosts(test.reply)))
			if e != nil {
				t.Fatal(e)
			}
			if created.EMRID != test.id || created.AlreadyThere != test.there {
				t.Errorf("%+v", created)
			}
			if len(created.Attempts) != 1 || created.Attempts[0].Status != test.reply.status || created.Attempts[0].Code != "" {
				t.Errorf("attempts %+v", created.Attempts)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	for _, test := range []struct {
		name          string
		reply         reply
		code, message string
		ambiguous     bool
	}{
		{"401", reply{status: 401}, emr.CodeAuth, "EMR authorization failed (401)", false},
		{"403", reply{status: 403, body: outcome("forbidden")}, emr.CodeAuth, "EMR authorization failed (403: insufficient scope)", false},
		{"403 beats not-found", reply{status: 403, body: outcome("not-found")}, emr.CodeAuth, "EMR authorization failed (403: insufficient scope)", false},
		{"404", reply{status: 404}, emr.CodePatientNotFound, "Patient not found in EMR", false},
		{"400 not-found", reply{status: 400, body: outcome("invalid", "not-found")}, emr.CodePatientNotFound, "Patient not found in EMR", false},
		{"422 not-found", reply{status: 422, body: outcome("not-found")}, emr.CodePatientNotFound, "Patient not found in EMR", false},
		{"422", reply{status: 422, body: outcome("value", "required", "value")}, emr.CodeInvalidResource, "Invalid FHIR resource: value, required", false},
		{"422 own words as code", reply{status: 422, body: outcome("Ada Lovelace")}, emr.CodeInvalidResource, "Invalid FHIR resource (422)", false},
		{"422 no outcome", reply{status: 422, body: "<p>no</p>"}, emr.CodeInvalidResource, "Invalid FHIR resource (422)", false},
		{"400", reply{status: 400, body: outcome("structure")}, emr.CodeInvalidResource, "Invalid FHIR resource: structure", false},
		{"409", reply{status: 409, body: outcome("conflict")}, emr.CodeInvalidResource, "Invalid FHIR resource: conflict", false},
		{"412", reply{status: 412}, emr.CodeInvalidResource, "Invalid FHIR resource: multiple-matches", false},
		{"408", reply{status: 408}, emr.CodeUnavailable, "EMR unavailable (408)", false},
		{"429", reply{status: 429}, emr.CodeRateLimited, "EMR rate limit exceeded", false},
		{"500", reply{status: 500, body: outcome("exception")}, emr.CodeUnavailable, "EMR unavailable (500)", true},
		{"503", reply{status: 503, body: outcome("not-found")}, emr.CodeUnavailable, "EMR unavailable (503)", true},
		{"302", reply{status: 302, header: map[string]string{"Location": "https://elsewhere.test/"}}, emr.CodeUnavailable, "EMR unavailable (302)", false},
		{"202", reply{status: 202}, emr.CodeOutcomeUnknown, "EMR took the observation and does not show it (202)", true},
		{"200 proxy page", reply{status: 200, body: "<html>sign in</html>"}, emr.CodeUnavailable, "EMR unavailable (200)", true},
		{"no connection", reply{err: errors.New("reset by Ada Lovelace's peer")}, emr.CodeUnavailable, "EMR unavailable (no connection)", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			fake := replyToPosts(test.reply)
			_, e := deliver(t, newClient(t, fake))
			if e == nil {
				t.Fatal("no error")
			}
			if e.Code != test.code || e.Message != test.message || e.Ambiguous != test.ambiguous || e.Status != test.reply.status {
				t.Errorf("code %s, message %q, ambiguous %v, status %d", e.Code, e.Message, e.Ambiguous, e.Status)
			}
			sends := 1
			if test.reply.status == 401 {
				sends = 2
			}
			if got := len(fake.requests("fhir")); got != sends || len(e.Attempts) != sends {
				t.Errorf("%d sends, %d attempts", got, len(e.Attempts))
			}
			if last := e.Attempts[len(e.Attempts)-1]; last.Code != test.code || last.Status != test.reply.status || last.RequestID != requestID {
				t.Errorf("attempt %+v", last)
			}
		})
	}
}

func TestDiagnosticsStayHidden(t *testing.T) {
	_, e := deliver(t, newClient(t, replyToPosts(reply{status: 422, body: outcome("value")})))
	if !slices.Equal(e.Issues, []string{"value"}) || e.Diagnostics.Reveal() != "Ada Lovelace, MRN 42" {
		t.Errorf("issues %v, diagnostics %q", e.Issues, e.Diagnostics.Reveal())
	}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("failed", "err", e, "diagnostics", e.Diagnostics)
	if printed := fmt.Sprintf("%v %+v %#v %s", e, e, *e, e) + log.String(); strings.Contains(printed, "Ada") {
		t.Errorf("printed: %s", printed)
	}
	if _, err := json.Marshal(e); err == nil {
		t.Error("the error was encoded")
	}
}

func TestQuickRetries(t *testing.T) {
	soon, later := map[string]string{"Retry-After": "3"}, map[string]string{"Retry-After": "11"}
	for _, test := range []struct {
		name    string
		replies []reply
		waits   []time.Duration // between sends
		code    string          // "" for a success
	}{
		{"503 to the end", []reply{{status: 503}}, []time.Duration{1e9, 2e9, 4e9}, emr.CodeUnavailable},
		{"503 then created", []reply{{status: 503}, {status: 500}, {status: 201}}, []time.Duration{1e9, 2e9}, ""},
		{"connection then created", []reply{{err: errors.New("reset")}, {status: 201}}, []time.Duration{1e9}, ""},
		{"timeout then created", []reply{{hang: true}, {status: 201}}, []time.Duration{31e9}, ""},
		{"429 soon", []reply{{status: 429, header: soon}, {status: 201}}, []time.Duration{3e9}, ""},
		{"429 now", []reply{{status: 429, header: map[string]string{"Retry-After": "0"}}, {status: 201}}, []time.Duration{1e9}, ""},
		{"429 later", []reply{{status: 429, header: later}, {status: 201}}, nil, emr.CodeRateLimited},
		{"429 some time", []reply{{status: 429}, {status: 201}}, nil, emr.CodeRateLimited},
		{"422", []reply{{status: 422}, {status: 201}}, nil, emr.CodeInvalidResource},
		{"404", []reply{{status: 404}, {status: 201}}, nil, emr.CodePatientNotFound},
		{"403", []reply{{status: 403}, {status: 201}}, nil, emr.CodeAuth},
		{"503 then 422", []reply{{status: 503}, {status: 422}}, []time.Duration{1e9}, emr.CodeInvalidResource},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fake := replyToPosts(test.replies...)
				created, e := deliver(t, newClient(t, fake, quickRetries))
				attempts, code := created.Attempts, ""
				if e != nil {
					attempts, code = e.Attempts, e.Code
				}
				if code != test.code {
					t.Errorf("code %q", code)
				}
				var waits []time.Duration
				sends := fake.requests("sends")
				for i := 1; i < len(sends); i++ {
					waits = append(waits, sends[i].at.Sub(sends[i-1].at))
					if got := attempts[i].Started - attempts[i-1].Started; attempts[i-1].Took > got {
						t.Errorf("attempts %+v", attempts)
					}
				}
				if !slices.Equal(waits, test.waits) || len(attempts) != len(sends) {
					t.Errorf("waits %v, %d attempts", waits, len(attempts))
				}
				if len(fake.requests("token")) != 1 {
					t.Error("more than one token was fetched")
				}
			})
		})
	}
}

func TestAmbiguityPersists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, e := deliver(t, newClient(t, replyToPosts(reply{status: 503}, reply{status: 422, body: outcome("value")}), quickRetries))
		if e.Code != emr.CodeInvalidResource || !e.Ambiguous {
			t.Errorf("%s, ambiguous %v", e.Code, e.Ambiguous)
		}
	})
}

func TestJitterSpreadsByAFifth(t *testing.T) {
	for jitter, want := range map[float64][]time.Duration{
		0: {800e6, 1600e6, 3200e6}, 0.5: {1e9, 2e9, 4e9}, 0.99: {1196e6, 2392e6, 4784e6},
	} {
		synctest.Test(t, func(t *testing.T) {
			fake := replyToPosts(reply{status: 503})
			_, _ = deliver(t, newClient(t, fake, quickRetries, func(o *emr.Options) { o.Jitter = func() float64 { return jitter } }))
			for i, sends := 1, fake.requests("sends"); i < len(sends); i++ {
				if got := sends[i].at.Sub(sends[i-1].at); (got - want[i-1]).Abs() > time.Microsecond {
					t.Errorf("jitter %v: wait %d is %v", jitter, i, got)
				}
			}
		})
	}
}

func TestTimeoutFollowsTheSetting(t *testing.T) {
	for timeout, want := range map[time.Duration]string{
		30 * time.Second: "Connection timeout after 30s", 1500 * time.Millisecond: "Connection timeout after 1.5s", 0: "Connection timeout after 30s",
	} {
		synctest.Test(t, func(t *testing.T) {
			_, e := deliver(t, newClient(t, replyToPosts(reply{hang: true}), func(o *emr.Options) { o.Timeout = timeout }))
			if e.Code != emr.CodeTimeout || e.Message != want || !e.Ambiguous || e.Status != 0 {
				t.Errorf("%s %q %v", e.Code, e.Message, e.Ambiguous)
			}
			if took := e.Attempts[0].Took; timeout > 0 && took != timeout {
				t.Errorf("took %v", took)
			}
		})
	}
}

func TestCallerCancels(t *testing.T) {
	for name, replies := range map[string][]reply{"while sending": {{hang: true}}, "between sends": {{status: 503}}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fake := replyToPosts(replies...)
				client := newClient(t, fake, quickRetries)
				ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
				defer cancel()
				_, err := client.CreateObservation(ctx, observationID, []byte(observationResource), requestID)
				e := asError(t, err)
				if !errors.Is(err, context.DeadlineExceeded) || !e.Ambiguous || len(e.Attempts) != 1 || len(fake.requests("fhir")) != 1 {
					t.Errorf("%v, ambiguous %v, attempts %+v", err, e.Ambiguous, e.Attempts)
				}
			})
		})
	}
}

func bundle(entries ...string) string {
	for i, entry := range entries {
		entries[i] = `{"resource":` + entry + `}`
	}
	return `{"resourceType":"Bundle","type":"searchset","entry":[` + strings.Join(entries, ",") + `]}`
}

func observation(id, identifier string) string {
	return `{"resourceType":"Observation","id":"` + id + `","identifier":[{"system":"urn:x","value":"1"},{"system":"urn:ietf:rfc:3986","value":"` + identifier + `"}]}`
}

// hint is an OperationOutcome of a search that succeeded.
func hint(text string) string {
	return `{"resourceType":"OperationOutcome","issue":[{"severity":"warning","code":"processing","details":{"text":"` + text + `"}}]}`
}

func TestFindObservation(t *testing.T) {
	ours := "urn:uuid:" + observationID
	for _, test := range []struct {
		name  string
		reply reply
		id    string
		code  string
	}{
		{"found", reply{status: 200, body: bundle(observation("e-1", ours))}, "e-1", ""},
		{"case of the UUID", reply{status: 200, body: bundle(observation("e-1", strings.ToUpper(ours)))}, "e-1", ""},
		{"none", reply{status: 200, body: `{"resourceType":"Bundle","total":0}`}, "", ""},
		{"parameter ignored", reply{status: 200, body: bundle(observation("e-9", "urn:uuid:other"), observation("e-1", ours))}, "e-1", ""},
		{"only others", reply{status: 200, body: bundle(observation("e-9", "urn:uuid:other"))}, "", emr.CodeOutcomeUnknown},
		{"a hint", reply{status: 200, body: bundle(hint("No results."))}, "", ""},
		{"parameter unknown", reply{status: 200, body: bundle(hint("Unknown parameter: identifier"))}, "", emr.CodeOutcomeUnknown},
		{"an error among them", reply{status: 200, body: bundle(outcome("processing"))}, "", emr.CodeOutcomeUnknown},
		{"not a bundle", reply{status: 200, body: `{"resourceType":"Observation","id":"e-1"}`}, "", emr.CodeUnavailable},
		{"not JSON", reply{status: 200, body: `<html>`}, "", emr.CodeUnavailable},
		{"404", reply{status: 404}, "", emr.CodeOutcomeUnknown},
		{"400", reply{status: 400, body: outcome("not-supported")}, "", emr.CodeOutcomeUnknown},
		{"403", reply{status: 403}, "", emr.CodeOutcomeUnknown},
		{"501", reply{status: 501}, "", emr.CodeOutcomeUnknown},
		{"401", reply{status: 401}, "", emr.CodeAuth},
		{"503", reply{status: 503}, "", emr.CodeUnavailable},
	} {
		t.Run(test.name, func(t *testing.T) {
			fake := &fakeEMR{replies: map[string][]reply{"GET": {test.reply}}}
			now := time.Now()
			client := newClient(t, fake, func(o *emr.Options) { o.ConditionalCreate, o.Now = false, func() time.Time { return now } })
			now = now.Add(time.Minute) // no request of an earlier process can be running
			id, found, err := client.FindObservation(t.Context(), observationID, []byte(observationResource))
			e := asError(t, err)
			if id != test.id || found != (test.id != "") || (e == nil) != (test.code == "") {
				t.Fatalf("id %q, found %v, err %v", id, found, err)
			}
			if e != nil && (e.Code != test.code || e.NeedsPerson != (test.code == emr.CodeOutcomeUnknown)) {
				t.Errorf("code %s, needs a person %t", e.Code, e.NeedsPerson)
			}
			h := fake.requests("fhir")[0]
			sent, _ := url.Parse(h.url)
			if sent.Path != "/fhir/r4/Observation" || sent.Query().Get("identifier") != "urn:ietf:rfc:3986|"+ours || len(sent.Query()) != 1 {
				t.Errorf("url %s", h.url)
			}
			if h.header.Get("X-Request-ID") == "" || h.header.Get("Content-Type") != "" {
				t.Errorf("header %v", h.header)
			}
		})
	}
}

// With and without conditional create, a search precedes a retry after an unknown outcome. Where searches are forbidden, conditional create
// alone must prevent the duplicate.
func TestSearchBeforeResend(t *testing.T) {
	found := reply{status: 200, body: bundle(observation("e-1", "urn:uuid:"+observationID))}
	for _, test := range []struct {
		name    string
		post    []reply
		get     reply
		created string
		code    string
		methods string
		// conditional is what is sent with conditional create, if different.
		conditional string
	}{
		{"it had arrived", []reply{{hang: true}}, found, "e-1", "", "POST GET", ""},
		{
			"it had not",
			[]reply{{status: 503}, {status: 201, header: map[string]string{"Location": "Observation/2"}}},
			reply{status: 200, body: bundle()},
			"2", "", "POST GET POST", "",
		},
		{"refused, search forbidden", []reply{{status: 503}}, reply{status: 403}, "", emr.CodeUnavailable, "POST GET POST GET POST GET POST", ""},
		{"gateway error, search forbidden", []reply{{status: 502}}, reply{status: 403}, "", emr.CodeOutcomeUnknown, "POST GET", "POST GET POST GET POST GET POST"},
		{"520 of a gateway, search forbidden", []reply{{status: 520}}, reply{status: 403}, "", emr.CodeOutcomeUnknown, "POST GET", "POST GET POST GET POST GET POST"},
		{"524 of a gateway, search forbidden", []reply{{status: 524}}, reply{status: 403}, "", emr.CodeOutcomeUnknown, "POST GET", "POST GET POST GET POST GET POST"},
		{"503 with a page, search forbidden", []reply{{status: 503, body: "<html>Service Unavailable</html>"}}, reply{status: 403}, "", emr.CodeOutcomeUnknown, "POST GET", "POST GET POST GET POST GET POST"},
		{"500 in another form, search forbidden", []reply{{status: 500, body: `{"message":"Internal server error"}`}}, reply{status: 403}, "", emr.CodeOutcomeUnknown, "POST GET", "POST GET POST GET POST GET POST"},
		{"503 with an outcome, search forbidden", []reply{{status: 503, body: outcome("transient")}}, reply{status: 403}, "", emr.CodeUnavailable, "POST GET POST GET POST GET POST", ""},
		{
			"it cannot have arrived",
			[]reply{{status: 429, header: map[string]string{"Retry-After": "1"}}, {status: 201, header: map[string]string{"Location": "Observation/3"}}},
			reply{status: 500},
			"3", "", "POST POST", "",
		},
	} {
		for _, conditional := range []bool{false, true} {
			want := test.methods
			if conditional && test.conditional != "" {
				want = test.conditional
			}
			synctest.Test(t, func(t *testing.T) {
				fake := &fakeEMR{replies: map[string][]reply{"POST": test.post, "GET": {test.get}}}
				created, e := deliver(t, newClient(t, fake, quickRetries, func(o *emr.Options) { o.ConditionalCreate = conditional }))
				code := ""
				if e != nil {
					code = e.Code
				}
				var methods []string
				for _, h := range fake.requests("fhir") {
					methods = append(methods, h.method)
				}
				if conditional && code == "" && test.code == emr.CodeOutcomeUnknown {
					t.Errorf("%s: delivered", test.name)
				}
				if code == emr.CodeUnavailable && conditional && test.conditional != "" {
					code = test.code // the EMR prevents the duplicate: it is sent again, and fails as the first time
				}
				if created.EMRID != test.created || code != test.code || strings.Join(methods, " ") != want {
					t.Errorf("%s, conditional %t: %+v, code %q, %v", test.name, conditional, created, code, methods)
				}
			})
		}
	}
}

// server is a real listener that issues tokens and passes other requests to fhir.
func server(t *testing.T, fhir http.HandlerFunc) (*httptest.Server, func(*emr.Options)) {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(granted(1)))
	})
	mux.HandleFunc("/fhir/", fhir)
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s, func(o *emr.Options) { o.BaseURL, o.TokenURL, o.Transport = s.URL+"/fhir", s.URL+"/token", nil }
}

func TestOverTheWire(t *testing.T) {
	_, there := server(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "Observation/"+r.Header.Get("X-Request-ID"))
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(bytes.Repeat([]byte("x"), 3<<20)) // more than the client reads
	})
	created, e := deliver(t, newClient(t, nil, there))
	if e != nil || created.EMRID != requestID {
		t.Errorf("%+v %v", created, e)
	}
}

func TestRedirectIsNotFollowed(t *testing.T) {
	var followed atomic.Int32
	_, there := server(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/fhir/Observation" {
			followed.Add(1)
		}
		http.Redirect(w, r, "/fhir/elsewhere", http.StatusTemporaryRedirect)
	})
	_, e := deliver(t, newClient(t, nil, there))
	if e.Message != "EMR unavailable (307)" || followed.Load() != 0 {
		t.Errorf("%v, followed %d", e, followed.Load())
	}
}

func TestConnectionEndsAfterSending(t *testing.T) {
	_, there := server(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_ = conn.Close()
		}
	})
	_, e := deliver(t, newClient(t, nil, there))
	if e.Code != emr.CodeUnavailable || !e.Ambiguous {
		t.Errorf("%v, ambiguous %v", e, e.Ambiguous)
	}
}

func TestConnectionRefused(t *testing.T) {
	s, there := server(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	_, e := deliver(t, newClient(t, nil, there, func(o *emr.Options) { o.BaseURL = "http://127.0.0.1:1/fhir" }))
	if e.Code != emr.CodeUnavailable || e.Message != "EMR unavailable (no connection)" || e.Ambiguous {
		t.Errorf("%v, ambiguous %v", e, e.Ambiguous)
	}
	if strings.Contains(e.Error(), "/fhir") || strings.Contains(e.Error(), s.URL) {
		t.Errorf("the address is repeated: %v", e)
	}
}

func TestUntrustedCertificateIsRefused(t *testing.T) {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.StartTLS()
	t.Cleanup(s.Close)
	_, there := server(t, http.NotFound)
	_, e := deliver(t, newClient(t, nil, there, func(o *emr.Options) { o.BaseURL = s.URL }))
	if e.Code != emr.CodeUnavailable || e.Ambiguous || !strings.Contains(e.Error(), "certificate") {
		t.Errorf("%v, ambiguous %v", e, e.Ambiguous)
	}
}

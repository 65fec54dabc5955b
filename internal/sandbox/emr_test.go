package sandbox

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

var signingKey, unknownKey = sync.OnceValue(newKey), sync.OnceValue(newKey)

func newKey() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
}

const emrClient = "vigil-client"

// emrWorld is an EMR sandbox on a socket, its clock, and the service's JWKS.
type emrWorld struct {
	t       *testing.T
	emr     *EMR
	url     string
	now     atomic.Pointer[time.Time]
	kids    atomic.Pointer[[]string]
	fetches atomic.Int64
	jti     atomic.Int64
	close   func()
}

func newWorld(t *testing.T, change ...func(*EMROptions)) *emrWorld {
	t.Helper()
	w := &emrWorld{t: t}
	w.now.Store(new(time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)))
	w.kids.Store(&[]string{"key-1"})
	jwks := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		w.fetches.Add(1)
		var set jose.JSONWebKeySet
		for _, kid := range *w.kids.Load() {
			set.Keys = append(set.Keys, jose.JSONWebKey{Key: &signingKey().PublicKey, KeyID: kid, Algorithm: "RS384", Use: "sig"})
		}
		writeJSON(rw, 200, "application/json", set)
	}))
	t.Cleanup(jwks.Close)
	options := EMROptions{ClientID: emrClient, JWKSURL: jwks.URL, Now: func() time.Time { return *w.now.Load() }}
	for _, apply := range change {
		apply(&options)
	}
	emr, err := NewEMR(options)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(emr)
	t.Cleanup(server.Close)
	t.Cleanup(func() {
		if err := emr.Close(); err != nil {
			t.Error(err)
		}
	})
	w.emr, w.url, w.close = emr, server.URL, server.Close
	return w
}

func (w *emrWorld) wait(d time.Duration) { w.now.Store(new(w.now.Load().Add(d))) }

func (w *emrWorld) claims() map[string]any {
	now := *w.now.Load()
	return map[string]any{
		"iss": emrClient, "sub": emrClient, "aud": w.url + "/oauth/token",
		"iat": now.Unix(), "exp": now.Add(240 * time.Second).Unix(), "jti": fmt.Sprint("jti-", w.jti.Add(1)),
	}
}

func (w *emrWorld) sign(key *rsa.PrivateKey, alg jose.SignatureAlgorithm, kid string, claims map[string]any) string {
	w.t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: jose.JSONWebKey{Key: key, KeyID: kid}},
		(&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		w.t.Fatal(err)
	}
	text, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		w.t.Fatal(err)
	}
	return text
}

func (w *emrWorld) backendForm(assertion string) url.Values {
	return url.Values{
		"grant_type":            {"client_credentials"},
		"scope":                 {"system/Patient.read system/Observation.write"},
		"client_assertion_type": {assertionType},
		"client_assertion":      {assertion},
	}
}

// requestToken posts a form to the token endpoint.
func (w *emrWorld) requestToken(form url.Values) (int, map[string]any) {
	w.t.Helper()
	answer, err := http.PostForm(w.url+"/oauth/token", form)
	if err != nil {
		w.t.Fatal(err)
	}
	return answer.StatusCode, decode(w.t, answer)
}

func (w *emrWorld) token() string {
	w.t.Helper()
	status, body := w.requestToken(w.backendForm(w.sign(signingKey(), jose.RS384, "key-1", w.claims())))
	if status != 200 {
		w.t.Fatalf("token: %d %v", status, body)
	}
	return body["access_token"].(string)
}

func decode(t *testing.T, answer *http.Response) map[string]any {
	t.Helper()
	defer answer.Body.Close()
	var body map[string]any
	if err := json.NewDecoder(answer.Body).Decode(&body); err != nil && err != io.EOF {
		t.Fatal(err)
	}
	return body
}

// call makes a FHIR request under the practice's base address.
func (w *emrWorld) call(method, path, token, body string, headers ...string) (*http.Response, map[string]any, error) {
	w.t.Helper()
	request, err := http.NewRequestWithContext(w.t.Context(), method, w.url+"/fhir/demo/"+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	request.Header.Set("Content-Type", fhirJSON)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, nil, err
	}
	return answer, decode(w.t, answer), nil
}

func (w *emrWorld) mustCall(method, path, token, body string, headers ...string) (*http.Response, map[string]any) {
	w.t.Helper()
	answer, fields, err := w.call(method, path, token, body, headers...)
	if err != nil {
		w.t.Fatal(err)
	}
	return answer, fields
}

const observationID = "0190a6f2-6f1e-7c3a-9d55-1f0a8f1e2b3c"

func bloodPressure(id string) string {
	return `{"resourceType":"Observation","status":"final",
"identifier":[{"system":"urn:ietf:rfc:3986","value":"urn:uuid:` + id + `"}],
"code":{"coding":[{"system":"http://loinc.org","code":"85354-9"}]},
"subject":{"reference":"Patient/pat-1001"},"effectiveDateTime":"2026-11-20T08:00:00Z",
"component":[{"code":{"coding":[{"system":"http://loinc.org","code":"8480-6"}]},"valueQuantity":{"value":128.50}}]}`
}

func condition(id string) []string {
	return []string{"If-None-Exist", "identifier=urn:ietf:rfc:3986|urn:uuid:" + id}
}

func issueOf(body map[string]any) string {
	issues, _ := body["issue"].([]any)
	if body["resourceType"] != "OperationOutcome" || len(issues) == 0 {
		return ""
	}
	return issues[0].(map[string]any)["code"].(string)
}

func TestPatientSearch(t *testing.T) {
	w := newWorld(t)
	token := w.token()
	for query, want := range map[string][]string{
		"name=quint":                            {"pat-1001"},
		"name=james+lind":                       nil, // of one part
		"name=james&name=lind":                  {"pat-1002"},
		"given=EVER&family=lind":                {"pat-1002"},
		"given=lind":                            nil,
		"name=uintanar":                         nil, // a string search matches prefixes
		"birthdate=1940-02-29":                  {"pat-1008"},
		"birthdate=eq1940":                      {"pat-1008"},
		"name=Walter&birthdate=1940-03-01":      nil,
		"identifier=E1003":                      {"pat-1003"},
		"identifier=" + emrMRNSystem + "|E1003": {"pat-1003"},
		"identifier=urn:other|E1003":            nil,
		"_count=2":                              {"pat-1001", "pat-1002"},
	} {
		answer, body := w.mustCall("GET", "Patient?"+strings.ReplaceAll(query, "|", "%7C"), token, "")
		var got []string
		entries, _ := body["entry"].([]any)
		for _, entry := range entries {
			got = append(got, entry.(map[string]any)["resource"].(map[string]any)["id"].(string))
		}
		if answer.StatusCode != 200 || !slices.Equal(got, want) {
			t.Errorf("%s: %d %v, want %v", query, answer.StatusCode, got, want)
		}
		if body["type"] != "searchset" || body["total"] == nil {
			t.Errorf("%s: not a searchset: %v", query, body)
		}
	}
	for _, query := range []string{"birthdate=29.02.1940", "_count=many"} {
		if answer, body := w.mustCall("GET", "Patient?"+query, token, ""); answer.StatusCode != 400 || issueOf(body) != "value" {
			t.Errorf("%s: %d %v", query, answer.StatusCode, body)
		}
	}
	if answer, body := w.mustCall("GET", "Patient/none", token, ""); answer.StatusCode != 404 || issueOf(body) != "not-found" {
		t.Errorf("unknown patient: %d %v", answer.StatusCode, body)
	}
	if _, body := w.mustCall("GET", "Patient/pat-1009", token, ""); body["gender"] != nil || body["birthDate"] != "1960-06-06" {
		t.Errorf("patient without gender: %v", body)
	}
}

func TestConditionalCreateStoresOnce(t *testing.T) {
	var callbacks atomic.Int64
	w := newWorld(t, func(o *EMROptions) { o.OnObservation = func(StoredObservation) { callbacks.Add(1) } })
	token := w.token()
	const posts = 40
	var statuses [posts]int
	var locations [posts]string
	var group sync.WaitGroup
	for i := range posts {
		group.Go(func() {
			answer, _, err := w.call("POST", "Observation", token, bloodPressure(observationID), condition(observationID)...)
			if err == nil {
				statuses[i], locations[i] = answer.StatusCode, answer.Header.Get("Location")
			}
		})
	}
	group.Wait()
	created := 0
	for i := range posts {
		if statuses[i] == 201 {
			created++
		} else if statuses[i] != 200 {
			t.Errorf("post %d answered %d", i, statuses[i])
		}
		if locations[i] != w.url+"/fhir/demo/Observation/obs-000001/_history/1" {
			t.Errorf("post %d: Location %s", i, locations[i])
		}
	}
	stored := w.emr.Observations()
	stats := w.emr.Stats()
	if created != 1 || callbacks.Load() != 1 || len(stored) != 1 || stored[0].Creates != 1 || stats.Repeated != posts-1 || stats.MostPerIdentifier != 1 {
		t.Errorf("created %d, callbacks %d, stored %+v, stats %+v", created, callbacks.Load(), stored, stats)
	}
	if got := stored[0]; got.Identifier != "urn:ietf:rfc:3986|urn:uuid:"+observationID || got.Subject != "pat-1001" || got.Code != "85354-9" {
		t.Errorf("stored %+v", got)
	}
}

func TestUnconditionalCreates(t *testing.T) {
	w := newWorld(t)
	token := w.token()
	for range 2 {
		if answer, _ := w.mustCall("POST", "Observation", token, bloodPressure(observationID)); answer.StatusCode != 201 {
			t.Fatalf("create: %d", answer.StatusCode)
		}
	}
	if stats := w.emr.Stats(); stats.MostPerIdentifier != 2 {
		t.Errorf("a double send goes unnoticed: %+v", stats)
	}
	answer, body := w.mustCall("POST", "Observation", token, bloodPressure(observationID), condition(observationID)...)
	if answer.StatusCode != 412 || issueOf(body) != "multiple-matches" {
		t.Errorf("two matches: %d %v", answer.StatusCode, body)
	}
	answer, body = w.mustCall("GET", "Observation?identifier=urn:uuid:"+observationID, token, "")
	if answer.StatusCode != 200 || body["total"] != 2.0 {
		t.Errorf("search: %d %v", answer.StatusCode, body)
	}
	answer, body = w.mustCall("GET", "Observation/obs-000002/_history/1", token, "")
	if answer.StatusCode != 200 || body["id"] != "obs-000002" || body["meta"].(map[string]any)["versionId"] != "1" {
		t.Errorf("read: %d %v", answer.StatusCode, body)
	}
	if raw := string(w.emr.Observations()[0].Resource); !strings.Contains(raw, "128.50") {
		t.Errorf("the decimal lost its precision: %s", raw)
	}
}

func TestObservationChecks(t *testing.T) {
	for name, c := range map[string]struct {
		old, new string
		status   int
		issue    string
	}{
		"not JSON":         {`{"resourceType"`, `{`, 400, "structure"},
		"another resource": {`"Observation","status"`, `"Patient","status"`, 400, "structure"},
		"empty list":       {`"status":"final"`, `"status":"final","note":[]`, 400, "structure"},
		"null":             {`"status":"final"`, `"status":"final","note":null`, 400, "structure"},
		"no status":        {`"status":"final",`, ``, 422, "code-invalid"},
		"wrong status":     {`"final"`, `"done"`, 422, "code-invalid"},
		"no code system":   {`{"system":"http://loinc.org","code":"85354-9"}`, `{"code":"85354-9"}`, 422, "required"},
		"no subject":       {`"reference":"Patient/pat-1001"`, `"display":"x"`, 422, "required"},
		"unknown subject":  {`Patient/pat-1001`, `Patient/pat-9`, 404, "not-found"},
		"no time":          {`"effectiveDateTime":"2026-11-20T08:00:00Z",`, ``, 422, "value"},
		"no zone":          {`08:00:00Z`, `08:00:00`, 422, "value"},
		"no value":         {`"component"`, `"extension"`, 422, "required"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			body := strings.Replace(bloodPressure(observationID), c.old, c.new, 1)
			answer, outcome := w.mustCall("POST", "Observation", w.token(), body)
			if answer.StatusCode != c.status || issueOf(outcome) != c.issue || w.emr.Stats().Observations != 0 {
				t.Errorf("%d %v, want %d %s", answer.StatusCode, outcome, c.status, c.issue)
			}
		})
	}
	w := newWorld(t)
	token := w.token()
	if answer, _ := w.mustCall("POST", "Observation", token, bloodPressure(observationID), "Content-Type", "text/plain"); answer.StatusCode != 415 {
		t.Errorf("text/plain: %d", answer.StatusCode)
	}
	if answer, _ := w.mustCall("POST", "Observation", token, bloodPressure(observationID), "If-None-Exist", "patient=1"); answer.StatusCode != 412 {
		t.Errorf("unsupported condition: %d", answer.StatusCode)
	}
	if answer, body := w.mustCall("GET", "Device", token, ""); answer.StatusCode != 404 || issueOf(body) != "not-supported" {
		t.Errorf("Device: %d %v", answer.StatusCode, body)
	}
}

func TestMetadata(t *testing.T) {
	w := newWorld(t)
	answer, body := w.mustCall("GET", "metadata", "", "")
	if answer.StatusCode != 200 || body["fhirVersion"] != "4.0.1" || body["resourceType"] != "CapabilityStatement" {
		t.Fatalf("%d %v", answer.StatusCode, body)
	}
	rest := body["rest"].([]any)[0].(map[string]any)
	if rest["security"] == nil || len(rest["resource"].([]any)) != 3 {
		t.Errorf("rest %v", rest)
	}
	_, smart := w.mustCall("GET", ".well-known/smart-configuration", "", "")
	if smart["token_endpoint"] != w.url+"/oauth/token" {
		t.Errorf("smart configuration %v", smart)
	}
}

func TestFaults(t *testing.T) {
	w := newWorld(t)
	token := w.token()
	post := func() (*http.Response, map[string]any, error) {
		return w.call("POST", "Observation", token, bloodPressure(observationID), condition(observationID)...)
	}

	w.emr.Fail(Fault{Match: "Observation", Status: 503, Times: 2, RetryAfter: 5})
	for range 2 {
		answer, body, err := post()
		if err != nil || answer.StatusCode != 503 || answer.Header.Get("Retry-After") != "5" || issueOf(body) != "transient" {
			t.Fatalf("fault: %v %v", body, err)
		}
	}

	w.emr.Fail(Fault{Match: "POST /fhir", Drop: DropBefore, Times: 1})
	if _, _, err := post(); err == nil || w.emr.Stats().Observations != 0 {
		t.Errorf("dropped before: err %v, %d stored", err, w.emr.Stats().Observations)
	}
	w.emr.Fail(Fault{Match: "POST /fhir", Drop: DropAfter, Times: 1})
	if _, _, err := post(); err == nil || w.emr.Stats().Observations != 1 {
		t.Errorf("dropped after: err %v, %d stored", err, w.emr.Stats().Observations)
	}
	if answer, _, err := post(); err != nil || answer.StatusCode != 200 || w.emr.Stats().Observations != 1 {
		t.Errorf("the repeat was not met with what was stored: %v", err)
	}

	w.emr.Fail(Fault{Match: "Patient", Token: TokenExpired, Times: 1})
	if answer, _ := w.mustCall("GET", "Patient/pat-1001", token, ""); answer.StatusCode != 401 {
		t.Errorf("deleted token: %d", answer.StatusCode)
	}
	token = w.token()
	if answer, _ := w.mustCall("GET", "Patient/pat-1001", token, ""); answer.StatusCode != 200 {
		t.Errorf("renewed token: %d", answer.StatusCode)
	}

	w.emr.Fail(Fault{Match: "oauth/token", Status: 503})
	if status, body := w.requestToken(w.backendForm("x")); status != 503 || body["error"] != "temporarily_unavailable" {
		t.Errorf("token fault: %d %v", status, body)
	}
	w.emr.ClearFaults()
	w.token()
}

func TestDelayedRequestOfClosedConnectionIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		emr, err := NewEMR(EMROptions{ClientID: emrClient, Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		emr.Fail(Fault{Match: "metadata", DelayMS: 30_000})
		ask := func(patience time.Duration) int {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			recorder := httptest.NewRecorder()
			emr.ServeHTTP(recorder, httptest.NewRequestWithContext(ctx, "GET", "/fhir/demo/metadata", nil))
			return recorder.Body.Len()
		}
		if ask(29*time.Second) != 0 {
			t.Error("answered a caller who had left")
		}
		if ask(31*time.Second) == 0 {
			t.Error("a patient caller got no answer")
		}
	})
}

func TestDelayOnASocket(t *testing.T) {
	w := newWorld(t)
	token := w.token()
	w.emr.Fail(Fault{Match: "Observation", DelayMS: 600_000, Times: 1})
	ctx, cancel := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url+"/fhir/demo/Observation", strings.NewReader(bloodPressure(observationID)))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", fhirJSON)
	go func() {
		for w.emr.Stats().Faulted == 0 {
			runtime.Gosched()
		}
		cancel()
	}()
	if answer, err := http.DefaultClient.Do(request); err == nil {
		answer.Body.Close()
		t.Errorf("answered %d", answer.StatusCode)
	}
	w.close() // waits for the request to end
	if stored := w.emr.Stats().Observations; stored != 0 {
		t.Errorf("%d stored for a caller who had left", stored)
	}
}

func TestControl(t *testing.T) {
	w := newWorld(t)
	token := w.token()
	control := func(method, path, body string) *http.Response {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, w.url+"/sandbox/"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { answer.Body.Close() })
		return answer
	}
	for body, want := range map[string]int{
		`[{"match":"Observation","status":429,"times":1,"retry_after":7}]`: 204,
		`{"match":"Nothing","drop":"after"}`:                               204,
		`[{"status":200}]`:                                                 400,
		`[{"drop":"sometimes"}]`:                                           400,
		`"all"`:                                                            400,
		`[`:                                                                400,
	} {
		if got := control("POST", "faults", body).StatusCode; got != want {
			t.Errorf("faults %s: %d, want %d", body, got, want)
		}
	}
	if answer, _ := w.mustCall("POST", "Observation", token, bloodPressure(observationID)); answer.StatusCode != 429 {
		t.Errorf("fault by HTTP: %d", answer.StatusCode)
	}
	if got := control("DELETE", "faults", "").StatusCode; got != 204 {
		t.Errorf("clear: %d", got)
	}
	w.mustCall("POST", "Observation", token, bloodPressure(observationID))
	var list []map[string]any
	if err := json.NewDecoder(control("GET", "observations", "").Body).Decode(&list); err != nil || len(list) != 1 ||
		list[0]["id"] != "obs-000001" || list[0]["creates"] != 1.0 || list[0]["effective"] != "2026-11-20T08:00:00Z" {
		t.Errorf("listing %v, err %v", list, err)
	}
	if stats := decode(t, control("GET", "stats", "")); stats["created"] != 1.0 || stats["faulted"] != 1.0 {
		t.Errorf("stats %v", stats)
	}
}

func TestJournalSurvivesAKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "emr.jsonl")
	keep := func(o *EMROptions) { o.JournalFile = path }
	first := newWorld(t, keep)
	first.mustCall("POST", "Observation", first.token(), bloodPressure(observationID))
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString(`{"received_at":"2026-`); err != nil { // killed in the middle of a line
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}

	second := newWorld(t, keep)
	token := second.token()
	answer, _ := second.mustCall("POST", "Observation", token, bloodPressure(observationID), condition(observationID)...)
	if answer.StatusCode != 200 {
		t.Errorf("after the restart: %d", answer.StatusCode)
	}
	other := strings.Replace(observationID, "0190", "0191", 1)
	if answer, body := second.mustCall("POST", "Observation", token, bloodPressure(other)); answer.StatusCode != 201 || body["id"] != "obs-000002" {
		t.Errorf("next observation: %d %v", answer.StatusCode, body)
	}
	if third := newWorld(t, keep); third.emr.Stats().Observations != 2 {
		t.Errorf("third start has %d observations", third.emr.Stats().Observations)
	}
}

func TestDeterministicTokens(t *testing.T) {
	token := func() string {
		seed := bytes.NewReader(bytes.Repeat([]byte("vigil"), 100))
		return newWorld(t, func(o *EMROptions) { o.Random = seed }).token()
	}
	if a, b := token(), token(); a != b {
		t.Errorf("tokens differ: %s, %s", a, b)
	}
}

func TestNewEMRRejects(t *testing.T) {
	for name, options := range map[string]EMROptions{
		"no clock":      {},
		"practice code": {Now: time.Now, PracticeCode: "a/{b}"},
		"journal":       {Now: time.Now, JournalFile: filepath.Join(t.TempDir(), "none", "x")},
	} {
		if _, err := NewEMR(options); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

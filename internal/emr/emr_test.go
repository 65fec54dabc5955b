package emr_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"

	"github.com/vigilhealth/vigil/internal/emr"
)

const (
	baseURL             = "https://emr.test/fhir/r4"
	tokenURL            = "https://emr.test/oauth2/token"
	clientID            = "vigil-client"
	observationID       = "0192f0c1-2a3b-7c4d-8e5f-60718293a4b5"
	requestID           = "7b9e7c1c-50b5-4a0e-9a53-2f5a3f6f1c11"
	observationResource = `{"resourceType":"Observation","status":"final"}`
)

var signingKey = newKey(2048)

func newKey(bits int) *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		panic(err)
	}
	return key
}

// reply is one prepared response of the fake EMR.
type reply struct {
	status int
	header map[string]string
	body   string
	hang   bool  // no response until the caller cancels
	err    error // the connection fails
}

// recordedRequest is a request that the fake EMR received.
type recordedRequest struct {
	at     time.Time
	method string
	url    string
	header http.Header
	body   string
	form   url.Values
}

// fakeEMR is an EMR without a network, so that it also works inside a synctest bubble. Replies are used in order; the last one repeats.
type fakeEMR struct {
	mu      sync.Mutex
	tokens  []reply
	replies map[string][]reply // by method
	refuse  string             // an access token that is refused with 401
	seen    []recordedRequest
	issued  int
}

func granted(n int) string {
	return fmt.Sprintf(`{"access_token":"token-%d","token_type":"Bearer","expires_in":3600,"scope":"system/Observation.write"}`, n)
}

func (f *fakeEMR) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		body, _ = io.ReadAll(req.Body)
	}
	form, _ := url.ParseQuery(string(body))
	answer := f.next(recordedRequest{
		at: time.Now(), method: req.Method, url: req.URL.String(), header: req.Header, body: string(body), form: form,
	})
	if answer.hang {
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
	if answer.err != nil {
		return nil, answer.err
	}
	recorder := httptest.NewRecorder()
	for name, value := range answer.header {
		recorder.Header().Set(name, value)
	}
	recorder.WriteHeader(answer.status)
	_, _ = recorder.WriteString(strings.ReplaceAll(answer.body, "{assertion}", form.Get("client_assertion")))
	return recorder.Result(), nil
}

func (f *fakeEMR) next(h recordedRequest) reply {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen = append(f.seen, h)
	if h.url == tokenURL {
		if len(f.tokens) == 0 {
			f.issued++
			return reply{status: 200, header: map[string]string{"Content-Type": "application/json"}, body: granted(f.issued)}
		}
		first := f.tokens[0]
		f.tokens = f.tokens[1:]
		return first
	}
	if f.refuse != "" && h.header.Get("Authorization") == "Bearer "+f.refuse {
		return reply{status: 401}
	}
	queue := f.replies[h.method]
	if len(queue) == 0 {
		return reply{status: 201, header: map[string]string{"Location": baseURL + "/Observation/emr-1/_history/1"}}
	}
	if len(queue) > 1 {
		f.replies[h.method] = queue[1:]
	}
	return queue[0]
}

// requests returns the requests to one endpoint, "token" or "fhir".
func (f *fakeEMR) requests(where string) (found []recordedRequest) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range f.seen {
		if (h.url == tokenURL) == (where == "token") && (where != "sends" || h.method == http.MethodPost) {
			found = append(found, h)
		}
	}
	return found
}

// newClient builds a client for the fake EMR, without pacing, jitter and quick retries unless a change sets them.
func newClient(t *testing.T, f http.RoundTripper, changes ...func(*emr.Options)) *emr.Client {
	t.Helper()
	o := emr.Options{
		BaseURL: baseURL, TokenURL: tokenURL, ClientID: clientID, PrivateKey: signingKey,
		QuickRetryDelays: []time.Duration{}, Timeout: 30 * time.Second, ConditionalCreate: true, Capabilities: offersAll(),
		Now: time.Now, Jitter: func() float64 { return 0.5 }, Transport: f,
	}
	for _, change := range changes {
		change(&o)
	}
	client, err := emr.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// offersAll is what is known of an EMR that can be searched by identifier and honors conditional create.
func offersAll() *memoryCapabilities {
	return &memoryCapabilities{known: emr.StoredCapabilities{ReadAt: time.Now(), Offer: &emr.Offer{
		Create: true, Search: true, ConditionalCreate: new(true), SearchParameters: []string{"identifier"},
	}}}
}

// memoryCapabilities stores what is known of an EMR in memory.
type memoryCapabilities struct {
	mu     sync.Mutex
	known  emr.StoredCapabilities
	stores int
}

func (m *memoryCapabilities) Load(string) (emr.StoredCapabilities, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.known, nil
}

func (m *memoryCapabilities) Store(_ string, known emr.StoredCapabilities) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known = known
	m.stores++
	return nil
}

func quickRetries(o *emr.Options) { o.QuickRetryDelays = nil }

// replyToPosts is an EMR that answers creates with the replies, and finds nothing in searches.
func replyToPosts(replies ...reply) *fakeEMR {
	return &fakeEMR{replies: map[string][]reply{"POST": replies, "GET": {{status: 200, body: bundle()}}}}
}

func deliver(t *testing.T, c *emr.Client) (emr.Created, *emr.Error) {
	t.Helper()
	created, err := c.CreateObservation(t.Context(), observationID, []byte(observationResource), requestID)
	return created, asError(t, err)
}

func asError(t *testing.T, err error) *emr.Error {
	t.Helper()
	if err == nil {
		return nil
	}
	e, ok := errors.AsType[*emr.Error](err)
	if !ok {
		t.Fatalf("%T is not an *emr.Error: %v", err, err)
	}
	return e
}

func TestNewChecksSettings(t *testing.T) {
	small := newKey(1024)
	for name, change := range map[string]func(*emr.Options){
		"no clock":          func(o *emr.Options) { o.Now = nil },
		"small key":         func(o *emr.Options) { o.PrivateKey = small },
		"negative rate":     func(o *emr.Options) { o.RatePerSecond = -1 },
		"relative address":  func(o *emr.Options) { o.BaseURL = "/fhir" },
		"other scheme":      func(o *emr.Options) { o.TokenURL = "ftp://emr.test/token" },
		"secret in address": func(o *emr.Options) { o.BaseURL = "https://me:secret@emr.test/fhir" },
		"query in address":  func(o *emr.Options) { o.TokenURL = tokenURL + "?a=b" },
	} {
		o := emr.Options{BaseURL: baseURL, TokenURL: tokenURL, ClientID: clientID, PrivateKey: signingKey, Now: time.Now}
		change(&o)
		if _, err := emr.New(o); err == nil {
			t.Errorf("%s: no error", name)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNotConfigured(t *testing.T) {
	for name, change := range map[string]func(*emr.Options){
		"base address":  func(o *emr.Options) { o.BaseURL = "" },
		"token address": func(o *emr.Options) { o.TokenURL = "" },
		"client id":     func(o *emr.Options) { o.ClientID = "" },
		"key":           func(o *emr.Options) { o.PrivateKey = nil },
	} {
		t.Run(name, func(t *testing.T) {
			fake := &fakeEMR{}
			client := newClient(t, fake, change, quickRetries)
			if client.Configured() {
				t.Error("counts as configured")
			}
			_, created := deliver(t, client)
			_, _, found := client.FindObservation(t.Context(), observationID, []byte(observationResource))
			_, metadata := client.Metadata(t.Context())
			_, signIn := client.SignIn(t.Context())
			for _, err := range []error{created, found, metadata, signIn} {
				e := asError(t, err)
				if e.Code != emr.CodeNotConfigured || e.Message != "EMR is not configured" || e.Ambiguous {
					t.Errorf("%+v", e)
				}
			}
			if len(fake.seen) != 0 || !client.LastSignIn().At.IsZero() {
				t.Error("a request was sent")
			}
		})
	}
}

func TestJWKS(t *testing.T) {
	previous := newKey(3072)
	raw := emr.JWKS(signingKey, nil, previous)
	var set struct {
		Keys []map[string]any `json:"keys"`
	}
	if err := json.Unmarshal(raw, &set); err != nil {
		t.Fatal(err)
	}
	if len(set.Keys) != 2 {
		t.Fatalf("%d keys", len(set.Keys))
	}
	for i, key := range []*rsa.PrivateKey{signingKey, previous} {
		got := set.Keys[i]
		if len(got) != 7 || got["kty"] != "RSA" || got["use"] != "sig" || got["alg"] != "RS384" || fmt.Sprint(got["key_ops"]) != "[verify]" {
			t.Errorf("key %d: %v", i, got)
		}
		one, _ := json.Marshal(got)
		var parsed jose.JSONWebKey
		if err := parsed.UnmarshalJSON(one); err != nil {
			t.Fatal(err)
		}
		if !parsed.IsPublic() || !key.PublicKey.Equal(parsed.Key) || parsed.KeyID != emr.KeyID(&key.PublicKey) {
			t.Errorf("key %d does not read back", i)
		}
	}
	if got := string(emr.JWKS()); got != `{"keys":[]}` {
		t.Errorf("no keys: %s", got)
	}
	if got := string(emr.JWKS(nil)); got != `{"keys":[]}` {
		t.Errorf("nil key: %s", got)
	}
}

// TestKeyIDVector is the example of RFC 7638, section 3.1.
func TestKeyIDVector(t *testing.T) {
	var key jose.JSONWebKey
	err := key.UnmarshalJSON([]byte(`{"kty":"RSA","e":"AQAB","n":"` +
		"0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMs" +
		"tn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5ha" +
		"jrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw" + `"}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := emr.KeyID(key.Key.(*rsa.PublicKey)); got != "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs" {
		t.Errorf("thumbprint %s", got)
	}
}

// verifyAssertion checks an assertion as an EMR would, with nothing but the published key set.
func verifyAssertion(t *testing.T, assertion string, now time.Time) jwt.MapClaims {
	t.Helper()
	var set jose.JSONWebKeySet
	if err := json.Unmarshal(emr.JWKS(signingKey), &set); err != nil {
		t.Fatal(err)
	}
	token, err := jwt.Parse(assertion, func(token *jwt.Token) (any, error) {
		kid, _ := token.Header["kid"].(string)
		keys := set.Key(kid)
		if len(keys) != 1 {
			return nil, fmt.Errorf("kid %q is not published", kid)
		}
		return keys[0].Key, nil
	}, jwt.WithValidMethods([]string{"RS384"}), jwt.WithAudience(tokenURL), jwt.WithIssuer(clientID), jwt.WithSubject(clientID),
		jwt.WithExpirationRequired(), jwt.WithIssuedAt(), jwt.WithTimeFunc(func() time.Time { return now }))
	if err != nil {
		t.Fatalf("assertion: %v", err)
	}
	if token.Header["typ"] != "JWT" || len(token.Header) != 3 {
		t.Errorf("header %v", token.Header)
	}
	claims := token.Claims.(jwt.MapClaims)
	if lifetime := claims["exp"].(float64) - claims["iat"].(float64); lifetime != 240 {
		t.Errorf("lives %v s", lifetime)
	}
	if _, single := claims["aud"].(string); !single {
		t.Errorf("aud is %T", claims["aud"])
	}
	if id, err := uuid.Parse(claims["jti"].(string)); err != nil || id.Version() != 4 {
		t.Errorf("jti %v", claims["jti"])
	}
	return claims
}

func TestTokenRequest(t *testing.T) {
	fake := &fakeEMR{}
	client := newClient(t, fake, func(o *emr.Options) {
		o.Scopes = []string{"system/Patient.read", "user/Patient.read", "system/*.write", "openid"}
	})
	var ids []any
	for range 2 {
		grant, err := client.SignIn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if grant.TokenType != "bearer" || grant.ExpiresIn != time.Hour || grant.Scope != "system/Observation.write" || !client.LastSignIn().At.Equal(grant.At) {
			t.Errorf("%+v, last %v", grant, client.LastSignIn().At)
		}
	}
	for _, h := range fake.requests("token") {
		if h.method != "POST" || h.header.Get("Authorization") != "" || h.header.Get("Content-Type") != "application/x-www-form-urlencoded" {
			t.Errorf("%s %v", h.method, h.header)
		}
		ids = append(ids, verifyAssertion(t, h.form.Get("client_assertion"), time.Now())["jti"])
		h.form.Del("client_assertion")
		want := "client_assertion_type=urn%3Aietf%3Aparams%3Aoauth%3Aclient-assertion-type%3Ajwt-bearer" +
			"&grant_type=client_credentials&scope=system%2FPatient.read+system%2F%2A.write"
		if got := h.form.Encode(); got != want {
			t.Errorf("form %s", got)
		}
	}
	if len(ids) != 2 || ids[0] == ids[1] {
		t.Errorf("jti %v", ids)
	}
}

func TestDefaultScopes(t *testing.T) {
	fake := &fakeEMR{}
	if _, err := newClient(t, fake).SignIn(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := fake.requests("token")[0].form.Get("scope")
	if got != "system/Patient.read system/Observation.write system/*.write" || !slices.Equal(strings.Fields(got), emr.SystemScopes) {
		t.Errorf("scope %q", got)
	}
}

func ExampleClient_CreateObservation() {
	client, err := emr.New(emr.Options{
		BaseURL: baseURL, TokenURL: tokenURL, ClientID: clientID, PrivateKey: signingKey,
		RatePerSecond: 10, ConditionalCreate: true, Now: time.Now, Transport: &fakeEMR{},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	created, err := client.CreateObservation(context.Background(), observationID, []byte(observationResource), requestID)
	fmt.Println(created.EMRID, err)
	// Output: emr-1 <nil>
}

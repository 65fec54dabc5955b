package e2e

import (
	"bytes"
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
)

// Faults of one request to the EMR.
const (
	fine        = "fine"
	error500    = "500"
	error503    = "503"
	tooMany     = "429"
	lostRequest = "request lost"
	lostAnswer  = "answer lost"
	silence     = "request lost, no answer"
	lateAnswer  = "no answer, though it was done"
	lateRequest = "done after the sender gave up"
)

// tokenLife is short, so that many tokens are needed.
const tokenLife = 20 * time.Second

// gate is a gateway in front of HAPI: it issues tokens for assertions, requires them, and injects faults.
type gate struct {
	addr, upstream string
	key            *rsa.PublicKey

	lock           sync.Mutex
	server         *http.Server
	faults         [][]string          // for each new subject, in turn
	planned        map[string][]string // remaining faults by the subject of the request
	next           int
	refuse         bool // refuse all token requests
	tokens         map[string]time.Time
	usedAssertions map[string]bool     // used assertions
	faultCounts    map[string]int      // how often each fault occurred
	outcomes       map[string][]string // outcomes of requests by their subject
}

func newGate(t *testing.T, env []string) *gate {
	t.Helper()
	der, err := base64.StdEncoding.DecodeString(valueOf(env, "VIGIL_EMR_PRIVATE_KEY"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		t.Fatal(err)
	}
	return &gate{
		addr: freeAddr(t), key: &key.(*rsa.PrivateKey).PublicKey,
		planned: map[string][]string{}, tokens: map[string]time.Time{}, usedAssertions: map[string]bool{}, faultCounts: map[string]int{}, outcomes: map[string][]string{},
	}
}

// open accepts connections; shut refuses them.
func (g *gate) open(t *testing.T) {
	t.Helper()
	listener, err := net.Listen("tcp", g.addr)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: g, ReadHeaderTimeout: within}
	g.lock.Lock()
	g.server = server
	g.lock.Unlock()
	go func() { _ = server.Serve(listener) }()
}

func (g *gate) shut() {
	g.lock.Lock()
	defer g.lock.Unlock()
	_ = g.server.Close()
}

// change sets the faults from now on. A subject with faults left keeps them.
func (g *gate) change(refuse bool, faults ...[]string) {
	g.lock.Lock()
	defer g.lock.Unlock()
	g.refuse, g.faults = refuse, faults
	if refuse {
		clear(g.tokens)
	}
}

// revoke invalidates all issued tokens.
func (g *gate) revoke() {
	g.lock.Lock()
	defer g.lock.Unlock()
	clear(g.tokens)
}

// faultFor returns the fault for a request about a subject.
func (g *gate) faultFor(about string) string {
	g.lock.Lock()
	defer g.lock.Unlock()
	plan, known := g.planned[about]
	if !known && len(g.faults) > 0 && about != "" {
		plan = g.faults[g.next%len(g.faults)]
		g.next++
	}
	fault := fine
	if len(plan) > 0 {
		fault, plan = plan[0], plan[1:]
	}
	if about != "" {
		g.planned[about] = plan
	}
	g.faultCounts[fault]++
	return fault
}

// countSeen counts the readings with at least one request.
func (g *gate) countSeen(readings []*reading) (n int) {
	g.lock.Lock()
	defer g.lock.Unlock()
	for _, r := range readings {
		if _, asked := g.planned["urn:uuid:"+r.id]; asked {
			n++
		}
	}
	return n
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the sender disconnected
	}
	path, isFHIR := strings.CutPrefix(r.URL.Path, "/fhir/"+practiceCode)
	switch {
	case r.URL.Path == "/oauth/token":
		g.token(w, r, body)
	case !isFHIR:
		outcome(w, http.StatusNotFound, "not-found")
	case path != "/metadata" && !g.admits(r):
		outcome(w, http.StatusUnauthorized, "login")
	default:
		g.handle(w, r, path, body)
	}
}

// handle forwards a request, or applies its fault.
func (g *gate) handle(w http.ResponseWriter, r *http.Request, path string, body []byte) {
	about, came, status := subjectOf(r, path, body), time.Now(), 0
	fate := g.faultFor(about)
	defer func() { g.record(about, r.Method, fate, came, status) }()
	switch fate {
	case error500:
		outcome(w, http.StatusInternalServerError, "exception")
	case error503:
		outcome(w, http.StatusServiceUnavailable, "transient")
	case tooMany:
		w.Header().Set("Retry-After", "1")
		outcome(w, http.StatusTooManyRequests, "throttled")
	case lostRequest:
		panic(http.ErrAbortHandler)
	case lostAnswer:
		status = g.forward(discardedAnswer{}, r, path, body)
		panic(http.ErrAbortHandler)
	case silence:
		<-r.Context().Done()
	case lateAnswer:
		status = g.forward(discardedAnswer{}, r, path, body)
		<-r.Context().Done()
	case lateRequest:
		<-r.Context().Done()
		pause(context.WithoutCancel(r.Context()), 2*time.Second)
		status = g.forward(discardedAnswer{}, r, path, body)
	default:
		status = g.forward(w, r, path, body)
	}
}

// record records the outcome of a request; status is HAPI's, 0 for none.
func (g *gate) record(about, method, fate string, came time.Time, status int) {
	g.lock.Lock()
	defer g.lock.Unlock()
	g.outcomes[about] = append(g.outcomes[about], fmt.Sprintf("%s %s %s %d after %v", came.Format("15:04:05.000"), method, fate, status, time.Since(came).Round(time.Millisecond)))
}

// history returns the outcomes of all requests about a reading and its copies in the EMR.
func (g *gate) history(r *reading, copies ...storedObservation) string {
	g.lock.Lock()
	defer g.lock.Unlock()
	list := slices.Clone(g.outcomes["urn:uuid:"+r.id])
	for _, k := range copies {
		list = append(list, g.outcomes["/Observation/"+k.ID]...)
	}
	return strings.Join(list, "\n    ")
}

// subjectOf returns the subject of a request: the reading that is sent or searched for, or the EMR's copy of one.
func subjectOf(r *http.Request, path string, body []byte) string {
	var sent struct{ Identifier []struct{ Value string } }
	switch {
	case path == "/metadata":
		return ""
	case r.Method == http.MethodPost && json.Unmarshal(body, &sent) == nil && len(sent.Identifier) > 0:
		return sent.Identifier[0].Value
	case path == "/Observation":
		_, value, _ := strings.Cut(r.URL.Query().Get("identifier"), "|")
		return value
	}
	return path
}

// forward sends a request to HAPI, writes its answer and returns the status. It finishes even if the sender disconnects.
func (g *gate) forward(w http.ResponseWriter, r *http.Request, path string, body []byte) int {
	address := g.upstream + path
	if r.URL.RawQuery != "" {
		address += "?" + r.URL.RawQuery
	}
	request, err := http.NewRequest(r.Method, address, bytes.NewReader(body))
	if err != nil {
		outcome(w, http.StatusBadRequest, "structure")
		return 0
	}
	request.Header = r.Header.Clone()
	request.Header.Del("Authorization")
	request.Header.Del("Accept-Encoding")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		outcome(w, http.StatusBadGateway, "transient")
		return 0
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(answer.Body)
	if err != nil {
		outcome(w, http.StatusBadGateway, "transient")
		return 0
	}
	for name, values := range answer.Header {
		if name != "Content-Length" && name != "Connection" && name != "Transfer-Encoding" {
			w.Header()[name] = values
		}
	}
	w.WriteHeader(answer.StatusCode)
	_, _ = w.Write(said)
	return answer.StatusCode
}

// discardedAnswer discards an answer.
type discardedAnswer struct{}

func (discardedAnswer) Header() http.Header         { return http.Header{} }
func (discardedAnswer) Write(b []byte) (int, error) { return len(b), nil }
func (discardedAnswer) WriteHeader(int)             {}

func outcome(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/fhir+json")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"resourceType":"OperationOutcome","issue":[{"severity":"error","code":%q}]}`, code)
}

// token is the token endpoint of SMART Backend Services.
func (g *gate) token(w http.ResponseWriter, r *http.Request, body []byte) {
	r.Body = io.NopCloser(bytes.NewReader(body))
	answer, status := map[string]any{"error": "invalid_client"}, http.StatusUnauthorized
	if r.ParseForm() == nil && r.PostForm.Get("grant_type") == "client_credentials" && g.checkAssertion(r.PostForm.Get("client_assertion"), "http://"+g.addr+r.URL.Path) {
		token := uuid.NewString()
		g.lock.Lock()
		g.tokens[token] = time.Now().Add(tokenLife)
		g.lock.Unlock()
		status, answer = http.StatusOK, map[string]any{
			"access_token": token, "token_type": "bearer", "expires_in": int(tokenLife / time.Second), "scope": r.PostForm.Get("scope"),
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer)
}

// checkAssertion checks an assertion, which is valid once. Source: SMART App Launch, client-confidential-asymmetric.
func (g *gate) checkAssertion(assertion, audience string) bool {
	claims := jwt.RegisteredClaims{}
	_, err := jwt.ParseWithClaims(assertion, &claims, func(*jwt.Token) (any, error) { return g.key, nil },
		jwt.WithValidMethods([]string{"RS384"}), jwt.WithAudience(audience), jwt.WithIssuer(clientID), jwt.WithSubject(clientID), jwt.WithExpirationRequired())
	g.lock.Lock()
	defer g.lock.Unlock()
	if g.refuse || err != nil || claims.ID == "" || g.usedAssertions[claims.ID] {
		g.faultCounts["token refused"]++
		return false
	}
	g.usedAssertions[claims.ID] = true
	g.faultCounts["token"]++
	return true
}

func (g *gate) admits(r *http.Request) bool {
	g.lock.Lock()
	defer g.lock.Unlock()
	until, given := g.tokens[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
	if !given || time.Now().After(until) {
		g.faultCounts["token unknown"]++
		return false
	}
	return true
}

// counts returns the faults so far, for the test's log.
func (g *gate) counts() string {
	g.lock.Lock()
	defer g.lock.Unlock()
	var list []string
	for what, n := range g.faultCounts {
		list = append(list, fmt.Sprintf("%s %d", what, n))
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// count returns how often a fault occurred.
func (g *gate) count(what string) int {
	g.lock.Lock()
	defer g.lock.Unlock()
	return g.faultCounts[what]
}

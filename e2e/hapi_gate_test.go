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

// What goes wrong with one request to the EMR.
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

// gate stands before HAPI as a practice's gateway does: it gives tokens for assertions, asks for them, and has its faults.
type gate struct {
	addr, behind string
	key          *rsa.PublicKey

	lock    sync.Mutex
	server  *http.Server
	faults  [][]string          // of what is asked for the first time, in turn
	planned map[string][]string // by what the request is about: what still goes wrong
	next    int
	refuse  bool // no tokens for anybody
	tokens  map[string]time.Time
	used    map[string]bool     // assertions
	met     map[string]int      // how often what went wrong
	stories map[string][]string // by what the requests were about: what became of each
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
		planned: map[string][]string{}, tokens: map[string]time.Time{}, used: map[string]bool{}, met: map[string]int{}, stories: map[string][]string{},
	}
}

// open lets it take connections; shut has them refused.
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

// change sets what goes wrong from now on. What had its share before goes on having it.
func (g *gate) change(refuse bool, faults ...[]string) {
	g.lock.Lock()
	defer g.lock.Unlock()
	g.refuse, g.faults = refuse, faults
	if refuse {
		clear(g.tokens)
	}
}

// revoke makes every token worthless that was given.
func (g *gate) revoke() {
	g.lock.Lock()
	defer g.lock.Unlock()
	clear(g.tokens)
}

// fate says what becomes of a request about something.
func (g *gate) fate(about string) string {
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
	g.met[fault]++
	return fault
}

// seen counts of which readings something was asked.
func (g *gate) seen(readings []*reading) (n int) {
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
		return // the sender is gone
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
		g.pass(w, r, path, body)
	}
}

// pass hands a request on, or does with it what its fate is.
func (g *gate) pass(w http.ResponseWriter, r *http.Request, path string, body []byte) {
	about, came, status := subjectOf(r, path, body), time.Now(), 0
	fate := g.fate(about)
	defer func() { g.tell(about, r.Method, fate, came, status) }()
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
		status = g.forward(unheard{}, r, path, body)
		panic(http.ErrAbortHandler)
	case silence:
		<-r.Context().Done()
	case lateAnswer:
		status = g.forward(unheard{}, r, path, body)
		<-r.Context().Done()
	case lateRequest:
		<-r.Context().Done()
		pause(context.WithoutCancel(r.Context()), 2*time.Second)
		status = g.forward(unheard{}, r, path, body)
	default:
		status = g.forward(w, r, path, body)
	}
}

// tell keeps what became of a request; status is what HAPI said, 0 for nothing.
func (g *gate) tell(about, method, fate string, came time.Time, status int) {
	g.lock.Lock()
	defer g.lock.Unlock()
	g.stories[about] = append(g.stories[about], fmt.Sprintf("%s %s %s %d after %v", came.Format("15:04:05.000"), method, fate, status, time.Since(came).Round(time.Millisecond)))
}

// story is what became of all requests about a reading, and about the EMR's copy of it.
func (g *gate) story(r *reading, copies ...kept) string {
	g.lock.Lock()
	defer g.lock.Unlock()
	list := slices.Clone(g.stories["urn:uuid:"+r.id])
	for _, k := range copies {
		list = append(list, g.stories["/Observation/"+k.ID]...)
	}
	return strings.Join(list, "\n    ")
}

// subjectOf is what a request is about: the reading that is sent or searched for, or the EMR's copy of one.
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

// forward asks HAPI, gives its answer and returns the status. Whether the sender waits for it makes no difference to HAPI.
func (g *gate) forward(w http.ResponseWriter, r *http.Request, path string, body []byte) int {
	address := g.behind + path
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

// unheard takes an answer that nobody gets.
type unheard struct{}

func (unheard) Header() http.Header         { return http.Header{} }
func (unheard) Write(b []byte) (int, error) { return len(b), nil }
func (unheard) WriteHeader(int)             {}

func outcome(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/fhir+json")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"resourceType":"OperationOutcome","issue":[{"severity":"error","code":%q}]}`, code)
}

// token is the token endpoint of SMART backend services.
func (g *gate) token(w http.ResponseWriter, r *http.Request, body []byte) {
	r.Body = io.NopCloser(bytes.NewReader(body))
	answer, status := map[string]any{"error": "invalid_client"}, http.StatusUnauthorized
	if r.ParseForm() == nil && r.PostForm.Get("grant_type") == "client_credentials" && g.proves(r.PostForm.Get("client_assertion"), "http://"+g.addr+r.URL.Path) {
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

// proves checks an assertion, which counts once. Source: SMART App Launch, client-confidential-asymmetric.
func (g *gate) proves(assertion, audience string) bool {
	claims := jwt.RegisteredClaims{}
	_, err := jwt.ParseWithClaims(assertion, &claims, func(*jwt.Token) (any, error) { return g.key, nil },
		jwt.WithValidMethods([]string{"RS384"}), jwt.WithAudience(audience), jwt.WithIssuer(clientID), jwt.WithSubject(clientID), jwt.WithExpirationRequired())
	g.lock.Lock()
	defer g.lock.Unlock()
	if g.refuse || err != nil || claims.ID == "" || g.used[claims.ID] {
		g.met["token refused"]++
		return false
	}
	g.used[claims.ID] = true
	g.met["token"]++
	return true
}

func (g *gate) admits(r *http.Request) bool {
	g.lock.Lock()
	defer g.lock.Unlock()
	until, given := g.tokens[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
	if !given || time.Now().After(until) {
		g.met["token unknown"]++
		return false
	}
	return true
}

// counts are what went wrong so far, for the test's log.
func (g *gate) counts() string {
	g.lock.Lock()
	defer g.lock.Unlock()
	var list []string
	for what, n := range g.met {
		list = append(list, fmt.Sprintf("%s %d", what, n))
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// count is how often something was met.
func (g *gate) count(what string) int {
	g.lock.Lock()
	defer g.lock.Unlock()
	return g.met[what]
}

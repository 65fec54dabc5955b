package routes_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pocketbase/pocketbase/apis"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/fhir"
	"github.com/vigilhealth/vigil/internal/ratelimit"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/routes"
	"github.com/vigilhealth/vigil/routes/web"
)

// clock is the time of these tests.
var clock = time.Date(2026, 1, 15, 13, 45, 0, 0, time.UTC)

var newYork = sync.OnceValue(func() *time.Location {
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		panic(err)
	}
	return zone
})()

// server serves the contract without engines.
type server struct {
	t       *testing.T
	handler http.Handler
}

func serve(t *testing.T) *server {
	t.Helper()
	app := vigiltest.NewApp(t)
	router, err := apis.NewRouter(app)
	if err != nil {
		t.Fatal(err)
	}
	var mux http.Handler
	e := &core.ServeEvent{App: app, Router: router, Server: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { mux.ServeHTTP(w, r) })}}
	err = routes.Register(e, routes.Engines{Options: web.Options{
		PublicURL: "https://vigil.example.org/", Zone: newYork, Log: slog.New(slog.DiscardHandler), Clock: func() time.Time { return clock },
		AccessTokens: noTokens{}, Limits: ratelimit.NewLimiter(nil),
	}})
	if err == nil {
		mux, err = router.BuildMux()
	}
	if err != nil {
		t.Fatal(err)
	}
	return &server{t, e.Server.Handler}
}

// noTokens rejects every access token.
type noTokens struct{}

func (noTokens) Authenticate(core.App, string, time.Time) (auth.Caller, error) {
	return auth.Caller{}, fault.New(fault.Unauthenticated, "not_authenticated", "There is no token.")
}

// request is a test's request.
type request struct {
	method, target, token, body string
	header                      map[string]string
	address                     string
}

func (r request) build(ctx context.Context) *http.Request {
	if r.method == "" {
		r.method = http.MethodGet
	}
	req := httptest.NewRequestWithContext(ctx, r.method, r.target, strings.NewReader(r.body))
	if r.body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if r.token != "" {
		req.Header.Set("Authorization", "Bearer "+r.token)
	}
	for name, value := range r.header {
		req.Header.Set(name, value)
	}
	if r.address != "" {
		req.RemoteAddr = net.JoinHostPort(r.address, "5000")
	}
	return req
}

// do answers a request without the network.
func (s *server) do(r request) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	s.handler.ServeHTTP(rec, r.build(s.t.Context()))
	return rec
}

// code returns the code of an error body.
func code(t *testing.T, rec *httptest.ResponseRecorder) string {
	t.Helper()
	return errorOf(t, rec).Code
}

type errorBody struct {
	Detail    string              `json:"detail"`
	Code      string              `json:"code"`
	Fields    map[string][]string `json:"field_errors"`
	RequestID string              `json:"request_id"`
}

func errorOf(t *testing.T, rec *httptest.ResponseRecorder) errorBody {
	t.Helper()
	if rec.Header().Get("Content-Type") == fhir.ContentType {
		return errorBody{Code: outcomeCode(t, rec.Body.Bytes())}
	}
	var body errorBody
	if err := json.Unmarshal(rec.Body.Bytes(), &body); err != nil {
		t.Fatalf("not an error body: %v\n%s", err, rec.Body)
	}
	return body
}

// expect checks the status and, for errors, the code.
func expect(t *testing.T, rec *httptest.ResponseRecorder, status int, wantCode string) {
	t.Helper()
	if rec.Code != status {
		t.Fatalf("status %d, want %d: %s", rec.Code, status, rec.Body)
	}
	if wantCode != "" && code(t, rec) != wantCode {
		t.Fatalf("code %q, want %q", code(t, rec), wantCode)
	}
}

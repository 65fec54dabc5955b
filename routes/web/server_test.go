package web_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pocketbase/pocketbase/apis"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/ratelimit"
	"github.com/vigilhealth/vigil/internal/vigiltest"
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

// accessTokens has one token per role, named after the role.
type accessTokens struct{}

func (accessTokens) Authenticate(_ core.App, token string, now time.Time) (auth.Caller, error) {
	switch {
	case !now.Equal(clock):
		return auth.Caller{}, errors.New("not the time of the request")
	case token == "":
		return auth.Caller{}, fault.New(fault.Unauthenticated, "not_authenticated", "There is no token.")
	case token == "expired":
		return auth.Caller{}, fault.New(fault.Unauthenticated, "token_expired", "The token has expired.")
	case token == "broken":
		return auth.Caller{}, errors.New("no database")
	case !authz.Role(token).Valid():
		return auth.Caller{}, fault.New(fault.Unauthenticated, "token_invalid", "The token is invalid.")
	}
	return auth.Caller{RecordID: "record-" + token, ID: 42, Email: token + "@example.org", Role: authz.Role(token)}, nil
}

// generous limits, so that only the tests of limits reach them.
var generous = map[ratelimit.Class]ratelimit.Policy{
	ratelimit.User: {Requests: 1000, Window: time.Hour}, ratelimit.Anon: {Requests: 1000, Window: time.Hour},
	ratelimit.Auth: {Requests: 1000, Window: time.Minute}, ratelimit.Webhook: {Requests: 1000, Window: time.Hour},
}

// server is the service as apis.Serve runs it, with a test's own rows.
type server struct {
	t       *testing.T
	url     string
	handler http.Handler
	log     *logBuffer
}

type setup struct {
	limits  map[ratelimit.Class]ratelimit.Policy
	origins []string
	rows    []web.Route
	lease   web.Lease
	stale   *audit.StaleReads
}

func serve(t *testing.T, s setup) *server {
	t.Helper()
	if s.limits == nil {
		s.limits = generous
	}
	log := &logBuffer{}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &server{t: t, url: "http://" + listener.Addr().String(), log: log}
	ready, done := make(chan struct{}), make(chan error, 1)
	serving := false
	t.Cleanup(func() { // after the app's own cleanup, which ends serving
		if serving {
			if err := <-done; err != nil {
				t.Errorf("serving: %v", err)
			}
		}
	})
	app := vigiltest.NewApp(t)
	app.OnServe().BindFunc(func(e *core.ServeEvent) error {
		e.Listener, e.InstallerFunc = listener, nil
		if err := open(e, s, log); err != nil {
			return err
		}
		srv.handler = e.Server.Handler
		close(ready)
		return nil
	})
	go func() { done <- apis.Serve(app, apis.ServeConfig{HttpAddr: listener.Addr().String()}) }()
	select {
	case <-ready:
		serving = true
	case err := <-done:
		t.Fatalf("serving: %v", err)
	}
	return srv
}

// open serves a test's rows below [web.BasePath], and one outside.
func open(e *core.ServeEvent, s setup, log io.Writer) error {
	rows := []web.Route{{Method: http.MethodGet, Path: "/health/live", Permission: authz.Anyone, Limit: ratelimit.None, Handle: func(c *web.Call) error {
		return c.OK(map[string]string{"status": "ok"})
	}}}
	for _, row := range s.rows {
		row.Path = web.BasePath + row.Path
		rows = append(rows, row)
	}
	door := &web.Server{Options: web.Options{
		PublicURL:      "https://vigil.example.org/",
		Zone:           newYork,
		AllowedOrigins: s.origins,
		Log:            slog.New(slog.NewJSONHandler(log, nil)),
		Clock:          func() time.Time { return clock },
		AccessTokens:   accessTokens{},
		Limits:         ratelimit.NewLimiter(s.limits),
		Lease:          s.lease,
		StaleReads:     s.stale,
	}}
	return door.Mount(e, rows)
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

// do answers a request without a network.
func (s *server) do(r request) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	s.handler.ServeHTTP(rec, r.build(s.t.Context()))
	return rec
}

// wire sends a request over the network, with the body in chunks. The response body is closed when the test ends.
func (s *server) wire(method, target string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+target, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err == nil {
		s.t.Cleanup(func() { _ = res.Body.Close() })
	}
	return res, err
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

// logBuffer collects log lines.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

// lines returns the lines with the message and clears the buffer.
func (b *logBuffer) lines(t *testing.T, message string) []map[string]any {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	var found []map[string]any
	for line := range strings.Lines(b.buf.String()) {
		var entry map[string]any
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatal(err)
		}
		if entry["msg"] == message {
			found = append(found, maps.Clone(entry))
		}
	}
	b.buf.Reset()
	return found
}

func ok(c *web.Call) error { return c.OK(map[string]any{"caller": c.Caller.Email}) }

func get(path string, who authz.Action, handle func(*web.Call) error) web.Route {
	return web.Route{Method: http.MethodGet, Path: path, Permission: who, Limit: ratelimit.User, Handle: handle}
}

func post(path string, who authz.Action, handle func(*web.Call) error) web.Route {
	return web.Route{Method: http.MethodPost, Path: path, Permission: who, Limit: ratelimit.User, Handle: handle}
}

package web_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tests"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/routes/web"
)

func echoID(c *web.Call) error {
	id, err := c.PathUUID()
	if err != nil {
		return err
	}
	return c.OK(map[string]string{"id": id})
}

var pathRows = []web.Route{
	get("/probes/", authz.Anyone, ok),
	post("/probes/", authz.Anyone, ok),
	get("/probes/{id}/", authz.Anyone, echoID),
	{Method: http.MethodPut, Path: "/probes/{id}/", Permission: authz.ReadPatients, Limit: "", Handle: echoID},
	get("/probes/archived/", authz.Anyone, ok),
	get("/numbers/{id}/", authz.Anyone, func(c *web.Call) error {
		id, err := c.PathInteger("id")
		if err != nil {
			return err
		}
		return c.OK(id)
	}),
}

func TestPaths(t *testing.T) {
	s := serve(t, setup{rows: pathRows})
	const id = "01899c1e-3b7a-7000-8000-0123456789ab"
	for _, test := range []struct {
		method, path string
		status       int
		code         string
		body         string
	}{
		{"GET", "/api/v1/probes/", 200, "", `{"caller":""}`},
		{"GET", "/api/v1/probes", 200, "", `{"caller":""}`},
		{"POST", "/api/v1/probes", 200, "", `{"caller":""}`},
		{"GET", "/api/v1/probes/archived", 200, "", `{"caller":""}`},
		{"GET", "/api/v1/probes/" + id, 200, "", `{"id":"` + id + `"}`},
		{"GET", "/api/v1/probes/" + strings.ToUpper(id) + "/", 200, "", `{"id":"` + id + `"}`},
		{"GET", "/api/v1/probes/" + strings.ReplaceAll(id, "-", "") + "/", 404, "not_found", ""},
		{"GET", "/api/v1/probes/7/", 404, "not_found", ""},
		{"GET", "/api/v1/probes/%2e%2e/", 404, "not_found", ""},
		{"GET", "/api/v1/probes/a%2Fb/", 404, "not_found", ""},
		{"GET", "/api/v1/probes/" + id + "/more/", 404, "not_found", ""},
		{"GET", "/api/v1/numbers/7/", 200, "", "7"},
		{"GET", "/api/v1/numbers/07/", 404, "not_found", ""},
		{"GET", "/api/v1/numbers/-7/", 404, "not_found", ""},
		{"GET", "/api/v1/numbers/0/", 404, "not_found", ""},
		{"GET", "/api/v1/numbers/99999999999999999999/", 404, "not_found", ""},
		// untidy paths never redirect under /api/
		{"GET", "/api/v1//probes/", 404, "not_found", ""},
		{"POST", "/api/v1/probes//", 404, "not_found", ""},
		{"GET", "/api/v1/x/../probes/", 404, "not_found", ""},
		{"GET", "/api/v1/./probes/", 404, "not_found", ""},
		{"GET", "/x/../api/v1/probes/", 404, "not_found", ""},
		{"GET", "//api/v1/probes/", 404, "not_found", ""},
		{"GET", "/api//collections/", 404, "not_found", ""},
		{"GET", "/fhir/R4//Patient", 404, "not_found", ""},
		{"GET", "/fhir/x/../R4/metadata", 404, "not_found", ""},
		{"GET", "/fhir", 404, "not_found", ""},
		{"GET", "/fhir/R4/Nothing", 404, "not_found", ""},
		// unknown routes need no token
		{"GET", "/api/v1/nothing/", 404, "not_found", ""},
		{"DELETE", "/api/v1/nothing", 404, "not_found", ""},
		{"GET", "/api/v1/", 404, "not_found", ""},
		{"GET", "/api/v1", 404, "not_found", ""},
		{"GET", "/api/v2/probes/", 404, "not_found", ""},
		{"POST", "/api/v2/probes/", 404, "not_found", ""},
		{"GET", "/api/", 404, "not_found", ""},
		{"GET", "/api", 404, "not_found", ""},
		{"PATCH", "/api/v1/probes/", 405, "method_not_allowed", ""},
		{"PATCH", "/api/v1/probes", 405, "method_not_allowed", ""},
		{"DELETE", "/api/v1/probes/" + id + "/", 405, "method_not_allowed", ""},
		{"TRACE", "/api/v1/probes/", 405, "method_not_allowed", ""},
		{"BREW", "/api/v1/nothing/", 404, "not_found", ""},
		{"PUT", "/api/v1/probes/" + id + "/", 401, "not_authenticated", ""},
		{"POST", "/health/live", 405, "method_not_allowed", ""},
		{"GET", "/health/live", 200, "", `{"status":"ok"}`},
	} {
		t.Run(test.method+" "+test.path, func(t *testing.T) {
			rec := s.do(request{method: test.method, target: "http://vigil.test" + test.path})
			expect(t, rec, test.status, test.code)
			if test.body != "" && rec.Body.String() != test.body {
				t.Errorf("body %s, want %s", rec.Body, test.body)
			}
			if location := rec.Header().Get("Location"); location != "" {
				t.Errorf("redirected to %s", location)
			}
			if got := rec.Header().Get("Content-Type"); got != "application/json" {
				t.Errorf("content type %q", got)
			}
			if rec.Header().Get("X-Request-Id") == "" {
				t.Error("no request id")
			}
		})
	}
}

func TestAllowListsMethods(t *testing.T) {
	s := serve(t, setup{rows: pathRows})
	for path, allow := range map[string]string{
		"/api/v1/probes/":          "GET, HEAD, POST, OPTIONS",
		"/api/v1/probes/archived/": "GET, HEAD, OPTIONS", // not PUT, which is for {id}
		"/health/live":             "GET, HEAD, OPTIONS",
	} {
		if got := s.do(request{method: "PATCH", target: path}).Header().Get("Allow"); got != allow {
			t.Errorf("%s: Allow %q, want %q", path, got, allow)
		}
	}
}

func TestNativeRoutesKeepTheirForm(t *testing.T) {
	s := serve(t, setup{})
	rec := s.do(request{target: "/api/health"})
	if rec.Code != 200 || !strings.Contains(rec.Body.String(), `"message"`) {
		t.Errorf("native health: %d %s", rec.Code, rec.Body)
	}
	rec = s.do(request{target: "/api/collections"})
	if rec.Code != 401 || !strings.Contains(rec.Body.String(), `"status":401`) {
		t.Errorf("native refusal: %d %s", rec.Code, rec.Body)
	}
	rec = s.do(request{target: "/nowhere"})
	if rec.Code != 404 || !strings.Contains(rec.Body.String(), `"status":404`) {
		t.Errorf("unknown page: %d %s", rec.Code, rec.Body)
	}
	if rec := s.do(request{target: "/_/"}); rec.Code != 200 {
		t.Errorf("dashboard: %d", rec.Code)
	}
}

func TestHeadFollowsGet(t *testing.T) {
	s := serve(t, setup{rows: pathRows})
	for _, path := range []string{"/api/v1/probes/", "/health/live", "/api/v1/nothing/"} {
		asked, err := s.wire("GET", path, nil)
		if err != nil {
			t.Fatal(err)
		}
		headed, err := s.wire("HEAD", path, nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(headed.Body)
		if err != nil {
			t.Fatal(err)
		}
		if headed.StatusCode != asked.StatusCode || headed.ContentLength != asked.ContentLength || len(body) > 0 {
			t.Errorf("%s: HEAD %d with length %d and body %q, GET %d with length %d", path,
				headed.StatusCode, headed.ContentLength, body, asked.StatusCode, asked.ContentLength)
		}
		if rec := s.do(request{method: "HEAD", target: path}); rec.Body.Len() > 0 {
			t.Errorf("%s: HEAD wrote a body", path)
		}
	}
}

// Over the network, where the client would follow a redirect.
func TestUntidyPathOverNetwork(t *testing.T) {
	s := serve(t, setup{rows: pathRows})
	res, err := s.wire("GET", "/api/v1//probes/", nil)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != 404 || res.Request.URL.Path != "/api/v1//probes/" {
		t.Errorf("%d from %s", res.StatusCode, res.Request.URL.Path)
	}
}

// The files of pb_public, served at /{path...}, must not match unknown paths of the API.
func TestStaticFilesDoNotMatchAPI(t *testing.T) {
	factory := func(t testing.TB) *tests.TestApp {
		app := vigiltest.NewApp(t)
		app.OnServe().BindFunc(func(e *core.ServeEvent) error {
			e.Router.GET("/{path...}", func(e *core.RequestEvent) error { return e.String(200, "file") })
			return open(e, setup{limits: generous}, io.Discard)
		})
		return app
	}
	for _, scenario := range []tests.ApiScenario{
		{Name: "unknown path", Method: "GET", URL: "/api/v1/nothing/", ExpectedStatus: 404, ExpectedContent: []string{`"code":"not_found"`}},
		{Name: "health", Method: "GET", URL: "/health/live", ExpectedStatus: 200, ExpectedContent: []string{`"status":"ok"`}},
		{Name: "file", Method: "GET", URL: "/index.html", ExpectedStatus: 200, ExpectedContent: []string{"file"}},
		{Name: "wrong method", Method: "POST", URL: "/health/live", ExpectedStatus: 405, ExpectedContent: []string{`"code":"method_not_allowed"`}},
	} {
		scenario.TestAppFactory = factory
		scenario.Test(t)
	}
}

func TestTidy(t *testing.T) {
	for path, want := range map[string]bool{
		"/": true, "/a": true, "/a/": true, "/a/b.c/..d/": true, "/a/%2e%2e/": true,
		"//": false, "/a//b": false, "/a//": false, "/a/.": false, "/a/../b": false, "/..": false, "": false, "a/b": false, "*": false,
	} {
		if got := web.Tidy(path); got != want {
			t.Errorf("tidy(%q) = %v, want %v", path, got, want)
		}
	}
}

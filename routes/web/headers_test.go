package web_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/routes/web"
)

func TestCommonHeaders(t *testing.T) {
	s := serve(t, setup{rows: []web.Route{
		get("/private/", authz.ReadPatients, ok),
		get("/panic/", authz.Anyone, func(*web.Call) error { panic("x") }),
	}})
	want := map[string]string{
		"Cache-Control":                "no-store",
		"Strict-Transport-Security":    "max-age=31536000; includeSubDomains",
		"X-Content-Type-Options":       "nosniff",
		"Content-Security-Policy":      "default-src 'none'; frame-ancestors 'none'",
		"Referrer-Policy":              "no-referrer",
		"Cross-Origin-Resource-Policy": "same-site",
		"X-Request-Id":                 "caller-chose.this_1",
		"Server":                       "",
	}
	for _, r := range []request{
		{target: "/api/v1/private/", token: "nurse"},
		{target: "/api/v1/private/"},
		{target: "/api/v1/panic/"},
		{target: "/api/v1/nothing/"},
		{target: "/api/v1//"},
		{target: "/health/live"},
		{method: "OPTIONS", target: "/api/v1/private/"},
	} {
		r.header = map[string]string{"X-Request-ID": "caller-chose.this_1"}
		rec := s.do(r)
		for name, value := range want {
			if got := rec.Header().Get(name); got != value {
				t.Errorf("%s %s: %s %q, want %q", r.method, r.target, name, got, value)
			}
		}
	}
	dashboard := s.do(request{target: "/_/"}).Header()
	if policy := dashboard.Get("Content-Security-Policy"); !strings.Contains(policy, "script-src 'self';") || strings.Contains(policy, "127.0.0.1") {
		t.Errorf("the dashboard's policy is %q", policy)
	}
	if got := dashboard.Get("Referrer-Policy"); got != "no-referrer" {
		t.Errorf("the dashboard's Referrer-Policy is %q", got)
	}
}

func TestRequestID(t *testing.T) {
	s := serve(t, setup{})
	for sent, kept := range map[string]bool{
		"":                         false,
		"12345678":                 true,
		"1234567":                  false,
		strings.Repeat("a", 64):    true,
		strings.Repeat("a", 65):    false,
		"Jane Doe 1970":            false,
		"line\\nbreak":             false,
		"ünïcödé-1":                false,
		"A.b_c-0123":               true,
		"0189-uuid-like-form.v1_x": true,
	} {
		got := s.do(request{target: "/health/live", header: map[string]string{"X-Request-ID": sent}}).Header().Get("X-Request-ID")
		if (got == sent) != kept || len(got) < 8 {
			t.Errorf("sent %q, got %q", sent, got)
		}
	}
}

func TestCrossOrigin(t *testing.T) {
	const friend, stranger = "https://console.example.org", "https://evil.example.org"
	open := serve(t, setup{origins: []string{friend}, rows: []web.Route{post("/private/", authz.ReadPatients, ok)}})
	closed := serve(t, setup{rows: []web.Route{post("/private/", authz.ReadPatients, ok)}})
	for name, test := range map[string]struct {
		server         *server
		method, origin string
		path           string
		status         int
		allowed        string
	}{
		"preflight of a friend":     {open, "OPTIONS", friend, "/api/v1/private/", 204, friend},
		"preflight of a stranger":   {open, "OPTIONS", stranger, "/api/v1/private/", 204, ""},
		"preflight, closed":         {closed, "OPTIONS", friend, "/api/v1/private/", 204, ""},
		"request of a friend":       {open, "POST", friend, "/api/v1/private/", 200, friend},
		"request of a stranger":     {open, "POST", stranger, "/api/v1/private/", 200, ""},
		"request without an origin": {open, "POST", "", "/api/v1/private/", 200, ""},
		"native, friend":            {open, "GET", friend, "/api/health", 200, friend},
		"native, stranger":          {closed, "GET", stranger, "/api/health", 200, ""},
		"lookalike":                 {open, "POST", "https://console.example.org.evil.example", "/api/v1/private/", 200, ""},
	} {
		t.Run(name, func(t *testing.T) {
			rec := test.server.do(request{method: test.method, target: test.path, token: "nurse", header: map[string]string{
				"Origin": test.origin, "Access-Control-Request-Method": "POST",
			}})
			expect(t, rec, test.status, "")
			h := rec.Header()
			if got := h.Get("Access-Control-Allow-Origin"); got != test.allowed {
				t.Errorf("allowed %q, want %q", got, test.allowed)
			}
			if h.Get("Access-Control-Allow-Credentials") != "" {
				t.Error("credentials allowed")
			}
			if test.method == "OPTIONS" && test.allowed != "" {
				if h.Get("Access-Control-Allow-Methods") != "GET,POST,PUT,PATCH,DELETE" || h.Get("Access-Control-Max-Age") != "600" ||
					h.Get("Access-Control-Allow-Headers") != "Authorization,Content-Type,X-Request-ID,X-Emergency-Access,Idempotency-Key,Prefer,If-Match,If-None-Match" {
					t.Errorf("preflight answer %v", h)
				}
			}
			if test.method != "OPTIONS" && test.allowed != "" && !strings.Contains(h.Get("Access-Control-Expose-Headers"), "Retry-After") {
				t.Errorf("exposed %q", h.Get("Access-Control-Expose-Headers"))
			}
		})
	}
}

// A searched name is in the query, in the path of an unknown page, or in the referrer; none may reach the log.
func TestAccessLog(t *testing.T) {
	s := serve(t, setup{rows: []web.Route{
		get("/private/{id}/", authz.ReadPatients, ok),
		get("/panic/", authz.Anyone, func(*web.Call) error { panic("Jane") }),
	}})
	for _, test := range []struct {
		request request
		route   string
		status  float64
		user    any
	}{
		{request{target: "/api/v1/private/Jane/?search=Jane", token: "nurse"}, "/api/v1/private/{id}/", 200, 42.0},
		{request{target: "/api/v1/private/Jane?search=Jane"}, "/api/v1/private/{id}", 401, nil},
		{request{target: "/api/v1/panic/?search=Jane"}, "/api/v1/panic/", 500, nil},
		{request{target: "/api/v1/Jane//?search=Jane"}, "/api/{path...}", 404, nil},
		{request{method: "POST", target: "/Jane?search=Jane"}, "/", 404, nil},
		{request{target: "/health/live?search=Jane"}, "/health/live", 200, nil},
		{request{target: "/api/health?search=Jane"}, "/api/health", 200, nil},
		{request{target: "/api/collections?filter=Jane"}, "/api/collections", 401, nil},
	} {
		test.request.header = map[string]string{"Referer": "https://console.example.org/?Jane", "User-Agent": "Jane", "X-Request-ID": "request-1"}
		s.do(test.request)
		lines := s.log.lines(t, "request")
		if len(lines) != 1 {
			t.Fatalf("%s: %d lines", test.request.target, len(lines))
		}
		line := lines[0]
		if line["route"] != test.route || line["status"] != test.status || line["user"] != test.user {
			t.Errorf("%s: logged %v", test.request.target, line)
		}
		for name, value := range line {
			if text, isText := value.(string); isText && strings.Contains(text, "Jane") {
				t.Errorf("%s: %s holds %q", test.request.target, name, text)
			}
		}
		if strings.HasPrefix(test.route, "/api/v1") && line["request_id"] != "request-1" {
			t.Errorf("%s: request id %v", test.request.target, line["request_id"])
		}
	}
}

func TestAccept(t *testing.T) {
	s := serve(t, setup{rows: []web.Route{
		get("/probe/", authz.Anyone, ok),
		get("/report/", authz.Anyone, func(c *web.Call) error {
			return c.Attach("text/csv; charset=utf-8", `claims "Q1" é.csv`, []byte("a,b\n"))
		}),
	}})
	for accept, status := range map[string]int{
		"":                                 200,
		"*/*":                              200,
		"application/json":                 200,
		"application/json; charset=utf-8":  200,
		"application/*;q=0.1":              200,
		"text/html, application/xhtml+xml": 406,
		"text/html, */*;q=0.8":             200,
		"application/json;q=0":             406,
		"application/json;q=0, */*":        406,
		"text/csv":                         406,
		"nonsense":                         406,
		";;;":                              200,
	} {
		rec := s.do(request{target: "/api/v1/probe/", header: map[string]string{"Accept": accept}})
		if rec.Code != status {
			t.Errorf("Accept %q: %d, want %d", accept, rec.Code, status)
		}
		if status == 406 && code(t, rec) != "not_acceptable" {
			t.Errorf("Accept %q: %s", accept, rec.Body)
		}
	}
	rec := s.do(request{target: "/api/v1/report/"})
	if got := rec.Header().Get("Content-Disposition"); !strings.HasPrefix(got, "attachment; filename") || rec.Body.String() != "a,b\n" {
		t.Errorf("attachment %q %q", got, rec.Body)
	}
}

func TestPreferred(t *testing.T) {
	offers := []string{"application/json", "application/fhir+json", "text/csv"}
	for accept, want := range map[string]string{
		"": "application/json", "text/csv": "text/csv", "*/*": "application/json",
		"application/json;q=0.5, text/csv;q=0.9": "text/csv",
		"application/fhir+json, */*;q=0.1":       "application/fhir+json",
		"text/*, application/json;q=0.2":         "text/csv",
		"image/png":                              "",
		"text/csv;q=7":                           "text/csv",
	} {
		if got := web.Preferred(http.Header{"Accept": {accept}}, offers...); got != want {
			t.Errorf("Accept %q: %q, want %q", accept, got, want)
		}
	}
	if web.Preferred(http.Header{"Accept": {"image/png"}}) == "" {
		t.Error("an answer without a body was refused")
	}
}

func TestLongURL(t *testing.T) {
	s := serve(t, setup{rows: []web.Route{get("/probe/", authz.Anyone, ok)}})
	target := "/api/v1/probe/?x="
	expect(t, s.do(request{target: target + strings.Repeat("a", 8192-len(target))}), 200, "")
	expect(t, s.do(request{target: target + strings.Repeat("a", 8193-len(target))}), 400, "validation_error")

	res, err := s.wire("GET", "/api/v1/probe/?x="+strings.Repeat("a", 40<<10), nil)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("header block of 40 KiB: %d", res.StatusCode)
	}
}

// PocketBase's own writer drops members that a "fields" parameter does not name.
func TestFieldsParameterIsIgnored(t *testing.T) {
	s := serve(t, setup{rows: []web.Route{get("/probe/", authz.Anyone, ok)}})
	if rec := s.do(request{target: "/api/v1/probe/?fields=x"}); rec.Body.String() != `{"caller":""}` {
		t.Errorf("got %s", rec.Body)
	}
}

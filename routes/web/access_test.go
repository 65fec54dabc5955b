package web_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/ratelimit"
	"github.com/vigilhealth/vigil/routes/web"
)

func scope(c *web.Call) error {
	return c.OK(fmt.Sprintf("%s %d %d", c.Caller.Role, c.Caller.ID, c.Reach))
}

func TestRolesDecideBeforeAnyLookup(t *testing.T) {
	s := serve(t, setup{rows: []web.Route{
		get("/probes/{id}/", authz.ReadPatients, scope),
		post("/probes/{id}/", authz.ProcessPending, func(*web.Call) error {
			t.Error("a refused request reached its handler")
			return fault.Missing()
		}),
	}})
	for _, test := range []struct {
		role authz.Role
		body string
	}{
		{authz.Admin, fmt.Sprintf(`"admin 42 %d"`, authz.All)},
		{authz.DataMonitor, fmt.Sprintf(`"data_monitor 42 %d"`, authz.All)},
		{authz.Patient, fmt.Sprintf(`"patient 42 %d"`, authz.Own)},
	} {
		rec := s.do(request{target: "/api/v1/probes/x/", token: string(test.role)})
		expect(t, rec, 200, "")
		if rec.Body.String() != test.body {
			t.Errorf("%s: %s, want %s", test.role, rec.Body, test.body)
		}
	}
	for _, role := range authz.Roles {
		if role != authz.Admin {
			rec := s.do(request{method: "POST", target: "/api/v1/probes/x/", token: string(role), body: "not json"})
			expect(t, rec, 403, "permission_denied")
		}
	}
}

func TestBearer(t *testing.T) {
	s := serve(t, setup{rows: []web.Route{
		get("/private/", authz.UseOwnAccount, ok),
		get("/public/", authz.Anyone, ok),
		get("/sign-in/", authz.Anyone, func(*web.Call) error {
			return fault.New(fault.Unauthenticated, "authentication_failed", "Wrong email or password.")
		}),
	}})
	for _, test := range []struct {
		path, authorization string
		status              int
		code                string
	}{
		{"/private/", "", 401, "not_authenticated"},
		{"/private/", "Basic dXNlcjpwYXNz", 401, "not_authenticated"},
		{"/private/", "nurse", 401, "not_authenticated"},
		{"/private/", "Bearer", 401, "not_authenticated"},
		{"/private/", "Bearer ", 401, "not_authenticated"},
		{"/private/", "Bearer nonsense", 401, "token_invalid"},
		{"/private/", "Bearer expired", 401, "token_expired"},
		{"/private/", "Bearer broken", 500, "server_error"},
		{"/private/", "bearer nurse", 200, ""},
		{"/public/", "", 200, ""},
		{"/public/", "Bearer expired", 200, ""},
		{"/public/", "Bearer broken", 200, ""},
		{"/nothing/", "Bearer expired", 404, "not_found"},
		{"/sign-in/", "", 401, "authentication_failed"},
	} {
		rec := s.do(request{target: "/api/v1" + test.path, header: map[string]string{"Authorization": test.authorization}})
		t.Run(test.path+test.authorization, func(t *testing.T) {
			expect(t, rec, test.status, test.code)
			want := ""
			if test.path == "/private/" && test.status == 401 {
				want = "Bearer"
			}
			if got := rec.Header().Get("WWW-Authenticate"); got != want {
				t.Errorf("WWW-Authenticate %q, want %q", got, want)
			}
		})
	}
}

func limitHeaders(h http.Header) string {
	return fmt.Sprintf("%s/%s/%s %s %s", h.Get("X-RateLimit-Limit"), h.Get("X-RateLimit-Remaining"), h.Get("X-RateLimit-Reset"),
		h.Get("RateLimit-Policy"), h.Get("RateLimit"))
}

func TestLimits(t *testing.T) {
	s := serve(t, setup{
		limits: map[ratelimit.Class]ratelimit.Policy{
			ratelimit.User: {Requests: 3, Window: time.Hour},
			ratelimit.Anon: {Requests: 2, Window: time.Hour},
			ratelimit.Auth: {Requests: 1, Window: time.Minute},
		},
		rows: []web.Route{
			get("/private/", authz.ReadPatients, ok),
			get("/admin/", authz.ProcessPending, ok),
			{Method: "POST", Path: "/sign-in/", Permission: authz.Anyone, Limit: ratelimit.Auth, Handle: ok},
			{Method: "POST", Path: "/webhook/", Permission: authz.SignedByGateway, Limit: ratelimit.Webhook, Handle: ok},
		},
	})
	for i, step := range []struct {
		request request
		status  int
		headers string
	}{
		// a user's own quota, from any address, on every kind of answer
		{request{target: "/api/v1/private/", token: "nurse", address: "192.0.2.1"}, 200, `3/2/3600 "user";q=3;w=3600 "user";r=2;t=3600`},
		{request{target: "/api/v1/admin/", token: "nurse", address: "192.0.2.2"}, 403, `3/1/3600 "user";q=3;w=3600 "user";r=1;t=3600`},
		{request{target: "/api/v1/nothing/", token: "nurse"}, 404, `3/0/3600 "user";q=3;w=3600 "user";r=0;t=3600`},
		{request{target: "/api/v1/private/", token: "nurse"}, 429, `3/0/3600 "user";q=3;w=3600 "user";r=0;t=3600`},
		{request{target: "/api/v1/private/", token: "admin"}, 200, `3/2/3600 "user";q=3;w=3600 "user";r=2;t=3600`},
		// without a valid token by address, counted before the token is rejected
		{request{target: "/api/v1/private/", address: "192.0.2.9"}, 401, `2/1/3600 "anon";q=2;w=3600 "anon";r=1;t=3600`},
		{request{target: "/api/v1/private/", token: "expired", address: "192.0.2.9"}, 401, `2/0/3600 "anon";q=2;w=3600 "anon";r=0;t=3600`},
		{request{target: "/api/v1/private/", address: "192.0.2.9"}, 429, `2/0/3600 "anon";q=2;w=3600 "anon";r=0;t=3600`},
		// an IPv6 /64 is one address
		{request{target: "/api/v1//", address: "2001:db8:1:2::1"}, 404, `2/1/3600 "anon";q=2;w=3600 "anon";r=1;t=3600`},
		{request{method: "PATCH", target: "/api/v1/private/", address: "2001:db8:1:2:ffff::2"}, 405, `2/0/3600 "anon";q=2;w=3600 "anon";r=0;t=3600`},
		{request{target: "/api/v1/private/", address: "2001:db8:1:2:3::3"}, 429, `2/0/3600 "anon";q=2;w=3600 "anon";r=0;t=3600`},
		{request{target: "/api/v1/private/", address: "2001:db8:1:3::1"}, 401, `2/1/3600 "anon";q=2;w=3600 "anon";r=1;t=3600`},
		// sign-in by address, also with a valid token
		{request{method: "POST", target: "/api/v1/sign-in/", address: "192.0.2.5"}, 200, `1/0/60 "auth";q=1;w=60 "auth";r=0;t=60`},
		{request{method: "POST", target: "/api/v1/sign-in/", address: "192.0.2.5", token: "admin"}, 429, `1/0/60 "auth";q=1;w=60 "auth";r=0;t=60`},
		// no policy, no limit; health is never limited
		{request{method: "POST", target: "/api/v1/webhook/", address: "192.0.2.9"}, 200, `//  `},
		{request{target: "/health/live", address: "192.0.2.9"}, 200, `//  `},
	} {
		rec := s.do(step.request)
		if rec.Code != step.status || limitHeaders(rec.Header()) != step.headers {
			t.Errorf("step %d: %d %s, want %d %s", i, rec.Code, limitHeaders(rec.Header()), step.status, step.headers)
		}
		if step.status == 429 {
			throttled(t, rec)
		} else if rec.Header().Get("Retry-After") != "" {
			t.Errorf("step %d: Retry-After without 429", i)
		}
	}
}

func throttled(t *testing.T, rec *httptest.ResponseRecorder) {
	t.Helper()
	expect(t, rec, 429, "throttled")
	wait := rec.Header().Get("Retry-After")
	if wait == "" || wait != rec.Header().Get("X-RateLimit-Reset") {
		t.Errorf("Retry-After %q, reset %q", wait, rec.Header().Get("X-RateLimit-Reset"))
	}
	if want := "Request was throttled. Expected available in " + wait + " seconds."; errorOf(t, rec).Detail != want {
		t.Errorf("detail %q, want %q", errorOf(t, rec).Detail, want)
	}
}

package e2e

import (
	"net/http"
	"strings"
	"testing"
)

// Every answer sends Strict-Transport-Security: pages, PocketBase's own routes, redirects, errors.
func TestStrictTransportEverywhere(t *testing.T) {
	t.Parallel()
	p := newPractice(t).serve(t, "")
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	statuses := map[int]bool{}
	for _, asked := range []string{
		"GET /", "HEAD /", "GET /index.html", "GET /nothing/here", "POST /", "GET /..//x", "GET //", "GET /_", "GET /_/", "GET /_/nothing", "GET /api/docs", "GET /api/docs/",
		"GET /api/docs/swagger-ui.css", "GET /api/health", "GET /api/collections/users/records", "GET /api/settings", "GET /api/nothing", "GET /api//health", "POST /api/realtime",
		"POST /api/collections/_superusers/auth-with-password", "POST /api/collections/users/request-password-reset", "OPTIONS /", "OPTIONS /api/v1/patients/",
		"GET /api/v1/patients/", "POST /api/v1/auth/login/", "DELETE /api/v1/auth/login/", "GET /api/v1/nothing/", "POST /api/v1/gateway/webhook/", "GET /health", "GET /health/live",
		"GET /.well-known/jwks.json", "GET /reset-password",
	} {
		method, path, _ := strings.Cut(asked, " ")
		r, err := http.NewRequestWithContext(t.Context(), method, p.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.URL.Opaque = path // not normalized
		res, err := client.Do(r)
		if err != nil {
			t.Fatalf("%s: %v", asked, err)
		}
		_ = res.Body.Close()
		statuses[res.StatusCode/100] = true
		if got := res.Header.Values("Strict-Transport-Security"); len(got) != 1 || got[0] != "max-age=31536000; includeSubDomains" {
			t.Errorf("%s answered %d with %q", asked, res.StatusCode, got)
		}
	}
	for _, class := range []int{2, 3, 4} {
		if !statuses[class] {
			t.Errorf("nothing answered %dxx", class)
		}
	}
}

package routes_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// requestToken requests a client token from the clinic's address, which its users share.
func (c *clinic) requestToken(id, secret string) (status int, policy string) {
	c.t.Helper()
	r := httptest.NewRequestWithContext(c.t.Context(), http.MethodPost, "/api/v1/oauth/token/", strings.NewReader("grant_type=client_credentials"))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.SetBasicAuth(id, secret)
	rec := httptest.NewRecorder()
	c.handler.ServeHTTP(rec, r)
	vigiltest.CheckResponse(c.t, http.MethodPost, r.URL.Path, rec.Code, rec.Header(), rec.Body.Bytes())
	return rec.Code, rec.Header().Get("RateLimit-Policy")
}

// Clients that sign in correctly do not lock out users at the same address, and are rate-limited themselves.
func TestClientSignInsDoNotLockOutUsers(t *testing.T) {
	c := newLimitedClinic(t)
	var machines []object
	for range 3 {
		machines = append(machines, c.request(authz.Admin, "POST", "/clients/", object{"name": "Reports", "scopes": []string{"patients.read"}}).want(201).object())
	}
	for n := range 60 {
		m := machines[n%3]
		if status, policy := c.requestToken(m["id"].(string), m["client_secret"].(string)); status != 200 {
			t.Fatalf("token %d: %d under %s", n, status, policy)
		}
	}
	if status, policy := c.requestToken(machines[0]["id"].(string), machines[0]["client_secret"].(string)); status != 429 || policy != `"auth";q=20;w=60` {
		t.Errorf("a machine's 21st token: %d under %s", status, policy)
	}
	if status, policy, _ := c.postLogin(c.people[authz.Nurse].Email(), vigiltest.Password); status != 200 {
		t.Errorf("a person beside them: %d under %s", status, policy)
	}
	if status, policy := c.requestToken(machines[1]["id"].(string), "wrong"); status != 401 {
		t.Errorf("a first wrong secret: %d under %s", status, policy)
	}
}

// Guesses at client secrets are limited like guesses at passwords, per account.
func TestClientSecretGuessesAreLimited(t *testing.T) {
	c := newLimitedClinic(t)
	m := c.request(authz.Admin, "POST", "/clients/", object{"name": "Reports", "scopes": []string{"patients.read"}}).want(201).object()
	id, secret := m["id"].(string), m["client_secret"].(string)
	refused := 0
	for n := range 40 {
		clientID := id
		if n%2 == 1 {
			clientID = "00000000-0000-4000-8000-000000000000"
		}
		switch status, policy := c.requestToken(clientID, "wrong"); {
		case status == 429 && policy == `"auth";q=20;w=60`:
			refused++
		case status != 401:
			t.Fatalf("guess %d: %d under %s", n, status, policy)
		}
	}
	if refused != 20 {
		t.Errorf("%d of 40 guesses were refused", refused)
	}
	if status, _ := c.requestToken(id, secret); status != 429 {
		t.Errorf("the right secret from there: %d", status)
	}
	limited := c.signIn(machine{id, secret}, "")
	for range 60 {
		if limited.status == 429 {
			break
		}
		limited = c.signIn(machine{id, secret}, "")
	}
	limited.want(429, "throttled").wantAt(object{"error": "temporarily_unavailable", "error_description": limited.text("detail")})
	if status, _, _ := c.postLogin(c.people[authz.Nurse].Email(), vigiltest.Password); status != 429 {
		t.Errorf("a right password from there: %d", status)
	}
}

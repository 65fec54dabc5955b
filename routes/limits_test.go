package routes_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/ratelimit"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/routes"
)

// newLimitedClinic has the service's default rate limits.
func newLimitedClinic(t *testing.T) *clinic {
	t.Helper()
	return newClinic(t, func(e *routes.Engines) {
		e.Limits = ratelimit.NewLimiter(map[ratelimit.Class]ratelimit.Policy{
			ratelimit.User: {Requests: 1000, Window: time.Hour}, ratelimit.Anon: {Requests: 100, Window: time.Hour}, ratelimit.Auth: {Requests: 20, Window: time.Minute},
			ratelimit.SignIn: {Requests: 300, Window: time.Minute}, ratelimit.Refresh: {Requests: 120, Window: time.Minute},
		})
	})
}

// postPublic sends a public request from the clinic's address and returns the status and the policy that counted it.
func (c *clinic) postPublic(path, body string) (status int, policy, code string) {
	c.t.Helper()
	r := httptest.NewRequestWithContext(c.t.Context(), "POST", "/api/v1/auth"+path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	rec := httptest.NewRecorder()
	c.handler.ServeHTTP(rec, r)
	vigiltest.CheckResponse(c.t, "POST", r.URL.Path, rec.Code, rec.Header(), rec.Body.Bytes())
	if rec.Code == 429 && rec.Header().Get("Retry-After") == "" {
		c.t.Error("429 without Retry-After")
	}
	o := reply{c.t, path, rec.Code, rec.Body.String()}.object()
	code, _ = o["code"].(string)
	if token, ok := o["refresh"].(string); ok {
		code = token
	}
	return rec.Code, rec.Header().Get("RateLimit-Policy"), code
}

func (c *clinic) postLogin(email, password string) (status int, policy, code string) {
	c.t.Helper()
	return c.postPublic("/login/", fmt.Sprintf(`{"email":%q,"password":%q}`, email, password))
}

// At eight in the morning sixty users behind one address sign in within a minute, some with typing errors, and none is
// refused; all refresh every quarter of an hour.
func TestClinicBehindOneAddress(t *testing.T) {
	c := newLimitedClinic(t)
	var sessions []string
	for n := range 60 {
		user := vigiltest.User(t, c.app, authz.Nurse, vigiltest.Email(fmt.Sprintf("colleague%d@vigil.test", n)))
		if n%4 == 0 {
			if status, _, _ := c.postLogin(user.Email(), "Wrong-Horse-42!"); status != 401 {
				t.Fatalf("wrong password %d: %d", n, status)
			}
		}
		status, policy, session := c.postLogin(user.Email(), vigiltest.Password)
		if status != 200 || policy != `"auth";q=20;w=60` {
			t.Fatalf("sign-in %d: %d under %s", n, status, policy)
		}
		sessions = append(sessions, session)
	}
	for range 4 {
		c.now = c.now.Add(15 * time.Minute)
		for n, session := range sessions {
			status, policy, next := c.postPublic("/token/refresh/", fmt.Sprintf(`{"refresh":%q}`, session))
			if status != 200 || policy != `"refresh";q=120;w=60` {
				t.Fatalf("refresh %d: %d under %s", n, status, policy)
			}
			sessions[n] = next
		}
	}
}

func TestRefreshLimit(t *testing.T) {
	c := newLimitedClinic(t)
	for n := range 121 {
		status, _, code := c.postPublic("/token/refresh/", `{"refresh":"rt_unknown"}`)
		if want := map[bool]int{false: 401, true: 429}[n == 120]; status != want {
			t.Fatalf("refresh %d: %d %s", n, status, code)
		}
	}
	if status, _, _ := c.postLogin(c.people[authz.Nurse].Email(), vigiltest.Password); status != 200 {
		t.Errorf("a sign-in beside it: %d", status)
	}
	c.now = c.now.Add(time.Minute)
	if status, _, _ := c.postPublic("/token/refresh/", `{"refresh":"rt_unknown"}`); status != 401 {
		t.Errorf("a minute later: %d", status)
	}
}

// Guessing is limited to twenty failures a minute per address, over all accounts, and five per account.
func TestGuessingIsLimited(t *testing.T) {
	for name, body := range map[string]func(n int) (path, body string){
		"one password at many accounts": func(n int) (string, string) {
			return "/login/", fmt.Sprintf(`{"email":"person%d@vigil.test","password":"Spring-2026!!"}`, n)
		},
		"made-up accounts of one name after the other": func(n int) (string, string) {
			return "/login/", fmt.Sprintf(`{"email":"%d@x","password":"x"}`, n)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newLimitedClinic(t)
			refused := 0
			for n := range 40 {
				switch status, policy, code := c.postPublic(body(n)); {
				case status == 429 && policy == `"auth";q=20;w=60`:
					refused++
				case status != 401:
					t.Fatalf("guess %d: %d %s under %s", n, status, code, policy)
				}
			}
			if refused != 20 {
				t.Errorf("%d of 40 guesses were refused", refused)
			}
			if status, _, _ := c.postLogin(c.people[authz.Nurse].Email(), vigiltest.Password); status != 429 {
				t.Errorf("a right password from there: %d", status)
			}
		})
	}
}

// One account may sign in twenty times a minute from one address, as the contract states, without affecting other
// accounts.
func TestSignInsPerAccount(t *testing.T) {
	c := newLimitedClinic(t)
	email := c.people[authz.Nurse].Email()
	for n := range 21 {
		spelled := email
		if n%2 == 1 {
			spelled = " " + strings.ToUpper(email)
		}
		status, _, code := c.postLogin(spelled, vigiltest.Password)
		if want := map[bool]int{false: 200, true: 429}[n == 20]; status != want {
			t.Fatalf("sign-in %d: %d %s", n, status, code)
		}
	}
	if status, _, _ := c.postLogin(c.people[authz.MA].Email(), vigiltest.Password); status != 200 {
		t.Errorf("a colleague: %d", status)
	}
}

// A locked account that an app keeps trying does not lock out other users, nor does a password that waits for its second
// factor.
func TestLockedAccountAffectsNoOther(t *testing.T) {
	c := newLimitedClinic(t)
	email := c.people[authz.Nurse].Email()
	for range 19 {
		_, _, _ = c.postLogin(email, "Wrong-Horse-42!")
	}
	user := vigiltest.User(t, c.app, authz.Provider, vigiltest.Email("two@vigil.test"), vigiltest.TwoFactor("JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"))
	for range 19 {
		if status, _, code := c.postLogin(user.Email(), vigiltest.Password); status != 401 || code != "totp_required" {
			t.Fatalf("without a code: %d %s", status, code)
		}
	}
	if status, _, _ := c.postLogin(c.people[authz.MA].Email(), vigiltest.Password); status != 200 {
		t.Errorf("a colleague: %d", status)
	}
}

// Requests that send mail are limited to twenty a minute: per address without a token, per user with one.
func TestMailsAreLimited(t *testing.T) {
	c := newLimitedClinic(t)
	for n := range 21 {
		status, policy, _ := c.postPublic("/password-reset/", fmt.Sprintf(`{"email":"person%d@vigil.test"}`, n))
		if want := map[bool]int{false: 200, true: 429}[n == 20]; status != want || policy != `"auth";q=20;w=60` {
			t.Fatalf("reset %d: %d under %s", n, status, policy)
		}
	}
	verify := func(user *collections.User) int {
		return c.requestAs(user, "POST", "/auth/2fa/verify/", object{"totp_code": "000000"}).status
	}
	for n := range 21 {
		if got, want := verify(c.people[authz.Nurse]), map[bool]int{false: 400, true: 429}[n == 20]; got != want {
			t.Fatalf("verify %d: %d", n, got)
		}
	}
	if got := verify(c.people[authz.MA]); got != 400 {
		t.Errorf("a colleague: %d", got)
	}
}

package routes_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/routes"
)

// signOnClinic is a clinic with an identity provider.
type signOnClinic struct {
	*clinic
	provider *vigiltest.IdentityProvider
}

func newSignOnClinic(t *testing.T, change ...func(*auth.OIDCOptions, *auth.Options)) *signOnClinic {
	t.Helper()
	h := &signOnClinic{}
	h.provider = vigiltest.NewIdentityProvider(t, func() time.Time { return h.now })
	o := auth.OIDCOptions{
		Issuer: h.provider.URL, ClientID: vigiltest.SignOnClient, ClientSecret: phi.Text(vigiltest.SignOnSecret), Key: []byte("a key for tests"),
		RedirectURL: "https://vigil.example.org/api/v1/auth/oidc/callback/",
		Roles:       []auth.GroupRole{{Group: "RPM Leads", Role: authz.ClinicalManager}, {Group: "RPM Nurses", Role: authz.Nurse}, {Group: "IT", Role: authz.Admin}},
	}
	a := auth.Options{RefreshFamilyLife: 7 * 24 * time.Hour, FreshSignIn: 10 * time.Minute, SignInURL: "https://vigil.example.org"}
	for _, f := range change {
		f(&o, &a)
	}
	h.clinic = newClinic(t, func(e *routes.Engines) {
		a.SignOn = auth.NewOIDCProvider(o)
		e.Auth = auth.New(vigiltest.Sealer(), a)
		e.PracticeName = "Maple Street Clinic"
		e.AccessTokens = auth.TokenAuthenticator{Users: e.Auth, Clients: e.Clients}
	})
	return h
}

// redirected is a browser that was redirected to the provider.
type redirected struct{ location, cookie string }

func (s *signOnClinic) begin() redirected {
	s.t.Helper()
	r := httptest.NewRequestWithContext(s.t.Context(), http.MethodGet, "/api/v1/auth/oidc/login/", nil)
	rec := httptest.NewRecorder()
	s.handler.ServeHTTP(rec, r)
	answer := rec.Result()
	defer answer.Body.Close()
	cookies := answer.Cookies()
	if answer.StatusCode != http.StatusFound || len(cookies) != 1 {
		s.t.Fatalf("%d %s", answer.StatusCode, rec.Body)
	}
	if c := cookies[0]; !c.HttpOnly || !c.Secure || c.SameSite != http.SameSiteLaxMode || c.Path != "/api/v1/auth/oidc/" || c.MaxAge != 600 {
		s.t.Errorf("the cookie is %s", c)
	}
	return redirected{answer.Header.Get("Location"), cookies[0].Name + "=" + cookies[0].Value}
}

// callback requests the callback as the browser does, accepting JSON.
func (s *signOnClinic) callback(w redirected, query url.Values) reply {
	s.t.Helper()
	return s.send("", "GET", "/auth/oidc/callback/?"+query.Encode(), nil, "Accept", "application/json", "Cookie", w.cookie)
}

// signOn runs a whole sign-in.
func (s *signOnClinic) signOn(claims object) reply {
	s.t.Helper()
	w := s.begin()
	return s.callback(w, s.provider.Authorize(w.location, claims))
}

func claimsOf(sub string, more object) object {
	claims := object{
		"sub": sub, "email": sub + "@practice.example", "email_verified": true, "given_name": "Ann", "family_name": "Lee", "groups": []string{"Everybody", "RPM Nurses"},
	}
	for name, value := range more {
		claims[name] = value
	}
	return claims
}

// The first sign-in creates an account; later ones find it, and each sets the role from the groups. Source:
// docs/decisions/authentication.md, "Single sign-on".
func TestSignOn(t *testing.T) {
	h := newSignOnClinic(t)
	if got := h.send("", "GET", "/auth/oidc/", nil).want(200).object(); got["offered"] != true || got["required"] != false || got["practice_name"] != "Maple Street Clinic" {
		t.Error(got)
	}
	w := h.begin()
	authorize, err := url.Parse(w.location)
	if err != nil || authorize.Query().Get("scope") != "openid profile email groups" || strings.Contains(w.location, strings.Split(w.cookie, "=")[1]) {
		t.Errorf("%s, %v", w.location, err)
	}
	query := h.provider.Authorize(w.location, claimsOf("ann", object{"email": "Ann@Practice.example"}))
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/auth/oidc/callback/?"+query.Encode(), nil)
	r.Header.Set("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8")
	rec := httptest.NewRecorder()
	h.handler.ServeHTTP(rec, r)
	if to := rec.Header().Get("Location"); rec.Code != 302 || to != "https://vigil.example.org/#/sign-on?"+query.Encode() {
		t.Errorf("%d, %s", rec.Code, to)
	}
	first := h.callback(w, query).want(200)
	first.wantAt(object{"user.email": "ann@practice.example", "user.first_name": "Ann", "user.last_name": "Lee", "user.role": "nurse", "access_expires_in": 900.0})
	h.send(first.text("access"), "GET", "/auth/profile/", nil).want(200).wantAt(object{"must_change_password": false})
	h.callback(w, query).want(400, "invalid_oauth_state") // once
	if got := h.queryColumn("SELECT role FROM users WHERE email = 'ann@practice.example'"); len(got) != 1 || got[0] != "nurse" {
		t.Error(got)
	}
	second := h.signOn(claimsOf("ann", object{"email": "married@practice.example", "groups": []string{"RPM Nurses", "RPM Leads"}})).want(200)
	second.wantAt(object{"user.id": first.at("user.id"), "user.email": "ann@practice.example", "user.role": "clinical_manager"})
	h.send("", "POST", "/auth/token/refresh/", object{"refresh": first.text("refresh")}).want(401, "token_revoked") // another role
	h.signOn(claimsOf("ann", object{"groups": "IT"})).want(200).wantAt(object{"user.role": "admin"})
	h.signOn(claimsOf("ann", object{"groups": []string{"RPM Leads"}})).want(200)
	third := h.signOn(claimsOf("ann", nil)).want(200)
	h.signOn(claimsOf("ann", object{"groups": []string{"Everybody"}})).want(403, "no_role")
	h.send("", "POST", "/auth/token/refresh/", object{"refresh": third.text("refresh")}).want(401, "token_revoked")
	h.signOn(claimsOf("bob", object{"groups": nil})).want(403, "no_role")
	if got := h.queryColumn("SELECT id FROM users WHERE email LIKE 'bob@%'"); len(got) != 0 {
		t.Error("an account without a role")
	}
	if got := h.audited("auth.identity"); got != "linked" {
		t.Errorf("recorded %q", got)
	}
}

// Sign-ins that are refused, and identity tokens that do not verify. Source: docs/decisions/authentication.md, "Single
// sign-on".
func TestSignOnRefused(t *testing.T) {
	h := newSignOnClinic(t)
	w, other := h.begin(), h.begin()
	query := h.provider.Authorize(w.location, claimsOf("ann", nil))
	const unknown = "invalid_oauth_state"
	h.callback(other, query).want(400, unknown)
	h.callback(redirected{}, query).want(400, unknown)
	h.callback(w, url.Values{"code": query["code"]}).want(400, unknown)
	altered := []byte(query.Get("state"))
	altered[0] ^= 1 // any other value
	h.callback(w, url.Values{"code": query["code"], "state": {string(altered)}}).want(400, unknown)
	h.callback(w, url.Values{"state": query["state"], "error": {"access_denied"}}).want(400, "authorization_denied")
	h.callback(w, query).want(400, unknown) // once, also after a refusal
	w = h.begin()
	query = h.provider.Authorize(w.location, claimsOf("ann", nil))
	h.callback(w, url.Values{"state": query["state"], "code": {"guessed"}}).want(401, "authentication_failed")
	h.callback(w, query).want(400, unknown)
	w = h.begin()
	query = h.provider.Authorize(w.location, claimsOf("ann", nil))
	h.now = h.now.Add(10 * time.Minute)
	h.callback(w, query).want(400, unknown)

	claim := func(name string, value any) func(*jwt.Token) {
		return func(token *jwt.Token) { token.Claims.(jwt.MapClaims)[name] = value }
	}
	for name, spoil := range map[string]func(*jwt.Token){
		"nonce": claim("nonce", "another"), "no nonce": claim("nonce", nil), "audience": claim("aud", "somebody else"), "issuer": claim("iss", "https://evil.example"),
		"another's among several": func(token *jwt.Token) {
			claim("aud", []string{vigiltest.SignOnClient, "portal"})(token)
			claim("azp", "portal")(token)
		},
		"not ours among several": claim("aud", []string{vigiltest.SignOnClient, "portal"}), "another's alone": claim("azp", "portal"),
		"expired": claim("exp", h.now.Add(-time.Second).Unix()), "unknown key": func(token *jwt.Token) { token.Header["kid"] = "two" },
	} {
		h.provider.ModifyToken = spoil
		if got := h.signOn(claimsOf("ann", nil)); got.status != 401 {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	h.provider.ModifyToken = func(token *jwt.Token) {
		claim("aud", []string{"portal", vigiltest.SignOnClient})(token)
		claim("azp", vigiltest.SignOnClient)(token)
	}
	h.signOn(claimsOf("several", nil)).want(200)
	if _, err := h.app.DB().NewQuery("DELETE FROM identities").Execute(); err != nil {
		t.Fatal(err)
	}
	h.provider.ModifyToken, h.provider.UnknownKey = nil, true
	h.signOn(claimsOf("ann", nil)).want(401, "authentication_failed")
	h.provider.UnknownKey = false
	if got := h.queryColumn("SELECT id FROM identities"); len(got) != 0 {
		t.Error(got)
	}
	away := newSignOnClinic(t, func(o *auth.OIDCOptions, _ *auth.Options) { o.Issuer = "http://127.0.0.1:1" })
	away.send("", "GET", "/auth/oidc/login/", nil).want(502, "oidc_failed")
	wrong := newSignOnClinic(t, func(o *auth.OIDCOptions, _ *auth.Options) { o.ClientSecret = "not this" })
	wrong.signOn(claimsOf("ann", nil)).want(502, "oidc_failed")
	none := newClinic(t)
	if got := none.send("", "GET", "/auth/oidc/", nil).want(200).object(); got["offered"] != false {
		t.Error(got)
	}
	none.send("", "GET", "/auth/oidc/login/", nil).want(400, "oidc_not_configured")
	none.send("", "GET", "/auth/oidc/callback/?state=a&code=b", nil).want(400, "oidc_not_configured")
}

// Accounts that already exist. Source: docs/decisions/authentication.md, "Single sign-on".
func TestSignOnToAnAccount(t *testing.T) {
	h := newSignOnClinic(t)
	nurse, portal, admin := h.people[authz.Nurse], h.people[authz.Patient], h.people[authz.Admin]
	h.signOn(claimsOf("n", object{"email": nurse.Email(), "email_verified": false})).want(403, "account_not_linked")
	h.signOn(claimsOf("n", object{"email": nurse.Email(), "email_verified": nil})).want(403, "account_not_linked")
	h.signOn(claimsOf("p", object{"email": portal.Email()})).want(403, "account_not_linked")
	h.signOn(claimsOf("e", object{"email": ""})).want(403, "email_required")
	h.signOn(claimsOf("a", object{"email": admin.Email()})).want(400, "invalid_state") // the last administrator
	h.signOn(claimsOf("n", object{"email": strings.ToUpper(nurse.Email())})).want(200).wantAt(object{"user.email": nurse.Email()})
	h.signOn(claimsOf("next", object{"email": nurse.Email()})).want(403, "account_not_linked") // the provider reassigned the address to another identity
	h.signOn(claimsOf("n", nil)).want(200).wantAt(object{"user.email": nurse.Email()})
	h.login(nurse.Email(), vigiltest.Password).want(200) // the password still works
	if _, err := h.app.DB().NewQuery("UPDATE users SET is_active = FALSE WHERE id = '" + nurse.Id + "'").Execute(); err != nil {
		t.Fatal(err)
	}
	h.signOn(claimsOf("n", nil)).want(401, "authentication_failed")
	h.provider.UserInfo = object{"email": "page@practice.example", "groups": []string{"RPM Leads"}, "name": "Zoe Q. Bell"}
	h2 := newSignOnClinic(t)
	h2.provider.UserInfo = h.provider.UserInfo
	h2.signOn(object{"sub": "zoe"}).want(200).wantAt(object{"user.email": "page@practice.example", "user.role": "clinical_manager", "user.first_name": "Zoe", "user.last_name": "Q. Bell"})
	h3 := newSignOnClinic(t)
	h3.provider.UserInfo = object{"sub": "somebody else", "groups": []string{"IT"}}
	h3.signOn(object{"sub": "zoe", "email": "z@practice.example"}).want(401, "authentication_failed")
}

// An account that the provider made for an address it has not confirmed gets no password through that mailbox, until it confirms it.
func TestSignOnUnconfirmedAddress(t *testing.T) {
	h := newSignOnClinic(t)
	catcher, mailer := h.startMail()
	const hire = "future.hire@practice.example"
	resets := func(want int) {
		t.Helper()
		h.send("", "POST", "/auth/password-reset/", object{"email": hire}).want(200)
		n := 0
		for _, mail := range h.deliver(catcher, mailer) {
			if slices.Contains(mail.To, hire) && strings.Contains(mail.Text, "token=") {
				n++
			}
		}
		if n != want {
			t.Errorf("%d links were mailed, want %d", n, want)
		}
	}
	id := h.signOn(claimsOf("ev7", object{"email": hire, "email_verified": false})).want(200).at("user.id")
	resets(0)
	byAdmin := fmt.Sprintf("/users/%v/password-reset/", id)
	h.request(authz.Admin, "POST", byAdmin, nil).want(400, "invalid_state")
	h.signOn(claimsOf("ev7", object{"email": "other@practice.example"})).want(200) // another address is confirmed
	resets(0)
	h.signOn(claimsOf("ev7", object{"email": hire})).want(200)
	resets(1)
	h.request(authz.Admin, "POST", byAdmin, nil).want(200)
}

// An administrator unlinks an identity from an account: its sessions end at once, and the account is matched by address
// again. Source: docs/decisions/authentication.md, "Single sign-on".
func TestIdentityUnlinked(t *testing.T) {
	h := newSignOnClinic(t)
	nurse := h.people[authz.Nurse]
	path := fmt.Sprintf("/users/%d/identity/", nurse.Number())
	remove := func(role authz.Role) reply { return h.request(role, "DELETE", path, nil) }
	remove(authz.Admin).want(404, "not_found") // none is linked
	first := h.signOn(claimsOf("n", object{"email": nurse.Email()})).want(200)
	h.signOn(claimsOf("next", object{"email": nurse.Email()})).want(403, "account_not_linked")
	remove(authz.ClinicalManager).want(403, "permission_denied")
	h.send(first.text("access"), "GET", "/auth/profile/", nil).want(200)
	remove(authz.Admin).want(204)
	h.send(first.text("access"), "GET", "/auth/profile/", nil).want(401)
	h.send("", "POST", "/auth/token/refresh/", object{"refresh": first.text("refresh")}).want(401, "token_revoked")
	if got := h.audited("auth.identity"); got != "linked unlinked" {
		t.Errorf("recorded %q", got)
	}
	h.signOn(claimsOf("next", object{"email": nurse.Email()})).want(200).wantAt(object{"user.email": nurse.Email()})
	h.request(authz.Admin, "DELETE", "/users/999999/identity/", nil).want(404, "not_found")
}

// Only the provider's second factor replaces Vigil's. Source: docs/decisions/authentication.md, "Single sign-on".
func TestSignOnSecondFactor(t *testing.T) {
	h := newSignOnClinic(t, func(_ *auth.OIDCOptions, a *auth.Options) { a.RequireTwoFactor.Roles = []authz.Role{authz.Nurse} })
	bare := h.signOn(claimsOf("ann", object{"amr": []string{"pwd"}})).want(200).text("access")
	h.send(bare, "GET", "/patients/", nil).want(403, "two_factor_setup_required")
	full := h.signOn(claimsOf("ann", object{"amr": []string{"pwd", "otp", "mfa"}})).want(200)
	h.send(full.text("access"), "GET", "/patients/", nil).want(200)
	renewed := h.send("", "POST", "/auth/token/refresh/", object{"refresh": full.text("refresh")}).want(200)
	h.send(renewed.text("access"), "GET", "/patients/", nil).want(200)

	set := h.send(bare, "POST", "/auth/2fa/setup/", object{}).want(200)
	h.send(bare, "POST", "/auth/2fa/verify/", object{"totp_code": codeAt(t, set.text("secret"), h.now)}).want(200)
	h.signOn(claimsOf("ann", object{"amr": []string{"mfa"}})).want(200)
	step := h.signOn(claimsOf("ann", nil)).want(401, "totp_required")
	if methods, _ := step.at("methods").([]any); len(methods) != 2 {
		t.Errorf("%v", methods)
	}
	h.now = h.now.Add(30 * time.Second) // the code that turned it on is used
	verify := func(token, code string) reply {
		return h.send("", "POST", "/auth/oidc/verify/", object{"temporary_token": token, "totp_code": code})
	}
	good := codeAt(t, set.text("secret"), h.now)
	verify(step.text("temporary_token"), "000000").want(401, "authentication_failed")
	verify(step.text("temporary_token"), good).want(401, "authentication_failed") // already used
	again := h.signOn(claimsOf("ann", nil)).want(401, "totp_required").text("temporary_token")
	verify(again, good).want(200).wantAt(object{"user.is_2fa_enabled": true})
	last := h.signOn(claimsOf("ann", nil)).want(401, "totp_required").text("temporary_token")
	verify(last, good).want(401, "authentication_failed") // a code works once
	h.send("", "POST", "/auth/oidc/verify/", object{}).wantFields("temporary_token")

	trusted := newSignOnClinic(t, func(o *auth.OIDCOptions, a *auth.Options) {
		o.TrustMFA = true
		a.RequireTwoFactor.Roles = []authz.Role{authz.Nurse}
	})
	trusted.send(trusted.signOn(claimsOf("ann", nil)).want(200).text("access"), "GET", "/patients/", nil).want(200)
}

// If single sign-on is required, local sign-in is limited to administrators and to patients, who have no account at the
// provider.
func TestSignOnRequired(t *testing.T) {
	h := newSignOnClinic(t, func(_ *auth.OIDCOptions, a *auth.Options) { a.RequireSignOn = true })
	for _, role := range authz.Roles {
		login := h.login(h.people[role].Email(), vigiltest.Password)
		if role == authz.Admin || role == authz.Patient {
			login.want(200)
			continue
		}
		login.want(403, "sso_required")
		for range 6 {
			h.login(h.people[role].Email(), vigiltest.Password).want(403, "sso_required") // not counted as a failure
		}
		h.login(h.people[role].Email(), "wrong").want(401, "authentication_failed")
	}
	h.login("nobody@practice.example", vigiltest.Password).want(401, "authentication_failed")
	h.signOn(claimsOf("ann", nil)).want(200)
	if got := h.send("", "GET", "/auth/oidc/", nil).want(200).object(); got["required"] != true {
		t.Error(got)
	}
}

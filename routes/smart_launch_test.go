package routes_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/routes"
)

// launchClinic is a clinic with an EMR that launches Vigil.
type launchClinic struct {
	*clinic
	emr *vigiltest.IdentityProvider
}

func newLaunchClinic(t *testing.T, change ...func(*auth.LauncherOptions, *auth.Options, *routes.Engines)) *launchClinic {
	t.Helper()
	h := &launchClinic{}
	h.emr = vigiltest.NewIdentityProvider(t, func() time.Time { return h.now })
	h.emr.Launch = map[string]any{}
	o := auth.LauncherOptions{
		Issuers:     []auth.LaunchIssuer{{Address: "https://other.example/fhir", ClientID: "else"}, {Address: h.emr.URL, ClientID: vigiltest.SignOnClient}},
		RedirectURL: "https://vigil.example.org/launch/callback", PatientIssuer: h.emr.URL, Key: []byte("a key for tests"),
	}
	a := auth.Options{RefreshFamilyLife: 7 * 24 * time.Hour, FreshSignIn: 10 * time.Minute, SignInURL: "https://vigil.example.org"}
	h.clinic = newClinic(t, func(e *routes.Engines) {
		for _, f := range change {
			f(&o, &a, e)
		}
		a.Launcher = auth.NewLauncher(o)
		e.Auth = auth.New(vigiltest.Sealer(), a)
		e.AccessTokens = auth.TokenAuthenticator{Users: e.Auth, Clients: e.Clients}
	})
	return h
}

// open requests a page as a browser does.
func (lc *launchClinic) open(path string, headers ...string) *http.Response {
	lc.t.Helper()
	r := httptest.NewRequestWithContext(lc.t.Context(), http.MethodGet, path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	rec := httptest.NewRecorder()
	lc.handler.ServeHTTP(rec, r)
	answer := rec.Result()
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusFound {
		lc.t.Fatalf("%s: %d %s", path, answer.StatusCode, rec.Body)
	}
	return answer
}

// launch opens Vigil from the EMR.
func (lc *launchClinic) launch(cookie string) redirected {
	lc.t.Helper()
	answer := lc.open("/launch?"+url.Values{"iss": {lc.emr.URL}, "launch": {"xyz"}}.Encode(), "Cookie", cookie)
	c := answer.Cookies()[0]
	if !c.HttpOnly || !c.Secure || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || !strings.HasPrefix(c.Name, "__Host-") {
		lc.t.Errorf("the cookie is %s", c)
	}
	return redirected{answer.Header.Get("Location"), c.Name + "=" + c.Value}
}

func (lc *launchClinic) finish(w redirected, query url.Values) reply {
	lc.t.Helper()
	return lc.send("", "GET", "/auth/smart/callback/?"+query.Encode(), nil, "Cookie", w.cookie)
}

// signIn runs a whole launch by an EMR's user.
func (lc *launchClinic) signIn(subject string, claims object) reply {
	lc.t.Helper()
	w := lc.launch("")
	return lc.finish(w, lc.emr.Authorize(w.location, practitioner(subject, claims)))
}

func practitioner(subject string, more object) object {
	claims := object{"sub": subject, "fhirUser": "Practitioner/" + subject}
	for name, value := range more {
		claims[name] = value
	}
	return claims
}

// A nurse opens Vigil from a patient in the EMR: the first time she signs in to link the accounts, later not. Source:
// docs/decisions/authentication.md, "Launch from the EMR".
func TestLaunch(t *testing.T) {
	h := newLaunchClinic(t)
	patient := h.enroll(object{"external_id": "emr-77"})
	h.emr.Context = map[string]any{"patient": "emr-77"}

	w := h.launch("")
	asked, err := url.Parse(w.location)
	if q := asked.Query(); err != nil || q.Get("aud") != h.emr.URL || q.Get("launch") != "xyz" || q.Get("scope") != "launch openid fhirUser" {
		t.Errorf("%s, %v", w.location, err)
	}
	query := h.emr.Authorize(w.location, practitioner("p1", nil))
	if to := h.open("/launch/callback?" + query.Encode() + "&more=1").Header.Get("Location"); to != "https://vigil.example.org/#/launch?"+query.Encode() {
		t.Errorf("the console is opened at %s", to)
	}
	unlinked := h.finish(w, query).want(403, "account_not_linked")
	ticket := unlinked.text("ticket")
	h.finish(w, query).want(400, "invalid_oauth_state") // once

	nurse := h.login(h.people[authz.Nurse].Email(), vigiltest.Password).want(200).text("access")
	link := func(token, ticket, cookie string) reply {
		return h.send(token, "POST", "/auth/smart/link/", object{"ticket": ticket}, "Cookie", cookie)
	}
	link(nurse, ticket, "").want(400, "invalid_oauth_state") // another browser
	link(nurse, ticket+"x", w.cookie).want(400, "invalid_oauth_state")
	link(nurse, "", w.cookie).want(400, "validation_error")
	link(h.tokenOf(authz.Patient), ticket, w.cookie).want(403, "permission_denied")
	link(nurse, ticket, w.cookie).want(200).wantAt(object{"patient_id": patient, "patient_problem": nil})
	link(nurse, ticket, w.cookie).want(400, "invalid_oauth_state") // once

	h.signIn("p1", nil).want(200).wantAt(object{"launched_patient.patient_id": patient, "user.role": "nurse"})
	h.signIn("p1", object{"fhirUser": h.emr.URL + "/PractitionerRole/x"}).want(200)
	h.emr.Context = map[string]any{"patient": "emr-78"}
	h.signIn("p1", nil).want(200).wantAt(object{"launched_patient.patient_id": nil, "launched_patient.patient_problem": "unknown_patient"})
	h.emr.Context = nil
	h.signIn("p1", nil).want(200).wantAt(object{"launched_patient.patient_id": nil, "launched_patient.patient_problem": "no_patient"})
	for i, want := range []any{"no_patient", "unknown_patient"} { // newest first
		entry := h.request(authz.Admin, "GET", "/audit/events/?event=auth.login", nil).results()[i]
		h.request(authz.Admin, "GET", fmt.Sprintf("/audit/events/%v/", entry["id"]), nil).want(200).wantAt(object{"changes.patient.new": want, "changes.method.new": "smart"})
	}

	// Neither side can be linked twice.
	w = h.launch("")
	ticket = h.finish(w, h.emr.Authorize(w.location, practitioner("p2", nil))).want(403).text("ticket")
	link(nurse, ticket, w.cookie).want(409, "identity_conflict")
	h.people[authz.Nurse].Set("is_active", false)
	if err := h.app.Save(h.people[authz.Nurse]); err != nil {
		t.Fatal(err)
	}
	h.signIn("p1", nil).want(401, "authentication_failed")
}

// Two tabs of one browser, a launch that is replayed, another browser's, and an old one.
func TestLaunchStates(t *testing.T) {
	h := newLaunchClinic(t)
	one := h.launch("")
	two := h.launch(one.cookie)
	if one.cookie != two.cookie {
		t.Error("the second tab ends the launch of the first")
	}
	first, second := h.emr.Authorize(one.location, practitioner("p1", nil)), h.emr.Authorize(two.location, practitioner("p1", nil))
	h.finish(two, second).want(403, "account_not_linked")
	h.finish(one, first).want(403, "account_not_linked")
	other := h.launch("")
	query := h.emr.Authorize(other.location, practitioner("p1", nil))
	h.finish(one, query).want(400, "invalid_oauth_state")
	h.finish(redirected{}, query).want(400, "invalid_oauth_state")
	h.finish(other, url.Values{"state": query["state"], "error": {"access_denied"}}).want(400, "authorization_denied")
	h.finish(other, query).want(400, "invalid_oauth_state") // once, also after a refusal
	failed := h.launch("")
	query = h.emr.Authorize(failed.location, practitioner("p1", nil))
	h.finish(failed, url.Values{"state": query["state"], "code": {"of another"}}).want(401, "authentication_failed")
	h.finish(failed, query).want(400, "invalid_oauth_state")
	old := h.launch("")
	query = h.emr.Authorize(old.location, practitioner("p1", nil))
	h.now = h.now.Add(11 * time.Minute)
	h.finish(old, query).want(400, "invalid_oauth_state")
}

// Users that Vigil accepts and refuses.
func TestLaunchIdentities(t *testing.T) {
	h := newLaunchClinic(t)
	for _, user := range []any{nil, "", "Patient/1", "RelatedPerson/1", "https://other.example/fhir/Practitioner/1", "Practitioner/", "Practitioner/../Patient/1", 5} {
		h.signIn("p1", object{"fhirUser": user}).want(403, "user_not_staff")
	}
	for _, claims := range []object{{"nonce": "another"}, {"aud": "else"}, {"iss": "https://other.example"}, {"exp": 1}} {
		h.signIn("p1", claims).want(401, "authentication_failed")
	}
	h.signIn("p1", object{"nonce": ""}).want(403, "account_not_linked") // EMRs may omit it
	h.emr.UnknownKey = true
	h.signIn("p1", nil).want(401, "authentication_failed")
	h.emr.UnknownKey = false
	h.emr.ModifyToken = func(token *jwt.Token) { token.Header["alg"] = "none" }
	h.signIn("p1", nil).want(401, "authentication_failed")
}

// EMRs that describe themselves otherwise, and pages without a launch.
func TestLaunchRefusals(t *testing.T) {
	problem := func(h *launchClinic, query url.Values) string {
		_, shown, _ := strings.Cut(h.open("/launch?"+query.Encode()).Header.Get("Location"), "#/launch?")
		values, _ := url.ParseQuery(shown)
		return values.Get("problem")
	}
	h := newLaunchClinic(t)
	from := func(issuer string) url.Values { return url.Values{"iss": {issuer}, "launch": {"x"}} }
	for _, test := range []struct {
		query url.Values
		want  string
	}{
		{url.Values{}, "unknown_issuer"},
		{from("https://attacker.example"), "unknown_issuer"},
		{from(h.emr.URL + "/more"), "unknown_issuer"},
		{url.Values{"iss": {h.emr.URL}}, "launch_required"},
		{from(h.emr.URL + "/"), ""},
		{from("https://other.example/fhir"), "launch_failed"},
	} {
		if got := problem(h, test.query); got != test.want {
			t.Errorf("%v: %q", test.query, got)
		}
	}
	for _, about := range []map[string]any{
		{"token_endpoint": ""}, {"authorization_endpoint": "javascript:alert(1)"}, {"code_challenge_methods_supported": []string{"plain"}}, {"jwks_uri": 5},
	} {
		h := newLaunchClinic(t)
		h.emr.Launch = about
		if got := problem(h, from(h.emr.URL)); got != "launch_failed" {
			t.Errorf("%v: %q", about, got)
		}
	}
	h = newLaunchClinic(t)
	h.emr.Launch = map[string]any{"issuer": "", "jwks_uri": ""} // as before SMART 2.0: OpenID Connect's own document has them
	h.signIn("p1", nil).want(403, "account_not_linked")
	none := newClinic(t)
	none.send("", "GET", "/auth/smart/callback/?code=a&state=b", nil).want(400, "smart_not_configured")
}

// A confidential client proves itself where the EMR takes assertions; the second factor is required unless the EMR had one.
func TestLaunchProofs(t *testing.T) {
	h := newLaunchClinic(t, func(o *auth.LauncherOptions, _ *auth.Options, _ *routes.Engines) {
		o.Assert = func(clientID, tokenURL string, _ time.Time) (string, error) { return clientID + " at " + tokenURL, nil }
	})
	h.emr.Launch = map[string]any{"capabilities": []string{"launch-ehr", "client-confidential-asymmetric"}}
	h.signIn("p1", nil).want(403, "account_not_linked")
	if got := h.emr.Assertions; len(got) != 1 || got[0] != vigiltest.SignOnClient+" at "+h.emr.URL+"/token" {
		t.Error(got)
	}
	w := h.launch("")
	ticket := h.finish(w, h.emr.Authorize(w.location, practitioner("p1", nil))).want(403).text("ticket")
	nurse := h.login(h.people[authz.Nurse].Email(), vigiltest.Password).want(200).text("access")
	h.now = h.now.Add(9 * time.Minute)
	h.send(nurse, "POST", "/auth/smart/link/", object{"ticket": ticket}, "Cookie", w.cookie).want(200)
	set := h.send(nurse, "POST", "/auth/2fa/setup/", object{}).want(200)
	h.send(nurse, "POST", "/auth/2fa/verify/", object{"totp_code": codeAt(t, set.text("secret"), h.now)}).want(200)
	asked := h.signIn("p1", nil).want(401, "totp_required")
	if asked.text("temporary_token") == "" || asked.at("launched_patient.patient_problem") != "no_patient" {
		t.Error(asked)
	}
	h.signIn("p1", object{"amr": []string{"pwd", "mfa"}}).want(200)
}

// In an EMR's frame the cookie is one for frames, and a browser that stores none gets a page with a way out.
func TestLaunchInFrame(t *testing.T) {
	h := newLaunchClinic(t, func(_ *auth.LauncherOptions, _ *auth.Options, e *routes.Engines) {
		e.FrameAncestors = []string{"https://emr.example"}
	})
	address := "/launch?" + url.Values{"iss": {h.emr.URL}, "launch": {"xyz"}}.Encode()
	tried := h.open(address, "Sec-Fetch-Dest", "iframe")
	c := tried.Cookies()[0]
	if !c.Secure || c.SameSite != http.SameSiteNoneMode || !c.Partitioned {
		t.Errorf("the cookie is %s", c)
	}
	again := tried.Header.Get("Location")
	if blocked := h.open(again, "Sec-Fetch-Dest", "iframe").Header.Get("Location"); !strings.Contains(blocked, "problem=cookie_blocked") || !strings.Contains(blocked, "launch=xyz") {
		t.Error(blocked)
	}
	to := h.open(again, "Sec-Fetch-Dest", "iframe", "Cookie", c.Name+"="+c.Value).Header.Get("Location")
	if !strings.HasPrefix(to, h.emr.URL+"/authorize?") {
		t.Error(to)
	}
	h.finish(redirected{to, c.Name + "=" + c.Value}, h.emr.Authorize(to, practitioner("p1", nil))).want(403, "account_not_linked")
}

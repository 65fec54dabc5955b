package sandbox

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

func TestClientAssertion(t *testing.T) {
	with := func(changes map[string]any) func(*emrWorld) string {
		return func(w *emrWorld) string {
			claims := w.claims()
			for name, value := range changes {
				if value == nil {
					delete(claims, name)
				} else {
					claims[name] = value
				}
			}
			return w.sign(signingKey(), jose.RS384, "key-1", claims)
		}
	}
	now := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC).Unix()
	for name, c := range map[string]struct {
		assertion func(*emrWorld) string
		status    int
	}{
		"good":          {with(nil), 200},
		"exactly 300 s": {with(map[string]any{"exp": now + 300}), 200},
		"wrong key":     {func(w *emrWorld) string { return w.sign(unknownKey(), jose.RS384, "key-1", w.claims()) }, 401},
		"unknown kid":   {func(w *emrWorld) string { return w.sign(signingKey(), jose.RS384, "key-9", w.claims()) }, 401},
		"RS256":         {func(w *emrWorld) string { return w.sign(signingKey(), jose.RS256, "key-1", w.claims()) }, 401},
		"not a JWT":     {func(*emrWorld) string { return "x.y.z" }, 401},
		"wrong aud":     {with(map[string]any{"aud": "https://other.example/oauth/token"}), 401},
		"two auds":      {with(map[string]any{"aud": []string{"a", "b"}}), 401},
		"wrong iss":     {with(map[string]any{"iss": "someone"}), 401},
		"wrong sub":     {with(map[string]any{"sub": "someone"}), 401},
		"expired":       {with(map[string]any{"iat": now - 300, "exp": now}), 401},
		"too long":      {with(map[string]any{"exp": now + 301}), 401},
		"no exp":        {with(map[string]any{"exp": nil}), 401},
		"no iat":        {with(map[string]any{"iat": nil}), 401},
		"no jti":        {with(map[string]any{"jti": nil}), 401},
		"iat ahead":     {with(map[string]any{"iat": now + 60, "exp": now + 120}), 401},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			status, body := w.requestToken(w.backendForm(c.assertion(w)))
			if status != c.status {
				t.Fatalf("status %d, want %d: %v", status, c.status, body)
			}
			if status == 200 {
				if body["token_type"] != "bearer" || body["expires_in"] != 3600.0 || body["scope"] != "system/Patient.read system/Observation.write" || body["access_token"] == "" {
					t.Errorf("answer %v", body)
				}
			} else if body["error"] != "invalid_client" {
				t.Errorf("error %v, want invalid_client", body["error"])
			}
		})
	}
}

func TestReplayedAssertion(t *testing.T) {
	w := newWorld(t)
	form := w.backendForm(w.sign(signingKey(), jose.RS384, "key-1", w.claims()))
	if status, _ := w.requestToken(form); status != 200 {
		t.Fatal("first use refused")
	}
	if status, body := w.requestToken(form); status != 401 || body["error"] != "invalid_client" {
		t.Errorf("second use: %d %v", status, body)
	}
}

func TestTokenRequests(t *testing.T) {
	for name, c := range map[string]struct {
		set    url.Values
		code   string
		status int
	}{
		"no grant type":       {url.Values{"grant_type": nil}, "invalid_request", 400},
		"password grant":      {url.Values{"grant_type": {"password"}}, "unsupported_grant_type", 400},
		"no assertion type":   {url.Values{"client_assertion_type": nil}, "invalid_request", 400},
		"only user scopes":    {url.Values{"scope": {"user/Patient.read"}}, "invalid_scope", 400},
		"parameter twice":     {url.Values{"scope": {"a", "b"}}, "invalid_request", 400},
		"another client's id": {url.Values{"client_id": {"someone"}}, "invalid_client", 401},
		"unknown refresh":     {url.Values{"grant_type": {"refresh_token"}, "refresh_token": {"x"}}, "invalid_grant", 400},
		"unknown code":        {url.Values{"grant_type": {"authorization_code"}, "code": {"x"}}, "invalid_grant", 400},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			form := w.backendForm(w.sign(signingKey(), jose.RS384, "key-1", w.claims()))
			for key, values := range c.set {
				form[key] = values
			}
			status, body := w.requestToken(form)
			if status != c.status || body["error"] != c.code {
				t.Errorf("got %d %v, want %d %s", status, body, c.status, c.code)
			}
		})
	}
}

func TestKeysAreRefetchedForNewKid(t *testing.T) {
	w := newWorld(t)
	use := func(kid string, want int, fetches int64) {
		t.Helper()
		status, body := w.requestToken(w.backendForm(w.sign(signingKey(), jose.RS384, kid, w.claims())))
		if status != want || w.fetches.Load() != fetches {
			t.Errorf("kid %s: %d %v after %d fetches, want %d after %d", kid, status, body, w.fetches.Load(), want, fetches)
		}
	}
	use("key-1", 200, 1)
	use("key-1", 200, 1)
	w.kids.Store(&[]string{"key-2"})
	use("key-2", 200, 2)
	w.wait(keysLifetime)
	use("key-1", 401, 3) // removed from the JWKS, and rejected
}

// Source: RFC 7636, appendix B.
const rfcVerifier, rfcChallenge = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"

func TestS256(t *testing.T) {
	if got := S256(rfcVerifier); got != rfcChallenge {
		t.Errorf("S256 = %s, want %s", got, rfcChallenge)
	}
}

const redirect = "https://vigil.example/api/v1/emr/auth/callback/"

// authorize starts the interactive flow and returns where the browser is sent.
func (w *emrWorld) authorize(set url.Values) *url.URL {
	w.t.Helper()
	query := url.Values{
		"response_type": {"code"}, "client_id": {emrClient}, "redirect_uri": {redirect}, "state": {"st/1"},
		"scope": {"user/Patient.read offline_access openid"}, "aud": {w.url + "/fhir/demo"},
		"code_challenge": {rfcChallenge}, "code_challenge_method": {"S256"},
	}
	for name, values := range set {
		query[name] = values
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Get(w.url + "/oauth/authorize?" + query.Encode())
	if err != nil {
		w.t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusFound {
		return nil
	}
	target, err := answer.Location()
	if err != nil {
		w.t.Fatal(err)
	}
	return target
}

func codeForm(code string) url.Values {
	return url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {redirect},
		"client_id": {emrClient}, "client_secret": {"s3cret"}, "code_verifier": {rfcVerifier},
	}
}

func withSecret(o *EMROptions) { o.ClientSecret, o.RedirectURI = "s3cret", redirect }

func TestInteractiveFlow(t *testing.T) {
	w := newWorld(t, withSecret)
	back := w.authorize(nil)
	if back == nil || back.Query().Get("state") != "st/1" || back.Query().Get("code") == "" {
		t.Fatalf("redirected to %v", back)
	}
	status, body := w.requestToken(codeForm(back.Query().Get("code")))
	if status != 200 || body["scope"] != "user/Patient.read offline_access" {
		t.Fatalf("code exchange: %d %v", status, body)
	}
	if answer, _ := w.mustCall("GET", "Patient/pat-1001", body["access_token"].(string), ""); answer.StatusCode != 200 {
		t.Errorf("read with the user's token: %d", answer.StatusCode)
	}
	if status, again := w.requestToken(codeForm(back.Query().Get("code"))); status != 400 || again["error"] != "invalid_grant" {
		t.Errorf("code used twice: %d %v", status, again)
	}
	refresh := url.Values{
		"grant_type": {"refresh_token"}, "refresh_token": {body["refresh_token"].(string)},
		"client_id": {emrClient}, "client_secret": {"s3cret"},
	}
	status, renewed := w.requestToken(refresh)
	if status != 200 || renewed["refresh_token"] == body["refresh_token"] {
		t.Fatalf("refresh: %d %v", status, renewed)
	}
	if status, again := w.requestToken(refresh); status != 400 || again["error"] != "invalid_grant" {
		t.Errorf("refresh token used twice: %d %v", status, again)
	}
	refresh.Set("refresh_token", renewed["refresh_token"].(string))
	w.wait(refreshTokenLifetime)
	if status, late := w.requestToken(refresh); status != 400 || late["error"] != "invalid_grant" {
		t.Errorf("refresh token after seven days: %d %v", status, late)
	}
}

func TestInteractiveFlowRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		query url.Values
		code  string // "" means no redirect
	}{
		"unknown client":      {url.Values{"client_id": {"x"}}, ""},
		"unknown redirect":    {url.Values{"redirect_uri": {"https://evil.example/"}}, ""},
		"plain challenge":     {url.Values{"code_challenge_method": {"plain"}}, "invalid_request"},
		"no challenge":        {url.Values{"code_challenge": nil}, "invalid_request"},
		"another aud":         {url.Values{"aud": {"https://other.example/fhir"}}, "invalid_request"},
		"token response type": {url.Values{"response_type": {"token"}}, "unsupported_response_type"},
		"no known scope":      {url.Values{"scope": {"openid"}}, "invalid_scope"},
	} {
		t.Run(name, func(t *testing.T) {
			back := newWorld(t, withSecret).authorize(c.query)
			switch {
			case c.code == "" && back != nil:
				t.Errorf("redirected to %v", back)
			case c.code != "" && (back == nil || back.Query().Get("error") != c.code):
				t.Errorf("redirected to %v, want error %s", back, c.code)
			}
		})
	}
	for name, c := range map[string]struct {
		form url.Values
		wait time.Duration
		code string
	}{
		"wrong verifier": {url.Values{"code_verifier": {strings.Repeat("a", 43)}}, 0, "invalid_grant"},
		"no verifier":    {url.Values{"code_verifier": nil}, 0, "invalid_grant"},
		"other redirect": {url.Values{"redirect_uri": {"https://vigil.example/"}}, 0, "invalid_grant"},
		"wrong secret":   {url.Values{"client_secret": {"guess"}}, 0, "invalid_client"},
		"late":           {nil, codeLifetime, "invalid_grant"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, withSecret)
			form := codeForm(w.authorize(nil).Query().Get("code"))
			for key, values := range c.form {
				form[key] = values
			}
			w.wait(c.wait)
			if _, body := w.requestToken(form); body["error"] != c.code {
				t.Errorf("got %v, want %s", body, c.code)
			}
		})
	}
}

func TestBearer(t *testing.T) {
	w := newWorld(t)
	token := w.token()
	for name, c := range map[string]struct {
		token  string
		wait   time.Duration
		status int
		issue  string
	}{
		"none":    {"", 0, 401, "login"},
		"unknown": {"guess", 0, 401, "expired"},
		"alive":   {token, accessTokenLifetime - time.Second, 200, ""},
		"expired": {token, accessTokenLifetime, 401, "expired"},
	} {
		t.Run(name, func(t *testing.T) {
			before := *w.now.Load()
			w.wait(c.wait)
			defer w.now.Store(&before)
			answer, body := w.mustCall("GET", "Patient/pat-1001", c.token, "")
			if answer.StatusCode != c.status || answer.Header.Get("Content-Type") != fhirJSON {
				t.Errorf("%d %s", answer.StatusCode, answer.Header.Get("Content-Type"))
			}
			if c.issue != "" && issueOf(body) != c.issue {
				t.Errorf("outcome %v, want %s", body, c.issue)
			}
		})
	}
	form := w.backendForm(w.sign(signingKey(), jose.RS384, "key-1", w.claims()))
	form.Set("scope", "system/Patient.read")
	_, body := w.requestToken(form)
	answer, refused := w.mustCall("POST", "Observation", body["access_token"].(string), bloodPressure(observationID))
	if answer.StatusCode != 403 || issueOf(refused) != "forbidden" {
		t.Errorf("create without the scope: %d %v", answer.StatusCode, refused)
	}
}

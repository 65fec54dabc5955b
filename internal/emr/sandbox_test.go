package emr_test

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/vigilhealth/vigil/internal/emr"
	"github.com/vigilhealth/vigil/internal/sandbox"
)

// emrServer is the EMR sandbox behind a real listener, with a clock of its own.
type emrServer struct {
	*sandbox.EMR
	url  string
	now  time.Time
	jwks []byte
}

func newEMRServer(t *testing.T, patients ...sandbox.EMRPatient) *emrServer {
	t.Helper()
	w := &emrServer{now: time.Date(2026, 1, 15, 13, 45, 0, 0, time.UTC), jwks: emr.JWKS(signingKey)}
	keys := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { _, _ = rw.Write(w.jwks) }))
	t.Cleanup(keys.Close)
	var err error
	w.EMR, err = sandbox.NewEMR(sandbox.EMROptions{ClientID: clientID, JWKSURL: keys.URL, Patients: patients, Now: func() time.Time { return w.now }})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(w.EMR)
	t.Cleanup(server.Close)
	w.url = server.URL
	return w
}

func (s *emrServer) client(t *testing.T, changes ...func(*emr.Options)) *emr.Client {
	t.Helper()
	return newClient(t, nil, append([]func(*emr.Options){func(o *emr.Options) {
		o.BaseURL, o.TokenURL, o.AuthorizeURL = s.url+"/fhir/demo", s.url+"/oauth/token", s.url+"/oauth/authorize"
		o.RedirectURL, o.ExtraScopes = "https://vigil.example.org/api/v1/emr/auth/callback/", []string{"offline_access"}
		o.Now, o.Transport = func() time.Time { return s.now }, nil
	}}, changes...)...)
}

const verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"

// authorize acts as the browser of a person who allows the connection, and returns the code.
func (s *emrServer) authorize(t *testing.T, client *emr.Client) string {
	t.Helper()
	address, err := client.AuthorizationURL("state-1", verifier)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := browser.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	back, err := resp.Location()
	if err != nil || back.Query().Get("state") != "state-1" || back.Query().Get("code") == "" {
		t.Fatalf("returned with %v, %v", back, err)
	}
	return back.Query().Get("code")
}

func (s *emrServer) connect(t *testing.T, client *emr.Client) emr.Tokens {
	t.Helper()
	tokens, err := client.Exchange(t.Context(), s.authorize(t, client), verifier, "admin@vigil.example")
	if err != nil {
		t.Fatal(err)
	}
	client.UseTokens(tokens)
	return tokens
}

// lookUp makes a call with the token of deliveries.
func lookUp(t *testing.T, client *emr.Client) *emr.Error {
	t.Helper()
	_, _, err := client.FindObservation(t.Context(), observationID, []byte(observationResource))
	return asError(t, err)
}

// memoryVault is a vault in memory; its writes can fail.
type memoryVault struct {
	kept    map[emr.Flow]emr.Tokens
	failing bool
	keeps   int
}

func (m *memoryVault) Load(f emr.Flow) (emr.Tokens, error) { return m.kept[f], nil }

func (m *memoryVault) Store(f emr.Flow, t emr.Tokens) error {
	if m.failing {
		return errors.New("disk full")
	}
	m.keeps++
	m.kept[f] = t
	return nil
}

// Source: RFC 7636, appendix B.
func TestPKCEVector(t *testing.T) {
	const challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
	if got := oauth2.S256ChallengeFromVerifier(verifier); got != challenge {
		t.Errorf("challenge %q", got)
	}
	client := newEMRServer(t).client(t)
	address, err := client.AuthorizationURL("s", verifier)
	if err != nil {
		t.Fatal(err)
	}
	u, _ := url.Parse(address)
	for name, want := range map[string]string{
		"response_type": "code", "client_id": clientID, "state": "s", "code_challenge": challenge, "code_challenge_method": "S256",
		"scope": "user/Patient.read user/Observation.write offline_access", "aud": client.BaseURL(),
		"redirect_uri": "https://vigil.example.org/api/v1/emr/auth/callback/",
	} {
		if got := u.Query().Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if strings.Contains(address, verifier) {
		t.Error("the verifier is in the address")
	}
}

func TestInteractiveSignIn(t *testing.T) {
	w := newEMRServer(t)
	vault := &memoryVault{kept: map[emr.Flow]emr.Tokens{}}
	withVault := func(o *emr.Options) { o.Vault, o.ApplicationType = vault, emr.Interactive }
	client := w.client(t, withVault)
	if _, err := client.SearchPatients(t.Context(), emr.PatientQuery{Count: 5}); asError(t, err).Code != emr.CodeAuth {
		t.Fatalf("searched without a connection: %v", err)
	}
	first := w.connect(t, client)
	_ = vault.Store(emr.InteractiveFlow, first)
	if first.ConnectedBy != "admin@vigil.example" || first.ExpiresAt.Sub(w.now) != time.Hour || first.RefreshExpiresAt.Sub(w.now) != 7*24*time.Hour {
		t.Errorf("%+v", first)
	}
	for step, want := range []string{"same", "same", "renewed", "renewed"} {
		w.now = w.now.Add(27 * time.Minute) // 27, 54 (within five minutes would be 55), 81, 108
		e := lookUp(t, client)
		if e != nil {
			t.Fatalf("step %d: %v", step, e)
		}
		now, _ := client.Connection()
		if renewed := now.Access != first.Access; renewed != (want == "renewed") {
			t.Errorf("after %d minutes renewed: %v", 27*(step+1), renewed)
		}
	}
	kept := vault.kept[emr.InteractiveFlow]
	if kept.Refresh == first.Refresh || kept.ConnectedBy != first.ConnectedBy || kept.Scope == "" {
		t.Errorf("kept %+v", kept)
	}
	// Another process with the same vault uses the tokens; a client of another EMR does not.
	if e := lookUp(t, w.client(t, withVault)); e != nil {
		t.Error(e)
	}
	other := w.client(t, withVault, func(o *emr.Options) { o.ClientID = "other" })
	if tokens, err := other.Connection(); err != nil || tokens.Access != "" {
		t.Errorf("a client used the tokens of another: %v", err)
	}
	w.now = w.now.Add(8 * 24 * time.Hour)
	if e := lookUp(t, client); e == nil || e.Code != emr.CodeAuth || e.Message != "EMR authorization failed (not connected)" {
		t.Errorf("after the refresh token's end: %v", e)
	}
}

func TestRevokedConnectionFallsBackToTheService(t *testing.T) {
	w := newEMRServer(t)
	client := w.client(t)
	tokens := w.connect(t, client)
	issued := w.Stats().TokensIssued
	if _, err := client.SearchPatients(t.Context(), emr.PatientQuery{Count: 1}); err != nil || w.Stats().TokensIssued != issued {
		t.Fatalf("a search of a connected person took another token: %v", err)
	}
	w.now = w.now.Add(2 * time.Hour)
	spent := w.client(t) // uses up the refresh token outside of the client
	spent.UseTokens(tokens)
	if _, err := spent.SearchPatients(t.Context(), emr.PatientQuery{Count: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.SearchPatients(t.Context(), emr.PatientQuery{Count: 1}); err != nil {
		t.Errorf("no way back to the service's own token: %v", err)
	}
	if now, _ := client.Connection(); now.Usable(w.now) {
		t.Error("the ended connection counts as usable")
	}
}

func TestFailedTokenStoreIsRetried(t *testing.T) {
	w := newEMRServer(t)
	vault := &memoryVault{kept: map[emr.Flow]emr.Tokens{}}
	client := w.client(t, func(o *emr.Options) { o.Vault, o.ApplicationType = vault, emr.Interactive })
	w.connect(t, client)
	vault.failing = true
	w.now = w.now.Add(time.Hour)
	if e := lookUp(t, client); e != nil {
		t.Fatal(e)
	}
	vault.failing = false
	if e := lookUp(t, client); e != nil || vault.kept[emr.InteractiveFlow].Refresh == "" {
		t.Errorf("%v, kept %d times", e, vault.keeps)
	}
}

func TestExchangeFailures(t *testing.T) {
	w := newEMRServer(t)
	client := w.client(t)
	for name, attempt := range map[string]func() error{
		"wrong code": func() error {
			_, err := client.Exchange(t.Context(), "unknown-code", verifier, "")
			return err
		},
		"wrong verifier": func() error {
			_, err := client.Exchange(t.Context(), w.authorize(t, client), strings.Repeat("a", 64), "")
			return err
		},
		"code twice": func() error {
			code := w.authorize(t, client)
			_, _ = client.Exchange(t.Context(), code, verifier, "")
			_, err := client.Exchange(t.Context(), code, verifier, "")
			return err
		},
	} {
		e := asError(t, attempt())
		if e == nil || e.OAuthError != "invalid_grant" || e.Status != 400 || strings.Contains(fmt.Sprint(e, e.Diagnostics.Reveal()), verifier) {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

func TestKeyRotation(t *testing.T) {
	w := newEMRServer(t)
	next := newKey(2048)
	if _, err := w.client(t).SignIn(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.jwks = emr.JWKS(next, signingKey)
	for name, key := range map[string]func(*emr.Options){
		"current": func(o *emr.Options) { o.PrivateKey = next }, "previous": func(*emr.Options) {},
	} {
		if _, err := w.client(t, key).SignIn(t.Context()); err != nil {
			t.Errorf("%s key: %v", name, err)
		}
	}
	w.jwks = emr.JWKS(next)
	w.now = w.now.Add(time.Hour) // the EMR's copy of the JWKS has aged
	e := asError(t, func() error { _, err := w.client(t).SignIn(t.Context()); return err }())
	if e == nil || e.OAuthError != "invalid_client" {
		t.Errorf("a removed key: %v", e)
	}
}

func TestBadAnswers(t *testing.T) {
	for name, test := range map[string]struct {
		fault  sandbox.Fault
		code   string
		status int
	}{
		"HTML":                {sandbox.Fault{Match: "/Patient", Answer: sandbox.AnswerHTML}, emr.CodeUnavailable, 200},
		"half a JSON":         {sandbox.Fault{Match: "/Patient", Answer: sandbox.AnswerHalf}, emr.CodeUnavailable, 200},
		"redirect":            {sandbox.Fault{Match: "/Patient", Answer: sandbox.AnswerRedirect}, emr.CodeUnavailable, 307},
		"redirected sign-in":  {sandbox.Fault{Match: "/oauth", Answer: sandbox.AnswerRedirect}, emr.CodeAuth, 307},
		"HTML sign-in":        {sandbox.Fault{Match: "/oauth", Answer: sandbox.AnswerHTML}, emr.CodeAuth, 200},
		"half a sign-in":      {sandbox.Fault{Match: "/oauth", Answer: sandbox.AnswerHalf}, emr.CodeAuth, 200},
		"broken connection":   {sandbox.Fault{Match: "/Patient", Drop: sandbox.DropBefore}, emr.CodeUnavailable, 0},
		"no answer":           {sandbox.Fault{Match: "/Patient", Drop: sandbox.DropHang}, emr.CodeTimeout, 0},
		"server error":        {sandbox.Fault{Match: "/Patient", Status: 503}, emr.CodeUnavailable, 503},
		"too many requests":   {sandbox.Fault{Match: "/Patient", Status: 429, RetryAfter: 30}, emr.CodeRateLimited, 429},
		"forbidden":           {sandbox.Fault{Match: "/Patient", Status: 403}, emr.CodeAuth, 403},
		"no such record":      {sandbox.Fault{Match: "/Patient/", Status: 404}, emr.CodePatientNotFound, 404},
		"no lifetime is fine": {sandbox.Fault{Match: "/oauth", Answer: sandbox.AnswerNoExpiry}, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newEMRServer(t)
			w.Fail(test.fault)
			client := w.client(t, func(o *emr.Options) {
				if test.fault.Drop == sandbox.DropHang { // else a busy machine may take its time
					o.Timeout = 200 * time.Millisecond
				}
			})
			_, err := client.ReadPatient(t.Context(), "pat-1001")
			e := asError(t, err)
			if test.code == "" {
				if e != nil {
					t.Error(e)
				}
				return
			}
			if e == nil || e.Code != test.code || e.Status != test.status {
				t.Fatalf("%+v", e)
			}
			if w.Stats().Strays != 0 {
				t.Error("the redirect was followed")
			}
			if text := e.Error() + e.Message; strings.Contains(text, "pat-1001") || strings.Contains(text, "html") {
				t.Errorf("the error tells too much: %s", text)
			}
		})
	}
}

func TestUntrustedCertificate(t *testing.T) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	client := newClient(t, nil, quickRetries, func(o *emr.Options) {
		o.TokenURL, o.BaseURL, o.Transport = server.URL+"/token", server.URL+"/fhir", nil
	})
	_, err := client.ReadPatient(t.Context(), "1")
	e := asError(t, err)
	if e == nil || e.Code != emr.CodeUnavailable || e.Message != "EMR unavailable (certificate not trusted)" || e.Ambiguous || len(e.Attempts) != 1 {
		t.Errorf("%+v", e)
	}
}

func TestSearchFollowsPages(t *testing.T) {
	var many []sandbox.EMRPatient
	for n := range 250 {
		many = append(many, sandbox.EMRPatient{ID: fmt.Sprintf("p%03d", n), Family: "Page", Given: []string{"Pat"}, BirthDate: "1950-01-01"})
	}
	w := newEMRServer(t, many...)
	client := w.client(t)
	found, err := client.SearchPatients(t.Context(), emr.PatientQuery{Name: "page", Count: 100})
	if err != nil || len(found.Patients) != 100 || found.Patients[99].ID != "p099" || found.Patients[0].Who.LastName != "Page" ||
		found.Patients[0].Gender != "unknown" || found.Truncated {
		t.Fatalf("%d found, %v", len(found.Patients), err)
	}
	before := w.Stats().PatientReads
	if found, err = client.SearchPatients(t.Context(), emr.PatientQuery{BirthDate: "1950-01-01", Count: 20}); err != nil || len(found.Patients) != 20 || found.Truncated {
		t.Fatalf("%d found, %v", len(found.Patients), err)
	}
	if reads := w.Stats().PatientReads - before; reads != 1 {
		t.Errorf("%d requests for one page", reads)
	}
}

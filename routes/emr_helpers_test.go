package routes_test

import (
	"crypto/rand"
	"crypto/rsa"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/emr"
	"github.com/vigilhealth/vigil/internal/sandbox"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/routes"
)

// noEMR is the client of a practice without an EMR.
func noEMR(t testing.TB) *emr.Client {
	t.Helper()
	client, err := emr.New(emr.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

var emrKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

// emrClinic is a clinic with an EMR sandbox.
type emrClinic struct {
	*clinic
	emr    *sandbox.EMR
	client *emr.Client
}

func newEMRClinic(t *testing.T, patients []sandbox.EMRPatient, change ...func(*routes.Engines)) *emrClinic {
	t.Helper()
	return newEMRClinicOf(t, time.Minute, patients, change...)
}

// newImpatientEMRClinic has a short timeout, for tests with an EMR that does not answer. All of the clinic's EMR
// requests share it.
func newImpatientEMRClinic(t *testing.T, patients []sandbox.EMRPatient) *emrClinic {
	t.Helper()
	return newEMRClinicOf(t, 200*time.Millisecond, patients)
}

func newEMRClinicOf(t *testing.T, patience time.Duration, patients []sandbox.EMRPatient, change ...func(*routes.Engines)) *emrClinic {
	t.Helper()
	c := &emrClinic{}
	at := func() time.Time {
		if c.clinic == nil {
			return clock
		}
		return c.now
	}
	keys := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(emr.JWKS(emrKey())) }))
	t.Cleanup(keys.Close)
	var err error
	c.emr, err = sandbox.NewEMR(sandbox.EMROptions{ClientID: "vigil", ClientSecret: "hush hush", JWKSURL: keys.URL, Patients: patients, Now: at})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(c.emr)
	t.Cleanup(server.Close)
	engines := func(e *routes.Engines) {
		c.client, err = emr.New(emr.Options{
			BaseURL: server.URL + "/fhir/demo", TokenURL: server.URL + "/oauth/token", AuthorizeURL: server.URL + "/oauth/authorize",
			ClientID: "vigil", ClientSecret: "hush hush", PrivateKey: emrKey(), ExtraScopes: []string{"offline_access"}, Now: at,
			RedirectURL: "https://vigil.example.org/api/v1/emr/auth/callback/", QuickRetryDelays: []time.Duration{}, Timeout: patience,
		})
		if err != nil {
			t.Fatal(err)
		}
		e.EMR.Client = c.client
	}
	c.clinic = newClinic(t, append([]func(*routes.Engines){engines}, change...)...)
	return c
}

// vault is the service's vault on this clinic's database.
func (c *emrClinic) vault() emr.Vault {
	return emr.NewVault(c.app, func() time.Time { return c.now })
}

// approve starts a sign-in as administrator, approves it at the EMR as the browser would, and returns the callback's
// query.
func (c *emrClinic) approve() url.Values {
	c.t.Helper()
	started := c.request("admin", "POST", "/emr/auth/start/", nil).want(200).object()
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := browser.Get(started["authorization_url"].(string))
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	back, err := resp.Location()
	if err != nil || back.Query().Get("state") != started["state"] {
		c.t.Fatalf("came back with %v, %v", back, err)
	}
	return back.Query()
}

// requestCallback requests the callback as the browser does, without a bearer token.
func (c *emrClinic) requestCallback(values url.Values, accept string) *httptest.ResponseRecorder {
	c.t.Helper()
	path := "/api/v1/emr/auth/callback/"
	r := httptest.NewRequestWithContext(c.t.Context(), "GET", path+"?"+values.Encode(), nil)
	if accept != "" {
		r.Header.Set("Accept", accept)
	}
	rec := httptest.NewRecorder()
	c.handler.ServeHTTP(rec, r)
	vigiltest.CheckResponse(c.t, "GET", path, rec.Code, rec.Header(), rec.Body.Bytes())
	return rec
}

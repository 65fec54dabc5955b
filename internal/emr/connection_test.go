package emr_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/emr"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

func newSignInClient(t *testing.T, tokenURL string) *emr.Client {
	t.Helper()
	client, err := emr.New(emr.Options{
		BaseURL: "https://emr.test/fhir", TokenURL: tokenURL, AuthorizeURL: "https://emr.test/authorize", ClientID: "vigil",
		RedirectURL: "https://vigil.test/back", Now: func() time.Time { return vigiltest.Clock },
	})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// Of many browsers that return with one state, one is accepted and the EMR receives one request.
func TestStateIsSingleUse(t *testing.T) {
	app := vigiltest.NewApp(t)
	admin := vigiltest.User(t, app, authz.Admin)
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		if r.FormValue("code") != "the-code" || len(r.FormValue("code_verifier")) != 64 || r.FormValue("client_id") != "vigil" {
			t.Errorf("form %v", r.Form)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"access_token":"a","token_type":"Bearer"}`))
	}))
	t.Cleanup(server.Close)
	client := newSignInClient(t, server.URL)
	started, err := emr.StartConnection(app, client, admin.Id, audit.System(), vigiltest.Clock)
	if err != nil {
		t.Fatal(err)
	}
	if u, err := url.Parse(started.AuthorizationURL); err != nil || u.Query().Get("state") != started.State || len(started.State) != 43 {
		t.Errorf("%s", started.AuthorizationURL)
	}
	var group sync.WaitGroup
	var in, out atomic.Int32
	for range 8 {
		group.Go(func() {
			tokens, err := emr.FinishConnection(t.Context(), app, client, emr.Callback{State: phi.Text(started.State), Code: "the-code"},
				audit.Origin{}, func() time.Time { return vigiltest.Clock.Add(time.Minute) })
			f, refused := errors.AsType[*fault.Error](err)
			switch {
			case err == nil && tokens.ExpiresAt.Equal(vigiltest.Clock.Add(5*time.Minute)): // the EMR returned no lifetime
				in.Add(1)
			case refused && f.Code == "invalid_oauth_state":
				out.Add(1)
			default:
				t.Errorf("%v, until %v", err, tokens.ExpiresAt)
			}
		})
	}
	group.Wait()
	if in.Load() != 1 || out.Load() != 7 || requests.Load() != 1 {
		t.Errorf("%d accepted, %d refused, %d requests", in.Load(), out.Load(), requests.Load())
	}
}

func TestVaultStoresOneRowPerFlow(t *testing.T) {
	app := vigiltest.NewApp(t)
	vault := emr.NewVault(app, func() time.Time { return vigiltest.Clock })
	if none, err := vault.Load(emr.InteractiveFlow); err != nil || none != (emr.Tokens{}) {
		t.Errorf("an empty vault gives %v", err)
	}
	for n, flow := range []emr.Flow{emr.InteractiveFlow, emr.BackendServicesFlow, emr.InteractiveFlow} {
		want := emr.Tokens{
			Access: phi.Text("a" + string(rune('0'+n))), Refresh: "r", Scope: "s", ConnectedBy: "admin@vigil.example", Audience: "x",
			ObtainedAt: vigiltest.Clock, ExpiresAt: vigiltest.Clock.Add(time.Hour), RefreshExpiresAt: vigiltest.Clock.Add(7 * 24 * time.Hour),
		}
		if err := vault.Store(flow, want); err != nil {
			t.Fatal(err)
		}
		if got, err := vault.Load(flow); err != nil || got != want {
			t.Errorf("%s: %v", flow, err)
		}
	}
	var rows int
	if err := app.DB().NewQuery("SELECT COUNT(*) FROM emr_tokens WHERE access_token NOT LIKE 'a%'").Row(&rows); err != nil || rows != 2 {
		t.Errorf("%d sealed rows, %v", rows, err)
	}
}

func TestSignInNotConfigured(t *testing.T) {
	app := vigiltest.NewApp(t)
	client, err := emr.New(emr.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	_, err = emr.StartConnection(app, client, "x", audit.System(), vigiltest.Clock)
	if e, ok := errors.AsType[*emr.Error](err); !ok || e.Code != emr.CodeNotConfigured {
		t.Errorf("%v", err)
	}
	if s, err := emr.ReadConnectionStatus(client, vigiltest.Clock); err != nil || s.BackendConfigured || s.Connected || s.Scopes == nil {
		t.Errorf("%+v, %v", s, err)
	}
}

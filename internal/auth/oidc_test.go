package auth_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// TestIdentity reads identities from claims as providers write them. Source: OpenID Connect Core 1.0, section 5.1.
func TestIdentity(t *testing.T) {
	now := time.Date(2026, 1, 15, 13, 45, 0, 0, time.UTC)
	roles := []auth.GroupRole{{Group: "leads", Role: authz.ClinicalManager}, {Group: "nurses", Role: authz.Nurse}}
	type said = map[string]any
	for _, test := range []struct {
		name, claim  string
		claims, page said
		want         auth.Identity
	}{
		{
			"an address that the page does not confirm", "groups",
			said{"email": "ann@x.example"},
			said{"email": "mine@x.example", "email_verified": true, "groups": "nurses"},
			auth.Identity{Email: "ann@x.example", FirstName: "ann", LastName: "ann", Role: authz.Nurse},
		},
		{
			"an address that the token does not confirm", "groups",
			said{"email_verified": true},
			said{"email": "ann@x.example", "groups": "nurses"},
			auth.Identity{Email: "ann@x.example", FirstName: "ann", LastName: "ann", Role: authz.Nurse},
		},
		{
			"an address that the page confirms", "groups",
			said{"email": "ann@x.example"},
			said{"email": "Ann@x.example", "email_verified": true},
			auth.Identity{Email: "ann@x.example", EmailVerified: true, FirstName: "ann", LastName: "ann"},
		},
		{
			"whole", "groups",
			said{"email": "ann@x.example", "email_verified": true, "given_name": "Ann", "family_name": "Lee", "groups": []string{"nurses", "leads"}, "amr": []string{"pwd", "mfa"}},
			nil,
			auth.Identity{Email: "ann@x.example", EmailVerified: true, FirstName: "Ann", LastName: "Lee", Role: authz.ClinicalManager, SecondFactor: true},
		},
		{
			"one text for a list", "groups",
			said{"groups": "nurses", "amr": "mfa", "email_verified": "true", "name": "Ann van Lee"},
			nil,
			auth.Identity{EmailVerified: true, FirstName: "Ann", LastName: "van Lee", Role: authz.Nurse, SecondFactor: true},
		},
		{
			"inside an object", "realm_access.roles",
			said{"realm_access": said{"roles": []string{"nurses"}}, "preferred_username": "ann"},
			nil,
			auth.Identity{FirstName: "ann", LastName: "ann", Role: authz.Nurse},
		},
		{
			"a name with dots", "https://x.example/groups",
			said{"https://x.example/groups": []string{"nurses"}, "email": "ann@x.example"},
			nil,
			auth.Identity{Email: "ann@x.example", FirstName: "ann", LastName: "ann", Role: authz.Nurse},
		},
		{
			"of other kinds", "groups",
			said{"groups": 7, "email": 8, "email_verified": "yes", "amr": said{"mfa": true}, "given_name": false},
			nil,
			auth.Identity{FirstName: "Staff", LastName: "Staff"},
		},
		{"no group", "groups", said{"groups": []string{"Nurses", "nurses ", "nurse"}}, nil, auth.Identity{FirstName: "Staff", LastName: "Staff"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			provider := vigiltest.NewIdentityProvider(t, func() time.Time { return now })
			provider.UserInfo = test.page
			p := auth.NewOIDCProvider(auth.OIDCOptions{
				Issuer: provider.URL, ClientID: vigiltest.SignOnClient, ClientSecret: phi.Text(vigiltest.SignOnSecret), RedirectURL: "https://vigil.example.org/back",
				RoleClaim: test.claim, Roles: roles, Key: []byte("a key for tests"),
			})
			started, err := p.Begin(t.Context(), now)
			if err != nil {
				t.Fatal(err)
			}
			test.claims["sub"] = "ann"
			back := provider.Authorize(started.URL, test.claims)
			got, err := p.Finish(t.Context(), auth.Callback{State: back.Get("state"), Code: back.Get("code"), Cookie: started.Cookie}, now)
			if err != nil {
				t.Fatal(err)
			}
			if got.Subject != "ann" || got.Issuer != provider.URL || !got.Ends.Equal(now.Add(10*time.Minute)) || got.IDToken == "" {
				t.Errorf("%+v", got)
			}
			got.Issuer, got.Subject, got.State, got.Ends, got.IDToken = "", "", "", time.Time{}, ""
			if got != test.want {
				t.Errorf("%+v, want %+v", got, test.want)
			}
		})
	}
}

// TestAgeOfProof checks that a recent authentication is requested from the provider, so that after an idle logout the next person at the computer is
// not signed in as the previous user. Source: 45 CFR 164.312(a)(2)(iii); OpenID Connect Core 1.0, sections 3.1.2.1 and 3.1.3.7.
func TestAgeOfProof(t *testing.T) {
	began := time.Date(2026, 1, 15, 13, 45, 0, 0, time.UTC)
	const quarter = 15 * time.Minute
	for _, test := range []struct {
		name   string
		most   time.Duration
		asked  string
		proven any
		good   bool
	}{
		{"just now", quarter, "900", began.Unix(), true},
		{"by another clock", quarter, "900", began.Add(-quarter - time.Minute).Unix(), true},
		{"before the absence", quarter, "900", began.Add(-quarter - 2*time.Minute).Unix(), false},
		{"no auth_time", quarter, "900", nil, true},
		{"no maximum age", 0, "", began.AddDate(0, 0, -1).Unix(), true},
	} {
		t.Run(test.name, func(t *testing.T) {
			now := began.Add(9 * time.Minute) // the user takes nine minutes
			provider := vigiltest.NewIdentityProvider(t, func() time.Time { return now })
			p := auth.NewOIDCProvider(auth.OIDCOptions{
				Issuer: provider.URL, ClientID: vigiltest.SignOnClient, ClientSecret: phi.Text(vigiltest.SignOnSecret), RedirectURL: "https://vigil.example.org/back",
				MaxAge: test.most, Key: []byte("a key for tests"),
			})
			started, err := p.Begin(t.Context(), began)
			if err != nil {
				t.Fatal(err)
			}
			if to, err := url.Parse(started.URL); err != nil || to.Query().Get("max_age") != test.asked {
				t.Errorf("asked for %s, %v", started.URL, err)
			}
			claims := map[string]any{"sub": "ann", "email": "ann@x.example", "groups": []string{}}
			if test.proven != nil {
				claims["auth_time"] = test.proven
			}
			back := provider.Authorize(started.URL, claims)
			if _, err := p.Finish(t.Context(), auth.Callback{State: back.Get("state"), Code: back.Get("code"), Cookie: started.Cookie}, now); (err == nil) != test.good {
				t.Error(err)
			}
		})
	}
}

// TestHangingProvider checks that a hanging provider blocks only the callers that wait for it.
func TestHangingProvider(t *testing.T) {
	asked, hang := make(chan bool, 2), make(chan bool)
	provider := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked <- true
		<-hang
	}))
	defer provider.Close()
	p := auth.NewOIDCProvider(auth.OIDCOptions{Issuer: provider.URL, ClientID: "vigil", Key: []byte("a key for tests")})
	first := make(chan error)
	go func() {
		_, err := p.Begin(context.Background(), time.Now())
		first <- err
	}()
	<-asked
	left, leave := context.WithCancel(t.Context())
	leave()
	if _, err := p.Begin(left, time.Now()); err == nil {
		t.Error("a canceled request was sent to the provider")
	}
	close(hang)
	if err := <-first; err == nil {
		t.Error("an empty response was accepted")
	}
	if len(asked) > 0 {
		t.Error("the provider was asked twice at once")
	}
}

// TestNoProvider checks that there is no provider without an issuer.
func TestNoProvider(t *testing.T) {
	if p := auth.NewOIDCProvider(auth.OIDCOptions{ClientID: "vigil"}); p != nil {
		t.Errorf("%v", p)
	}
}

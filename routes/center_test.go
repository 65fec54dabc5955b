package routes_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/center"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// signedInBy is a provider at which the sign-in succeeds at once with an ID token.
type signedInBy struct{ idToken string }

func (signedInBy) Begin(context.Context, time.Time) (auth.SignOnStart, error) {
	return auth.SignOnStart{URL: "https://provider.example/authorize", Cookie: "c", Life: time.Minute}, nil
}

func (s signedInBy) Finish(_ context.Context, back auth.Callback, _ time.Time) (auth.Identity, error) {
	if back.Cookie != "c" || back.Code != "right" {
		return auth.Identity{}, fmt.Errorf("another browser")
	}
	return auth.Identity{IDToken: phi.Text(s.idToken)}, nil
}

// three are three practices with one identity provider, each with a patient at risk, and a center of them.
type three struct {
	t        *testing.T
	provider *vigiltest.IdentityProvider
	cells    map[string]*signOnClinic
	servers  map[string]*httptest.Server
	center   *center.Center
}

func newThree(t *testing.T) *three {
	t.Helper()
	h := &three{t: t, cells: map[string]*signOnClinic{}, servers: map[string]*httptest.Server{}}
	var list []center.Practice
	for i, name := range []string{"elm", "oak", "pine"} {
		cell := newSignOnClinic(t, func(o *auth.OIDCOptions, _ *auth.Options) {
			o.CenterClientIDs = []string{centerClient}
			if h.provider != nil {
				o.Issuer = h.provider.URL
			}
		})
		if h.provider == nil {
			h.provider = cell.provider
		}
		cell.provider = h.provider
		cell.rank(cell.enroll(object{"last_name": "Of " + name}), dbx.Params{"risk_score": 70 + i, "risk_level": "warning"})
		server := httptest.NewServer(cell.handler)
		t.Cleanup(server.Close)
		h.cells[name], h.servers[name] = cell, server
		list = append(list, center.Practice{Name: name, URL: server.URL})
	}
	h.center = center.New(list, http.DefaultClient)
	return h
}

// browser is a browser that signed in at the center.
type browser struct {
	*three
	handler http.Handler
	cookie  string
}

func (h *three) signIn(claims object) *browser {
	h.t.Helper()
	b := &browser{three: h}
	b.handler = h.center.Handler(signedInBy{h.provider.IDToken(centerClient, claims)}, slog.New(slog.DiscardHandler), func() time.Time { return h.cells["elm"].now })
	b.cookie = "__Host-vigil-center-sign-on=c"
	answer := b.get("/callback?code=right&state=s")
	if answer.Code != http.StatusFound || answer.Header().Get("Location") != "/" {
		h.t.Fatalf("%d %s", answer.Code, answer.Body)
	}
	for _, set := range answer.Result().Cookies() {
		if !set.HttpOnly || !set.Secure || set.SameSite != http.SameSiteLaxMode || set.Path != "/" {
			h.t.Errorf("the cookie is %s", set)
		}
		if set.MaxAge > 0 {
			b.cookie = set.Name + "=" + set.Value
		}
	}
	return b
}

func (b *browser) get(path string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(b.t.Context(), http.MethodGet, path, nil)
	r.Header.Set("Cookie", b.cookie)
	rec := httptest.NewRecorder()
	b.handler.ServeHTTP(rec, r)
	return rec
}

// list returns the practices of the rows, and the unavailable ones with their reasons.
func (b *browser) list() (rows, missing []string) {
	b.t.Helper()
	answer := b.get("/api/v1/center/triage/")
	var list struct {
		Count   int
		Results []struct {
			Practice    string
			URL         string
			PatientName string `json:"patient_name"`
			PatientID   string `json:"patient_id"`
		}
		Unavailable []center.Unavailable
	}
	if err := json.Unmarshal(answer.Body.Bytes(), &list); err != nil || answer.Code != http.StatusOK || list.Count != len(list.Results) {
		b.t.Fatalf("%d %s: %v", answer.Code, answer.Body, err)
	}
	for _, row := range list.Results {
		rows = append(rows, row.Practice)
		if row.PatientID == "" || row.URL != b.servers[row.Practice].URL || row.PatientName == "" {
			b.t.Errorf("row %+v", row)
		}
	}
	for _, one := range list.Unavailable {
		missing = append(missing, one.Practice+" "+one.Reason)
	}
	return rows, missing
}

// A person sees the patients of exactly the practices where that person has an account with a role that may, most urgent first, for every
// identity and role, and the practices that do not answer by name.
func TestCenter(t *testing.T) {
	h := newThree(t)
	group := func(person, group string) object { return claimsOf(person, object{"groups": []string{group}}) }
	for person, practices := range map[string][]string{"ann": {"elm", "oak"}, "bob": {"pine"}, "cid": {"elm", "oak", "pine"}} {
		for _, practice := range practices {
			h.cells[practice].signOn(group(person, "RPM Nurses")).want(200)
		}
	}
	for name, test := range map[string]struct {
		claims object
		want   []string
	}{
		"a nurse of two":            {group("ann", "RPM Nurses"), []string{"oak", "elm"}},
		"a nurse of one":            {group("bob", "RPM Nurses"), []string{"pine"}},
		"a manager of three":        {group("cid", "RPM Leads"), []string{"pine", "oak", "elm"}},
		"no role":                   {group("cid", "Everybody"), nil},
		"nobody's account":          {group("dan", "RPM Nurses"), nil},
		"ann's address, not ann":    {claimsOf("eve", object{"email": "ann@practice.example"}), nil},
		"an unconfirmed address":    {claimsOf("fay", object{"email": "bob@practice.example", "email_verified": false}), nil},
		"a token for another party": {claimsOf("ann", object{"aud": "another-client"}), nil},
		"an old token":              {claimsOf("ann", object{"iat": h.cells["elm"].now.Add(-6 * time.Minute).Unix()}), nil},
	} {
		t.Run(name, func(t *testing.T) {
			rows, missing := h.signIn(test.claims).list()
			if !slices.Equal(rows, test.want) || len(missing) > 0 {
				t.Errorf("rows of %v, unavailable %v, want %v", rows, missing, test.want)
			}
		})
	}

	ann, without := h.signIn(group("ann", "RPM Nurses")), &browser{three: h}
	without.handler = ann.handler
	for _, path := range []string{"/api/v1/center/triage/", "/api/v1/center/on-call/"} {
		if answer := without.get(path); answer.Code != http.StatusUnauthorized {
			t.Errorf("without a session: %d %s", answer.Code, answer.Body)
		}
	}
	for _, query := range []string{"?page_size=0", "?page_size=101", "?page_size=x", "?page=2", "?page_size=1&page_size=2"} {
		if answer := ann.get("/api/v1/center/triage/" + query); answer.Code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", query, answer.Code, answer.Body)
		}
	}
	if answer := ann.get("/api/v1/center/on-call/"); answer.Code != http.StatusOK {
		t.Errorf("on call: %d %s", answer.Code, answer.Body)
	}
	h.servers["oak"].Close()
	if rows, missing := ann.list(); !slices.Equal(rows, []string{"elm"}) || !slices.Equal(missing, []string{"oak unreachable"}) {
		t.Errorf("rows of %v, unavailable %v", rows, missing)
	}
	if rows, missing := h.signIn(group("bob", "RPM Nurses")).list(); !slices.Equal(rows, []string{"pine"}) || !slices.Equal(missing, []string{"oak unreachable"}) {
		t.Errorf("signed in later: rows of %v, unavailable %v", rows, missing)
	}
}

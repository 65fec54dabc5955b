package routes_test

import (
	"maps"
	"net/url"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

const centerClient = "center-1"

func newExchangeClinic(t *testing.T) *signOnClinic {
	t.Helper()
	return newSignOnClinic(t, func(o *auth.OIDCOptions, _ *auth.Options) { o.CenterClientIDs = []string{"center-2", centerClient} })
}

// exchange sends an ID token with changes to the form; an empty value removes the parameter.
func (s *signOnClinic) exchange(idToken string, changes map[string]string) reply {
	s.t.Helper()
	form := map[string]string{
		"grant_type": "urn:ietf:params:oauth:grant-type:token-exchange", "subject_token": idToken, "subject_token_type": "urn:ietf:params:oauth:token-type:id_token",
	}
	maps.Copy(form, changes)
	values := url.Values{}
	for name, value := range form {
		values.Set(name, value)
	}
	return s.requestFrom(home, "POST", "/auth/oidc/exchange/", values.Encode(), "Content-Type", "application/x-www-form-urlencoded")
}

// A member of staff with an account gets an access token for a fresh ID token of a center; anyone else gets one answer, and no account.
func TestTokenExchange(t *testing.T) {
	h := newExchangeClinic(t)
	ann := claimsOf("ann", nil)
	h.exchange(h.provider.IDToken(centerClient, ann), nil).want(400, "invalid_grant") // no account yet
	h.signOn(ann).want(200)
	accounts := h.queryColumn("SELECT email FROM users")
	answer := h.exchange(h.provider.IDToken(centerClient, ann), nil).want(200)
	answer.wantAt(object{"issued_token_type": "urn:ietf:params:oauth:token-type:access_token", "token_type": "Bearer", "expires_in": 900.0, "refresh": nil})
	h.send(answer.text("access_token"), "GET", "/auth/profile/", nil).want(200).wantAt(object{"email": "ann@practice.example", "role": "nurse"})

	other := vigiltest.NewIdentityProvider(t, func() time.Time { return h.now })
	for name, token := range map[string]string{
		"nobody's account":            h.provider.IDToken(centerClient, claimsOf("bob", nil)),
		"another person's address":    h.provider.IDToken(centerClient, claimsOf("eve", object{"email": "ann@practice.example"})),
		"no role":                     h.provider.IDToken(centerClient, claimsOf("ann", object{"groups": []string{"Everybody"}})),
		"no groups":                   h.provider.IDToken(centerClient, claimsOf("ann", object{"groups": nil})),
		"the practice's own client":   h.provider.IDToken(vigiltest.SignOnClient, ann),
		"another party's":             h.provider.IDToken("", claimsOf("ann", object{"aud": []string{centerClient, "x"}, "azp": "x"})),
		"several audiences, no party": h.provider.IDToken("", claimsOf("ann", object{"aud": []string{centerClient, "x"}})),
		"older than five minutes":     h.provider.IDToken(centerClient, claimsOf("ann", object{"iat": h.now.Add(-5*time.Minute - time.Second).Unix()})),
		"issued in the future":        h.provider.IDToken(centerClient, claimsOf("ann", object{"iat": h.now.Add(6 * time.Minute).Unix()})),
		"expired":                     h.provider.IDToken(centerClient, claimsOf("ann", object{"exp": h.now.Add(-time.Second).Unix()})),
		"another provider":            other.IDToken(centerClient, ann),
		"another provider's key":      other.IDToken(centerClient, claimsOf("ann", object{"iss": h.provider.URL})),
		"no token":                    "nonsense",
	} {
		t.Run(name, func(t *testing.T) { h.exchange(token, nil).want(400, "invalid_grant") })
	}
	h.exchange(h.provider.IDToken("center-2", claimsOf("ann", object{"iat": h.now.Add(-5 * time.Minute).Unix()})), nil).want(200)
	h.send(answer.text("access_token"), "GET", "/auth/profile/", nil).want(200) // rejectionLog ended no session
	if after := h.queryColumn("SELECT email FROM users"); len(after) != len(accounts) {
		t.Errorf("accounts %v, before %v", after, accounts)
	}
}

func TestTokenExchangeForm(t *testing.T) {
	h := newExchangeClinic(t)
	token := h.provider.IDToken(centerClient, claimsOf("ann", nil))
	for name, test := range map[string]struct {
		changes map[string]string
		code    string
	}{
		"no grant":           {map[string]string{"grant_type": ""}, "invalid_request"},
		"another grant":      {map[string]string{"grant_type": "client_credentials"}, "unsupported_grant_type"},
		"another kind":       {map[string]string{"subject_token_type": "urn:ietf:params:oauth:token-type:access_token"}, "invalid_request"},
		"no token":           {map[string]string{"subject_token": ""}, "invalid_request"},
		"an actor":           {map[string]string{"actor_token": token}, "invalid_request"},
		"a refresh token":    {map[string]string{"requested_token_type": "urn:ietf:params:oauth:token-type:refresh_token"}, "invalid_request"},
		"asks for an access": {map[string]string{"requested_token_type": auth.AccessTokenType}, "invalid_grant"},
	} {
		t.Run(name, func(t *testing.T) { h.exchange(token, test.changes).want(400, test.code) })
	}
	h.send("", "POST", "/auth/oidc/exchange/", object{"subject_token": token}).want(400, "invalid_request")
	without := newSignOnClinic(t)
	without.exchange(token, nil).want(400, "unauthorized_client")
}

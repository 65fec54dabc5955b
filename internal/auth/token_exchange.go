package auth

import (
	"context"
	"errors"
	"mime"
	"net/url"
	"slices"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
)

// Values of a token exchange. Source: RFC 8693, sections 2.1 and 3.
const (
	tokenExchange   = "urn:ietf:params:oauth:grant-type:token-exchange" //nolint:gosec // a name
	idTokenType     = "urn:ietf:params:oauth:token-type:id_token"       //nolint:gosec // a name
	AccessTokenType = "urn:ietf:params:oauth:token-type:access_token"   //nolint:gosec // a name
)

// maxExchangeAge bounds the age of an ID token that is exchanged.
const maxExchangeAge = 5 * time.Minute

// maxIDTokenBytes bounds an ID token.
const maxIDTokenBytes = 16 << 10

// ReadExchange parses the body of a token exchange and returns the ID token.
func ReadExchange(contentType string, body []byte) (idToken string, err error) {
	values, err := readForm(contentType, body)
	if err != nil {
		return "", err
	}
	wanted := values.Get("requested_token_type")
	switch grant := values.Get("grant_type"); {
	case grant == "":
		return "", invalidRequest("grant_type is missing.")
	case grant != tokenExchange:
		return "", oauthFault(fault.Invalid, "unsupported_grant_type", "grant_type must be "+tokenExchange+".")
	case values.Get("subject_token_type") != idTokenType:
		return "", invalidRequest("subject_token_type must be " + idTokenType + ".")
	case wanted != "" && wanted != AccessTokenType:
		return "", invalidRequest("requested_token_type must be " + AccessTokenType + ".")
	case values.Has("actor_token") || values.Has("actor_token_type"):
		return "", invalidRequest("An actor token is not supported.")
	case values.Get("subject_token") == "" || len(values.Get("subject_token")) > maxIDTokenBytes:
		return "", invalidRequest("subject_token must be an ID token.")
	}
	return values.Get("subject_token"), nil
}

// readForm parses the form of a token request. An empty parameter counts as omitted. Source: RFC 6749, section 3.2.
func readForm(contentType string, body []byte) (url.Values, error) {
	if kind, _, err := mime.ParseMediaType(contentType); err != nil || kind != "application/x-www-form-urlencoded" {
		return nil, invalidRequest("The body must be application/x-www-form-urlencoded.")
	}
	values, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, invalidRequest("The body is not a form.")
	}
	for name, list := range values {
		if len(list) > 1 {
			return nil, invalidRequest("A parameter is repeated.")
		}
		if list[0] == "" {
			values.Del(name)
		}
	}
	return values, nil
}

// Exchange signs in a member of staff by an ID token that the practice's identity provider issued to a center at most five minutes ago. It
// never creates an account, and gives no refresh token to the center. Source: docs/decisions/authentication.md, "Token exchange".
func (e *Engine) Exchange(ctx context.Context, app core.App, idToken string, from audit.Origin, now time.Time) (Session, error) {
	if e.options.SignOn == nil || len(e.options.SignOn.options.CenterClientIDs) == 0 {
		return Session{}, oauthFault(fault.Invalid, "unauthorized_client", "No center may exchange tokens here (VIGIL_CENTER_CLIENT_IDS).")
	}
	identity, err := e.options.SignOn.verifyCenter(ctx, idToken, now)
	if err != nil {
		return Session{}, asGrantFault(err)
	}
	s := signOn{
		identity: identity, existingOnly: true, from: from, now: now, method: "token_exchange",
		key: e.sealer.LoginKey("identity\x00" + identity.Issuer + "\x00" + identity.Subject),
	}
	session, err := commitQueuedDecision(ctx, e, app, func(tx core.App) (Session, error, error) { return e.decideSignOn(tx, s) })
	return session, asGrantFault(err)
}

// asGrantFault turns a refused sign-in into OAuth's invalid_grant, which does not reveal whether there is an account. Source: RFC 6749, section 5.2.
func asGrantFault(err error) error {
	refused, ok := errors.AsType[*fault.Error](err)
	if !ok || refused.Kind != fault.Forbidden && refused.Kind != fault.Unauthenticated {
		return err
	}
	return oauthFault(fault.Invalid, "invalid_grant", "The ID token gives no access here.").Because(err)
}

// verifyCenter verifies an ID token of one of the centers.
func (p *OIDCProvider) verifyCenter(ctx context.Context, raw string, now time.Time) (Identity, error) {
	ctx = oidc.ClientContext(ctx, p.http)
	found, err := p.discover(ctx, now)
	if err != nil {
		return Identity{}, err
	}
	verified, err := found.provider.VerifierContext(ctx, &oidc.Config{SkipClientIDCheck: true, Now: func() time.Time { return now }}).Verify(ctx, raw)
	if err != nil {
		return Identity{}, identityRefused(err)
	}
	isCenter := func(id string) bool { return slices.Contains(verified.Audience, id) && isIssuedTo(verified, id) }
	switch {
	case !slices.ContainsFunc(p.options.CenterClientIDs, isCenter):
		return Identity{}, identityRefused(errors.New("the token was issued to another client"))
	case isFromFuture(verified, now):
		return Identity{}, identityRefused(errors.New("the token was issued in the future"))
	case verified.IssuedAt.Before(now.Add(-maxExchangeAge)):
		return Identity{}, identityRefused(errors.New("the token is older than five minutes"))
	case p.isStale(verified, now):
		return Identity{}, identityRefused(errors.New("the authentication is older than requested"))
	}
	var claims claimSet
	if err := verified.Claims(&claims); err != nil {
		return Identity{}, identityRefused(err)
	}
	return p.identityOf(verified, claims, claims), nil
}

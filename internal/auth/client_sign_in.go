package auth

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
)

// IssuedToken is the result of a client's sign-in. It refuses to print.
type IssuedToken struct {
	Access string
	Scope  string // separated by spaces
}

// Format and LogValue hide the token.
func (IssuedToken) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "[token]") }
func (IssuedToken) LogValue() slog.Value       { return slog.StringValue("[token]") }

// clientProof identifies an authenticated client and how it authenticated.
type clientProof struct {
	client *collections.Client
	method string    // OAuth token endpoint authentication method
	jti    string    // id of the assertion, which works once
	ends   time.Time // until when the jti must be stored
}

// SignIn issues an access token to a client. admit is called with the authenticated client and may refuse. Refusals are audited, except those of
// admit.
func (mc *MachineClients) SignIn(
	ctx context.Context, app core.App, form TokenRequest, admit func(clientID string) error, from audit.Origin, now time.Time,
) (IssuedToken, error) {
	p, err := mc.authenticateClient(ctx, app, form, from, now)
	if err != nil {
		return IssuedToken{}, auditRefusal(app, p, err, from, now)
	}
	if err := admit(p.client.Id); err != nil {
		return IssuedToken{}, err
	}
	var token IssuedToken
	err = app.RunInTransaction(func(tx core.App) (err error) {
		token, err = mc.issue(tx, p, form.scope, from, now)
		return err
	})
	if err != nil {
		return IssuedToken{}, auditRefusal(app, p, err, from, now)
	}
	mc.used.record(p.client.Id, now)
	return token, nil
}

// authenticateClient verifies the client's credentials. With a refusal, the proof names the claimed client if it exists.
func (mc *MachineClients) authenticateClient(ctx context.Context, app core.App, form TokenRequest, from audit.Origin, now time.Time) (p *clientProof, err error) {
	if form.basic != nil {
		p, err = checkSecret(app, *form.basic)
	} else {
		p, err = mc.checkAssertion(ctx, app, form, from.Address, now)
	}
	if err != nil {
		return p, err
	}
	return p, checkAllowed(p.client.Values(), from.Address)
}

// checkAllowed refuses an inactive client and an address outside the client's ranges.
func checkAllowed(values collections.ClientValues, address string) error {
	ranges, err := rangesOf(values)
	switch {
	case err != nil:
		return err
	case !values.Active:
		return wrongCredentials("the client is not active")
	case !(&Client{AllowedRanges: ranges}).AllowsAddress(address):
		return wrongCredentials("the address is not one of the client's")
	}
	return nil
}

// checkSecret compares the secret in constant time.
func checkSecret(app core.App, given basicCredentials) (*clientProof, error) {
	client, err := findClient(app, given.id)
	if err != nil {
		return nil, err
	}
	p := &clientProof{client: client, method: "client_secret_basic"}
	if subtle.ConstantTimeCompare([]byte(HashSecret(given.secret)), []byte(client.SecretHash())) != 1 {
		return p, wrongCredentials("wrong secret")
	}
	return p, nil
}

// issue signs a token, unless the client changed since it authenticated or its assertion was used before.
func (mc *MachineClients) issue(tx core.App, p *clientProof, requested string, from audit.Origin, now time.Time) (IssuedToken, error) {
	client, err := findClient(tx, p.client.Id)
	if err != nil {
		return IssuedToken{}, err
	}
	if client.TokenKey() != p.client.TokenKey() {
		return IssuedToken{}, wrongCredentials("the client was changed during the sign-in")
	}
	if p.jti != "" {
		first, err := collections.UseChallenge(tx, HashSecret("client assertion "+client.Id+" "+p.jti), now, p.ends)
		if err != nil {
			return IssuedToken{}, err
		}
		if !first {
			return IssuedToken{}, wrongAssertion("The assertion was used before: each needs a jti of its own.")
		}
	}
	values := client.Values()
	scopes, spelled, err := grantScopes(requested, authz.ParseClientScopes(values.Scopes))
	if err != nil {
		return IssuedToken{}, err
	}
	if err := collections.MarkClientUsed(tx, client.Id, now); err != nil {
		return IssuedToken{}, err
	}
	err = audit.Append(tx, audit.Entry{
		Event: audit.ClientToken, Actor: audit.Client(client.Id, values.Name, from), ResourceType: audit.ResourceClient, ResourceID: client.Id,
		Changes: audit.Changes{"scope": {New: joinScopes(scopes)}, "method": {New: p.method}},
	}, now)
	if err != nil {
		return IssuedToken{}, err
	}
	signed, err := mc.signer.Sign(TokenClaims{
		Kind: ClientToken, Collection: client.Collection().Id, Holder: client.Id, Scope: joinScopes(scopes), IssuedAt: now, ExpiresAt: now.Add(ClientTokenLife),
	}, Account{TokenKey: client.TokenKey(), Life: ClientTokenLife})
	return IssuedToken{Access: tokenPrefix + signed, Scope: spelled}, err
}

// auditRefusal audits a refused sign-in with its reason and returns the refusal.
func auditRefusal(app core.App, p *clientProof, refusal error, from audit.Origin, now time.Time) error {
	f, ok := asRejection(refusal)
	if !ok {
		return refusal
	}
	entry := audit.Entry{Event: audit.ClientTokenRefused, Outcome: audit.MinorFailure, Actor: audit.Anonymous(from), ResourceType: audit.ResourceClient}
	if p != nil {
		entry.ResourceID = p.client.Id
	}
	why := f.Detail
	if cause := f.Unwrap(); cause != nil {
		why = cause.Error()
	}
	entry.Changes = audit.Changes{"error": {New: f.Code}, "reason": {New: why}}
	if err := audit.Append(app, entry, now); err != nil {
		return err
	}
	return refusal
}

// Parameters of the token request. Source: RFC 6749, section 4.4; RFC 7521, section 4.2; RFC 7523, section 2.2.
const (
	clientCredentials = "client_credentials"
	jwtBearer         = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer" //nolint:gosec // a name
	maxAssertionBytes = 8 << 10
)

// TokenRequest is a client's request for an access token. It refuses to print.
type TokenRequest struct {
	clientID  string // from the body; "" if absent
	assertion string
	basic     *basicCredentials
	scope     string
}

// basicCredentials are credentials from the Authorization header.
type basicCredentials struct{ id, secret string }

// Format and LogValue hide the credentials.
func (TokenRequest) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "[token request]") }
func (TokenRequest) LogValue() slog.Value       { return slog.StringValue("[token request]") }

// oauthFault is a fault with OAuth's error members besides the usual ones. Source: RFC 6749, section 5.2.
func oauthFault(kind fault.Kind, code, description string) *fault.Error {
	return fault.New(kind, code, description).With("error", code).With("error_description", description)
}

func invalidRequest(description string) *fault.Error {
	return oauthFault(fault.Invalid, "invalid_request", description)
}

// invalidClient is the fault for failed client authentication. The reason is for the audit trail, where the caller must not see it.
func invalidClient(description, why string) *fault.Error {
	return oauthFault(fault.Unauthenticated, "invalid_client", description).Because(errors.New(why))
}

// wrongCredentials does not reveal whether the client exists, is active, or may use the address.
func wrongCredentials(why string) *fault.Error {
	return invalidClient("The client is unknown, or its credentials are wrong.", why)
}

// wrongAssertion describes what is wrong with an assertion. The description must not depend on the stored client.
func wrongAssertion(description string) *fault.Error { return invalidClient(description, description) }

// ReadTokenRequest parses the body of a token request and the Authorization header.
func ReadTokenRequest(contentType string, body []byte, authorization string) (form TokenRequest, err error) {
	values, err := readForm(contentType, body)
	if err != nil {
		return form, err
	}
	switch grant := values.Get("grant_type"); {
	case grant == "":
		return form, invalidRequest("grant_type is missing.")
	case grant != clientCredentials:
		return form, oauthFault(fault.Invalid, "unsupported_grant_type", "grant_type must be client_credentials.")
	case values.Has("client_secret"):
		return form, invalidRequest("Send the secret by HTTP Basic, not in the body.")
	}
	form = TokenRequest{clientID: values.Get("client_id"), assertion: values.Get("client_assertion"), scope: values.Get("scope")}
	if form.basic, err = readBasic(authorization); err != nil {
		return form, err
	}
	return form, form.check(values.Get("client_assertion_type"))
}

// check requires exactly one authentication method.
func (r TokenRequest) check(assertionType string) error {
	switch {
	case r.basic != nil && (r.assertion != "" || assertionType != ""):
		return invalidRequest("Prove who you are by an assertion or by a secret, not by both.")
	case r.basic != nil && r.clientID != "" && r.clientID != r.basic.id:
		return invalidRequest("client_id names another client than the header does.")
	case r.basic != nil:
		return nil
	case assertionType == "" && r.assertion == "":
		return invalidClient("Send a client_assertion, or the client's id and secret by HTTP Basic.", "no credentials")
	case assertionType != jwtBearer:
		return invalidRequest("client_assertion_type must be " + jwtBearer + ".")
	case r.assertion == "":
		return invalidRequest("client_assertion is missing.")
	case len(r.assertion) > maxAssertionBytes:
		return wrongAssertion("The assertion is too long.")
	}
	return nil
}

// readBasic parses HTTP Basic credentials. It returns nil for no header or another scheme. Source: RFC 6749, section 2.3.1.
func readBasic(authorization string) (*basicCredentials, error) {
	scheme, _, _ := strings.Cut(authorization, " ")
	if !strings.EqualFold(scheme, "Basic") {
		return nil, nil //nolint:nilnil // none is no error
	}
	id, secret, ok := parseBasic(authorization)
	if !ok {
		return nil, invalidClient("The credentials in the header cannot be read.", "unreadable credentials")
	}
	return &basicCredentials{id, secret}, nil
}

// grantScopes returns the requested scopes and the caller's spelling of them, or all scopes of the client if none are requested. A wildcard
// is narrowed to what the client has. Source: RFC 6749, section 3.3.
func grantScopes(requested string, held authz.ClientScopes) (authz.ClientScopes, string, error) {
	words := strings.Fields(requested)
	if len(words) == 0 {
		words = held.Strings()
	}
	scopes, spelled := authz.ClientScopes{}, []string{}
	for _, word := range words {
		scope, known := authz.ParseTokenScope(word)
		granted := authz.ClientScopes{scope}
		if known && !held.Allow(scope) { // of a wildcard, what the client has
			granted = held.Narrow(scope)
		}
		if !known || len(granted) == 0 {
			return nil, "", oauthFault(fault.Invalid, "invalid_scope", "The client does not have all of these scopes.")
		}
		for _, one := range granted {
			if !scopes.Allow(one) {
				scopes, spelled = append(scopes, one), append(spelled, spell(word, one))
			}
		}
	}
	if len(scopes) == 0 {
		return nil, "", oauthFault(fault.Invalid, "invalid_scope", "The client has no scopes.")
	}
	return scopes, strings.Join(spelled, " "), nil
}

// spell writes a granted scope as the caller wrote the requested one: in the syntax of SMART 1 or 2.
func spell(requested string, granted authz.ClientScope) string {
	if scope, known := authz.ParseTokenScope(requested); known && scope == granted {
		return requested
	}
	if text, whole := strings.CutSuffix(string(granted), ".rs"); whole && strings.HasSuffix(requested, ".read") {
		return text + ".read"
	}
	return string(granted)
}

func parseBasic(authorization string) (id, secret string, ok bool) {
	id, secret, ok = (&http.Request{Header: http.Header{"Authorization": {authorization}}}).BasicAuth()
	if !ok {
		return "", "", false
	}
	id, first := url.QueryUnescape(id)
	secret, second := url.QueryUnescape(secret)
	return id, secret, first == nil && second == nil
}

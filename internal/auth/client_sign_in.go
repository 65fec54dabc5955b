package auth

import (
	"context"
	"crypto/subtle"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
)

// IssuedToken is the result of a client's sign-in. It refuses to print.
type IssuedToken struct {
	Access string
	Scope  string // separated by spaces
}

// Format hides the token.
func (IssuedToken) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "[token]") }

// LogValue hides the token.
func (IssuedToken) LogValue() slog.Value { return slog.StringValue("[token]") }

// clientProof identifies an authenticated client and how it authenticated.
type clientProof struct {
	client *collections.Client
	method string    // OAuth token endpoint authentication method
	jti    string    // id of the assertion, which works once
	ends   time.Time // until when the jti must be stored
}

// SignIn issues an access token to a client. admit is called with the authenticated client and may refuse. Refusals are audited, except those of
// admit.
func (e *MachineClients) SignIn(
	ctx context.Context, app core.App, form TokenRequest, admit func(clientID string) error, from audit.Origin, now time.Time,
) (IssuedToken, error) {
	p, err := e.authenticateClient(ctx, app, form, from, now)
	if err != nil {
		return IssuedToken{}, auditRefusal(app, p, err, from, now)
	}
	if err := admit(p.client.Id); err != nil {
		return IssuedToken{}, err
	}
	var token IssuedToken
	err = app.RunInTransaction(func(tx core.App) (err error) {
		token, err = e.issue(tx, p, form.scope, from, now)
		return err
	})
	if err != nil {
		return IssuedToken{}, auditRefusal(app, p, err, from, now)
	}
	e.used.record(p.client.Id, now)
	return token, nil
}

// authenticateClient verifies the client's credentials. With a refusal, the proof names the claimed client if it exists.
func (e *MachineClients) authenticateClient(ctx context.Context, app core.App, form TokenRequest, from audit.Origin, now time.Time) (p *clientProof, err error) {
	if form.basic != nil {
		p, err = checkSecret(app, *form.basic)
	} else {
		p, err = e.checkAssertion(ctx, app, form, from.Address, now)
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
	case !(&Client{From: ranges}).AllowsAddress(address):
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
	if subtle.ConstantTimeCompare([]byte(Hash(given.secret)), []byte(client.SecretHash())) != 1 {
		return p, wrongCredentials("wrong secret")
	}
	return p, nil
}

// issue signs a token, unless the client changed since it authenticated or its assertion was used before.
func (e *MachineClients) issue(tx core.App, p *clientProof, requested string, from audit.Origin, now time.Time) (IssuedToken, error) {
	client, err := findClient(tx, p.client.Id)
	if err != nil {
		return IssuedToken{}, err
	}
	if client.TokenKey() != p.client.TokenKey() {
		return IssuedToken{}, wrongCredentials("the client was changed during the sign-in")
	}
	if p.jti != "" {
		first, err := collections.UseChallenge(tx, Hash("client assertion "+client.Id+" "+p.jti), now, p.ends)
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
	signed, err := e.signer.Sign(TokenClaims{
		Kind: ClientToken, Collection: client.Collection().Id, Holder: client.Id, Scope: joinScopes(scopes), IssuedAt: now, ExpiresAt: now.Add(ClientTokenLife),
	}, Account{TokenKey: client.TokenKey(), Life: ClientTokenLife})
	return IssuedToken{Access: tokenPrefix + signed, Scope: spelled}, err
}

// auditRefusal audits a refused sign-in with its reason and returns the refusal.
func auditRefusal(app core.App, p *clientProof, refusal error, from audit.Origin, now time.Time) error {
	f, ok := asRefusal(refusal)
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

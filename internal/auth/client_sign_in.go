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

// IssuedToken is what signing in gives. It refuses to print.
type IssuedToken struct {
	Access string
	Scope  string // separated by spaces
}

// Format shows nothing of the token.
func (IssuedToken) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "[token]") }

// LogValue shows nothing of the token.
func (IssuedToken) LogValue() slog.Value { return slog.StringValue("[token]") }

// proof is how somebody showed that they are a client.
type proof struct {
	client *collections.Client
	method string    // as OAuth's registries name it
	jti    string    // of an assertion, which does once
	ends   time.Time // when it could not be used again anyway
}

// SignIn gives a client an access token. admit is asked once it is certain who the client is, and may refuse. Refusals are audited, but for admit's.
func (e *MachineClients) SignIn(
	ctx context.Context, app core.App, form Form, admit func(clientID string) error, from audit.Origin, now time.Time,
) (IssuedToken, error) {
	p, err := e.prove(ctx, app, form, from, now)
	if err != nil {
		return IssuedToken{}, noteRefused(app, p, err, from, now)
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
		return IssuedToken{}, noteRefused(app, p, err, from, now)
	}
	e.used.due(p.client.Id, now)
	return token, nil
}

// prove finds out who asks. The proof that comes with a refusal says who they say they are.
func (e *MachineClients) prove(ctx context.Context, app core.App, form Form, from audit.Origin, now time.Time) (p *proof, err error) {
	if form.basic != nil {
		p, err = checkSecret(app, *form.basic)
	} else {
		p, err = e.checkAssertion(ctx, app, form, from.Address, now)
	}
	if err != nil {
		return p, err
	}
	return p, mayComeIn(p.client.Values(), from.Address)
}

// mayComeIn refuses a client that is out of use, or comes from elsewhere.
func mayComeIn(values collections.ClientValues, address string) error {
	ranges, err := rangesOf(values)
	switch {
	case err != nil:
		return err
	case !values.Active:
		return wrongCredentials("the client is not active")
	case !(&Client{From: ranges}).LetsIn(address):
		return wrongCredentials("the address is not one of the client's")
	}
	return nil
}

// checkSecret compares in the same time whatever is wrong.
func checkSecret(app core.App, given basic) (*proof, error) {
	client, err := findClient(app, given.id)
	if err != nil {
		return nil, err
	}
	p := &proof{client: client, method: "client_secret_basic"}
	if subtle.ConstantTimeCompare([]byte(Hash(given.secret)), []byte(client.SecretHash())) != 1 {
		return p, wrongCredentials("wrong secret")
	}
	return p, nil
}

// issue gives the token, unless the client was changed while it proved who it is, or its assertion was used before.
func (e *MachineClients) issue(tx core.App, p *proof, asked string, from audit.Origin, now time.Time) (IssuedToken, error) {
	client, err := findClient(tx, p.client.Id)
	if err != nil {
		return IssuedToken{}, err
	}
	if client.TokenKey() != p.client.TokenKey() {
		return IssuedToken{}, wrongCredentials("the client was changed meanwhile")
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
	scopes, spelled, err := granted(asked, authz.ReadClientScopes(values.Scopes))
	if err != nil {
		return IssuedToken{}, err
	}
	if err := collections.MarkClientUsed(tx, client.Id, now); err != nil {
		return IssuedToken{}, err
	}
	err = audit.Append(tx, audit.Entry{
		Event: audit.ClientToken, Actor: audit.Client(client.Id, values.Name, from), ResourceType: audit.ResourceClient, ResourceID: client.Id,
		Changes: audit.Changes{"scope": {New: joined(scopes)}, "method": {New: p.method}},
	}, now)
	if err != nil {
		return IssuedToken{}, err
	}
	signed, err := e.signer.Sign(TokenClaims{
		Kind: ClientToken, Collection: client.Collection().Id, Holder: client.Id, Scope: joined(scopes), IssuedAt: now, ExpiresAt: now.Add(Life),
	}, Account{TokenKey: client.TokenKey(), Life: Life})
	return IssuedToken{Access: tokenPrefix + signed, Scope: spelled}, err
}

// noteRefused leaves a trace of somebody who did not get a token, and why; the refusal stays what it is.
func noteRefused(app core.App, p *proof, refusal error, from audit.Origin, now time.Time) error {
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

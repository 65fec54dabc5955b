package auth

import (
	"context"
	"crypto"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/egress"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/validate"
)

const (
	longestLife        = 5 * time.Minute  // of an assertion, from now. Source: SMART Backend Services, "Authentication JWT".
	assertionClockSkew = 10 * time.Second // by which a client's clock may be ahead of ours
	longestJTI         = 512
	// longestWait is more than a request may wait, for keys or for its turn, after its time was read: so long after its end a jti stays known.
	longestWait = time.Minute
)

// Times are checked by us, against the time we are handed. Strict decoding leaves each assertion one spelling.
var assertions = jwt.NewParser(jwt.WithValidMethods([]string{rs384, es384}), jwt.WithoutClaimsValidation(), jwt.WithStrictDecoding())

// asserted is what an assertion says that nobody has vouched for.
type asserted struct {
	claims   jwt.RegisteredClaims
	kid, alg string
	jku      string // where it says that its key is; nothing is ever fetched from there
}

// readAssertion reads an assertion and refuses what is wrong with it whoever sends it. Its signature is not looked at.
func (e *MachineClients) readAssertion(text string, now time.Time) (a asserted, err error) {
	parsed, _, err := assertions.ParseUnverified(text, &a.claims)
	if err != nil {
		return a, wrongAssertion("The assertion is not a JSON Web Token.")
	}
	a.alg, _ = parsed.Header["alg"].(string)
	a.kid, _ = parsed.Header["kid"].(string)
	a.jku, _ = parsed.Header["jku"].(string)
	_, critical := parsed.Header["crit"]
	claims, expires := a.claims, timeOf(a.claims.ExpiresAt)
	switch {
	case a.alg != rs384 && a.alg != es384:
		return a, wrongAssertion("The assertion must be signed by RS384 or ES384.")
	case critical:
		return a, wrongAssertion("The assertion has a header crit, of which nothing is known.")
	case a.kid == "":
		return a, wrongAssertion("The assertion needs a header kid.")
	case claims.Issuer == "" || claims.Issuer != claims.Subject:
		return a, wrongAssertion("iss and sub must both be the client's id.")
	case !slices.ContainsFunc(claims.Audience, e.isTokenURL):
		return a, wrongAssertion("aud must be " + e.options.TokenURL + ".")
	case claims.ID == "" || len(claims.ID) > longestJTI:
		return a, wrongAssertion("The assertion needs a jti of at most 512 bytes.")
	case expires.IsZero():
		return a, wrongAssertion("The assertion needs an exp.")
	case !now.Before(expires):
		return a, wrongAssertion("The assertion has expired.")
	case expires.After(now.Add(longestLife + assertionClockSkew)):
		return a, wrongAssertion("exp must be at most five minutes from now.")
	case timeOf(claims.IssuedAt).After(now.Add(assertionClockSkew)) || timeOf(claims.NotBefore).After(now.Add(assertionClockSkew)):
		return a, wrongAssertion("The assertion is from the future.")
	}
	return a, nil
}

// isTokenURL compares addresses as they are served: with or without the last slash.
func (e *MachineClients) isTokenURL(audience string) bool {
	return strings.TrimSuffix(audience, "/") == strings.TrimSuffix(e.options.TokenURL, "/")
}

func timeOf(date *jwt.NumericDate) time.Time {
	if date == nil {
		return time.Time{}
	}
	return date.Time
}

// checkAssertion finds out which client has signed an assertion. It may fetch the client's keys, and so is called outside of transactions.
func (e *MachineClients) checkAssertion(ctx context.Context, app core.App, form Form, address string, now time.Time) (*proof, error) {
	a, err := e.readAssertion(form.assertion, now)
	if err != nil {
		return nil, err
	}
	if form.clientID != "" && form.clientID != a.claims.Issuer {
		return nil, invalidRequest("client_id names another client than the assertion does.")
	}
	client, err := findClient(app, a.claims.Issuer)
	if err != nil {
		return nil, err
	}
	p := &proof{client: client, method: "private_key_jwt", jti: a.claims.ID, ends: timeOf(a.claims.ExpiresAt).Add(longestWait)}
	values := client.Values()
	if err := mayComeIn(values, address); err != nil {
		return p, err // before anything is fetched for it
	}
	if a.jku != "" && a.jku != values.JWKSURL {
		return p, wrongAssertion("jku must be the address that is registered.")
	}
	key, err := e.keyOf(ctx, client.Id, values, a, now)
	if err != nil {
		return p, err
	}
	if _, err := assertions.ParseWithClaims(form.assertion, &jwt.RegisteredClaims{}, func(*jwt.Token) (any, error) { return key, nil }); err != nil {
		return p, wrongCredentials("wrong signature")
	}
	return p, nil
}

// keyOf is the key of a client by the name that its assertion says.
func (e *MachineClients) keyOf(ctx context.Context, id string, values collections.ClientValues, a asserted, now time.Time) (crypto.PublicKey, error) {
	if values.JWKSURL == "" {
		if values.JWKS == nil {
			return nil, wrongCredentials("the client has no keys")
		}
		keys, err := parseGiven(values.JWKS)
		if err != nil {
			return nil, err
		}
		if key := keys.find(a.kid, a.alg); key != nil {
			return key, nil
		}
		return nil, wrongCredentials(errUnknownKey.Error())
	}
	key, err := e.keys.find(ctx, id, values.JWKSURL, a.kid, a.alg, now)
	if errors.Is(err, errUnknownKey) {
		return nil, wrongCredentials(err.Error())
	}
	if errors.Is(err, egress.ErrAddress) {
		return nil, wrongCredentials("jwks_url leads to an address that requests may not go to")
	}
	if err != nil {
		return nil, invalidClient("The keys at jwks_url could not be read.", err.Error())
	}
	return key, nil
}

// findClient finds a client by the id that somebody says.
func findClient(app core.App, said string) (*collections.Client, error) {
	id, ok := validate.ParseUUID(said)
	if !ok || id != said {
		return nil, wrongCredentials("unknown client")
	}
	client, err := collections.FindClient(app, id)
	if collections.IsNotFound(err) {
		return nil, wrongCredentials("unknown client")
	}
	return client, err
}

// asRefusal reports whether an error is a refusal of ours, and not something that went wrong.
func asRefusal(err error) (*fault.Error, bool) {
	f, ok := errors.AsType[*fault.Error](err)
	return f, ok && f.Kind != fault.Internal
}

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
	maxAssertionLife   = 5 * time.Minute  // from now to exp. Source: SMART Backend Services, "Authentication JWT".
	assertionClockSkew = 10 * time.Second // how far a client's clock may be ahead
	maxJTIBytes        = 512
	// maxRequestWait exceeds the time a request may wait for keys or the write lock after it read the clock. A jti is stored that long past the
	// exp of its assertion.
	maxRequestWait = time.Minute
)

// Times are checked in parseAssertion, against the caller's clock. Strict decoding allows one encoding per assertion.
var assertionParser = jwt.NewParser(jwt.WithValidMethods([]string{rs384, es384}), jwt.WithoutClaimsValidation(), jwt.WithStrictDecoding())

// unverifiedAssertion holds the claims of an assertion before its signature is checked.
type unverifiedAssertion struct {
	claims   jwt.RegisteredClaims
	kid, alg string
	jku      string // compared with the registered URL; never fetched
}

// parseAssertion parses an assertion and refuses everything that is wrong independent of the client. It does not check the signature.
func (mc *MachineClients) parseAssertion(text string, now time.Time) (a unverifiedAssertion, err error) {
	parsed, _, err := assertionParser.ParseUnverified(text, &a.claims)
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
		return a, wrongAssertion("The assertion has a crit header, which is not supported.")
	case a.kid == "":
		return a, wrongAssertion("The assertion needs a header kid.")
	case claims.Issuer == "" || claims.Issuer != claims.Subject:
		return a, wrongAssertion("iss and sub must both be the client's id.")
	case !slices.ContainsFunc(claims.Audience, mc.isTokenURL):
		return a, wrongAssertion("aud must be " + mc.options.TokenURL + ".")
	case claims.ID == "" || len(claims.ID) > maxJTIBytes:
		return a, wrongAssertion("The assertion needs a jti of at most 512 bytes.")
	case expires.IsZero():
		return a, wrongAssertion("The assertion needs an exp.")
	case !now.Before(expires):
		return a, wrongAssertion("The assertion has expired.")
	case expires.After(now.Add(maxAssertionLife + assertionClockSkew)):
		return a, wrongAssertion("exp must be at most five minutes from now.")
	case timeOf(claims.IssuedAt).After(now.Add(assertionClockSkew)) || timeOf(claims.NotBefore).After(now.Add(assertionClockSkew)):
		return a, wrongAssertion("The assertion is from the future.")
	}
	return a, nil
}

// isTokenURL compares the audience with the token endpoint, ignoring a trailing slash.
func (mc *MachineClients) isTokenURL(audience string) bool {
	return strings.TrimSuffix(audience, "/") == strings.TrimSuffix(mc.options.TokenURL, "/")
}

func timeOf(date *jwt.NumericDate) time.Time {
	if date == nil {
		return time.Time{}
	}
	return date.Time
}

// checkAssertion returns the client that signed the assertion. It may fetch the client's keys, so callers must not hold a transaction.
func (mc *MachineClients) checkAssertion(ctx context.Context, app core.App, form TokenRequest, address string, now time.Time) (*clientProof, error) {
	a, err := mc.parseAssertion(form.assertion, now)
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
	p := &clientProof{client: client, method: "private_key_jwt", jti: a.claims.ID, ends: timeOf(a.claims.ExpiresAt).Add(maxRequestWait)}
	values := client.Values()
	if err := checkAllowed(values, address); err != nil {
		return p, err // before its keys are fetched
	}
	if a.jku != "" && a.jku != values.JWKSURL {
		return p, wrongAssertion("jku must be the address that is registered.")
	}
	key, err := mc.keyOf(ctx, client.Id, values, a, now)
	if err != nil {
		return p, err
	}
	if _, err := assertionParser.ParseWithClaims(form.assertion, &jwt.RegisteredClaims{}, func(*jwt.Token) (any, error) { return key, nil }); err != nil {
		return p, wrongCredentials("wrong signature")
	}
	return p, nil
}

// keyOf returns the client's key with the key id of the assertion.
func (mc *MachineClients) keyOf(ctx context.Context, id string, values collections.ClientValues, a unverifiedAssertion, now time.Time) (crypto.PublicKey, error) {
	if values.JWKSURL == "" {
		if values.JWKS == nil {
			return nil, wrongCredentials("the client has no keys")
		}
		keys, err := parseConfiguredKeys(values.JWKS)
		if err != nil {
			return nil, err
		}
		if key := keys.find(a.kid, a.alg); key != nil {
			return key, nil
		}
		return nil, wrongCredentials(errUnknownKey.Error())
	}
	key, err := mc.keys.find(ctx, id, values.JWKSURL, a.kid, a.alg, now)
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

// findClient returns the client with the given id.
func findClient(app core.App, text string) (*collections.Client, error) {
	id, ok := validate.ParseUUID(text)
	if !ok || id != text {
		return nil, wrongCredentials("unknown client")
	}
	client, err := collections.FindClient(app, id)
	if collections.IsNotFound(err) {
		return nil, wrongCredentials("unknown client")
	}
	return client, err
}

// asRejection returns the fault if err is a refusal and not an internal error.
func asRejection(err error) (*fault.Error, bool) {
	f, ok := errors.AsType[*fault.Error](err)
	return f, ok && f.Kind != fault.Internal
}

package auth

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
)

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

// Format hides the credentials.
func (TokenRequest) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "[token request]") }

// LogValue hides the credentials.
func (TokenRequest) LogValue() slog.Value { return slog.StringValue("[token request]") }

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
	if kind, _, err := mime.ParseMediaType(contentType); err != nil || kind != "application/x-www-form-urlencoded" {
		return form, invalidRequest("The body must be application/x-www-form-urlencoded.")
	}
	values, err := url.ParseQuery(string(body))
	if err != nil {
		return form, invalidRequest("The body is not a form.")
	}
	for name, list := range values {
		if len(list) > 1 {
			return form, invalidRequest("A parameter is repeated.")
		}
		if list[0] == "" { // treated as omitted: RFC 6749, section 3.2
			values.Del(name)
		}
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
func (f TokenRequest) check(assertionType string) error {
	switch {
	case f.basic != nil && (f.assertion != "" || assertionType != ""):
		return invalidRequest("Prove who you are by an assertion or by a secret, not by both.")
	case f.basic != nil && f.clientID != "" && f.clientID != f.basic.id:
		return invalidRequest("client_id names another client than the header does.")
	case f.basic != nil:
		return nil
	case assertionType == "" && f.assertion == "":
		return invalidClient("Send a client_assertion, or the client's id and secret by HTTP Basic.", "no credentials")
	case assertionType != jwtBearer:
		return invalidRequest("client_assertion_type must be " + jwtBearer + ".")
	case f.assertion == "":
		return invalidRequest("client_assertion is missing.")
	case len(f.assertion) > maxAssertionBytes:
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

// grantScopes returns the requested scopes and the caller's spelling of them, or all scopes of the client if none are requested.
func grantScopes(requested string, held authz.ClientScopes) (authz.ClientScopes, string, error) {
	words := strings.Fields(requested)
	if len(words) == 0 {
		words = held.Strings()
	}
	scopes, spelled := authz.ClientScopes{}, []string{}
	for _, word := range words {
		scope, known := authz.ParseClientScope(word)
		if !known || !held.Allow(scope) {
			return nil, "", oauthFault(fault.Invalid, "invalid_scope", "The client does not have all of these scopes.")
		}
		if !scopes.Allow(scope) {
			scopes, spelled = append(scopes, scope), append(spelled, word)
		}
	}
	if len(scopes) == 0 {
		return nil, "", oauthFault(fault.Invalid, "invalid_scope", "The client has no scopes.")
	}
	return scopes, strings.Join(spelled, " "), nil
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

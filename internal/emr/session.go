package emr

import (
	"cmp"
	"context"
	"crypto/rsa"
	"net/url"
	"slices"
	"sync"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
	"golang.org/x/sync/singleflight"
)

// UserScopes are the scopes requested from a person who connects the service.
// Source: docs/decisions/emr.md, "OAuth start".
var UserScopes = []string{"user/Patient.read", "user/Observation.write"}

// session is the interactive sign-in: one person's grant, renewed for as long as the EMR allows.
// Source: SMART App Launch, standalone launch; RFC 6749, sections 4.1 and 6; RFC 7636.
type session struct {
	transport  *transport
	config     oauth2.Config
	key        *rsa.PrivateKey // authenticates the client without a secret
	fhirBase   string
	vault      Vault
	audience   string
	flight     singleflight.Group
	mu         sync.Mutex
	tokens     Tokens
	isLoaded   bool
	isUnstored bool // the vault does not have the tokens yet
}

func newSession(o Options, l *transport, audience string) *session {
	scopes := o.UserScopes
	if scopes == nil {
		scopes = UserScopes
	}
	return &session{
		transport: l, key: o.PrivateKey, fhirBase: o.BaseURL, vault: o.Vault, audience: audience,
		config: oauth2.Config{
			ClientID: o.ClientID, ClientSecret: o.ClientSecret, RedirectURL: o.RedirectURL,
			Endpoint: oauth2.Endpoint{AuthURL: o.AuthorizeURL, TokenURL: o.TokenURL},
			Scopes:   slices.Concat(scopes, o.ExtraScopes),
		},
	}
}

// AuthorizationURL returns the address where a person's browser connects the service. state and verifier are the caller's secrets; the
// address holds only a hash of the verifier.
func (c *Client) AuthorizationURL(state, verifier string) (string, error) {
	if c.session == nil {
		return "", notConfigured()
	}
	return c.session.config.AuthCodeURL(state, oauth2.S256ChallengeOption(verifier), oauth2.SetAuthURLParam("aud", c.session.fhirBase)), nil
}

// Exchange exchanges the authorization code for tokens. The caller stores them and then calls UseTokens. The error is always an *Error.
func (c *Client) Exchange(ctx context.Context, code, verifier, connectedBy string) (Tokens, error) {
	if c.session == nil {
		return Tokens{}, notConfigured()
	}
	s := c.session
	t, e := s.transport.requestToken(ctx, s.request(url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "code_verifier": {verifier}, "redirect_uri": {s.config.RedirectURL},
	}, code, verifier))
	if e != nil {
		return Tokens{}, e
	}
	t.ConnectedBy, t.Audience = connectedBy, s.audience
	return t, nil
}

// UseTokens makes the client use tokens that the caller has stored.
func (c *Client) UseTokens(t Tokens) {
	if c.session == nil {
		return
	}
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	c.session.tokens, c.session.isLoaded, c.session.isUnstored = t, true, false
}

// Connection returns the person's grant, zero when no person is connected.
func (c *Client) Connection() (Tokens, error) {
	if c.session == nil {
		return Tokens{}, nil
	}
	return c.session.current()
}

// current returns the tokens, read from the vault at the first call.
func (s *session) current() (Tokens, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.isLoaded {
		stored, err := loadTokens(s.vault, InteractiveFlow, s.audience)
		if err != nil {
			return Tokens{}, err
		}
		s.tokens, s.isLoaded = stored, true
	}
	if s.isUnstored { // a failed write must not lose tokens that the EMR has replaced
		s.isUnstored = s.vault.Store(InteractiveFlow, s.tokens) != nil
	}
	return s.tokens, nil
}

// connected reports whether the session can provide a token.
func (s *session) connected() bool {
	t, err := s.current()
	return err == nil && t.Usable(s.transport.now())
}

func notConnected() *Error {
	return &Error{Code: CodeAuth, Message: "EMR authorization failed (not connected)"}
}

func (s *session) token(ctx context.Context) (string, *Error) {
	t, err := s.current()
	if err != nil {
		return "", &Error{Code: CodeUnavailable, Message: "EMR unavailable (interrupted)", cause: err}
	}
	now := s.transport.now()
	switch {
	case t.alive(now) && (now.Before(t.renewAt()) || !t.refreshable(now)):
		return t.Access.Reveal(), nil
	case !t.refreshable(now):
		return "", notConnected()
	}
	renewed, e := shareCall(ctx, &s.flight, s.transport, func(ctx context.Context) (Tokens, *Error) { return s.renew(ctx, t) })
	if e == nil {
		return renewed.Access.Reveal(), nil
	}
	if e.OAuthError != "invalid_grant" && t.alive(now) {
		return t.Access.Reveal(), nil // it is still valid for a few minutes
	}
	return "", e
}

// renew exchanges the refresh token, which the EMR then invalidates, so the new tokens are stored at once.
func (s *session) renew(ctx context.Context, old Tokens) (Tokens, *Error) {
	if now, err := s.current(); err == nil && now.Access != "" && now.Access != old.Access {
		return now, nil // another caller renewed it
	}
	refresh := old.Refresh.Reveal()
	t, e := s.transport.requestToken(ctx, s.request(url.Values{"grant_type": {"refresh_token"}, "refresh_token": {refresh}}, refresh))
	if e != nil {
		if e.OAuthError == "invalid_grant" { // the EMR has ended the connection
			ended := old
			ended.Access, ended.Refresh = "", ""
			s.replace(old, ended)
		}
		return Tokens{}, e
	}
	t.ConnectedBy, t.Audience = old.ConnectedBy, old.Audience
	if t.Refresh == "" {
		t.Refresh, t.RefreshExpiresAt = old.Refresh, old.RefreshExpiresAt
	}
	t.Scope = cmp.Or(t.Scope, old.Scope) // as before. Source: RFC 6749, section 6
	s.replace(old, t)
	return t, nil
}

// replace stores the tokens that replace the old ones, unless a new connection was made in the meantime.
func (s *session) replace(old, t Tokens) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tokens.Refresh != old.Refresh {
		return
	}
	s.tokens = t
	s.isUnstored = s.vault != nil && s.vault.Store(InteractiveFlow, t) != nil
}

// reject makes the next call renew the token, unless it has been replaced already.
func (s *session) reject(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tokens.Access.Reveal() == token {
		s.tokens.Access = ""
	}
}

// request builds a token request for the person's grant; the client authenticates by secret, else by assertion, else not at all.
func (s *session) request(params url.Values, secrets ...string) func() (tokenRequest, error) {
	return func() (tokenRequest, error) {
		r := tokenRequest{Config: clientcredentials.Config{TokenURL: s.config.Endpoint.TokenURL, EndpointParams: params}, secrets: secrets}
		r.AuthStyle = oauth2.AuthStyleInParams
		switch {
		case s.config.ClientSecret != "":
			r.ClientID, r.ClientSecret, r.AuthStyle = s.config.ClientID, s.config.ClientSecret, oauth2.AuthStyleInHeader
			r.secrets = append(r.secrets, s.config.ClientSecret)
		case s.key != nil:
			signed, err := Assertion(s.config.ClientID, s.config.Endpoint.TokenURL, s.key, s.transport.now())
			if err != nil {
				return r, err
			}
			params.Set("client_assertion_type", assertionType)
			params.Set("client_assertion", signed)
			r.secrets = append(r.secrets, signed)
		default:
			r.ClientID = s.config.ClientID
		}
		return r, nil
	}
}

// eitherSource provides the person's token while there is one, else the service's.
type eitherSource struct {
	first    *session
	fallback tokenSource
}

func (s *eitherSource) token(ctx context.Context) (string, *Error) {
	if s.first.connected() {
		token, e := s.first.token(ctx)
		if e == nil || e.Code != CodeAuth {
			return token, e
		}
	}
	return s.fallback.token(ctx)
}

func (s *eitherSource) reject(token string) {
	s.first.reject(token)
	s.fallback.reject(token)
}

package auth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/pocketbase/pocketbase/core"
	"golang.org/x/oauth2"
	"golang.org/x/sync/singleflight"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/phi"
)

// GroupRole maps a group of the identity provider to a role.
type GroupRole struct {
	Group string
	Role  authz.Role
}

// OIDCOptions configure an [OIDCProvider].
type OIDCOptions struct {
	Issuer, ClientID string
	ClientSecret     phi.Text // empty for a public client
	RedirectURL      string
	RoleClaim        string // the claim that lists groups; a dot descends into an object
	Roles            []GroupRole
	TrustMFA         bool          // the provider requires a second factor at every sign-in
	MaxAge           time.Duration // maximum age of the authentication; 0 leaves it to the provider
	Key              []byte        // secret of this service
	CenterClientIDs  []string      // clients at the provider whose ID tokens may be exchanged here
}

// Identity holds a person's verified claims. It is personal data: store it, but do not log it.
type Identity struct {
	Issuer, Subject     string
	Email               string
	EmailVerified       bool // true only if the provider states it
	FirstName, LastName string
	Role                authz.Role // "" if no group maps to a role
	SecondFactor        bool       // the provider required one
	IDToken             phi.Text   // the token itself, for a center; set by Finish

	// State and Ends identify the sign-in, so that each can be completed once.
	State string
	Ends  time.Time
}

// OIDCProvider signs people in with the practice's identity provider: OpenID Connect 1.0, authorization code flow with PKCE. It accepts only ID
// tokens that the provider signed for this service and for the browser that began the sign-in. It fetches the provider's configuration at the
// first sign-in, so the service starts without the provider. It is safe for concurrent use.
type OIDCProvider struct {
	options OIDCOptions
	http    *http.Client

	discovery singleflight.Group
	lock      sync.Mutex
	cached    *endpoints
}

// endpoints is the provider's discovered configuration.
type endpoints struct {
	provider *oidc.Provider
	style    oauth2.AuthStyle // trying both styles would consume the code
	scopes   []string
	at       time.Time
}

// Limits of provider requests: the timeout, the maximum response size in bytes, and how long the discovered configuration is cached.
const (
	providerTimeout     = 10 * time.Second
	maxProviderResponse = 1 << 20
	configurationLife   = 24 * time.Hour
)

// NewOIDCProvider returns a provider, or nil if no issuer is configured.
func NewOIDCProvider(o OIDCOptions) *OIDCProvider {
	if o.Issuer == "" {
		return nil
	}
	o.RoleClaim = cmp.Or(o.RoleClaim, "groups")
	return &OIDCProvider{options: o, http: &http.Client{Timeout: providerTimeout, Transport: limitedTransport{http.DefaultTransport}}}
}

// limitedTransport truncates oversized responses.
type limitedTransport struct{ next http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (t limitedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(r)
	if err == nil {
		response.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(response.Body, maxProviderResponse), response.Body}
	}
	return response, err
}

// providerFailed is the fault for a provider that is unreachable or misconfigured. The cause is for the log.
func providerFailed(cause error) error {
	return fault.New(fault.Upstream, "oidc_failed", "The identity provider does not answer as expected. Try again, or sign in with your account here.").Because(cause)
}

// discover returns the provider's configuration, fetched once a day. Concurrent callers share one request and its result, so a provider that
// hangs delays each caller by at most one timeout.
func (p *OIDCProvider) discover(ctx context.Context, now time.Time) (*endpoints, error) {
	p.lock.Lock()
	found := p.cached
	p.lock.Unlock()
	if found != nil && now.Sub(found.at) < configurationLife {
		return found, nil
	}
	result := p.discovery.DoChan("", func() (any, error) { return p.fetchConfiguration(context.WithoutCancel(ctx), now) }) // the caller may disconnect
	select {
	case <-ctx.Done():
		return nil, providerFailed(ctx.Err())
	case got := <-result:
		found, _ = got.Val.(*endpoints)
		return found, got.Err
	}
}

// CheckConfiguration fetches the provider's configuration for an operator who validates the settings. The error is a sentence of its own and
// does not quote the provider.
func (p *OIDCProvider) CheckConfiguration(ctx context.Context, now time.Time) error {
	_, err := p.fetchConfiguration(ctx, now)
	_, isUnreachable := errors.AsType[*url.Error](err)
	switch {
	case err == nil:
		return nil
	case isUnreachable:
		return errors.New("cannot be reached, or has no certificate that can be trusted")
	case strings.Contains(err.Error(), "issuer"):
		return errors.New("calls itself otherwise: VIGIL_OIDC_ISSUER must be as the provider's own document has it, to the last slash")
	default:
		return errors.New("does not describe itself at /.well-known/openid-configuration")
	}
}

// fetchConfiguration fetches and caches the provider's configuration.
func (p *OIDCProvider) fetchConfiguration(ctx context.Context, now time.Time) (*endpoints, error) {
	provider, err := oidc.NewProvider(ctx, p.options.Issuer)
	if err != nil {
		return nil, providerFailed(err)
	}
	var supported struct {
		Scopes  []string `json:"scopes_supported"`
		Methods []string `json:"token_endpoint_auth_methods_supported"` // default: HTTP Basic. OpenID Connect Discovery 1.0, section 3
	}
	if err := provider.Claims(&supported); err != nil {
		return nil, providerFailed(err)
	}
	found := &endpoints{provider: provider, style: oauth2.AuthStyleInHeader, scopes: requestedScopes(supported.Scopes), at: now}
	if p.options.ClientSecret == "" || len(supported.Methods) > 0 && !slices.Contains(supported.Methods, "client_secret_basic") {
		found.style = oauth2.AuthStyleInParams
	}
	p.lock.Lock()
	defer p.lock.Unlock()
	p.cached = found
	return found, nil
}

// requestedScopes returns the scopes to request. Some providers refuse an unknown scope, so groups is requested only where it is offered.
func requestedScopes(offered []string) []string {
	scopes := []string{oidc.ScopeOpenID, "profile", "email"}
	if slices.Contains(offered, "groups") {
		scopes = append(scopes, "groups")
	}
	return scopes
}

func (p *OIDCProvider) client(e *endpoints) *oauth2.Config {
	endpoint := e.provider.Endpoint()
	endpoint.AuthStyle = e.style
	return &oauth2.Config{
		ClientID: p.options.ClientID, ClientSecret: p.options.ClientSecret.Reveal(), Endpoint: endpoint, RedirectURL: p.options.RedirectURL, Scopes: e.scopes,
	}
}

// SignOnStart is a sign-in that has begun.
type SignOnStart struct {
	URL    string // where to redirect the browser
	Cookie string // bound to the state; the browser returns it with the callback
	Life   time.Duration
}

// Begin starts a sign-in. The server stores nothing: the state parameter and the cookie hold everything.
func (p *OIDCProvider) Begin(ctx context.Context, now time.Time) (SignOnStart, error) {
	found, err := p.discover(oidc.ClientContext(ctx, p.http), now)
	if err != nil {
		return SignOnStart{}, err
	}
	s := stateKey(p.options.Key).begin("", now)
	options := []oauth2.AuthCodeOption{oidc.Nonce(s.nonce), oauth2.S256ChallengeOption(s.verifier)}
	if p.options.MaxAge > 0 {
		options = append(options, oauth2.SetAuthURLParam("max_age", strconv.Itoa(int(p.options.MaxAge.Seconds()))))
	}
	return SignOnStart{URL: p.client(found).AuthCodeURL(s.text, options...), Cookie: s.cookie, Life: stateLife}, nil
}

// Callback holds the parameters and the cookie with which the browser returns.
type Callback struct {
	State, Code, Error string
	Cookie             string
	// recordUse records the use of the state, before anything is sent to the provider, and refuses a second one.
	recordUse func(s oauthState) error
}

// consume records the use of the state. Without a store, as in a test of the provider alone, it does nothing.
func (c Callback) consume(s oauthState) error {
	if c.recordUse == nil {
		return nil
	}
	return c.recordUse(s)
}

// recordStateUse refuses a state that was used before, also by an attempt that failed later.
func recordStateUse(app core.App, now time.Time) func(s oauthState) error {
	return func(s oauthState) error {
		_, err := commitDecision(app, func(tx core.App) (none struct{}, refused, err error) {
			if first, err := collections.UseChallenge(tx, HashSecret(s.text), now, s.ends); err != nil || !first {
				return none, UnknownState(), err
			}
			return none, nil, nil
		})
		return err
	}
}

// identityRefused is the fault for a response that does not prove an identity to this service or this browser.
func identityRefused(cause error) error {
	return fault.New(fault.Unauthenticated, "authentication_failed", "The identity provider did not confirm who you are.").Because(cause)
}

// Finish exchanges the code and verifies the ID token. It refuses with invalid_oauth_state if this browser did not begin the sign-in or it is
// too old, authorization_denied if the provider returned an error, authentication_failed if the token is invalid, and oidc_failed if the
// provider does not respond as expected.
func (p *OIDCProvider) Finish(ctx context.Context, callback Callback, now time.Time) (Identity, error) {
	s, err := stateKey(p.options.Key).read(callback.State, callback.Cookie, now)
	if err != nil {
		return Identity{}, err
	}
	if err := callback.consume(s); err != nil {
		return Identity{}, err
	}
	if callback.Error != "" || callback.Code == "" {
		return Identity{}, fault.State("authorization_denied", "The identity provider did not let you in.")
	}
	ctx = oidc.ClientContext(ctx, p.http)
	found, err := p.discover(ctx, now)
	if err != nil {
		return Identity{}, err
	}
	token, err := p.client(found).Exchange(ctx, callback.Code, oauth2.VerifierOption(s.verifier))
	if err != nil {
		return Identity{}, exchangeFault(err)
	}
	raw, _ := token.Extra("id_token").(string)
	verified, err := found.provider.VerifierContext(ctx, &oidc.Config{ClientID: p.options.ClientID, Now: func() time.Time { return now }}).Verify(ctx, raw)
	if err != nil {
		return Identity{}, identityRefused(err)
	}
	if !isIssuedTo(verified, p.options.ClientID) {
		return Identity{}, identityRefused(errors.New("the token was issued to another client"))
	}
	if verified.Nonce != s.nonce {
		return Identity{}, identityRefused(errors.New("the nonce does not match"))
	}
	if isFromFuture(verified, now) {
		return Identity{}, identityRefused(errors.New("the token was issued in the future"))
	}
	if p.isStale(verified, s.ends.Add(-stateLife)) {
		return Identity{}, identityRefused(errors.New("the authentication is older than requested"))
	}
	identity, err := p.identify(ctx, found, token, verified)
	identity.State, identity.Ends, identity.IDToken = s.text, s.ends, phi.Text(raw)
	return identity, err
}

// exchangeFault distinguishes an invalid code from a failed provider or wrong settings. It omits the provider's own text.
func exchangeFault(err error) error {
	retrieveErr, ok := errors.AsType[*oauth2.RetrieveError](err)
	switch {
	case !ok:
		return providerFailed(err)
	case retrieveErr.ErrorCode == "invalid_grant":
		return identityRefused(errors.New("the provider rejected the code"))
	case retrieveErr.Response != nil:
		return providerFailed(fmt.Errorf("the token address answered %d", retrieveErr.Response.StatusCode))
	}
	return providerFailed(errors.New("the token address rejected the request"))
}

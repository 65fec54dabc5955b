// Package oidc knows how the practice's identity provider says who somebody is: OpenID Connect 1.0, the authorization code flow with PKCE. It
// refuses to know accounts, sessions and what a role may do, and to believe anything that is not signed by the provider for this service, for the
// browser that began.
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
	"golang.org/x/oauth2"
	"golang.org/x/sync/singleflight"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/phi"
)

// RoleOf gives a group of the provider's a role here.
type RoleOf struct {
	Group string
	Role  authz.Role
}

// OIDCOptions of a provider.
type OIDCOptions struct {
	Issuer, ClientID string
	ClientSecret     phi.Text // empty for a client without one
	RedirectURL      string
	RoleClaim        string // the claim that lists groups; dots lead into objects
	Roles            []RoleOf
	TrustMFA         bool          // every sign-in there takes a second factor
	MaxAge           time.Duration // how old a proof there may be; 0 leaves it to the provider
	Key              []byte        // secret of this service
}

// Identity is who somebody is, as the provider said it. It names a person: it is for storing and for nothing else.
type Identity struct {
	Issuer, Subject     string
	Email               string
	EmailVerified       bool // said by the provider, and not merely left out
	FirstName, LastName string
	Role                authz.Role // "" when none of the groups has one
	SecondFactor        bool       // the provider asked for one

	// State and Ends are for having each sign-in come back once.
	State string
	Ends  time.Time
}

// OIDCProvider is the practice's identity provider. It is asked when somebody signs in, so that the service starts without it. It is safe for
// concurrent use.
type OIDCProvider struct {
	options OIDCOptions
	http    *http.Client

	asking singleflight.Group
	lock   sync.Mutex
	found  *endpoints
}

// endpoints are what a provider says of itself.
type endpoints struct {
	provider *oidc.Provider
	style    oauth2.AuthStyle // guessing it would use a code up
	scopes   []string
	at       time.Time
}

// answerTime is how long the provider has for one answer, answerMost how long it may be, and believedFor how long what it says of itself holds.
const (
	answerTime  = 10 * time.Second
	answerMost  = 1 << 20
	believedFor = 24 * time.Hour
)

// NewOIDCProvider returns a provider; nil when none is named.
func NewOIDCProvider(o OIDCOptions) *OIDCProvider {
	if o.Issuer == "" {
		return nil
	}
	o.RoleClaim = cmp.Or(o.RoleClaim, "groups")
	return &OIDCProvider{options: o, http: &http.Client{Timeout: answerTime, Transport: bounded{http.DefaultTransport}}}
}

// bounded ends answers that are longer than any should be.
type bounded struct{ next http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.next.RoundTrip(r)
	if err == nil {
		answer.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(answer.Body, answerMost), answer.Body}
	}
	return answer, err
}

// failed says that the provider is away, or not as it should be; the cause is for the log.
func failed(cause error) error {
	return fault.New(fault.Upstream, "oidc_failed", "The identity provider does not answer as expected. Try again, or sign in with your account here.").Because(cause)
}

// discover asks the provider what it is, once a day. However many want to know at once, it is asked once, and all have that answer: where it
// hangs, nobody waits for the patience of those who came before.
func (p *OIDCProvider) discover(ctx context.Context, now time.Time) (*endpoints, error) {
	p.lock.Lock()
	found := p.found
	p.lock.Unlock()
	if found != nil && now.Sub(found.at) < believedFor {
		return found, nil
	}
	answer := p.asking.DoChan("", func() (any, error) { return p.ask(context.WithoutCancel(ctx), now) }) // whoever asks may leave
	select {
	case <-ctx.Done():
		return nil, failed(ctx.Err())
	case got := <-answer:
		found, _ = got.Val.(*endpoints)
		return found, got.Err
	}
}

// Introduce asks the provider what it is, for an operator who wants to know beforehand. The error is a sentence, and none of the provider's.
func (p *OIDCProvider) Introduce(ctx context.Context, now time.Time) error {
	_, err := p.ask(ctx, now)
	_, away := errors.AsType[*url.Error](err)
	switch {
	case err == nil:
		return nil
	case away:
		return errors.New("cannot be reached, or has no certificate that can be trusted")
	case strings.Contains(err.Error(), "issuer"):
		return errors.New("calls itself otherwise: VIGIL_OIDC_ISSUER must be as the provider's own document has it, to the last slash")
	default:
		return errors.New("does not say at /.well-known/openid-configuration what it is")
	}
}

// ask asks the provider what it is.
func (p *OIDCProvider) ask(ctx context.Context, now time.Time) (*endpoints, error) {
	provider, err := oidc.NewProvider(ctx, p.options.Issuer)
	if err != nil {
		return nil, failed(err)
	}
	var said struct {
		Scopes  []string `json:"scopes_supported"`
		Methods []string `json:"token_endpoint_auth_methods_supported"` // left out it is the header, OpenID Connect Discovery 1.0, 3
	}
	if err := provider.Claims(&said); err != nil {
		return nil, failed(err)
	}
	found := &endpoints{provider: provider, style: oauth2.AuthStyleInHeader, scopes: wanted(said.Scopes), at: now}
	if p.options.ClientSecret == "" || len(said.Methods) > 0 && !slices.Contains(said.Methods, "client_secret_basic") {
		found.style = oauth2.AuthStyleInParams
	}
	p.lock.Lock()
	defer p.lock.Unlock()
	p.found = found
	return found, nil
}

// wanted are the scopes to ask for. Some providers refuse a scope that they do not know, so that groups are asked for where they are offered.
func wanted(offered []string) []string {
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

// Started is a sign-in that has begun.
type Started struct {
	URL    string // where the browser goes
	Cookie string // what the browser keeps until it comes back
	Life   time.Duration
}

// Begin starts a sign-in. Nothing is stored: everything is in the state and in the cookie.
func (p *OIDCProvider) Begin(ctx context.Context, now time.Time) (Started, error) {
	found, err := p.discover(oidc.ClientContext(ctx, p.http), now)
	if err != nil {
		return Started{}, err
	}
	s := p.newState(now)
	asked := []oauth2.AuthCodeOption{oidc.Nonce(s.nonce), oauth2.S256ChallengeOption(s.verifier)}
	if p.options.MaxAge > 0 {
		asked = append(asked, oauth2.SetAuthURLParam("max_age", strconv.Itoa(int(p.options.MaxAge.Seconds()))))
	}
	return Started{URL: p.client(found).AuthCodeURL(s.text, asked...), Cookie: s.cookie, Life: stateLife}, nil
}

// Callback is what a browser comes back with.
type Callback struct {
	State, Code, Error string
	Cookie             string
}

// refused is what is said of a person whom the provider does not vouch for, or not to this browser.
func refused(cause error) error {
	return fault.New(fault.Unauthenticated, "authentication_failed", "The identity provider did not confirm who you are.").Because(cause)
}

// Finish asks the provider who came back. It refuses with invalid_oauth_state what this browser did not begin, or too long ago; with
// authorization_denied whom the provider sent back without; with authentication_failed what is not signed as it must be; and with oidc_failed
// when the provider does not answer.
func (p *OIDCProvider) Finish(ctx context.Context, back Callback, now time.Time) (Identity, error) {
	s, err := p.readState(back.State, back.Cookie, now)
	if err != nil {
		return Identity{}, err
	}
	if back.Error != "" || back.Code == "" {
		return Identity{}, fault.State("authorization_denied", "The identity provider did not let you in.")
	}
	ctx = oidc.ClientContext(ctx, p.http)
	found, err := p.discover(ctx, now)
	if err != nil {
		return Identity{}, err
	}
	token, err := p.client(found).Exchange(ctx, back.Code, oauth2.VerifierOption(s.verifier))
	if err != nil {
		return Identity{}, exchangeFault(err)
	}
	raw, _ := token.Extra("id_token").(string)
	verified, err := found.provider.VerifierContext(ctx, &oidc.Config{ClientID: p.options.ClientID, Now: func() time.Time { return now }}).Verify(ctx, raw)
	if err != nil {
		return Identity{}, refused(err)
	}
	if !p.forUs(verified) {
		return Identity{}, refused(errors.New("the token was issued to another client"))
	}
	if verified.Nonce != s.nonce {
		return Identity{}, refused(errors.New("another nonce"))
	}
	if p.stale(verified, s.ends.Add(-stateLife)) {
		return Identity{}, refused(errors.New("the proof is older than was asked for"))
	}
	identity, err := p.identify(ctx, found, token, verified)
	identity.State, identity.Ends = s.text, s.ends
	return identity, err
}

// exchangeFault tells a code that is no good from a provider, or settings, that are not. The answer's words are left out.
func exchangeFault(err error) error {
	answer, ok := errors.AsType[*oauth2.RetrieveError](err)
	switch {
	case !ok:
		return failed(err)
	case answer.ErrorCode == "invalid_grant":
		return refused(errors.New("the code is not good"))
	case answer.Response != nil:
		return failed(fmt.Errorf("the token address answered %d", answer.Response.StatusCode))
	}
	return failed(errors.New("the token address refused"))
}

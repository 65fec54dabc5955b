package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/phi"
)

// LaunchIssuer is an EMR that may launch this service: its FHIR base address, and this service's client id there.
type LaunchIssuer struct{ Address, ClientID string }

// LauncherOptions configure a [Launcher].
type LauncherOptions struct {
	Issuers     []LaunchIssuer
	RedirectURL string
	// PatientIssuer is the EMR that receives the observations: external ids of patients are ids of this EMR.
	PatientIssuer string
	TrustMFA      bool   // every sign-in at these EMRs has a second factor
	Key           []byte // secret of this service
	// Assert returns a signed client assertion for a client id and a token endpoint; nil for a public client.
	Assert func(clientID, tokenURL string, now time.Time) (string, error)
}

// Launcher is a client of EMRs that launch this service for their users. It is safe for concurrent use.
// Source: HL7 SMART App Launch 2.2, EHR launch; docs/decisions/authentication.md, "Launch from the EMR".
type Launcher struct {
	options LauncherOptions
	http    *http.Client

	lock   sync.Mutex
	cached map[string]*launchEndpoints // by issuer
}

// launchEndpoints is the discovered configuration of one issuer.
type launchEndpoints struct {
	provider        *oidc.Provider
	isAsymmetric    bool // it accepts signed client assertions
	authURL, tokens string
	at              time.Time
}

// LaunchIdentity is the verified user and patient of a launch.
type LaunchIdentity struct {
	Identity
	// PatientID is the EMR's id of the patient in context, "" without one.
	PatientID phi.Text
	// HasKnownPatients reports whether external ids of patients are ids of this EMR.
	HasKnownPatients bool
}

// NewLauncher returns a launcher, or nil if no EMR may launch this service.
func NewLauncher(o LauncherOptions) *Launcher {
	if len(o.Issuers) == 0 {
		return nil
	}
	return &Launcher{options: o, cached: map[string]*launchEndpoints{}, http: &http.Client{
		Timeout: providerTimeout, Transport: limitedTransport{http.DefaultTransport},
		CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("redirected") }, // to a host that the settings do not name
	}}
}

// LaunchNotConfigured is the fault for a service that no EMR may launch.
func LaunchNotConfigured() error {
	return fault.State("smart_not_configured", "No EMR may open this service (VIGIL_SMART_ISSUERS).")
}

func unknownIssuer() error {
	return fault.State("unknown_issuer", "This EMR is not among those that may open Vigil. An administrator can add its address to VIGIL_SMART_ISSUERS.")
}

func launchFailed(cause error) error {
	return fault.New(fault.Upstream, "launch_failed", "The EMR does not answer as expected. Open Vigil from the EMR again, or sign in here.").Because(cause)
}

// issuer finds a configured issuer; a trailing slash makes no difference.
func (l *Launcher) issuer(address string) (LaunchIssuer, bool) {
	at := slices.IndexFunc(l.options.Issuers, func(i LaunchIssuer) bool { return isSameAddress(i.Address, address) })
	if at < 0 {
		return LaunchIssuer{}, false
	}
	return l.options.Issuers[at], true
}

func isSameAddress(a, b string) bool { return strings.TrimSuffix(a, "/") == strings.TrimSuffix(b, "/") }

// stateKey is the key of one issuer's states. It rejects an answer from another issuer. Source: RFC
// 9700, section 4.4.
func (l *Launcher) stateKey(i LaunchIssuer) stateKey {
	return phi.MAC(l.options.Key, "launch\x00"+i.Address+"\x00"+i.ClientID)
}

// Begin starts the sign-in of a launch. cookie is the browser's cookie of an earlier launch, or "". It refuses with unknown_issuer if the EMR is
// not configured, and launch_failed if it does not describe itself as SMART requires.
func (l *Launcher) Begin(ctx context.Context, address, launch, cookie string, now time.Time) (SignOnStart, error) {
	issuer, known := l.issuer(address)
	switch {
	case !known:
		return SignOnStart{}, unknownIssuer()
	case launch == "":
		return SignOnStart{}, fault.State("launch_required", "Open Vigil from a patient in the EMR: the address has no launch parameter.")
	}
	found, err := l.discover(ctx, issuer, now)
	if err != nil {
		return SignOnStart{}, err
	}
	s := l.stateKey(issuer).begin(cookie, now)
	return SignOnStart{
		URL: l.client(issuer, found).AuthCodeURL(s.text, oidc.Nonce(s.nonce), oauth2.S256ChallengeOption(s.verifier),
			oauth2.SetAuthURLParam("launch", launch), oauth2.SetAuthURLParam("aud", issuer.Address)),
		Cookie: s.cookie, Life: stateLife,
	}, nil
}

func (l *Launcher) client(issuer LaunchIssuer, found *launchEndpoints) *oauth2.Config {
	return &oauth2.Config{
		ClientID: issuer.ClientID, RedirectURL: l.options.RedirectURL, Scopes: []string{"launch", oidc.ScopeOpenID, "fhirUser"},
		Endpoint: oauth2.Endpoint{AuthURL: found.authURL, TokenURL: found.tokens, AuthStyle: oauth2.AuthStyleInParams},
	}
}

// Finish exchanges the code and verifies the ID token. It refuses as [OIDCProvider.Finish] does, with launch_failed in place of oidc_failed, and
// with user_not_staff if the EMR's user is no practitioner.
func (l *Launcher) Finish(ctx context.Context, callback Callback, now time.Time) (LaunchIdentity, error) {
	issuer, s, err := l.readState(callback, now)
	if err != nil {
		return LaunchIdentity{}, err
	}
	if err := callback.consume(s); err != nil {
		return LaunchIdentity{}, err
	}
	if callback.Error != "" || callback.Code == "" {
		return LaunchIdentity{}, fault.State("authorization_denied", "The EMR did not let you in.")
	}
	found, err := l.discover(ctx, issuer, now)
	if err != nil {
		return LaunchIdentity{}, err
	}
	options := []oauth2.AuthCodeOption{oauth2.VerifierOption(s.verifier)}
	if found.isAsymmetric && l.options.Assert != nil {
		signed, err := l.options.Assert(issuer.ClientID, found.tokens, now)
		if err != nil {
			return LaunchIdentity{}, err
		}
		options = append(options, oauth2.SetAuthURLParam("client_assertion_type", jwtBearer), oauth2.SetAuthURLParam("client_assertion", signed))
	}
	ctx = oidc.ClientContext(ctx, l.http)
	token, err := l.client(issuer, found).Exchange(ctx, callback.Code, options...)
	if err != nil {
		return LaunchIdentity{}, launchExchangeFault(err)
	}
	raw, _ := token.Extra("id_token").(string)
	verified, err := found.provider.VerifierContext(ctx, &oidc.Config{ClientID: issuer.ClientID, Now: func() time.Time { return now }}).Verify(ctx, raw)
	if err != nil {
		return LaunchIdentity{}, identityRefused(err)
	}
	identity, err := l.identify(issuer, verified, s, now)
	if err != nil {
		return LaunchIdentity{}, err
	}
	patient, _ := token.Extra("patient").(string) // a launch without a patient has none
	if !fhirID.MatchString(patient) {
		patient = ""
	}
	return LaunchIdentity{Identity: identity, PatientID: phi.Text(patient), HasKnownPatients: isSameAddress(issuer.Address, l.options.PatientIssuer)}, nil
}

// readState finds the issuer that the state was made for.
func (l *Launcher) readState(callback Callback, now time.Time) (LaunchIssuer, oauthState, error) {
	for _, issuer := range l.options.Issuers {
		if s, err := l.stateKey(issuer).read(callback.State, callback.Cookie, now); err == nil {
			return issuer, s, nil
		}
	}
	return LaunchIssuer{}, oauthState{}, UnknownState()
}

// launchExchangeFault distinguishes an invalid code from a failed EMR. It omits the EMR's own text.
func launchExchangeFault(err error) error {
	retrieveErr, ok := errors.AsType[*oauth2.RetrieveError](err)
	switch {
	case ok && retrieveErr.ErrorCode == "invalid_grant":
		return identityRefused(errors.New("the EMR rejected the code"))
	case ok && retrieveErr.Response != nil:
		return launchFailed(fmt.Errorf("the token address answered %d", retrieveErr.Response.StatusCode))
	}
	return launchFailed(errors.New("the token address did not answer")) // the error may quote the answer
}

// identify checks the ID token beyond its signature and returns the user. A nonce is compared where the EMR returns one.
func (l *Launcher) identify(issuer LaunchIssuer, verified *oidc.IDToken, s oauthState, now time.Time) (Identity, error) {
	var claims claimSet
	if err := verified.Claims(&claims); err != nil {
		return Identity{}, identityRefused(err)
	}
	switch {
	case !isIssuedTo(verified, issuer.ClientID):
		return Identity{}, identityRefused(errors.New("the token was issued to another client"))
	case verified.Nonce != "" && verified.Nonce != s.nonce:
		return Identity{}, identityRefused(errors.New("the nonce does not match"))
	case isFromFuture(verified, now):
		return Identity{}, identityRefused(errors.New("the token was issued in the future"))
	case !isStaff(claims.text("fhirUser"), issuer.Address):
		return Identity{}, fault.New(fault.Forbidden, "user_not_staff", "The EMR does not name you as a practitioner, so Vigil cannot be opened with this account.")
	}
	return Identity{
		Issuer: verified.Issuer, Subject: verified.Subject, State: s.text, Ends: s.ends,
		SecondFactor: l.options.TrustMFA || slices.Contains(stringList(claims["amr"]), mfa),
	}, nil
}

var (
	fhirID    = regexp.MustCompile(`^[A-Za-z0-9\-.]{1,64}$`)
	staffUser = regexp.MustCompile(`^(Practitioner|PractitionerRole|Person)/[A-Za-z0-9\-.]{1,64}(/_history/[A-Za-z0-9\-.]{1,64})?$`)
)

// isStaff reports whether fhirUser is a practitioner or person at the issuer. Source: SMART App Launch 2.2, Scopes for requesting identity data.
func isStaff(fhirUser, issuer string) bool {
	relative, _ := strings.CutPrefix(fhirUser, strings.TrimSuffix(issuer, "/")+"/")
	return staffUser.MatchString(relative)
}

// discover returns an issuer's configuration, fetched once a day.
func (l *Launcher) discover(ctx context.Context, issuer LaunchIssuer, now time.Time) (*launchEndpoints, error) {
	l.lock.Lock()
	found := l.cached[issuer.Address]
	l.lock.Unlock()
	if found != nil && now.Sub(found.at) < configurationLife {
		return found, nil
	}
	found, err := l.fetchConfiguration(ctx, issuer)
	if err != nil {
		return nil, launchFailed(err)
	}
	found.at = now
	l.lock.Lock()
	defer l.lock.Unlock()
	l.cached[issuer.Address] = found
	return found, nil
}

// smartConfiguration is the part of an EMR's description that a launch needs. Source: SMART App Launch 2.2, Conformance.
type smartConfiguration struct {
	oidc.ProviderConfig
	Capabilities []string `json:"capabilities"`
	Methods      []string `json:"token_endpoint_auth_methods_supported"`
	Challenges   []string `json:"code_challenge_methods_supported"`
}

func (l *Launcher) fetchConfiguration(ctx context.Context, issuer LaunchIssuer) (*launchEndpoints, error) {
	base := strings.TrimSuffix(issuer.Address, "/")
	var c smartConfiguration
	if err := l.fetchJSON(ctx, base+"/.well-known/smart-configuration", &c); err != nil {
		return nil, err
	}
	if c.IssuerURL == "" || c.JWKSURL == "" { // optional before version 2.0
		var keys oidc.ProviderConfig
		if err := l.fetchJSON(ctx, base+"/.well-known/openid-configuration", &keys); err != nil {
			return nil, err
		}
		c.IssuerURL, c.JWKSURL = keys.IssuerURL, keys.JWKSURL
	}
	for _, address := range []string{c.AuthURL, c.TokenURL, c.JWKSURL} {
		if !isProtected(address, base) {
			return nil, errors.New("an address in the SMART configuration is missing or not protected by TLS")
		}
	}
	if c.IssuerURL == "" {
		return nil, errors.New("the SMART configuration names no issuer")
	}
	if len(c.Challenges) > 0 && !slices.Contains(c.Challenges, "S256") {
		return nil, errors.New("the EMR does not support PKCE with S256")
	}
	return &launchEndpoints{
		provider: c.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), l.http)), authURL: c.AuthURL, tokens: c.TokenURL,
		isAsymmetric: slices.Contains(c.Capabilities, "client-confidential-asymmetric") || slices.Contains(c.Methods, "private_key_jwt"),
	}, nil
}

// isProtected reports whether an address uses TLS, or the issuer itself does without, as in development.
func isProtected(address, issuer string) bool {
	parsed, err := url.Parse(address)
	return err == nil && parsed.Host != "" && (parsed.Scheme == "https" || parsed.Scheme == "http" && strings.HasPrefix(issuer, "http://"))
}

func (l *Launcher) fetchJSON(ctx context.Context, address string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "application/json")
	answer, err := l.http.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %d", request.URL.Path, answer.StatusCode)
	}
	return json.NewDecoder(answer.Body).Decode(into)
}

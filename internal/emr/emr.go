// Package emr connects the practice with its EMR. Its Client signs in (SMART backend services with a signed assertion, or a person with
// authorization code and PKCE), delivers and searches Observations, searches and reads patients, and reads the CapabilityStatement. Its
// Worker delivers the observations in the outbox, each exactly once as far as the EMR can detect duplicates: the transaction that stores a reading
// queues its delivery, the worker leases what is due, and each change of state updates the delivery and its observation together.
//
// Every request goes through one transport, which paces requests, bounds their time and follows no redirect. Brief failures are retried
// at once; the rest is returned as an *Error with a text for staff. No error text holds a token, a key or the EMR's own words.
package emr

import (
	"cmp"
	"crypto/rsa"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/internal/phi"
)

// SystemScopes are the scopes that the service requests without a user.
// Source: docs/decisions/emr.md, "Backend flow scopes and keys".
var SystemScopes = []string{"system/Patient.read", "system/Observation.write", "system/*.write"}

const (
	// connectTimeout bounds connecting and the TLS handshake. Source: docs/decisions/fhir.md, "Delivery request".
	connectTimeout = 10 * time.Second
	defaultTimeout = 30 * time.Second
	minKeyBits     = 2048
	// maxBody bounds the bytes read of a response; capability statements are long.
	maxBody, maxCapability = 1 << 20, 8 << 20
)

// defaultQuickRetries are the waits between the attempts of one delivery. Source: docs/decisions/transmissions.md, "Immediate retries".
var defaultQuickRetries = []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}

// Options are the settings of a Client. Without BaseURL, TokenURL, ClientID and PrivateKey the EMR is not configured, and every call
// returns CodeNotConfigured.
type Options struct {
	BaseURL    string // FHIR base address
	TokenURL   string // OAuth token address, the audience of the assertion
	ClientID   string
	PrivateKey *rsa.PrivateKey // RSA 2048 bits or larger
	// Scopes to request; those without the prefix system/ are left out. Nil means SystemScopes.
	Scopes []string

	// AuthorizeURL, with BaseURL, TokenURL and ClientID, enables the interactive sign-in. The client authenticates there with ClientSecret,
	// else with an assertion, else with its client id and PKCE alone.
	AuthorizeURL string
	ClientSecret string
	RedirectURL  string   // where the EMR redirects the browser
	UserScopes   []string // requested in the interactive sign-in; nil means UserScopes
	ExtraScopes  []string // requested in addition to UserScopes
	// ApplicationType selects the sign-in that provides the token of calls; "" is BackendService.
	ApplicationType ApplicationType
	// Auth is how the service itself signs in; "" is PrivateKeyJWT.
	Auth ClientAuth
	// Context also requests the scopes that read charts, see [ChartTypes].
	Context bool
	// Vault stores tokens across restarts; nil keeps them in memory only.
	Vault Vault

	// RatePerSecond bounds all requests together, evenly spaced; 0 means no pacing.
	RatePerSecond float64
	// QuickRetryDelays are the waits between the attempts of one call, each with 20 % jitter; nil means 1, 2 and 4 s.
	QuickRetryDelays []time.Duration
	// Timeout bounds one request from connecting to the end of the response; 0 means 30 s.
	Timeout time.Duration
	// ConditionalCreate sends If-None-Exist, so that the EMR does not store an Observation twice.
	ConditionalCreate bool
	// Delivery is how readings are sent; "" is DeliverAuto.
	Delivery DeliverySetting
	// Capabilities stores what the EMR offers across restarts; nil keeps it in memory only.
	Capabilities CapabilityStore
	// HasCopy reports whether a delivery of the patient (the EMR's id) already has the EMR's copy with an id; nil where none is stored.
	HasCopy func(patient, emrID string) (bool, error)
	// SearchCache is how long the EMR may return a cached search result; 0 means that it caches none.
	SearchCache time.Duration

	// Now is the clock; it is required.
	Now func() time.Time
	// Jitter returns numbers in [0, 1); nil means random ones.
	Jitter func() float64
	// Transport carries the requests; nil means HTTP with certificate checks and the environment's proxy.
	Transport http.RoundTripper
}

// ClientAuth is how the service signs in at the token endpoint with its own grant, client_credentials. Source: OpenID Connect Core, section 9.
type ClientAuth string

// The ways to sign in: a signed assertion, as SMART Backend Services requires, or the client secret by HTTP Basic, for EMRs without it.
const (
	PrivateKeyJWT     ClientAuth = "private_key_jwt"
	ClientSecretBasic ClientAuth = "client_secret_basic"
)

// ApplicationType is how the service is registered at the EMR.
type ApplicationType string

// The application types. With BackendService all calls carry the service's own token, except that patient searches carry the token of the
// interactive sign-in while there is one. With Interactive all calls carry the latter.
// Source: docs/decisions/emr.md, "Token storage".
const (
	BackendService ApplicationType = "backend_service"
	Interactive    ApplicationType = "interactive"
)

// Client sends requests to one EMR. It is safe for concurrent use; all callers share its token and its request rate.
type Client struct {
	transport    *transport
	mainSource   tokenSource     // for deliveries and tests
	readSource   tokenSource     // for patient searches and reads
	chart        tokenSource     // for reading charts
	service      *backendService // nil when not configured
	session      *session        // nil when not configured
	audience     string          // the EMR and client that the tokens belong to
	baseURL      string
	conditional  bool // the setting; see sendsConditional
	capabilities *capabilities
	retryDelays  []time.Duration
	jitter       func() float64
	searches     *searchCache
	copies       *copyOwners
}

// New checks the settings and builds a client. It sends no request.
func New(o Options) (*Client, error) {
	if o.Now == nil {
		return nil, errors.New("emr: no clock")
	}
	if o.RatePerSecond < 0 {
		return nil, errors.New("emr: negative request rate")
	}
	c := &Client{
		baseURL:     strings.TrimRight(o.BaseURL, "/"),
		conditional: o.ConditionalCreate,
		retryDelays: o.QuickRetryDelays,
		jitter:      o.Jitter,
	}
	if c.retryDelays == nil {
		c.retryDelays = defaultQuickRetries
	}
	if c.jitter == nil {
		c.jitter = rand.Float64
	}
	c.transport = newTransport(o)
	c.searches = newSearchCache(o.SearchCache, o.Now)
	c.audience = audience(o)
	c.copies = &copyOwners{stored: o.HasCopy, owners: map[string]string{}}
	c.capabilities = &capabilities{store: o.Capabilities, audience: c.audience, setting: o.Delivery}
	if err := c.configureSignIns(o); err != nil {
		return nil, err
	}
	c.mainSource, c.readSource = unconfigured{}, unconfigured{}
	if c.service != nil {
		c.mainSource, c.readSource = c.service, c.service
	}
	switch {
	case c.session == nil:
	case o.ApplicationType == Interactive:
		c.mainSource, c.readSource = c.session, c.session
	default:
		c.readSource = &eitherSource{first: c.session, fallback: c.mainSource}
	}
	c.chart = c.newChartSource()
	return c, nil
}

// configureSignIns sets up the sign-ins that the settings are complete for.
func (c *Client) configureSignIns(o Options) error {
	if o.BaseURL == "" || o.TokenURL == "" || o.ClientID == "" {
		return nil
	}
	for _, address := range []string{o.BaseURL, o.TokenURL, cmp.Or(o.AuthorizeURL, o.TokenURL)} {
		if err := checkAddress(address); err != nil {
			return err
		}
	}
	if o.AuthorizeURL != "" {
		if o.Context && (o.ApplicationType == Interactive || o.PrivateKey == nil && o.Auth != ClientSecretBasic) {
			o.ExtraScopes = slices.Concat(chartScopes("user", o.UserScopes, smartConfiguration{}), o.ExtraScopes)
		}
		c.session = newSession(o, c.transport, c.audience)
	}
	usesSecret := o.Auth == ClientSecretBasic
	if usesSecret && o.ClientSecret == "" || !usesSecret && o.PrivateKey == nil {
		return nil
	}
	if o.PrivateKey != nil && o.PrivateKey.N.BitLen() < minKeyBits {
		return fmt.Errorf("emr: private key has %d bits, need %d", o.PrivateKey.N.BitLen(), minKeyBits)
	}
	scopes := o.Scopes
	if scopes == nil {
		scopes = SystemScopes
	}
	c.service = &backendService{
		transport: c.transport, tokenURL: o.TokenURL, clientID: o.ClientID, key: o.PrivateKey, vault: o.Vault, audience: c.audience,
		scopes: slices.DeleteFunc(slices.Clone(scopes), func(s string) bool { return !strings.HasPrefix(s, "system/") }),
	}
	if usesSecret {
		c.service.secret = phi.Text(o.ClientSecret)
	}
	return nil
}

// Configured reports whether the client has all settings that deliveries need.
func (c *Client) Configured() bool { _, lacks := c.mainSource.(unconfigured); return !lacks }

// HasBackendService reports whether the service can sign in without a person.
func (c *Client) HasBackendService() bool { return c.service != nil }

// CanConnect reports whether a person can connect the service with the interactive sign-in.
func (c *Client) CanConnect() bool { return c.session != nil }

// BaseURL returns the FHIR base address, "" when there is none.
func (c *Client) BaseURL() string { return c.baseURL }

func checkAddress(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") {
		return errors.New("emr: address is not an absolute http or https URL")
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("emr: address must not have user, query or fragment")
	}
	return nil
}

func newTransport(o Options) *transport {
	l := &transport{now: o.Now, timeout: cmp.Or(max(o.Timeout, 0), defaultTimeout), pace: newPacer(o.RatePerSecond, o.Now)}
	transport := o.Transport
	if transport == nil {
		transport = &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			DialContext:            (&net.Dialer{Timeout: connectTimeout}).DialContext,
			TLSHandshakeTimeout:    connectTimeout,
			ForceAttemptHTTP2:      true,
			MaxIdleConns:           128,
			MaxIdleConnsPerHost:    128, // the worker sends in parallel
			IdleConnTimeout:        90 * time.Second,
			MaxResponseHeaderBytes: 64 << 10,
		}
	}
	l.http = &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return l
}

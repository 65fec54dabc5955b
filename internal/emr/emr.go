// Package emr knows how to speak with the practice's EMR: the two SMART sign-ins (the service itself with a signed client
// assertion, a person with authorization code and PKCE), delivering one Observation, looking for one that may have
// arrived, searching and reading patients, and asking what the server can do.
// All calls leave by one line that keeps the request rate, bounds the time and follows no redirect; short troubles
// are retried at once, and what remains is a typed Error with a text fit to show.
//
// It refuses to know what is in a resource, when a failed delivery is tried again, and where anything is stored. No
// token, key or word of the EMR's is ever part of an error's text.
package emr

import (
	"cmp"
	"context"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
)

// SystemScopes are what the service needs of the EMR without a user.
// Source: docs/decisions/emr.md, "Backend flow scopes and keys".
var SystemScopes = []string{"system/Patient.read", "system/Observation.write", "system/*.write"}

const (
	// connectTimeout bounds connecting and the TLS handshake. Source: docs/decisions/fhir.md, "Delivery request".
	connectTimeout = 10 * time.Second
	defaultTimeout = 30 * time.Second
	minKeyBits     = 2048
	// maxBody bounds what is read of an answer, in bytes; capability statements are long.
	maxBody, maxCapability = 1 << 20, 8 << 20
)

// defaultQuickRetries are the waits inside one delivery. Source: docs/decisions/transmissions.md, "Immediate retries".
var defaultQuickRetries = []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}

// Options are the settings of a Client. Without BaseURL, TokenURL, ClientID and PrivateKey the EMR counts as not
// configured: every call answers so.
type Options struct {
	BaseURL    string // FHIR base address
	TokenURL   string // OAuth token address, the audience of the assertion
	ClientID   string
	PrivateKey *rsa.PrivateKey // RSA 2048 bits or larger
	// Scopes asked for; those that are not system/ scopes are left out. Nil means SystemScopes.
	Scopes []string

	// AuthorizeURL, with BaseURL, TokenURL and ClientID, makes the interactive sign-in possible. The client proves itself there with
	// ClientSecret, else with an assertion, else by its name and PKCE alone.
	AuthorizeURL string
	ClientSecret string
	RedirectURL  string   // where the EMR sends the browser back to
	UserScopes   []string // asked of people; nil means UserScopes
	ExtraScopes  []string // asked of people beside them
	// ApplicationType chooses whose token all calls carry; "" is BackendService.
	ApplicationType ApplicationType
	// Vault keeps tokens over a restart; nil keeps them in memory alone.
	Vault Vault

	// RatePerSecond bounds all calls together, evenly spaced; 0 means no pacing.
	RatePerSecond float64
	// QuickRetryDelays are the waits between the sends of one call, each spread by a fifth; nil means 1, 2 and 4 s.
	QuickRetryDelays []time.Duration
	// Timeout bounds one request from connecting to the end of the answer; 0 means 30 s.
	Timeout time.Duration
	// ConditionalCreate asks the EMR not to store an Observation it already has.
	ConditionalCreate bool
	// SearchCache is how long the EMR may answer a search with what it found before; 0 means that it never does.
	SearchCache time.Duration

	// Now is the clock; it is required.
	Now func() time.Time
	// Jitter gives numbers in [0, 1); nil means random ones.
	Jitter func() float64
	// Transport carries the requests; nil means HTTP with certificate checks and the environment's proxy.
	Transport http.RoundTripper
}

// ApplicationType is how the service is registered at the EMR.
type ApplicationType string

// The application types. With BackendService all calls carry the service's own token, except that people's reads carry that of the
// interactive sign-in while there is one. With Interactive all calls carry the latter.
// Source: docs/decisions/emr.md, "Token storage".
const (
	BackendService ApplicationType = "backend_service"
	Interactive    ApplicationType = "interactive"
)

// Client speaks with one EMR. It is safe for use by many goroutines, which share its token and its request rate.
type Client struct {
	line        *transport
	main        tokenSource     // of deliveries and tests
	reads       tokenSource     // of what people ask for
	service     *backendService // nil when not configured
	session     *session        // nil when not configured
	audience    string          // whose tokens these are
	baseURL     string
	conditional bool        // as the settings have it; see conditionalCreate
	unfit       atomic.Bool // the EMR has said that it knows no conditional create
	delays      []time.Duration
	jitter      func() float64
	looks       *looks
}

// New checks the settings and builds a client; it calls nobody.
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
		delays:      o.QuickRetryDelays,
		jitter:      o.Jitter,
	}
	if c.delays == nil {
		c.delays = defaultQuickRetries
	}
	if c.jitter == nil {
		c.jitter = rand.Float64
	}
	c.line = newTransport(o)
	c.looks = newLooks(o.SearchCache, o.Now)
	c.audience = audience(o)
	if err := c.signIns(o); err != nil {
		return nil, err
	}
	c.main, c.reads = unconfigured{}, unconfigured{}
	if c.service != nil {
		c.main, c.reads = c.service, c.service
	}
	if c.session == nil {
		return c, nil
	}
	if o.ApplicationType == Interactive {
		c.main, c.reads = c.session, c.session
		return c, nil
	}
	c.reads = &eitherSource{first: c.session, then: c.main}
	return c, nil
}

// signIns makes the two sign-ins as far as there are settings for them.
func (c *Client) signIns(o Options) error {
	if o.BaseURL == "" || o.TokenURL == "" || o.ClientID == "" {
		return nil
	}
	for _, address := range []string{o.BaseURL, o.TokenURL, cmp.Or(o.AuthorizeURL, o.TokenURL)} {
		if err := checkAddress(address); err != nil {
			return err
		}
	}
	if o.AuthorizeURL != "" {
		c.session = newSession(o, c.line, c.audience)
	}
	if o.PrivateKey == nil {
		return nil
	}
	if bits := o.PrivateKey.N.BitLen(); bits < minKeyBits {
		return fmt.Errorf("emr: private key has %d bits, need %d", bits, minKeyBits)
	}
	scopes := o.Scopes
	if scopes == nil {
		scopes = SystemScopes
	}
	c.service = &backendService{
		line: c.line, tokenURL: o.TokenURL, clientID: o.ClientID, key: o.PrivateKey, vault: o.Vault, audience: c.audience,
		scopes: slices.DeleteFunc(slices.Clone(scopes), func(s string) bool { return !strings.HasPrefix(s, "system/") }),
	}
	return nil
}

// Configured reports whether the client has all it needs to deliver to the EMR.
func (c *Client) Configured() bool { _, lacks := c.main.(unconfigured); return !lacks }

// HasBackendService reports whether the service can sign in by itself.
func (c *Client) HasBackendService() bool { return c.service != nil }

// CanConnect reports whether a person can sign in for the service.
func (c *Client) CanConnect() bool { return c.session != nil }

// BaseURL is the FHIR base address, "" when there is none.
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
			MaxIdleConnsPerHost:    128, // the transmission worker sends in parallel
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

// Capability is what the EMR's CapabilityStatement says it can do.
type Capability struct {
	FHIRVersion string
	Software    string // name of the server, "" when it does not say
	// Resources are the interactions by resource type, such as "create" for Observation.
	Resources map[string][]string
	// NoConditionalCreate: it says that it stores an Observation again that it has already, whatever the header asks. Most servers say nothing.
	NoConditionalCreate bool
	// Took is the time of the request alone, without waiting for the request rate or a token.
	Took time.Duration
}

// Supports reports whether the server offers the interaction on the resource type.
func (c Capability) Supports(resourceType, interaction string) bool {
	return slices.Contains(c.Resources[resourceType], interaction)
}

// Metadata asks the EMR, once and without retries, what it can do. It is signed like any call, so that it also
// proves the sign-in. The error is always an *Error.
func (c *Client) Metadata(ctx context.Context) (Capability, error) {
	got, attempts, err := c.send(ctx, call{
		method: http.MethodGet, path: "/metadata", requestID: uuid.NewString(), maxBody: maxCapability, once: true,
	})
	if err != nil {
		return Capability{}, err
	}
	capability, ok := readCapability(got.body)
	if !ok {
		return Capability{}, refused(got, attempts)
	}
	c.unfit.Store(capability.NoConditionalCreate)
	capability.Took = got.took
	return capability, nil
}

// conditionalCreate reports whether deliveries ask the EMR not to store what it has: the settings say so, and what the EMR last said of
// itself does not speak against it.
func (c *Client) conditionalCreate() bool { return c.conditional && !c.unfit.Load() }

func readCapability(body []byte) (Capability, bool) {
	var statement struct {
		ResourceType string `json:"resourceType"`
		FHIRVersion  string `json:"fhirVersion"`
		Software     struct {
			Name string `json:"name"`
		} `json:"software"`
		Rest []struct {
			Mode     string `json:"mode"`
			Resource []struct {
				Type        string `json:"type"`
				Interaction []struct {
					Code string `json:"code"`
				} `json:"interaction"`
				ConditionalCreate *bool `json:"conditionalCreate"`
			} `json:"resource"`
		} `json:"rest"`
	}
	if json.Unmarshal(body, &statement) != nil || statement.ResourceType != "CapabilityStatement" {
		return Capability{}, false
	}
	c := Capability{FHIRVersion: statement.FHIRVersion, Software: statement.Software.Name, Resources: map[string][]string{}}
	for _, rest := range statement.Rest {
		if rest.Mode == "client" {
			continue
		}
		for _, resource := range rest.Resource {
			interactions := c.Resources[resource.Type]
			for _, interaction := range resource.Interaction {
				interactions = append(interactions, interaction.Code)
			}
			c.Resources[resource.Type] = interactions
			if says := resource.ConditionalCreate; resource.Type == "Observation" && says != nil {
				c.NoConditionalCreate = !*says
			}
		}
	}
	return c, true
}

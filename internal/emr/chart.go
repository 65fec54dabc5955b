package emr

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/google/uuid"
)

// ChartTypes are the resource types that the service reads of a patient's chart with [Options.Context].
var ChartTypes = []string{
	"AllergyIntolerance", "Condition", "Coverage", "DeviceRequest", "Encounter", "Medication", "MedicationRequest", "ServiceRequest",
}

const (
	// maxChartPage bounds the bytes read of one page: an EMR that ignores _count sends a whole chart.
	maxChartPage = 16 << 20
	// maxChartPages bounds how many pages of one type are read.
	maxChartPages = 60
	chartCount    = "100"
)

// chartSource signs in for reading charts. Its token is not that of deliveries: an EMR that refuses the scopes of the context, or all scopes
// because of one of them (RFC 6749, section 5.2, invalid_scope), must not stop deliveries.
type chartSource struct {
	client   *Client
	service  *backendService
	mu       sync.Mutex
	isChosen bool
}

// newChartSource returns the token source of chart reads: the service's own, else the connected person's.
func (c *Client) newChartSource() tokenSource {
	switch {
	case c.service == nil && c.session == nil:
		return unconfigured{}
	case c.service == nil || c.mainSource == tokenSource(c.session):
		return c.session
	}
	s := c.service
	return &chartSource{client: c, service: &backendService{
		transport: s.transport, tokenURL: s.tokenURL, clientID: s.clientID, key: s.key, secret: s.secret, audience: s.audience,
	}}
}

func (s *chartSource) token(ctx context.Context) (string, *Error) {
	if e := s.chooseScopes(ctx); e != nil {
		return "", e
	}
	return s.service.token(ctx)
}

func (s *chartSource) reject(token string) { s.service.reject(token) }

// chooseScopes selects the syntax of the requested scopes, once: that of the EMR's SMART configuration, else that of the configured scopes.
func (s *chartSource) chooseScopes(ctx context.Context) *Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isChosen {
		return nil
	}
	discovered, e := s.client.readSMARTConfiguration(ctx)
	if e != nil && e.Class() != ClassRequest {
		return e
	}
	s.service.scopes = chartScopes("system", s.client.service.scopes, discovered)
	s.isChosen = true
	return nil
}

// smartConfiguration is the part of the discovery document that names scopes. Source: SMART App Launch 2.2, "Conformance".
type smartConfiguration struct {
	Scopes       []string `json:"scopes_supported"`
	Capabilities []string `json:"capabilities"`
}

// readSMARTConfiguration requests the discovery document; it is zero for an EMR without a usable one.
func (c *Client) readSMARTConfiguration(ctx context.Context) (found smartConfiguration, failure *Error) {
	got, _, err := c.send(ctx, call{
		method: http.MethodGet, path: "/.well-known/smart-configuration", requestID: uuid.NewString(), maxBody: maxBody, once: true, source: anonymous{},
	})
	if e, failed := errors.AsType[*Error](err); failed {
		return found, e
	}
	if json.Unmarshal(got.body, &found) != nil { // as if it had none
		found = smartConfiguration{}
	}
	return found, nil
}

// anonymous is the source of requests without a token.
type anonymous struct{}

func (anonymous) token(context.Context) (string, *Error) { return "", nil }
func (anonymous) reject(string)                          {}

// chartScopes returns the read scopes of [ChartTypes] in the syntax that the EMR lists, else in that of the configured scopes.
// Source: SMART App Launch 1.0 and 2.2, "Scopes for requesting FHIR Resources".
func chartScopes(level string, configured []string, found smartConfiguration) []string {
	usesV2 := slices.ContainsFunc(configured, func(scope string) bool {
		part := clinicalScope.FindStringSubmatch(scope)
		return part != nil && part[3] != "read" && part[3] != "write" && part[3] != "*"
	})
	switch v1, v2 := slices.Contains(found.Capabilities, "permission-v1"), slices.Contains(found.Capabilities, "permission-v2"); {
	case v1 && !v2:
		usesV2 = false
	case v2 && !v1:
		usesV2 = true
	}
	scopes := make([]string, len(ChartTypes))
	for i, resourceType := range ChartTypes {
		wanted, other := level+"/"+resourceType+".read", level+"/"+resourceType+".rs"
		if usesV2 {
			wanted, other = other, wanted
		}
		if !slices.Contains(found.Scopes, wanted) && slices.Contains(found.Scopes, other) {
			wanted = other
		}
		scopes[i] = wanted
	}
	return scopes
}

// GrantedChart signs in and returns the chart types that the granted scopes let the service search. An EMR that returns no scope has granted
// the requested ones. The error is always an *Error. Source: RFC 6749, section 5.1.
func (c *Client) GrantedChart(ctx context.Context) ([]string, error) {
	if _, e := c.chart.token(ctx); e != nil {
		e.SignIn = true
		if e.OAuthError == "invalid_scope" {
			return nil, nil
		}
		return nil, e
	}
	level, scopes := "system", []string(nil)
	if s, ok := c.chart.(*chartSource); ok {
		scopes = s.service.scopes
		if last := s.service.lastGrant(); last != nil && last.Scope != "" {
			scopes = strings.Fields(last.Scope)
		}
	} else {
		level = "user"
		tokens, err := c.session.current()
		if err != nil {
			return nil, &Error{Code: CodeUnavailable, Message: "EMR unavailable (interrupted)", cause: err}
		}
		if scopes = strings.Fields(tokens.Scope); len(scopes) == 0 {
			scopes = c.session.config.Scopes
		}
	}
	return slices.DeleteFunc(slices.Clone(ChartTypes), func(resourceType string) bool {
		for _, interaction := range "rs" {
			if !slices.ContainsFunc(scopes, func(scope string) bool { return covers(scope, level, resourceType, interaction) }) {
				return true
			}
		}
		return false
	}), nil
}

// SearchChart searches resources of a chart and follows the links to all pages, without retries. isCut is true where the EMR has more than
// limit resources, more pages than are read, or a page at another origin. The error is always an *Error.
func (c *Client) SearchChart(ctx context.Context, resourceType string, params url.Values, limit int) (found []json.RawMessage, isCut bool, err error) {
	values := url.Values{"_count": {chartCount}}
	for name, value := range params {
		values[name] = value
	}
	address, seen := c.baseURL+"/"+resourceType+"?"+values.Encode(), map[string]bool{}
	for range maxChartPages {
		seen[address] = true
		got, _, err := c.send(ctx, call{
			method: http.MethodGet, address: address, requestID: uuid.NewString(), maxBody: maxChartPage, once: true, source: c.chart,
		})
		if err != nil {
			return nil, false, err
		}
		page, ok := readChartPage(got.body)
		if !ok {
			return nil, false, unusable(got)
		}
		for _, entry := range page.Entry {
			if len(found) == limit {
				return found, true, nil
			}
			if entry.Search.Mode != "outcome" && len(entry.Resource) > 0 {
				found = append(found, entry.Resource)
			}
		}
		next := page.next()
		if next == "" {
			return found, false, nil
		}
		if address, ok = sameOrigin(address, next); !ok || seen[address] {
			return found, true, nil
		}
	}
	return found, true, nil
}

// ReadChart reads one resource of a chart by its relative reference, without retries. The error is always an *Error.
func (c *Client) ReadChart(ctx context.Context, reference string) (json.RawMessage, error) {
	got, _, err := c.send(ctx, call{
		method: http.MethodGet, path: "/" + reference, requestID: uuid.NewString(), maxBody: maxBody, once: true, source: c.chart,
	})
	if err != nil {
		return nil, err
	}
	if !json.Valid(got.body) {
		return nil, unusable(got)
	}
	return got.body, nil
}

// chartPage is one page of a search.
type chartPage struct {
	ResourceType string `json:"resourceType"`
	Link         []struct {
		Relation string `json:"relation"`
		URL      string `json:"url"`
	} `json:"link"`
	Entry []struct {
		Resource json.RawMessage `json:"resource"`
		Search   struct {
			Mode string `json:"mode"`
		} `json:"search"`
	} `json:"entry"`
}

func readChartPage(body []byte) (page chartPage, ok bool) {
	return page, json.Unmarshal(body, &page) == nil && page.ResourceType == "Bundle"
}

func (p chartPage) next() string {
	for _, link := range p.Link {
		if link.Relation == "next" {
			return link.URL
		}
	}
	return ""
}

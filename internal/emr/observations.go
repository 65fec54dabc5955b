package emr

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/google/uuid"

	"github.com/vigilhealth/vigil/internal/fhir"
)

const (
	identifierSystem = "urn:ietf:rfc:3986"
	identifierPrefix = "urn:uuid:"
)

// Created is a delivered Observation.
type Created struct {
	EMRID string // "" when the EMR did not return it
	// AlreadyThere: an earlier request had arrived.
	AlreadyThere bool
	Attempts     []Attempt
}

// CreateObservation delivers one FHIR Observation. observationID is the UUID that the resource carries as its identifier; requestID is
// sent as X-Request-ID with every attempt. The error is always an *Error.
// Source: docs/decisions/fhir.md, "Delivery request".
func (c *Client) CreateObservation(ctx context.Context, observationID string, resource []byte, requestID string) (Created, error) {
	conditional := c.conditionalCreate()
	request := call{
		method: http.MethodPost, path: "/Observation", body: resource, requestID: requestID, maxBody: maxBody,
		header: http.Header{"Content-Type": {fhir.ContentType}},
		// Not every EMR supports conditional create, so a search precedes the retry after an unknown outcome, too.
		lookup: func(ctx context.Context) (string, bool, error) {
			return c.findIfAllowed(ctx, lookup{id: observationID, once: true, mustBeCurrent: !conditional})
		},
		onResend:    func() { c.searches.recordSend(observationID) },
		onAbandoned: func() { c.searches.recordAbandoned(observationID, c.transport.now()) },
	}
	if conditional {
		request.header.Set("If-None-Exist", "identifier="+identifierSystem+"|"+identifierPrefix+observationID)
	}
	began := c.transport.now()
	c.searches.recordSend(observationID)
	got, attempts, err := c.send(ctx, request)
	if e, failed := errors.AsType[*Error](err); failed {
		c.checkPatient(ctx, resource, e, began)
		return Created{}, e
	}
	if got.lookedUp != "" {
		return Created{EMRID: got.lookedUp, AlreadyThere: true, Attempts: attempts}, nil
	}
	id, match := createdID(got), conditional && got.status == http.StatusOK
	if got.status == http.StatusOK && id == "" && (!match || !maybeFHIR(got.body)) {
		// A 200 that is neither a match nor names the new resource, such as a proxy's page, does not confirm a create.
		e := refused(got, attempts)
		e.Ambiguous = true
		return Created{}, e
	}
	return Created{EMRID: id, AlreadyThere: match, Attempts: attempts}, nil
}

// lookup is a search for one observation.
type lookup struct {
	id            string
	once          bool // without quick retries
	isRecovered   bool // an earlier process may have sent it
	mustBeCurrent bool // nothing else prevents a duplicate, so "not found" must be certain
}

// FindObservation searches for an Observation by its identifier, after an unknown outcome and before it is sent again. If the EMR forbids the
// search and conditional create prevents duplicates, it returns not found; without conditional create "not found" must be certain. The
// error is always an *Error.
func (c *Client) FindObservation(ctx context.Context, observationID string) (emrID string, found bool, err error) {
	return c.findIfAllowed(ctx, lookup{id: observationID, isRecovered: true, mustBeCurrent: !c.conditionalCreate()})
}

func (c *Client) findIfAllowed(ctx context.Context, l lookup) (emrID string, found bool, err error) {
	emrID, found, err = c.find(ctx, l)
	if refusal, ok := errors.AsType[*Error](err); ok && !refusal.SignIn && refusal.Status == http.StatusForbidden && c.conditionalCreate() {
		return "", false, nil
	}
	return emrID, found, err
}

// LookUpObservation is FindObservation for callers that need a certain answer: a forbidden search is an error, and so is a result that may
// come from a cache.
func (c *Client) LookUpObservation(ctx context.Context, observationID string) (emrID string, found bool, err error) {
	return c.find(ctx, lookup{id: observationID, isRecovered: true, mustBeCurrent: true})
}

// uncached makes the EMR answer from its data and not from its cache.
// Source: RFC 9111, section 5.2.1.4; HAPI FHIR documentation, "Search Result Caching".
var uncached = http.Header{"Cache-Control": {"no-cache"}}

func (c *Client) find(ctx context.Context, l lookup) (emrID string, found bool, err error) {
	value := identifierPrefix + l.id
	query := url.Values{"identifier": {identifierSystem + "|" + value}}
	staleUntil, began := c.searches.staleUntil(l.id, l.isRecovered), c.transport.now()
	got, attempts, err := c.send(ctx, call{
		method: http.MethodGet, path: "/Observation?" + query.Encode(), requestID: uuid.NewString(), maxBody: maxBody, header: uncached, once: l.once,
	})
	isStale := began.Before(staleUntil)
	c.searches.recordSearch(l.id, isStale, c.transport.now())
	if err != nil {
		return "", false, err
	}
	emrID, isBundle := findInBundle(got.body, value)
	if !isBundle {
		return "", false, refused(got, attempts)
	}
	if emrID == "" && l.mustBeCurrent && isStale {
		return "", false, searchOutdated(max(c.searches.cacheLife, staleUntil.Sub(c.transport.now())))
	}
	return emrID, emrID != "", nil
}

// refused turns an unusable success into an error, in the last attempt too.
func refused(got answer, attempts []Attempt) *Error {
	attempts[len(attempts)-1].Code = CodeUnavailable
	return &Error{Code: CodeUnavailable, Status: got.status, Message: unavailable(got.status), Attempts: attempts}
}

// foundObservation is the part of an Observation that identifies it.
type foundObservation struct {
	ResourceType string `json:"resourceType"`
	ID           string `json:"id"`
	Identifier   []struct {
		System string `json:"system"`
		Value  string `json:"value"`
	} `json:"identifier"`
}

// findInBundle returns the id of the first Observation in a search result that carries the identifier. An EMR that does not support the
// search parameter returns any Observations, so each result is checked.
func findInBundle(body []byte, identifier string) (emrID string, isBundle bool) {
	var bundle struct {
		ResourceType string `json:"resourceType"`
		Entry        []struct {
			Resource foundObservation `json:"resource"`
		} `json:"entry"`
	}
	if json.Unmarshal(body, &bundle) != nil || bundle.ResourceType != "Bundle" {
		return "", false
	}
	for _, entry := range bundle.Entry {
		r := entry.Resource
		if r.ResourceType != "Observation" || !fhirID.MatchString(r.ID) {
			continue
		}
		for _, id := range r.Identifier {
			if id.System == identifierSystem && strings.EqualFold(id.Value, identifier) {
				return r.ID, true
			}
		}
	}
	return "", true
}

// createdID returns the EMR's id from the headers, else from the body; "" when neither has one.
func createdID(got answer) string {
	for _, name := range []string{"Location", "Content-Location"} {
		if id := locationID(got.header.Get(name)); id != "" {
			return id
		}
	}
	var resource foundObservation
	if json.Unmarshal(got.body, &resource) == nil && resource.ResourceType == "Observation" && fhirID.MatchString(resource.ID) {
		return resource.ID
	}
	return ""
}

// fhirID is FHIR's id type. Source: hl7.org/fhir/R4/datatypes.html#id
var fhirID = regexp.MustCompile(`^[A-Za-z0-9\-.]{1,64}$`)

// locationID returns the id of a Location of the form [base]/Observation/[id](/_history/[version]); "" for another form.
// Source: hl7.org/fhir/R4/http.html#create
func locationID(location string) string {
	u, err := url.Parse(location)
	if err != nil {
		return ""
	}
	// The escaped path: an escaped slash belongs to a segment, which is then no id.
	segments := strings.Split(strings.TrimSuffix(u.EscapedPath(), "/"), "/")
	if n := len(segments); n > 2 && segments[n-2] == "_history" {
		segments = segments[:n-2]
	}
	n := len(segments)
	if n < 2 || segments[n-2] != "Observation" || !fhirID.MatchString(segments[n-1]) {
		return ""
	}
	return segments[n-1]
}

// maybeFHIR reports whether a body is empty or a JSON object: an EMR need not return the stored resource.
func maybeFHIR(body []byte) bool {
	var object map[string]json.RawMessage
	return len(body) == 0 || json.Unmarshal(body, &object) == nil
}

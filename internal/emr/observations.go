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
	EMRID string // "" when the EMR did not say
	// AlreadyThere says that an earlier send had arrived.
	AlreadyThere bool
	Attempts     []Attempt
}

// CreateObservation delivers one FHIR Observation. observationID is our UUID, which the resource carries as its
// identifier; requestID goes along as X-Request-ID with every attempt. The error is always an *Error.
// Source: docs/decisions/fhir.md, "Delivery request".
func (c *Client) CreateObservation(ctx context.Context, observationID string, resource []byte, requestID string) (Created, error) {
	conditional := c.conditionalCreate()
	what := call{
		method: http.MethodPost, path: "/Observation", body: resource, requestID: requestID, maxBody: maxBody,
		header: http.Header{"Content-Type": {fhir.ContentType}},
		// Not every EMR that is asked for a conditional create knows what that is, so after an ambiguous end we look, too.
		lookup: func(ctx context.Context) (string, bool, error) {
			id, found, err := c.findIfAllowed(ctx, look{id: observationID, once: true, exact: !conditional})
			if err == nil && !found {
				c.looks.sending(observationID)
			}
			return id, found, err
		},
		abandoned: func() { c.looks.abandon(observationID, c.line.now()) },
	}
	if conditional {
		what.header.Set("If-None-Exist", "identifier="+identifierSystem+"|"+identifierPrefix+observationID)
	}
	began := c.line.now()
	c.looks.sending(observationID)
	got, attempts, err := c.send(ctx, what)
	if e, failed := errors.AsType[*Error](err); failed {
		c.askForSubject(ctx, resource, e, began)
		return Created{}, e
	}
	if got.lookedUp != "" {
		return Created{EMRID: got.lookedUp, AlreadyThere: true, Attempts: attempts}, nil
	}
	id, match := createdID(got), conditional && got.status == http.StatusOK
	if got.status == http.StatusOK && id == "" && (!match || !maybeFHIR(got.body)) {
		// A 200 that is neither a match nor names what it made, such as a proxy's page, is no receipt.
		e := refused(got, attempts)
		e.Ambiguous = true
		return Created{}, e
	}
	return Created{EMRID: id, AlreadyThere: match, Attempts: attempts}, nil
}

// look is a search for one observation.
type look struct {
	id      string
	once    bool // no quick retries of its own
	takenUp bool // of what an earlier process may have sent
	exact   bool // nothing else prevents a double: "not there" must be true now
}

// FindObservation looks for an Observation we may have delivered, by the identifier it carries. It is for use after
// an ambiguous end, before sending again. Where searching is forbidden the conditional create is left to prevent doubles,
// and nothing is found; without conditional create it must be certain that nothing is there. The error is always an *Error.
func (c *Client) FindObservation(ctx context.Context, observationID string) (emrID string, found bool, err error) {
	return c.findIfAllowed(ctx, look{id: observationID, takenUp: true, exact: !c.conditionalCreate()})
}

func (c *Client) findIfAllowed(ctx context.Context, l look) (emrID string, found bool, err error) {
	emrID, found, err = c.find(ctx, l)
	if refusal, ok := errors.AsType[*Error](err); ok && !refusal.SignIn && refusal.Status == http.StatusForbidden && c.conditionalCreate() {
		return "", false, nil
	}
	return emrID, found, err
}

// LookUpObservation is FindObservation for whoever must know: where searching is forbidden that is an error, and so is an answer that may be
// an old one.
func (c *Client) LookUpObservation(ctx context.Context, observationID string) (emrID string, found bool, err error) {
	return c.find(ctx, look{id: observationID, takenUp: true, exact: true})
}

// uncached asks for what is there now and not for what was there when the EMR was last asked.
// Source: RFC 9111, section 5.2.1.4; HAPI FHIR documentation, "Search Result Caching".
var uncached = http.Header{"Cache-Control": {"no-cache"}}

func (c *Client) find(ctx context.Context, l look) (emrID string, found bool, err error) {
	value := identifierPrefix + l.id
	query := url.Values{"identifier": {identifierSystem + "|" + value}}
	falseUntil, began := c.looks.falseUntil(l.id, l.takenUp), c.line.now()
	got, attempts, err := c.send(ctx, call{
		method: http.MethodGet, path: "/Observation?" + query.Encode(), requestID: uuid.NewString(), maxBody: maxBody, header: uncached, once: l.once,
	})
	stale := began.Before(falseUntil)
	c.looks.note(l.id, stale, c.line.now())
	if err != nil {
		return "", false, err
	}
	emrID, isBundle := findInBundle(got.body, value)
	if !isBundle {
		return "", false, refused(got, attempts)
	}
	if emrID == "" && l.exact && stale {
		return "", false, outdated(max(c.looks.cacheLife, falseUntil.Sub(c.line.now())))
	}
	return emrID, emrID != "", nil
}

// refused turns a success that makes no sense into an error, in the ledger too.
func refused(got answer, attempts []Attempt) *Error {
	attempts[len(attempts)-1].Code = CodeUnavailable
	return &Error{Code: CodeUnavailable, Status: got.status, Message: unavailable(got.status), Attempts: attempts}
}

// foundObservation is as much of an Observation as we need to know it again.
type foundObservation struct {
	ResourceType string `json:"resourceType"`
	ID           string `json:"id"`
	Identifier   []struct {
		System string `json:"system"`
		Value  string `json:"value"`
	} `json:"identifier"`
}

// findInBundle returns the id of the first Observation in a search result that carries the identifier. An EMR that
// does not know the search parameter answers with Observations of its own choice, so the parameter alone proves
// nothing.
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

// createdID reads the EMR's id from the headers, else from the body; "" when neither has one.
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

// locationID reads the id from a Location of the form [base]/Observation/[id](/_history/[version]); "" when it has
// another form. Source: hl7.org/fhir/R4/http.html#create
func locationID(location string) string {
	u, err := url.Parse(location)
	if err != nil {
		return ""
	}
	// The escaped path: an escaped slash is part of a segment, and no id.
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

// maybeFHIR reports whether a body is empty or a JSON object: an EMR need not return what it kept.
func maybeFHIR(body []byte) bool {
	var object map[string]json.RawMessage
	return len(body) == 0 || json.Unmarshal(body, &object) == nil
}

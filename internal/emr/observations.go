package emr

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strings"

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
	conditional, sought := c.sendsConditional(), readSought(observationID, resource)
	request := call{
		method: http.MethodPost, path: "/Observation", body: resource, requestID: requestID, maxBody: maxBody,
		header: http.Header{"Content-Type": {fhir.ContentType}},
		// Not every EMR supports conditional create, so a search precedes the retry after an unknown outcome, too.
		lookup: func(ctx context.Context) (string, bool, error) {
			return c.findUnlessSafe(ctx, lookup{sought: sought, once: true})
		},
		onResend:    func() { c.searches.recordSend(sought, c.transport.now()) },
		onAbandoned: func() { c.searches.recordAbandoned(sought, c.transport.now()) },
	}
	if conditional {
		request.header.Set("If-None-Exist", "identifier="+identifierSystem+"|"+identifierPrefix+observationID)
	}
	began := c.transport.now()
	c.searches.recordSend(sought, began)
	got, attempts, err := c.send(ctx, request)
	if e, failed := errors.AsType[*Error](err); failed {
		c.checkPatient(ctx, resource, e, began)
		return Created{}, e
	}
	if got.lookedUp != "" {
		return Created{EMRID: got.lookedUp, AlreadyThere: true, Attempts: attempts}, nil
	}
	id, match := createdID(got, "Observation"), conditional && got.status == http.StatusOK
	if got.status == http.StatusOK && id == "" && (!match || !maybeFHIR(got.body)) {
		// A 200 that is neither a match nor names the new resource, such as a proxy's page, does not confirm a create.
		e := invalidSuccess(got, attempts)
		e.Ambiguous = true
		return Created{}, e
	}
	c.copies.record(id, observationID)
	c.capabilities.accept()
	return Created{EMRID: id, AlreadyThere: match, Attempts: attempts}, nil
}

// invalidSuccess turns an unusable success into an error, in the last attempt too.
func invalidSuccess(got response, attempts []Attempt) *Error {
	attempts[len(attempts)-1].Code = CodeUnavailable
	return &Error{Code: CodeUnavailable, Status: got.status, Message: unavailable(got.status), Attempts: attempts}
}

// createdID returns the EMR's id from the headers, else from the body; "" when neither has one.
func createdID(got response, resourceType string) string {
	for _, name := range []string{"Location", "Content-Location"} {
		if id := locationID(got.header.Get(name), resourceType); id != "" {
			return id
		}
	}
	var resource foundObservation
	if json.Unmarshal(got.body, &resource) == nil && resource.ResourceType == resourceType && fhirID.MatchString(resource.ID) {
		return resource.ID
	}
	return ""
}

// fhirID is FHIR's id type. Source: hl7.org/fhir/R4/datatypes.html#id
var fhirID = regexp.MustCompile(`^[A-Za-z0-9\-.]{1,64}$`)

// locationID returns the id of a Location of the form [base]/[type]/[id](/_history/[version]); "" for another form.
// Source: hl7.org/fhir/R4/http.html#create
func locationID(location, resourceType string) string {
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
	if n < 2 || segments[n-2] != resourceType || !fhirID.MatchString(segments[n-1]) {
		return ""
	}
	return segments[n-1]
}

// maybeFHIR reports whether a body is empty or a JSON object: an EMR need not return the stored resource.
func maybeFHIR(body []byte) bool {
	var object map[string]json.RawMessage
	return len(body) == 0 || json.Unmarshal(body, &object) == nil
}

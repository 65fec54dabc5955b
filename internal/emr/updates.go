package emr

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"regexp"

	"github.com/google/uuid"

	"github.com/vigilhealth/vigil/internal/fhir"
)

// maxPuts bounds the attempts of an update when another client changes the copy between read and write.
const maxPuts = 4

// UpdateObservation replaces the EMR's copy with the id emrID, which the resource carries, too. It reads the copy first: if the content is
// the same it sends nothing, and where the EMR has versions it replaces only the version that it read (If-Match). If another client changed
// the copy in between, it reads and sends again. If reading is forbidden it sends without a version. A copy that the EMR has deleted needs
// no update. ambiguous reports an earlier unknown outcome, which stays unknown while the copy cannot be read. The error is always an *Error.
// Source: FHIR R4, http.html, "update" and "Managing Resource Contention"; docs/decisions/fhir.md, "Withdrawn or corrected after delivery".
func (c *Client) UpdateObservation(ctx context.Context, emrID string, resource []byte, requestID string, ambiguous bool) (Created, error) {
	return c.update(ctx, &remoteCopy{client: c, path: "/Observation/" + emrID, resource: resource, same: sameContent}, emrID, requestID, ambiguous)
}

func (c *Client) update(ctx context.Context, remote *remoteCopy, emrID, requestID string, ambiguous bool) (Created, error) {
	remote.header = http.Header{"Content-Type": {fhir.ContentType}}
	created, resource := Created{EMRID: emrID}, remote.resource
	for put := 1; ; put++ {
		hasContent, err := remote.read(ctx, false)
		if e, failed := errors.AsType[*Error](err); failed {
			e.Ambiguous, e.Attempts = ambiguous, append(created.Attempts, e.Attempts...)
			return Created{}, e
		}
		if hasContent {
			created.AlreadyThere = true
			return created, nil
		}
		got, attempts, err := c.send(ctx, call{
			method: http.MethodPut, path: remote.path, body: resource, requestID: requestID, maxBody: maxBody, header: remote.header,
			lookup: func(ctx context.Context) (string, bool, error) {
				found, err := remote.read(ctx, true)
				return emrID, found, err
			},
		})
		created.Attempts = append(created.Attempts, attempts...)
		e, failed := errors.AsType[*Error](err)
		switch {
		case failed && e.Status == http.StatusGone:
			created.AlreadyThere = true
			return created, nil
		case failed && remote.isVersionConflict(e) && put < maxPuts:
			ambiguous = ambiguous || e.Ambiguous
			continue
		case failed:
			e.Attempts = created.Attempts
			e.classifyUpdate(remote)
			return Created{}, e
		case got.lookedUp == "" && !maybeFHIR(got.body): // a proxy's page does not confirm the update
			e := invalidSuccess(got, created.Attempts)
			e.Ambiguous = true
			return Created{}, e
		}
		created.AlreadyThere = got.lookedUp != ""
		return created, nil
	}
}

// HasObservation reports whether the EMR's copy has the content of the resource, or is deleted; it changes nothing. isKnown is false if reading
// is forbidden. The error is always an *Error.
func (c *Client) HasObservation(ctx context.Context, emrID string, resource []byte) (hasContent, isKnown bool, err error) {
	remote := &remoteCopy{client: c, path: "/Observation/" + emrID, resource: resource, header: http.Header{}, same: sameContent}
	hasContent, err = remote.read(ctx, false)
	return hasContent, remote.isKnown, err
}

// remoteCopy is the EMR's copy of a resource to update.
type remoteCopy struct {
	client   *Client
	path     string
	resource []byte
	header   http.Header // of the next PUT, with the version that was read
	isKnown  bool        // it could be read, or was deleted
	same     func(remote, sent []byte) bool
}

const ifMatch = "If-Match"

// read reports whether the copy has our content, and records its version. It returns false if the EMR forbids reading.
func (c *remoteCopy) read(ctx context.Context, once bool) (hasContent bool, err error) {
	c.header.Del(ifMatch)
	got, _, err := c.client.send(ctx, call{
		method: http.MethodGet, path: c.path, requestID: uuid.NewString(), maxBody: maxDocument, header: uncached, once: once,
	})
	if refusal, ok := errors.AsType[*Error](err); ok && !refusal.SignIn && refusal.Status >= 400 && refusal.Status < 500 && refusal.Class() == ClassRequest {
		c.isKnown = refusal.Status == http.StatusGone
		return c.isKnown, nil
	}
	if err != nil {
		return false, err
	}
	c.isKnown = true
	if version := versionOf(got); version != "" {
		c.header.Set(ifMatch, version)
	}
	return c.same(got.body, c.resource), nil
}

// isVersionConflict reports whether the copy has changed since it was read. HAPI returns 409, others 412 as specified.
func (c *remoteCopy) isVersionConflict(e *Error) bool {
	return c.header.Get(ifMatch) != "" && (e.Status == http.StatusPreconditionFailed || e.Status == http.StatusConflict)
}

// classifyUpdate sets the code of a refusal as it applies to an update. Source: docs/decisions/transmissions.md, "Delivery failure texts".
func (e *Error) classifyUpdate(c *remoteCopy) {
	switch {
	case e.SignIn:
	case c.isVersionConflict(e):
		e.Code, e.Message = CodeUnavailable, unavailable(e.Status)
	case e.Status == http.StatusNotFound:
		e.Code, e.Message = CodeInvalidResource, "Observation not found in EMR"
	case e.Status == http.StatusForbidden:
		e.Code, e.Message = CodeUpdateRefused, "Update refused by EMR (403: insufficient scope)"
	case e.Status == http.StatusMethodNotAllowed, e.Status == http.StatusNotImplemented,
		e.Status == http.StatusUnprocessableEntity && e.Code == CodeInvalidResource:
		e.Code, e.Message = CodeUpdateRefused, withIssues("Update refused by EMR", e)
	default:
		return
	}
	if n := len(e.Attempts); n > 0 {
		e.Attempts[n-1].Code = e.Code
	}
}

// versionID matches versions that an entity tag can hold.
var (
	versionID = regexp.MustCompile(`^[A-Za-z0-9\-.]{1,64}$`)
	entityTag = regexp.MustCompile(`^(W/)?"[\x21\x23-\x7E]{1,128}"$`)
)

// versionOf returns the copy's version as an entity tag, "" when it has none. The resource's version precedes the header, which a proxy may
// change. Source: FHIR R4, http.html, "Support for Versions".
func versionOf(got response) string {
	var resource struct {
		Meta struct {
			VersionID string `json:"versionId"`
		} `json:"meta"`
	}
	if json.Unmarshal(got.body, &resource) == nil && versionID.MatchString(resource.Meta.VersionID) {
		return `W/"` + resource.Meta.VersionID + `"`
	}
	if tag := got.header.Get("ETag"); entityTag.MatchString(tag) {
		return tag
	}
	return ""
}

// sameContent reports whether a copy has all that was sent; the EMR may have added members. For a retracted reading only the status counts.
func sameContent(remote, sent []byte) bool {
	var remoteMembers, sentMembers map[string]any
	if json.Unmarshal(remote, &remoteMembers) != nil || json.Unmarshal(sent, &sentMembers) != nil {
		return false
	}
	if sentMembers["status"] == "entered-in-error" {
		return remoteMembers["status"] == sentMembers["status"]
	}
	for name, value := range sentMembers {
		if name != "meta" && !reflect.DeepEqual(remoteMembers[name], value) {
			return false
		}
	}
	return true
}

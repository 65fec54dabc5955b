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

// mostVersions is how often an update is put when somebody else changes the copy between reading and writing.
const mostVersions = 4

// UpdateObservation puts a resource in the place of the EMR's copy, which emrID names and the resource carries as its id. The copy is read
// first: the EMR is not given another version of what it has, and of a copy with a version only that very version is replaced (If-Match).
// When somebody else has changed the copy meanwhile it is read and put again. Where reading is forbidden it is put as it is. A copy that the
// EMR has deleted needs no update. ambiguous tells of an earlier end that is unknown, and stays so while the copy cannot be read. The error is
// always an *Error.
// Source: FHIR R4, http.html, "update" and "Managing Resource Contention"; docs/decisions/fhir.md, "Withdrawn or corrected after delivery".
func (c *Client) UpdateObservation(ctx context.Context, emrID string, resource []byte, requestID string, ambiguous bool) (Created, error) {
	remote := &remoteCopy{client: c, path: "/Observation/" + emrID, resource: resource, header: http.Header{"Content-Type": {fhir.ContentType}}}
	created := Created{EMRID: emrID}
	for put := 1; ; put++ {
		there, err := remote.read(ctx, false)
		if e, failed := errors.AsType[*Error](err); failed {
			e.Ambiguous, e.Attempts = ambiguous, append(created.Attempts, e.Attempts...)
			return Created{}, e
		}
		if there {
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
		case failed && remote.overtaken(e) && put < mostVersions:
			ambiguous = ambiguous || e.Ambiguous
			continue
		case failed:
			e.Attempts = created.Attempts
			e.ofUpdate(remote)
			return Created{}, e
		case got.lookedUp == "" && !maybeFHIR(got.body): // a proxy's page is no receipt
			e := refused(got, created.Attempts)
			e.Ambiguous = true
			return Created{}, e
		}
		created.AlreadyThere = got.lookedUp != ""
		return created, nil
	}
}

// HasObservation reports whether the EMR's copy says what the resource says, or is deleted; it changes nothing. known is false where nobody may
// read. The error is always an *Error.
func (c *Client) HasObservation(ctx context.Context, emrID string, resource []byte) (has, known bool, err error) {
	remote := &remoteCopy{client: c, path: "/Observation/" + emrID, resource: resource, header: http.Header{}}
	has, err = remote.read(ctx, false)
	return has, remote.seen, err
}

// remoteCopy is the EMR's copy of what is to be put there.
type remoteCopy struct {
	client   *Client
	path     string
	resource []byte
	header   http.Header // of the next PUT, with the version that was read
	seen     bool        // it could be read, or is known to be deleted
}

const ifMatch = "If-Match"

// read reports whether the copy is what we send, and notes its version. An EMR that lets nobody read cannot say so.
func (k *remoteCopy) read(ctx context.Context, once bool) (there bool, err error) {
	k.header.Del(ifMatch)
	got, _, err := k.client.send(ctx, call{
		method: http.MethodGet, path: k.path, requestID: uuid.NewString(), maxBody: maxBody, header: uncached, once: once,
	})
	if refusal, ok := errors.AsType[*Error](err); ok && !refusal.SignIn && refusal.Status >= 400 && refusal.Status < 500 && refusal.Fault() == OfRequest {
		k.seen = refusal.Status == http.StatusGone
		return k.seen, nil
	}
	if err != nil {
		return false, err
	}
	k.seen = true
	if version := versionOf(got); version != "" {
		k.header.Set(ifMatch, version)
	}
	return sameContent(got.body, k.resource), nil
}

// overtaken reports whether the copy is no longer the version that was read. HAPI says so by a 409, others as the specification by a 412.
func (k *remoteCopy) overtaken(e *Error) bool {
	return k.header.Get(ifMatch) != "" && (e.Status == http.StatusPreconditionFailed || e.Status == http.StatusConflict)
}

// ofUpdate says of a refusal what it means for an update. Source: docs/decisions/transmissions.md, "Delivery failure texts".
func (e *Error) ofUpdate(k *remoteCopy) {
	switch {
	case e.SignIn:
	case k.overtaken(e):
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

// versionID is what can stand in an entity tag as a version.
var (
	versionID = regexp.MustCompile(`^[A-Za-z0-9\-.]{1,64}$`)
	entityTag = regexp.MustCompile(`^(W/)?"[\x21\x23-\x7E]{1,128}"$`)
)

// versionOf is the copy's version as an entity tag, "" when it has none. What a proxy makes of the header does not count while the resource
// says it. Source: FHIR R4, http.html, "Support for Versions".
func versionOf(got answer) string {
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

// sameContent reports whether a copy says all that was sent, whatever the EMR has added. Of what is withdrawn nothing else matters.
func sameContent(remote, sent []byte) bool {
	var theirs, ours map[string]any
	if json.Unmarshal(remote, &theirs) != nil || json.Unmarshal(sent, &ours) != nil {
		return false
	}
	if ours["status"] == "entered-in-error" {
		return theirs["status"] == ours["status"]
	}
	for name, value := range ours {
		if name != "meta" && !reflect.DeepEqual(theirs[name], value) {
			return false
		}
	}
	return true
}

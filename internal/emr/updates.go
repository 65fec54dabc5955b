package emr

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"

	"github.com/google/uuid"

	"github.com/vigilhealth/vigil/internal/fhir"
)

// UpdateObservation puts a resource in the place of the EMR's copy, which emrID names and the resource carries as its id. After an
// ambiguous end, of this call or of an earlier one that the caller knows of, the copy is read first: the EMR is not given another
// version of what it has. Where reading is forbidden, or what comes back is not what was sent, it is put again, which changes nothing
// but the number of versions. A copy that the EMR has deleted needs no update. The error is always an *Error.
// Source: FHIR R4, http.html, "update"; docs/decisions/fhir.md, "Withdrawn or corrected after delivery".
func (c *Client) UpdateObservation(ctx context.Context, emrID string, resource []byte, requestID string, ambiguous bool) (Created, error) {
	path := "/Observation/" + emrID
	has := func(ctx context.Context) (string, bool, error) {
		found, err := c.has(ctx, path, resource)
		return emrID, found, err
	}
	if ambiguous {
		if _, found, err := has(ctx); err != nil || found {
			return Created{EMRID: emrID, AlreadyThere: found}, err
		}
	}
	got, attempts, err := c.send(ctx, call{
		method: http.MethodPut, path: path, body: resource, requestID: requestID, maxBody: maxBody,
		header: http.Header{"Content-Type": {fhir.ContentType}}, lookup: has,
	})
	if refusal, ok := errors.AsType[*Error](err); ok && refusal.Status == http.StatusGone {
		return Created{EMRID: emrID, AlreadyThere: true, Attempts: refusal.Attempts}, nil
	}
	switch {
	case err != nil:
		if refusal, ok := errors.AsType[*Error](err); ok && refusal.Status == http.StatusNotFound {
			refusal.Code, refusal.Message = CodeInvalidResource, "Observation not found in EMR"
		}
		return Created{}, err
	case got.lookedUp == "" && !maybeFHIR(got.body): // a proxy's page is no receipt
		e := refused(got, attempts)
		e.Ambiguous = true
		return Created{}, e
	}
	return Created{EMRID: emrID, AlreadyThere: got.lookedUp != "", Attempts: attempts}, nil
}

// has reports whether the EMR's copy is what we send. An EMR that lets nobody read cannot say so.
func (c *Client) has(ctx context.Context, path string, resource []byte) (bool, error) {
	got, _, err := c.send(ctx, call{method: http.MethodGet, path: path, requestID: uuid.NewString(), maxBody: maxBody, once: true})
	if refusal, ok := errors.AsType[*Error](err); ok && refusal.Status >= 400 && refusal.Status < 500 &&
		refusal.Status != http.StatusUnauthorized && refusal.Status != http.StatusTooManyRequests {
		return refusal.Status == http.StatusGone, nil
	}
	if err != nil {
		return false, err
	}
	return sameContent(got.body, resource), nil
}

// sameContent reports whether a copy says all that was sent, whatever the EMR has added. Of what is withdrawn nothing else matters.
func sameContent(kept, sent []byte) bool {
	var theirs, ours map[string]any
	if json.Unmarshal(kept, &theirs) != nil || json.Unmarshal(sent, &ours) != nil {
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

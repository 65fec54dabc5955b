package emr

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// What is wrong with the patient of a resource. Source: docs/decisions/transmissions.md, "Delivery failure texts".
const (
	patientNotFound = "Patient not found in EMR"
	patientDeleted  = "Patient deleted in EMR"
	patientMerged   = "Patient merged or inactive in EMR"
)

// aboutTheResource are the issue codes that can mean nothing but the resource itself. Others, such as HAPI's "processing" of a patient whom it
// does not know, may mean its patient. Source: hl7.org/fhir/R4/valueset-issue-type.html
var aboutTheResource = []string{"structure", "required", "invariant", "code-invalid", "extension", "too-long", "duplicate", "multiple-matches"}

// doubtful reports whether a refused create may be about the patient.
func (e *Error) doubtful() bool {
	switch e.Status {
	case http.StatusMethodNotAllowed, http.StatusPreconditionFailed, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType:
		return false
	}
	return e.Code == CodeInvalidResource && e.Status >= 400 && e.Status < 500 &&
		!slices.ContainsFunc(e.Issues, func(code string) bool { return slices.Contains(aboutTheResource, code) })
}

// askForSubject finds out, with one request, whether a refused create was about its patient: the EMR does not know them, has deleted them, or
// has taken another record in their place. An EMR that does not say leaves the refusal as it is.
func (c *Client) askForSubject(ctx context.Context, resource []byte, e *Error, began time.Time) {
	id := subjectOf(resource)
	if id == "" || !e.doubtful() {
		return
	}
	since := c.line.now().Sub(began)
	got, attempts, err := c.send(ctx, call{
		method: http.MethodGet, path: "/Patient/" + url.PathEscape(id), requestID: uuid.NewString(), maxBody: maxBody, header: uncached, once: true,
	})
	answer, failed := errors.AsType[*Error](err)
	switch patient, ok := readPatient(got.body, c.line.now()); {
	case failed && answer.SignIn:
	case failed && answer.Status == http.StatusNotFound:
		e.Code, e.Message = CodePatientNotFound, patientNotFound
	case failed && answer.Status == http.StatusGone:
		e.Code, e.Message = CodePatientNotFound, patientDeleted
	case !failed && ok && (patient.Retired || patient.ID != id): // some answer with whom the record was merged into
		e.Code, e.Message = CodePatientMerged, patientMerged
	}
	for i := range e.Attempts {
		if e.Attempts[i].Status == e.Status {
			e.Attempts[i].Code = e.Code
		}
	}
	for _, attempt := range attempts {
		attempt.Started += since
		e.Attempts = append(e.Attempts, attempt)
	}
}

// subjectOf is the EMR's id of the patient whom a resource is about.
func subjectOf(resource []byte) string {
	var r struct {
		Subject struct {
			Reference string `json:"reference"`
		} `json:"subject"`
	}
	if json.Unmarshal(resource, &r) != nil {
		return ""
	}
	id, ok := strings.CutPrefix(r.Subject.Reference, "Patient/")
	if !ok || !IsPatientID(id) {
		return ""
	}
	return id
}

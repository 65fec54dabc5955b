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

// The messages for a refused patient. Source: docs/decisions/transmissions.md, "Delivery failure texts".
const (
	patientNotFound = "Patient not found in EMR"
	patientDeleted  = "Patient deleted in EMR"
	patientMerged   = "Patient merged or inactive in EMR"
)

// resourceIssues are the issue codes that can only be about the resource itself. Others, such as HAPI's "processing" for an unknown patient,
// may be about its patient. Source: hl7.org/fhir/R4/valueset-issue-type.html
var resourceIssues = []string{"structure", "required", "invariant", "code-invalid", "extension", "too-long", "duplicate", "multiple-matches"}

// mayConcernPatient reports whether a refused create may be about the patient.
func (e *Error) mayConcernPatient() bool {
	switch e.Status {
	case http.StatusMethodNotAllowed, http.StatusPreconditionFailed, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType:
		return false
	}
	return e.Code == CodeInvalidResource && e.Status >= 400 && e.Status < 500 &&
		!slices.ContainsFunc(e.Issues, func(code string) bool { return slices.Contains(resourceIssues, code) })
}

// checkPatient reads the patient after a refused create, with one request, and sets the error's code if the EMR does not have the patient, has
// deleted the record, or has merged it into another. Otherwise the refusal stays as it is.
func (c *Client) checkPatient(ctx context.Context, resource []byte, e *Error, began time.Time) {
	id := subjectOf(resource)
	if id == "" || !e.mayConcernPatient() {
		return
	}
	since := c.transport.now().Sub(began)
	got, attempts, err := c.send(ctx, call{
		method: http.MethodGet, path: "/Patient/" + url.PathEscape(id), requestID: uuid.NewString(), maxBody: maxBody, header: uncached, once: true,
	})
	answer, failed := errors.AsType[*Error](err)
	switch patient, ok := readPatient(got.body, c.transport.now()); {
	case failed && answer.SignIn:
	case failed && answer.Status == http.StatusNotFound:
		e.Code, e.Message = CodePatientNotFound, patientNotFound
	case failed && answer.Status == http.StatusGone:
		e.Code, e.Message = CodePatientNotFound, patientDeleted
	case !failed && ok && (patient.Retired || patient.ID != id): // some EMRs return the record that it was merged into
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

// subjectOf returns the EMR's id of a resource's patient.
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

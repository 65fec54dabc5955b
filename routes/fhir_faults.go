package routes

import (
	"net/http"
	"slices"
	"strings"

	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/fhir"
	"github.com/vigilhealth/vigil/routes/web"
)

// fhirPath is where resources are served, and looked for.
const fhirPath = web.BasePath + "/fhir/"

// fhirFault says what went wrong as an OperationOutcome, to who asks for FHIR where FHIR is served, or would be. Everybody else gets the contract's
// form. Source: docs/decisions/fhir.md, "FHIR read".
func (a *api) fhirFault(row web.Route, r *http.Request, f *fault.Error) (contentType string, body []byte) {
	served := slices.Contains(a.contract.produces(row), fhir.ContentType) || row.Unknown() && strings.HasPrefix(r.URL.Path, fhirPath)
	if !served || web.Preferred(r.Header, web.JSONType, fhir.ContentType) != fhir.ContentType {
		return "", nil
	}
	body, err := fhir.OperationOutcome(issuesOf(f)...)
	if err != nil {
		return "", nil
	}
	return fhir.ContentType, body
}

// issueTypes are the kinds of faults in FHIR's words. Source: FHIR R4, value set issue-type.
var issueTypes = map[fault.Kind]string{
	fault.Internal: "exception", fault.Throttled: "throttled", fault.Unauthenticated: "login", fault.Forbidden: "forbidden", fault.NotFound: "not-found",
	fault.MethodNotAllowed: "not-supported", fault.NotAcceptable: "not-supported", fault.PayloadTooLarge: "too-long",
	fault.UnsupportedMediaType: "not-supported", fault.Invalid: "invalid", fault.Unavailable: "transient", fault.TimedOut: "timeout",
}

func issuesOf(f *fault.Error) []fhir.Issue {
	kind, known := issueTypes[f.Kind]
	if !known {
		kind = "processing"
	}
	issues := []fhir.Issue{{Type: kind, Code: f.Code, Text: f.Detail}}
	for name, complaints := range f.Fields {
		for _, complaint := range complaints {
			issues = append(issues, fhir.Issue{Type: kind, Code: f.Code, Text: name + ": " + complaint})
		}
	}
	slices.SortStableFunc(issues[1:], func(a, b fhir.Issue) int { return strings.Compare(a.Text, b.Text) })
	return issues
}

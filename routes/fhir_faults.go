package routes

import (
	"net/http"
	"slices"
	"strings"

	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/fhir"
	"github.com/vigilhealth/vigil/internal/fhirapi"
	"github.com/vigilhealth/vigil/routes/web"
)

// fhirPath is where resources are served, and looked for.
const fhirPath = web.BasePath + "/fhir/"

// fhirFault says what went wrong as an OperationOutcome, to who asks for FHIR where FHIR is served, or would be. Everybody else gets the contract's
// form. Source: docs/decisions/fhir.md, "FHIR read".
func (a *api) fhirFault(row web.Route, r *http.Request, f *fault.Error) (contentType string, body []byte) {
	if inR4(row.Path) || row.Unknown() && inR4(r.URL.Path) {
		body, err := fhir.OperationOutcome(issuesOf(f)...)
		if err != nil {
			return "", nil
		}
		return fhir.ContentType, body
	}
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

// inR4 reports whether a path is one of the FHIR interface, or one that looks like it, where nothing else is spoken.
func inR4(path string) bool { return path == "/fhir" || strings.HasPrefix(path, "/fhir/") }

// produces lists the media types in which a row's success may come. The FHIR interface chooses its own, since a parameter may say so, too.
func (a *api) produces(row web.Route) []string {
	if inR4(row.Path) {
		return nil
	}
	return a.contract.produces(row)
}

// typesByCode are the kinds of faults whose code says more.
var typesByCode = map[string]string{
	fhirapi.CodeNotSupported: "not-supported", fhirapi.CodeTooCostly: "too-costly", fhirapi.CodeTooLong: "too-long", "token_expired": "expired",
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
	if special, known := typesByCode[f.Code]; known {
		kind = special
	}
	issues := []fhir.Issue{{Type: kind, Code: f.Code, Text: f.Detail}}
	for name, complaints := range f.Fields {
		parameter := name
		if name == fault.NonField {
			parameter = ""
		}
		for _, complaint := range complaints {
			issues = append(issues, fhir.Issue{Type: kind, Code: f.Code, Text: name + ": " + complaint, Parameter: parameter})
		}
	}
	slices.SortStableFunc(issues[1:], func(a, b fhir.Issue) int { return strings.Compare(a.Text, b.Text) })
	return issues
}

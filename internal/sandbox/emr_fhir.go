package sandbox

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	fhirJSON = "application/fhir+json"
	// maxBody bounds the size of a request body.
	maxBody = 1 << 20
	// Page sizes of a search.
	defaultCount, maxCount = 20, 100
)

// resource is a FHIR resource, or a part of one, as JSON.
type resource = map[string]any

// outcome returns an OperationOutcome with one issue. Source: FHIR R4, operationoutcome.html and the IssueType codes.
func outcome(code, diagnostics string) resource {
	severity := "error"
	if code == "exception" || code == "transient" || code == "timeout" {
		severity = "fatal"
	}
	return resource{
		"resourceType": "OperationOutcome",
		"issue":        []resource{{"severity": severity, "code": code, "diagnostics": diagnostics}},
	}
}

func writeOutcome(w http.ResponseWriter, status int, code, diagnostics string) {
	writeJSON(w, status, fhirJSON, outcome(code, diagnostics))
}

// fhirError is the error answer of a FHIR request.
type fhirError struct {
	status            int
	code, diagnostics string
}

func (e *fhirError) write(w http.ResponseWriter) { writeOutcome(w, e.status, e.code, e.diagnostics) }

func unprocessable(code, diagnostics string) *fhirError {
	return &fhirError{http.StatusUnprocessableEntity, code, diagnostics}
}

// writeBundle answers a search with a page of the matches: _count of them from _offset on, and a link to the next page if there is one. A hint names
// the ignored parameters.
func (e *EMR) writeBundle(w http.ResponseWriter, r *http.Request, matches []resource, ignored ...string) {
	count, from := defaultCount, 0
	for _, number := range []struct {
		name string
		into *int
	}{{"_count", &count}, {"_offset", &from}} {
		asked := r.URL.Query().Get(number.name)
		if asked == "" {
			continue
		}
		var err error
		if *number.into, err = strconv.Atoi(asked); err != nil || *number.into < 0 {
			writeOutcome(w, http.StatusBadRequest, "value", number.name+" is not a number from 0")
			return
		}
	}
	count, from = min(count, maxCount), min(from, len(matches))
	to := min(from+count, len(matches))
	links := []resource{{"relation": "self", "url": e.base(r) + r.URL.RequestURI()}}
	if to < len(matches) && count > 0 {
		next := r.URL.Query()
		next.Set("_offset", strconv.Itoa(to))
		links = append(links, resource{"relation": "next", "url": e.base(r) + r.URL.Path + "?" + next.Encode()})
	}
	bundle := resource{
		"resourceType": "Bundle",
		"type":         "searchset",
		"total":        len(matches),
		"link":         links,
	}
	var entries []resource
	for _, match := range matches[from:to] {
		kind, id := match["resourceType"].(string), match["id"].(string)
		entries = append(entries, resource{
			"fullUrl":  e.fhirBase(r) + "/" + kind + "/" + id,
			"resource": match,
			"search":   resource{"mode": "match"},
		})
	}
	if len(ignored) > 0 {
		hint := outcome("not-supported", "Unknown parameter: "+strings.Join(ignored, ", "))
		hint["issue"].([]resource)[0]["severity"] = "warning"
		entries = append(entries, resource{"resource": hint, "search": resource{"mode": "outcome"}})
	}
	if entries != nil { // FHIR JSON has no empty arrays
		bundle["entry"] = entries
	}
	writeJSON(w, http.StatusOK, fhirJSON, bundle)
}

// tokenParam is a FHIR token search value: code, system|code, |code or system|.
type tokenParam struct {
	system, value string
	anySystem     bool
}

func parseToken(text string) tokenParam {
	system, value, both := strings.Cut(text, "|")
	if !both {
		return tokenParam{value: text, anySystem: true}
	}
	return tokenParam{system: system, value: value}
}

func (t tokenParam) matches(system, value string) bool {
	return (t.anySystem || t.system == system) && (t.value == "" || t.value == value)
}

// metadata answers with the CapabilityStatement of this server.
func (e *EMR) metadata(w http.ResponseWriter, r *http.Request) {
	types := []resource{e.profile.Patient.describe("Patient"), e.profile.Observation.describe("Observation")}
	if e.profile.DocumentReference != nil {
		types = append(types, e.profile.DocumentReference.describe("DocumentReference"))
	}
	oauthURIs := resource{
		"url": "http://fhir-registry.smarthealthit.org/StructureDefinition/oauth-uris",
		"extension": []resource{
			{"url": "token", "valueUri": e.base(r) + "/oauth/token"},
			{"url": "authorize", "valueUri": e.base(r) + "/oauth/authorize"},
		},
	}
	writeJSON(w, http.StatusOK, fhirJSON, resource{
		"resourceType":   "CapabilityStatement",
		"status":         "active",
		"date":           "2026-01-01",
		"kind":           "instance",
		"software":       resource{"name": "EMR sandbox"},
		"implementation": resource{"description": "EMR sandbox", "url": e.fhirBase(r)},
		"fhirVersion":    "4.0.1",
		"format":         []string{fhirJSON, "json"},
		"rest": []resource{{
			"mode": "server",
			"security": resource{
				"extension": []resource{oauthURIs},
				"service": []resource{{"coding": []resource{{
					"system": "http://terminology.hl7.org/CodeSystem/restful-security-service",
					"code":   "SMART-on-FHIR",
				}}}},
			},
			"resource": types,
		}},
	})
}

// smartConfiguration answers with the discovery document of SMART App Launch.
func (e *EMR) smartConfiguration(w http.ResponseWriter, r *http.Request) {
	writeJSON(w, http.StatusOK, "application/json", map[string]any{
		"authorization_endpoint":                           e.base(r) + "/oauth/authorize",
		"token_endpoint":                                   e.base(r) + "/oauth/token",
		"token_endpoint_auth_methods_supported":            []string{"private_key_jwt", "client_secret_basic", "client_secret_post"},
		"token_endpoint_auth_signing_alg_values_supported": []string{"RS384"},
		"grant_types_supported":                            []string{"client_credentials", "authorization_code"},
		"scopes_supported":                                 slices.Concat(systemScopes, userScopes, e.chartScopes()),
		"response_types_supported":                         []string{"code"},
		"code_challenge_methods_supported":                 []string{"S256"},
		"capabilities": []string{
			"client-confidential-asymmetric", "client-confidential-symmetric", "permission-offline", "permission-user", "permission-v1",
		},
	})
}

// identifierQuery parses the identifier of a conditional create, "identifier=system|value".
func identifierQuery(header string) (tokenParam, *fhirError) {
	query, err := url.ParseQuery(strings.TrimPrefix(header, "?"))
	token := parseToken(query.Get("identifier"))
	if err != nil || len(query) != 1 || token.value == "" {
		return tokenParam{}, &fhirError{http.StatusPreconditionFailed, "not-supported", "If-None-Exist may only be identifier=[system|]value"}
	}
	return token, nil
}

func instant(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z") }

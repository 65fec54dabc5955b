package fhir

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"
)

// View is the part of a resource that a caller requests by _summary and _elements. The zero value is all of it.
// Source: FHIR R4, search, "Summary" and "Elements".
type View struct {
	summary  string
	elements []string
}

// SetSummary sets the value of _summary of a single resource, or returns what is wrong with it.
func (v *View) SetSummary(text string) (problem string) {
	if !slices.Contains([]string{"true", "text", "data", "false"}, text) {
		return "Must be one of: true, text, data, false."
	}
	v.summary = text
	return ""
}

// SetElements sets the value of _elements: names of elements of the resource, separated by commas, or returns what is wrong with it.
func (v *View) SetElements(resourceType, text string) (problem string) {
	for name := range strings.SplitSeq(text, ",") {
		name = strings.TrimPrefix(strings.TrimSpace(name), resourceType+".")
		if name == "" || strings.IndexFunc(name, func(r rune) bool { return !unicode.IsLetter(r) }) >= 0 || len(name) > 64 {
			return "Must be names of elements, separated by commas."
		}
		v.elements = append(v.elements, name)
	}
	return ""
}

// WithoutElements returns the view of included resources: the names of elements are those of the matches.
func (v View) WithoutElements() View { return View{summary: v.summary} }

// mandatory are the elements that a resource must have, and that each view keeps. Source: FHIR R4, the definitions of the resources.
var mandatory = map[string][]string{
	"AuditEvent": {"type", "recorded", "agent", "source"}, "CodeSystem": {"status", "content"}, "Flag": {"status", "code", "subject"},
	"Observation": {"status", "code"}, "Provenance": {"target", "recorded", "agent"},
	"Questionnaire": {"status"}, "QuestionnaireResponse": {"status"},
}

// summaries are the further elements of a summary, of those that are served. Source: as above, elements marked with a sigma.
var summaries = map[string][]string{
	"AuditEvent":   {"subtype", "action", "period", "outcome", "outcomeDesc", "purposeOfEvent"},
	"CareTeam":     {"identifier", "status", "category", "name", "subject", "encounter", "period", "managingOrganization"},
	"CodeSystem":   {"url", "version", "name", "title", "experimental", "date", "publisher", "caseSensitive", "count"},
	"Device":       {"udiCarrier", "status", "safety"},
	"Flag":         {"identifier", "category", "period", "encounter", "author"},
	"Observation":  {"identifier", "basedOn", "partOf", "subject", "focus", "encounter", "effective", "issued", "performer", "value", "derivedFrom", "component"},
	"Patient":      {"identifier", "active", "name", "telecom", "gender", "birthDate", "deceased", "address", "managingOrganization", "link"},
	"Practitioner": {"identifier", "active", "name", "telecom", "address", "gender", "birthDate"},

	"Questionnaire":         {"url", "version", "name", "title", "experimental", "subjectType", "date", "publisher", "code"},
	"QuestionnaireResponse": {"questionnaire", "subject", "authored", "author", "source"},
}

// choices are the elements with several types: the name of the member ends with the type.
var choices = []string{"deceased", "effective", "value"}

var subsetted = coding{System: "http://terminology.hl7.org/CodeSystem/v3-ObservationValue", Code: "SUBSETTED"}

// Apply returns the requested part of an encoded resource, with the tag that marks a part.
func (v View) Apply(body []byte) ([]byte, error) {
	var members map[string]json.RawMessage
	keep, whole := v.kept()
	if whole {
		return body, nil
	}
	if err := json.Unmarshal(body, &members); err != nil {
		return nil, err
	}
	var resourceType string
	if err := json.Unmarshal(members["resourceType"], &resourceType); err != nil {
		return nil, err
	}
	keep = append(keep, mandatory[resourceType]...)
	if v.summary == "true" {
		keep = append(keep, summaries[resourceType]...)
	}
	if v.summary != "data" || len(v.elements) > 0 {
		for name := range members {
			if !slices.ContainsFunc(keep, func(element string) bool { return isMember(name, element) }) {
				delete(members, name)
			}
		}
	}
	if v.summary == "data" {
		delete(members, "text")
	}
	return tagSubsetted(members)
}

// kept returns the elements that the view names; whole is true if it leaves out nothing.
func (v View) kept() (names []string, whole bool) {
	if len(v.elements) == 0 && (v.summary == "" || v.summary == "false") {
		return nil, true
	}
	names = append([]string{"resourceType", "id", "meta", "implicitRules"}, v.elements...)
	if v.summary == "text" {
		names = append(names, "text")
	}
	return names, false
}

// isMember reports whether a member of the encoded resource is an element, or a type of it.
func isMember(name, element string) bool {
	kind, isChoice := strings.CutPrefix(name, element)
	return isChoice && (kind == "" || slices.Contains(choices, element) && unicode.IsUpper(rune(kind[0])))
}

func tagSubsetted(members map[string]json.RawMessage) ([]byte, error) {
	about := map[string]any{}
	if err := json.Unmarshal(members["meta"], &about); len(members["meta"]) > 0 && err != nil {
		return nil, err
	}
	tags, _ := about["tag"].([]any)
	about["tag"] = append(tags, subsetted)
	encoded, err := json.Marshal(about)
	if err != nil {
		return nil, err
	}
	members["meta"] = encoded
	return json.Marshal(members)
}

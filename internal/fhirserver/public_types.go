package fhirserver

import "github.com/vigilhealth/vigil/internal/fhir"

// PublicType is a type of definitions without health information, which are public and not stored.
type PublicType struct {
	Type string
	// urlParam is the name of the SearchParameter of the canonical URL.
	urlParam string
	// Rows returns the resources with one of the ids and one of the URLs; nil does not restrict.
	Rows func(ids, urls []string) []Row
}

// PublicTypes are Vigil's own codes and the questionnaires.
var PublicTypes = []*PublicType{
	{Type: "CodeSystem", urlParam: "conformance-url", Rows: codeSystemRows}, {Type: "Questionnaire", urlParam: "Questionnaire-url", Rows: questionnaireRows},
}

// params are the search parameters of the type.
func (t *PublicType) params() []fhir.CapabilityParam {
	return []fhir.CapabilityParam{
		{Name: "_id", Definition: definitions + "Resource-id", Type: "token"}, {Name: "url", Definition: definitions + t.urlParam, Type: "uri"},
	}
}

package fhirserver

import (
	"slices"

	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/fhir"
)

// CodeSystemType is the name of the resource type of Vigil's own codes. They hold no health information, so they are public.
const CodeSystemType = "CodeSystem"

// codeSystems are the systems of the codes that HL7, LOINC and others do not define.
var codeSystems = []fhir.CodeSystemValues{
	{ID: "alert-type", Title: "Alert types", Description: "What an alert is about.", Codes: alerts.Types},
	{ID: "alert-level", Title: "Alert levels", Description: "How urgent an alert is.", Codes: []string{string(alerts.Critical), string(alerts.Warning), string(alerts.Normal), string(alerts.NoData)}},
}

// CodeSystems returns the code systems with one of the ids and one of the URLs, as resources; nil does not restrict.
func CodeSystems(ids, urls []string) (rows []Row) {
	for _, values := range codeSystems {
		if (ids == nil || slices.Contains(ids, values.ID)) && (urls == nil || slices.Contains(urls, values.URL())) {
			rows = append(rows, Row{ID: values.ID, Resource: fhir.CodeSystem(values)})
		}
	}
	return rows
}

// codeSystemParams are the search parameters of code systems.
var codeSystemParams = []fhir.CapabilityParam{
	{Name: "_id", Definition: definitions + "Resource-id", Type: "token"},
	{Name: "url", Definition: definitions + "conformance-url", Type: "uri"},
}

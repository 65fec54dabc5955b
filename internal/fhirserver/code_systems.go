package fhirserver

import (
	"slices"

	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/fhir"
)

// codeSystems are the systems of the codes that HL7, LOINC and others do not define.
var codeSystems = []fhir.CodeSystemValues{
	{ID: "alert-type", Title: "Alert types", Description: "What an alert is about.", Codes: alerts.Types},
	{ID: "alert-level", Title: "Alert levels", Description: "How urgent an alert is.", Codes: []string{string(alerts.Critical), string(alerts.Warning), string(alerts.Normal), string(alerts.NoData)}},
}

// codeSystemRows returns the code systems with one of the ids and one of the URLs, as resources; nil does not restrict.
func codeSystemRows(ids, urls []string) (rows []Row) {
	for _, values := range codeSystems {
		if (ids == nil || slices.Contains(ids, values.ID)) && (urls == nil || slices.Contains(urls, values.URL())) {
			rows = append(rows, Row{ID: values.ID, Resource: fhir.CodeSystem(values)})
		}
	}
	return rows
}

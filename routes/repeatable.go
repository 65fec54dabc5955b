package routes

import (
	"slices"
	"strings"
)

// largeBodies are the rows that take larger bodies than others: lists and files of callers who are known by their token.
// Source: docs/decisions/limits.md, "Request size and time".
var largeBodies = map[string]int64{"/billing/claim-responses/": maxResponse, "/ingestion/batch/": maxReadingsBody}

// repeatable reports whether a row leaves the same behind when it is done again: what it stores has a key of its own. Where the service was
// killed before it could answer, the same Idempotency-Key has it done again. Source: docs/decisions/conventions.md, "Idempotency keys".
func repeatable(path string) bool {
	readings := strings.HasPrefix(path, "/ingestion/") && !strings.Contains(path, "{")
	return readings || slices.Contains([]string{
		"/patients/import_selected_from_emr/", "/fhir/process-pending/", "/billing/run/", "/billing/claim-responses/", "/billing/entries/review/",
	}, path)
}

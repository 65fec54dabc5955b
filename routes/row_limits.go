package routes

import (
	"slices"
	"strings"
)

// largeBodies are the body limits of rows that accept larger lists or files from authenticated callers. Source:
// docs/decisions/limits.md, "Request size and time".
var largeBodies = map[string]int64{
	"/billing/claim-responses/": maxResponse, "/billing/claim-responses/preview/": maxPreview, "/ingestion/batch/": maxReadingsBody,
}

// isRepeatable reports whether running a row twice has the same effect as once, because the stored records have keys of
// their own. After a crash before the answer, the same Idempotency-Key runs the request again. Source:
// docs/decisions/conventions.md, "Idempotency keys".
func isRepeatable(path string) bool {
	readings := strings.HasPrefix(path, "/ingestion/") && !strings.Contains(path, "{")
	return readings || slices.Contains([]string{
		"/patients/import_selected_from_emr/", "/fhir/process-pending/", "/billing/run/", "/billing/claim-responses/", "/billing/claim-responses/preview/",
		"/billing/entries/review/",
	}, path)
}

package migrations

import (
	"slices"

	"github.com/pocketbase/pocketbase/core"
)

func init() { register("1795964010_emr_documents.go", addEMRDocuments) }

// addEMRDocuments adds documents as a form of deliveries, and readings that wait for one.
func addEMRDocuments(app core.App) error {
	collection, err := app.FindCollectionByNameOrId("transmissions")
	if err != nil {
		return err
	}
	for name, value := range map[string]string{"form": "document", "waits_for": "way"} {
		if field, ok := collection.Fields.GetByName(name).(*core.SelectField); ok && !slices.Contains(field.Values, value) {
			field.Values = append(field.Values, value)
		}
	}
	if field, ok := collection.Fields.GetByName("observation_type").(*core.SelectField); ok {
		field.Required = false
	}
	if err := app.Save(collection); err != nil {
		return err
	}
	const instant = `"max": 27, "pattern": "^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{6}Z$"`
	return changeCollection(app, "transmissions", []string{
		`{"name": "document_from", "type": "text", "id": "text1795964011", "help": "Start of what the document covers. UTC, as 2026-01-15T13:45:00.000000Z.", ` + instant + `}`,
		`{"name": "document_to", "type": "text", "id": "text1795964012", "help": "Its exclusive end. UTC, as 2026-01-15T13:45:00.000000Z.", ` + instant + `}`,
		`{"name": "document_at", "type": "text", "id": "text1795964013", "help": "When the version last sent was made. UTC, as 2026-01-15T13:45:00.000000Z.", ` + instant + `}`,
		`{"name": "document_version", "type": "number", "id": "number1795964014", "help": "The version last sent, from 1; 0 before the first.", "min": 0, "onlyInt": true}`,
		`{"name": "document_hash", "type": "text", "id": "text1795964015", "help": "SHA-1 of its PDF in base64, as FHIR R4 requires.", "max": 28}`,
		`{"name": "document_change", "type": "number", "id": "number1795964016", "help": "The number of corrections that it follows.", "min": 0, "onlyInt": true}`,
	}, "CREATE INDEX `idx_transmissions_documents` ON `transmissions` (patient, document_from) WHERE form = 'document'")
}

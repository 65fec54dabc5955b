package migrations

import "github.com/pocketbase/pocketbase/core"

func init() { register("1795966001_escalation_documents.go", addEscalationDocuments) }

// addEscalationDocuments adds the escalation that a document is about.
func addEscalationDocuments(app core.App) error {
	return changeCollection(app, "transmissions", []string{
		`{"name": "document_escalation", "type": "text", "id": "text1795966001", "help": "The escalation that the document is about; empty for a month's.", "max": 15}`,
	})
}

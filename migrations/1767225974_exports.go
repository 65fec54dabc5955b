package migrations

import "github.com/pocketbase/pocketbase/core"

// Exports of FHIR resources that clients have asked for. The resources themselves lie in sealed files beside the database.
func init() {
	step("1767225974_exports.go", func(app core.App) error {
		return saveAll(app, newTable("exports").withUUID().phi("file_key", 200, "What its files are sealed under: they go with it.").with(
			requiredText("client", 36, "Who asked for it, and alone may see it."),
			requiredText("request", 10000, "The address that it was asked for under."),
			structured("resource_types", "The resource types that are to be exported, in order."),
			structured("ignored", "What was asked for, is not known, and was to be passed over."),
			instant("changed_since", "Only what has changed since then."),
			requiredChoice("status", "", "queued", "running", "complete", "failed"),
			integer("attempts", "How often it was begun."),
			instant("transaction_time", "The moment whose state its files show."),
			structured("files", "Its files: name, resource type, kind, number of resources."),
			instant("created_at", ""),
			instant("finished_at", ""),
			instant("expires_at", "From when on it is gone."),
		).index("status", false, "status, created_at", "").index("client", false, "client", ""))
	})
}

package hooks

import (
	"cmp"
	"errors"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/rules"
)

// schemaRefused is what the dashboard shows to whoever tries.
const schemaRefused = "Collections, their fields and their rules belong to the program and change with its version only."

// guardSchema refuses every change of a collection through PocketBase's API, whoever asks: one rule that is not nil would publish patients
// until somebody sees it. The attempt is on record though it is refused. Source: docs/decisions/security.md, "Rules that do not drift".
func guardSchema(app core.App, h *hooks) {
	app.OnCollectionCreateRequest().BindFunc(h.refuseCollection)
	app.OnCollectionUpdateRequest().BindFunc(h.refuseCollection)
	app.OnCollectionDeleteRequest().BindFunc(h.refuseCollection)
	app.OnCollectionsImportRequest().BindFunc(func(e *core.CollectionsImportRequestEvent) error {
		return h.refuseAttempt(e.RequestEvent, audit.RulesRefused, "", audit.Changes{"import": {New: len(e.CollectionsData)}}, schemaRefused)
	})
}

// refuseCollection records what would have become of the collection; of one that would go, its name.
func (h *hooks) refuseCollection(e *core.CollectionRequestEvent) error {
	changes := audit.Changes{}
	if e.Request.Method != "DELETE" {
		different, err := rules.Wished(e.App, e.Collection)
		if err != nil {
			return err
		}
		changes = rules.Changes(different)
	}
	return h.refuseAttempt(e.RequestEvent, audit.RulesRefused, cmp.Or(stored(e.App, e.Collection), e.Collection.Name), changes, schemaRefused)
}

// stored is the name that a collection bears in the database, whatever the request calls it.
func stored(app core.App, c *core.Collection) string {
	if known, err := app.FindCachedCollectionByNameOrId(c.Id); err == nil {
		return known.Name
	}
	return ""
}

// refuseAttempt records what was tried and refuses it.
func (h *hooks) refuseAttempt(e *core.RequestEvent, event audit.Event, collection string, changes audit.Changes, sentence string) error {
	resource := audit.ResourceCollection
	if event == audit.SettingsRefused {
		resource = audit.ResourceSettings
	}
	recorded := audit.Append(e.App, audit.Entry{
		Event: event, Outcome: audit.MinorFailure, Actor: requester(e), ResourceType: resource, ResourceID: collection, Changes: changes,
	}, h.Clock())
	return errors.Join(e.ForbiddenError(sentence, nil), recorded)
}

// requester is the superuser who asks; nobody else gets this far.
func requester(e *core.RequestEvent) audit.Actor {
	if e.Auth == nil {
		return audit.Anonymous(originOf(e))
	}
	return audit.Superuser(e.Auth.Id, e.Auth.Email(), originOf(e))
}

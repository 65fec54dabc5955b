package hooks

import (
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// webhookChanged has one that was removed in the dashboard served no more.
func (h *hooks) webhookChanged(e *core.RecordEvent) error {
	if h.WebhookChanged != nil {
		h.WebhookChanged(e.Record.Id)
	}
	return e.Next()
}

// guardWebhooks leaves what requests are signed with out of what PocketBase shows: it shows superusers what is sealed, opened. An address may hold a
// secret of the receiver's.
func guardWebhooks(app core.App) {
	app.OnRecordEnrich(collections.Webhooks).BindFunc(func(e *core.RecordEnrichEvent) error {
		record := e.Record // the event goes on to the next one
		if err := e.Next(); err != nil {
			return err
		}
		record.Hide("url", "secret", "previous_secret")
		return nil
	})
}

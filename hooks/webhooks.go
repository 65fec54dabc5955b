package hooks

import "github.com/pocketbase/pocketbase/core"

// webhookChanged notifies the webhook workers of a webhook deleted in the dashboard.
func (h *hooks) webhookChanged(e *core.RecordEvent) error {
	if h.WebhookChanged != nil {
		h.WebhookChanged(e.Record.Id)
	}
	return e.Next()
}

package hooks

import "github.com/pocketbase/pocketbase/core"

// webhookChanged has one that was removed in the dashboard served no more.
func (h *hooks) webhookChanged(e *core.RecordEvent) error {
	if h.WebhookChanged != nil {
		h.WebhookChanged(e.Record.Id)
	}
	return e.Next()
}

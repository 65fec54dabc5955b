package migrations

import "github.com/pocketbase/pocketbase/core"

func init() { register("1795951010_webhook_owners.go", addWebhookOwners) }

// addWebhookOwners adds the client that made a webhook: only it and administrators see and change the webhook.
func addWebhookOwners(app core.App) error {
	return changeCollection(app, "webhooks", []string{
		`{"name": "client", "type": "text", "id": "text2716401677", "help": "The client that made it; empty for an administrator.", "max": 36}`,
	})
}

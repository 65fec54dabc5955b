package migrations

import "github.com/pocketbase/pocketbase/core"

func init() { register("1795970000_portal_messages.go", addPortalMessages) }

// addPortalMessages adds the portal to the channels of messages.
func addPortalMessages(app core.App) error {
	return changeCollection(app, "messages", []string{
		`{"name": "channel", "type": "select", "id": "select1795960013", "maxSelect": 1, "required": true, "values": ["sms", "voice", "portal"]}`,
	})
}

package hooks

import (
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// forgetClient lets the check of access tokens read the client anew, so that one that was removed in the dashboard is out from the next request on.
func (h *hooks) forgetClient(e *core.RecordEvent) error {
	if h.ForgetClient != nil {
		h.ForgetClient(e.Record.Id)
	}
	return e.Next()
}

// guardClients leaves what proves a client, and what its tokens are made of, out of what PocketBase shows: it shows superusers what is hidden, too.
func guardClients(app core.App) {
	app.OnRecordEnrich(collections.Clients).BindFunc(func(e *core.RecordEnrichEvent) error {
		record := e.Record // the event goes on to the next one
		if err := e.Next(); err != nil {
			return err
		}
		record.Hide("secret_hash", "token_key")
		return nil
	})
}

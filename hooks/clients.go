package hooks

import "github.com/pocketbase/pocketbase/core"

// evictClient removes the client from the cache of access tokens, so a client deleted in the dashboard is rejected from the next request on.
func (h *hooks) evictClient(e *core.RecordEvent) error {
	if h.EvictClient != nil {
		h.EvictClient(e.Record.Id)
	}
	return e.Next()
}

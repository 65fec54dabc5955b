package hooks

import "github.com/pocketbase/pocketbase/core"

// forgetClient lets the check of access tokens read the client anew, so that one that was removed in the dashboard is out from the next request on.
func (h *hooks) forgetClient(e *core.RecordEvent) error {
	if h.ForgetClient != nil {
		h.ForgetClient(e.Record.Id)
	}
	return e.Next()
}

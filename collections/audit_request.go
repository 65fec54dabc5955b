package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// LastAudited is when an event was last recorded; zero for never.
func LastAudited(app core.App, event string) (time.Time, error) {
	var at string
	err := app.DB().NewQuery(`SELECT recorded_at FROM audit_log WHERE event = {:event} ORDER BY id DESC LIMIT 1`).
		Bind(dbx.Params{"event": event}).Row(&at)
	return ParseInstant(at), wrap(unlessMissing(err), "find the last %s", event)
}

// CausingRequest is the id of the request that the audit trail first names for an object; "" when no request caused it.
func CausingRequest(app core.App, resourceType, resourceID string) (requestID string, err error) {
	err = app.DB().NewQuery(`SELECT request_id FROM audit_log WHERE resource_type = {:type} AND resource_id = {:id} ORDER BY id LIMIT 1`).
		Bind(dbx.Params{"type": resourceType, "id": resourceID}).Row(&requestID)
	return requestID, wrap(unlessMissing(err), "find the causing request")
}

package collections

import (
	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// AuditMark is what of an audit row says that something changed, and whose it was.
type AuditMark struct {
	ID           string `db:"id"`
	Action       string `db:"action"`
	Outcome      string `db:"outcome"`
	ResourceType string `db:"resource_type"`
	ResourceID   string `db:"resource_id"`
	Patient      string `db:"patient"`
}

// LastAuditID is the id of the newest committed row, "" for an empty log. It reads beside the writer and never waits for it.
func LastAuditID(app core.App) (id string, err error) {
	err = app.ConcurrentDB().NewQuery(`SELECT id FROM audit_log ORDER BY id DESC LIMIT 1`).Row(&id)
	return id, wrap(unlessMissing(err), "read last audit id")
}

// AuditMarksAfter reads what was committed after a row, oldest first, at most limit rows.
func AuditMarksAfter(app core.App, afterID string, limit int) (marks []AuditMark, err error) {
	err = app.ConcurrentDB().NewQuery(`SELECT id, action, outcome, resource_type, resource_id, patient FROM audit_log
		WHERE id > {:after} ORDER BY id LIMIT +{:limit}`).Bind(dbx.Params{"after": afterID, "limit": limit}).All(&marks)
	return marks, wrap(err, "read audit marks")
}

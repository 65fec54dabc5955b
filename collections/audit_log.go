package collections

import (
	"fmt"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// AuditRow is one row of the audit log as stored: Reason and Changes are ciphertext, "" is absence.
type AuditRow struct {
	ID           string `db:"id"`
	RecordedAt   string `db:"recorded_at"`
	Event        string `db:"event"`
	Action       string `db:"action"`
	Outcome      string `db:"outcome"`
	ActorType    string `db:"actor_type"`
	ActorID      string `db:"actor_id"`
	ActorEmail   string `db:"actor_email"`
	ActorRole    string `db:"actor_role"`
	ResourceType string `db:"resource_type"`
	ResourceID   string `db:"resource_id"`
	Patient      string `db:"patient"`
	SourceIP     string `db:"source_ip"`
	Client       string `db:"client"`
	RequestID    string `db:"request_id"`
	Reason       string `db:"reason"`
	Changes      string `db:"changes"`
	PrevHash     string `db:"prev_hash"`
	Hash         string `db:"hash"`
}

// Number is the row's place in the log, from 1; 0 when its id is not one of ours.
func (r AuditRow) Number() int64 { return Number(r.ID) }

const auditColumns = `id, recorded_at, event, action, outcome, actor_type, actor_id, actor_email, actor_role, resource_type,
	resource_id, patient, source_ip, client, request_id, reason, changes, prev_hash, hash`

// AuditHead reads id and hash of the last row; both are "" for an empty log. Inside a transaction it sees that
// transaction's rows.
func AuditHead(app core.App) (id, hash string, err error) {
	err = app.NonconcurrentDB().NewQuery(`SELECT id, hash FROM audit_log ORDER BY id DESC LIMIT 1`).Row(&id, &hash)
	return id, hash, wrap(unlessMissing(err), "read audit head")
}

var insertAudit = NewRowInsert("audit_log", auditColumns, "")

// InsertAuditRows inserts rows in their order.
func InsertAuditRows(tx core.App, rows []AuditRow) error {
	values := make([][]any, len(rows))
	for i, r := range rows {
		values[i] = []any{
			r.ID, r.RecordedAt, r.Event, r.Action, r.Outcome, r.ActorType, r.ActorID, r.ActorEmail, r.ActorRole, r.ResourceType,
			r.ResourceID, r.Patient, r.SourceIP, r.Client, r.RequestID, r.Reason, r.Changes, r.PrevHash, r.Hash,
		}
	}
	return wrap(insertAudit.Store(tx, values), "insert audit rows")
}

// AuditRows reads rows in order of id, after one id and up to another, at most limit of them.
func AuditRows(app core.App, afterID, upToID string, limit int) ([]AuditRow, error) {
	var rows []AuditRow
	err := app.DB().NewQuery(`SELECT ` + auditColumns + ` FROM audit_log WHERE id > {:after} AND id <= {:upto} ORDER BY id LIMIT +{:limit}`).
		Bind(dbx.Params{"after": afterID, "upto": upToID, "limit": limit}).All(&rows)
	return rows, wrap(err, "read audit rows")
}

// CountAllAudit is how many rows there are: none is ever removed, and their numbers follow one another.
func CountAllAudit(app core.App) (count int, err error) {
	var first, last string
	err = app.DB().NewQuery(`SELECT COALESCE((SELECT MIN(id) FROM audit_log), ''), COALESCE((SELECT MAX(id) FROM audit_log), '')`).Row(&first, &last)
	if err != nil {
		return 0, fmt.Errorf("count all audit rows: %w", err)
	}
	if last == "" {
		return 0, nil
	}
	return int(Number(last) - Number(first) + 1), nil
}

// CountAudit counts the rows that match.
func CountAudit(app core.App, where dbx.Expression) (count int, err error) {
	err = app.DB().Select("COUNT(*)").From(AuditLog).Where(where).Row(&count)
	return count, wrap(err, "count audit rows")
}

// SelectAudit reads matching rows, the newest first.
func SelectAudit(app core.App, where dbx.Expression, offset, limit int) (rows []AuditRow, err error) {
	err = selectAudit(app).Where(where).OrderBy("id DESC").Offset(int64(offset)).Limit(int64(limit)).All(&rows)
	return rows, wrap(err, "select audit rows")
}

// SelectAuditAfter reads matching rows in order of id, after one id.
func SelectAuditAfter(app core.App, where dbx.Expression, afterID string, limit int) (rows []AuditRow, err error) {
	err = selectAudit(app).Where(where).AndWhere(dbx.NewExp("id > {:after}", dbx.Params{"after": afterID})).OrderBy("id").Limit(int64(limit)).All(&rows)
	return rows, wrap(err, "select audit rows")
}

func selectAudit(app core.App) *dbx.SelectQuery {
	return app.DB().Select("id", "recorded_at", "event", "action", "outcome", "actor_type", "actor_id", "actor_email", "actor_role", "resource_type",
		"resource_id", "patient", "source_ip", "client", "request_id", "reason", "changes", "prev_hash", "hash").From(AuditLog)
}

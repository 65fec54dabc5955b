package collections

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

// AuditRow is one row of the audit log as stored. Reason and Changes are ciphertext; "" means absent.
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
	ActorName    string `db:"actor_name"`
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

// Number is the row's position in the log, from 1, or 0 for an id of another form.
func (r AuditRow) Number() int64 { return Number(r.ID) }

const auditColumns = `id, recorded_at, event, action, outcome, actor_type, actor_id, actor_email, actor_role, actor_name, resource_type,
	resource_id, patient, source_ip, client, request_id, reason, changes, prev_hash, hash`

// AuditHead returns id and hash of the last row, or "" for an empty log. In a transaction it includes the transaction's rows.
func AuditHead(app core.App) (id, hash string, err error) {
	err = app.NonconcurrentDB().NewQuery(`SELECT id, hash FROM audit_log ORDER BY id DESC LIMIT 1`).Row(&id, &hash)
	return id, hash, wrap(IgnoreNotFound(err), "read audit head")
}

var insertAudit = NewRowInsert("audit_log", auditColumns, "")

// InsertAuditRows inserts rows in order.
func InsertAuditRows(tx core.App, rows []AuditRow) error {
	values := make([][]any, len(rows))
	for i, r := range rows {
		values[i] = []any{
			r.ID, r.RecordedAt, r.Event, r.Action, r.Outcome, r.ActorType, r.ActorID, r.ActorEmail, r.ActorRole, r.ActorName, r.ResourceType,
			r.ResourceID, r.Patient, r.SourceIP, r.Client, r.RequestID, r.Reason, r.Changes, r.PrevHash, r.Hash,
		}
	}
	return wrap(insertAudit.Store(tx, values), "insert audit rows")
}

// AuditRows returns up to limit rows in order of id, after one id and up to another. It also reads databases of earlier versions, which have
// no column for the actor's name.
func AuditRows(app core.App, afterID, upToID string, limit int) ([]AuditRow, error) {
	named, err := queryValue[bool](app, "look for the column actor_name",
		`SELECT EXISTS (SELECT 1 FROM pragma_table_info('audit_log') WHERE name = 'actor_name')`, nil)
	if err != nil {
		return nil, err
	}
	columns := auditColumns
	if !named {
		columns = strings.Replace(columns, "actor_name", "'' AS actor_name", 1)
	}
	return queryAll[AuditRow](app, "read audit rows",
		`SELECT `+columns+` FROM audit_log WHERE id > {:after} AND id <= {:upto} ORDER BY id LIMIT +{:limit}`,
		dbx.Params{"after": afterID, "upto": upToID, "limit": limit})
}

// CountAllAudit returns the number of rows. It subtracts ids, because rows are consecutive and never deleted.
func CountAllAudit(app core.App) (count int, err error) {
	var first, last string
	err = app.DB().NewQuery(`SELECT COALESCE((SELECT MIN(id) FROM audit_log), ''), COALESCE((SELECT MAX(id) FROM audit_log), '')`).Row(&first, &last)
	if err != nil || last == "" {
		return 0, wrap(err, "count all audit rows")
	}
	return int(Number(last) - Number(first) + 1), nil
}

// CountAudit counts matching rows.
func CountAudit(app core.App, where dbx.Expression) (count int, err error) {
	err = app.DB().Select("COUNT(*)").From(AuditLog).Where(where).Row(&count)
	return count, wrap(err, "count audit rows")
}

// SelectAudit returns matching rows, newest first.
func SelectAudit(app core.App, where dbx.Expression, offset, limit int) (rows []AuditRow, err error) {
	err = selectAudit(app).Where(where).OrderBy("id DESC").Offset(int64(offset)).Limit(int64(limit)).All(&rows)
	return rows, wrap(err, "select audit rows")
}

// SelectAuditAfter returns matching rows in order of id, after one id.
func SelectAuditAfter(app core.App, where dbx.Expression, afterID string, limit int) (rows []AuditRow, err error) {
	err = selectAudit(app).Where(where).AndWhere(dbx.NewExp("id > {:after}", dbx.Params{"after": afterID})).OrderBy("id").Limit(int64(limit)).All(&rows)
	return rows, wrap(err, "select audit rows")
}

func selectAudit(app core.App) *dbx.SelectQuery {
	return app.DB().Select(strings.Fields(strings.ReplaceAll(auditColumns, ",", " "))...).From(AuditLog)
}

// AuditState is the stored state of the audit trail: the number of entries and the last hash, the last entry with an unkeyed hash and that
// hash, and a seal over all four.
type AuditState struct {
	Entries     int64  `db:"entries"`
	Head        string `db:"head"`
	Unkeyed     int64  `db:"unkeyed"`
	UnkeyedHead string `db:"unkeyed_head"`
	Seal        string `db:"seal"`
}

// AuditEnd is the end of the trail: its last row and its stored state, read at one moment.
type AuditEnd struct {
	ID   string `db:"last_id"` // "" for an empty trail
	Hash string `db:"last_hash"`
	AuditState
	HasState bool `db:"has_state"`
}

// ReadAuditEnd reads the end of the trail. In a transaction it includes the transaction's rows.
func ReadAuditEnd(app core.App) (end AuditEnd, err error) {
	err = app.NonconcurrentDB().NewQuery(`SELECT COALESCE(last.id, '') AS last_id, COALESCE(last.hash, '') AS last_hash,
		state.id IS NOT NULL AS has_state, COALESCE(state.entries, 0) AS entries, COALESCE(state.head, '') AS head,
		COALESCE(state.unkeyed, 0) AS unkeyed, COALESCE(state.unkeyed_head, '') AS unkeyed_head, COALESCE(state.seal, '') AS seal
		FROM (SELECT 1) LEFT JOIN (SELECT id, hash FROM audit_log ORDER BY id DESC LIMIT 1) AS last LEFT JOIN audit_state AS state`).One(&end)
	return end, wrap(err, "read the end of the audit trail")
}

// HasAuditState reports whether the schema has the state table. A database of an earlier version has none until it is opened.
func HasAuditState(app core.App) (bool, error) {
	return queryValue[bool](app, "look for the audit trail's state",
		`SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'audit_state')`, nil)
}

// ReadAuditState reads the state and the id of the last row, which is all that an append needs; a not-found error means that there is no
// state. It is short because every transaction runs it.
func ReadAuditState(tx core.App) (end AuditEnd, err error) {
	err = tx.NonconcurrentDB().NewQuery(`SELECT entries, head, unkeyed, unkeyed_head, seal, COALESCE((SELECT MAX(id) FROM audit_log), '') AS last_id FROM audit_state`).
		Row(&end.Entries, &end.Head, &end.Unkeyed, &end.UnkeyedHead, &end.Seal, &end.ID)
	end.HasState = err == nil
	return end, wrap(err, "read the audit trail's state")
}

// ReadAuditEndWithoutState is ReadAuditEnd for a database without the state table.
func ReadAuditEndWithoutState(app core.App) (end AuditEnd, err error) {
	end.ID, end.Hash, err = AuditHead(app)
	return end, err
}

// InsertAuditState stores the first state.
func InsertAuditState(tx core.App, s AuditState) error {
	return exec(tx, "store the audit trail's state", `INSERT INTO audit_state (id, entries, head, unkeyed, unkeyed_head, seal) VALUES (1, {:entries}, {:head}, {:unkeyed}, {:unkeyed_head}, {:seal})`,
		dbx.Params{"entries": s.Entries, "head": s.Head, "unkeyed": s.Unkeyed, "unkeyed_head": s.UnkeyedHead, "seal": s.Seal})
}

// UpdateAuditState stores the new end of the trail.
func UpdateAuditState(tx core.App, s AuditState) error {
	return exec(tx, "store the audit trail's state", `UPDATE audit_state SET entries = {:entries}, head = {:head}, seal = {:seal}`,
		dbx.Params{"entries": s.Entries, "head": s.Head, "seal": s.Seal})
}

// AuditKeys are the keys of the audit trail: one for the hashes of rows, one for the seal of the state.
type AuditKeys struct{ Row, State []byte }

// auditKeys caches the keys derived from the process-wide sealer, because every entry needs them. It is a process-wide variable as sealer is,
// and is replaced when the sealer changes.
var auditKeys atomic.Pointer[cachedAuditKeys]

type cachedAuditKeys struct {
	sealer *phi.Sealer
	AuditKeys
}

// LoadAuditKeys derives the keys of the audit trail from the database's index key, so they survive every key rotation.
func LoadAuditKeys() (AuditKeys, error) {
	s := sealer.Load()
	if s == nil {
		return AuditKeys{}, errNoSealer
	}
	if known := auditKeys.Load(); known != nil && known.sealer == s {
		return known.AuditKeys, nil
	}
	row, err := s.DeriveKey("audit chain")
	if err != nil {
		return AuditKeys{}, err
	}
	state, err := s.DeriveKey("audit state")
	if err != nil {
		return AuditKeys{}, err
	}
	auditKeys.Store(&cachedAuditKeys{s, AuditKeys{row, state}})
	return AuditKeys{row, state}, nil
}

// Format hides the keys.
func (AuditKeys) Format(s fmt.State, _ rune) { _, _ = s.Write([]byte("[secret]")) }

// LogValue reveals nothing.
func (AuditKeys) LogValue() slog.Value { return slog.StringValue("[secret]") }

// IsInUse reports whether the database has data: an audit entry, a user, a patient, an event or an issued number. The sequences of the
// threshold templates and the triage list come with the schema and do not count.
func IsInUse(app core.App) (bool, error) {
	return queryValue[bool](app, "look for data",
		`SELECT EXISTS (SELECT 1 FROM audit_log) OR EXISTS (SELECT 1 FROM users) OR EXISTS (SELECT 1 FROM patients)
		OR EXISTS (SELECT 1 FROM sequences WHERE name NOT IN ('threshold_templates', 'triage_list')) OR EXISTS (SELECT 1 FROM gateway_events)`, nil)
}

// PredatesAuditKeys reports whether the index key was sealed before audit trails had keys, so that no state is expected. An attacker without
// the keys cannot create that form, but could restore an earlier copy as long as its key is in the ring. The trail does not work without the
// index key.
func PredatesAuditKeys(app core.App) (bool, error) {
	s := sealer.Load()
	if s == nil {
		return false, errNoSealer
	}
	sealed, _, err := sealedIndexKey(app)
	return err == nil && s.PredatesAuditKeys(sealed), err
}

// MarkAuditKeys seals the index key again in the form that requires a state.
func MarkAuditKeys(tx core.App) error {
	s := sealer.Load()
	if s == nil {
		return errNoSealer
	}
	sealed, _, err := sealedIndexKey(tx)
	if err != nil || !s.PredatesAuditKeys(sealed) {
		return err
	}
	return resealIndexKey(tx, s.KeyRing, sealed)
}

// AuditFilter selects rows of the audit log; zero fields select all. From and To are inclusive.
type AuditFilter struct {
	Event, Outcome           string
	Actor                    string // id or email address
	PatientID                string
	ResourceType, ResourceID string
	From, To                 time.Time
}

// Where returns the filter as a condition.
func (f AuditFilter) Where() dbx.Expression {
	conditions := Conditions{}.Equal("event", f.Event).Equal("outcome", f.Outcome).Equal("patient", f.PatientID).
		Equal("resource_type", f.ResourceType).Equal("resource_id", f.ResourceID)
	// Only email addresses contain @, so one column and its index are enough.
	if strings.Contains(f.Actor, "@") {
		conditions = conditions.Equal("actor_email", f.Actor).And("actor_email != ''") // the condition of the partial index
	} else {
		conditions = conditions.Equal("actor_id", f.Actor)
	}
	return AllOf(conditions.Between("recorded_at", f.From, f.To))
}

// AuditOfPatient selects the rows about a patient, and rows of the given events, which may name the patient in a sealed list.
func AuditOfPatient(patientID string, events []string, from, to time.Time) dbx.Expression {
	lists := dbx.And(dbx.HashExp{"patient": ""}, dbx.NewExp("changes != ''"), AnyOf("event", events))
	return dbx.And(AuditFilter{From: from, To: to}.Where(), dbx.Or(dbx.HashExp{"patient": patientID}, lists))
}

// auditTriggers are the triggers that keep the audit trail append-only and its state in place, by table and name, exactly as the migrations
// create them. The last text is current; earlier ones are of folders and backups that have not been migrated.
var auditTriggers = map[string]map[string][]string{
	"audit_log": {
		"audit_log_no_update":  {`CREATE TRIGGER audit_log_no_update BEFORE UPDATE ON audit_log BEGIN SELECT RAISE(ABORT,'audit_log is append-only'); END`},
		"audit_log_no_delete":  {`CREATE TRIGGER audit_log_no_delete BEFORE DELETE ON audit_log BEGIN SELECT RAISE(ABORT,'audit_log is append-only'); END`},
		"audit_log_no_replace": {noReplace + `BEGIN SELECT RAISE(ABORT,'audit_log is append-only'); END`, noReplace + `BEGIN SELECT RAISE(FAIL,'audit_log is append-only'); END`},
	},
	"audit_state": {
		"audit_state_no_delete": {`CREATE TRIGGER audit_state_no_delete BEFORE DELETE ON audit_state BEGIN SELECT RAISE(ABORT,'audit_state is kept'); END`},
		"audit_state_no_replace": {`CREATE TRIGGER audit_state_no_replace BEFORE INSERT ON audit_state WHEN EXISTS (SELECT 1 FROM audit_state)
			BEGIN SELECT RAISE(ABORT,'audit_state is kept'); END`},
	},
}

const noReplace = `CREATE TRIGGER audit_log_no_replace BEFORE INSERT ON audit_log WHEN EXISTS (SELECT 1 FROM audit_log WHERE id = NEW.id) `

// ErrAuditTriggers reports a missing, changed or additional trigger on the audit trail.
var ErrAuditTriggers = errors.New("the audit log's triggers are missing or changed")

// CheckAuditTriggers compares the triggers of the audit trail with those of the migrations, by text. It returns [ErrAuditTriggers] if one is
// missing, changed or unknown. PocketBase's schema snapshots do not include triggers.
func CheckAuditTriggers(app core.App) error {
	var found []struct {
		Table string `db:"tbl_name"`
		Name  string `db:"name"`
		SQL   string `db:"sql"`
	}
	err := app.DB().NewQuery(`SELECT lower(tbl_name) AS tbl_name, name, COALESCE(sql, '') AS sql FROM sqlite_master
		WHERE type = 'trigger' AND lower(tbl_name) IN ('audit_log', 'audit_state') ORDER BY name`).All(&found)
	if err != nil {
		return fmt.Errorf("list the audit log's triggers: %w", err)
	}
	hasState, err := HasAuditState(app)
	if err != nil {
		return err
	}
	missing := map[string]bool{}
	for table, guards := range auditTriggers {
		for name := range guards {
			missing[name] = table == "audit_log" || hasState
		}
	}
	var wrong []string
	for _, trigger := range found {
		matches := func(text string) bool { return collapseSpace(trigger.SQL) == collapseSpace(text) }
		if !slices.ContainsFunc(auditTriggers[trigger.Table][trigger.Name], matches) {
			wrong = append(wrong, trigger.Name+" is unexpected")
		}
		missing[trigger.Name] = false
	}
	for name, isMissing := range missing {
		if isMissing {
			wrong = append(wrong, name+" is missing")
		}
	}
	if len(wrong) > 0 {
		slices.Sort(wrong)
		return fmt.Errorf("%w: trigger %s", ErrAuditTriggers, strings.Join(wrong, ", trigger "))
	}
	return nil
}

// collapseSpace replaces each run of white space with one space.
func collapseSpace(text string) string { return strings.Join(strings.Fields(text), " ") }

// LastAudited returns when an event was last recorded, or zero.
func LastAudited(app core.App, event string) (time.Time, error) {
	at, err := queryValue[string](app, "find the last "+event, `SELECT recorded_at FROM audit_log WHERE event = {:event} ORDER BY id DESC LIMIT 1`,
		dbx.Params{"event": event})
	return ParseInstant(at), IgnoreNotFound(err)
}

// CausingRequest returns the id of the first request that the audit trail records for an object, or "".
func CausingRequest(app core.App, resourceType, resourceID string) (requestID string, err error) {
	err = app.DB().NewQuery(`SELECT request_id FROM audit_log WHERE resource_type = {:type} AND resource_id = {:id} ORDER BY id LIMIT 1`).
		Bind(dbx.Params{"type": resourceType, "id": resourceID}).Row(&requestID)
	return requestID, wrap(IgnoreNotFound(err), "find the causing request")
}

// AuditSummary names the action and the object of an audit row.
type AuditSummary struct {
	ID           string `db:"id"`
	Action       string `db:"action"`
	Outcome      string `db:"outcome"`
	ResourceType string `db:"resource_type"`
	ResourceID   string `db:"resource_id"`
	Patient      string `db:"patient"`
}

// LastAuditID returns the id of the newest committed row, or "". It does not wait for the writer.
func LastAuditID(app core.App) (id string, err error) {
	err = app.ConcurrentDB().NewQuery(`SELECT id FROM audit_log ORDER BY id DESC LIMIT 1`).Row(&id)
	return id, wrap(IgnoreNotFound(err), "read last audit id")
}

// AuditSummariesAfter returns up to limit rows committed after a row, oldest first.
func AuditSummariesAfter(app core.App, afterID string, limit int) (marks []AuditSummary, err error) {
	err = app.ConcurrentDB().NewQuery(`SELECT id, action, outcome, resource_type, resource_id, patient FROM audit_log
		WHERE id > {:after} ORDER BY id LIMIT +{:limit}`).Bind(dbx.Params{"after": afterID, "limit": limit}).All(&marks)
	return marks, wrap(err, "read audit marks")
}

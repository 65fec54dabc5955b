package collections

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
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

// Number is the row's place in the log, from 1; 0 when its id is not one of ours.
func (r AuditRow) Number() int64 { return Number(r.ID) }

const auditColumns = `id, recorded_at, event, action, outcome, actor_type, actor_id, actor_email, actor_role, actor_name, resource_type,
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
			r.ID, r.RecordedAt, r.Event, r.Action, r.Outcome, r.ActorType, r.ActorID, r.ActorEmail, r.ActorRole, r.ActorName, r.ResourceType,
			r.ResourceID, r.Patient, r.SourceIP, r.Client, r.RequestID, r.Reason, r.Changes, r.PrevHash, r.Hash,
		}
	}
	return wrap(insertAudit.Store(tx, values), "insert audit rows")
}

// AuditRows reads rows in order of id, after one id and up to another, at most limit of them. It reads databases, too, that a new version has not
// opened yet, whose rows name no actor.
func AuditRows(app core.App, afterID, upToID string, limit int) ([]AuditRow, error) {
	named, err := queryValue[bool](app, "look for the names of actors",
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

// CountAllAudit is how many rows there are: none is ever removed, and their numbers follow one another.
func CountAllAudit(app core.App) (count int, err error) {
	var first, last string
	err = app.DB().NewQuery(`SELECT COALESCE((SELECT MIN(id) FROM audit_log), ''), COALESCE((SELECT MAX(id) FROM audit_log), '')`).Row(&first, &last)
	if err != nil || last == "" {
		return 0, wrap(err, "count all audit rows")
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
	return app.DB().Select(strings.Fields(strings.ReplaceAll(auditColumns, ",", " "))...).From(AuditLog)
}

// AuditState is what the database itself keeps about its audit trail, as stored: how many entries it has and the hash of the last, up to which
// entry the hashes have no key and the hash there, and a seal over all four.
type AuditState struct {
	Entries     int64  `db:"entries"`
	Head        string `db:"head"`
	Unkeyed     int64  `db:"unkeyed"`
	UnkeyedHead string `db:"unkeyed_head"`
	Seal        string `db:"seal"`
}

// AuditEnd is where the trail ends, by its last row and by what its state says of it, both of one moment.
type AuditEnd struct {
	ID   string `db:"last_id"` // "" for an empty trail
	Hash string `db:"last_hash"`
	AuditState
	HasState bool `db:"has_state"`
}

// ReadAuditEnd reads where the trail ends. Inside a transaction it sees that transaction's rows.
func ReadAuditEnd(app core.App) (end AuditEnd, err error) {
	err = app.NonconcurrentDB().NewQuery(`SELECT COALESCE(last.id, '') AS last_id, COALESCE(last.hash, '') AS last_hash,
		state.id IS NOT NULL AS has_state, COALESCE(state.entries, 0) AS entries, COALESCE(state.head, '') AS head,
		COALESCE(state.unkeyed, 0) AS unkeyed, COALESCE(state.unkeyed_head, '') AS unkeyed_head, COALESCE(state.seal, '') AS seal
		FROM (SELECT 1) LEFT JOIN (SELECT id, hash FROM audit_log ORDER BY id DESC LIMIT 1) AS last LEFT JOIN audit_state AS state`).One(&end)
	return end, wrap(err, "read the end of the audit trail")
}

// HasAuditState reports whether the schema has a state by now; a database that a new version has not opened yet has none.
func HasAuditState(app core.App) (bool, error) {
	return queryValue[bool](app, "look for the audit trail's state",
		`SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'audit_state')`, nil)
}

// ReadAuditState reads the state of the trail and the id of its last row, which is all that an append needs; a missing row when there is
// none. It is asked in every transaction, so it is short.
func ReadAuditState(tx core.App) (end AuditEnd, err error) {
	err = tx.NonconcurrentDB().NewQuery(`SELECT entries, head, unkeyed, unkeyed_head, seal, COALESCE((SELECT MAX(id) FROM audit_log), '') AS last_id FROM audit_state`).
		Row(&end.Entries, &end.Head, &end.Unkeyed, &end.UnkeyedHead, &end.Seal, &end.ID)
	end.HasState = err == nil
	return end, wrap(err, "read the audit trail's state")
}

// ReadAuditEndBefore is ReadAuditEnd for a database whose schema has no state yet.
func ReadAuditEndBefore(app core.App) (end AuditEnd, err error) {
	end.ID, end.Hash, err = AuditHead(app)
	return end, err
}

// BeginAuditState stores the first state.
func BeginAuditState(tx core.App, s AuditState) error {
	return exec(tx, "store the audit trail's state", `INSERT INTO audit_state (id, entries, head, unkeyed, unkeyed_head, seal) VALUES (1, {:entries}, {:head}, {:unkeyed}, {:unkeyed_head}, {:seal})`,
		dbx.Params{"entries": s.Entries, "head": s.Head, "unkeyed": s.Unkeyed, "unkeyed_head": s.UnkeyedHead, "seal": s.Seal})
}

// MoveAuditState stores where the trail ends now.
func MoveAuditState(tx core.App, s AuditState) error {
	return exec(tx, "store the audit trail's state", `UPDATE audit_state SET entries = {:entries}, head = {:head}, seal = {:seal}`,
		dbx.Params{"entries": s.Entries, "head": s.Head, "seal": s.Seal})
}

// AuditKeys are the keys of the audit trail: one hashes its rows, one seals its state.
type AuditKeys struct{ Row, State []byte }

// auditKeys remembers the keys of the sealer in use: each entry needs them.
var auditKeys atomic.Pointer[keysOf]

type keysOf struct {
	sealer *phi.Sealer
	AuditKeys
}

// LoadAuditKeys derives the keys of the audit trail from the database's index key, so they outlive every rotation.
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
	auditKeys.Store(&keysOf{s, AuditKeys{row, state}})
	return AuditKeys{row, state}, nil
}

// Format shows nothing of the keys.
func (AuditKeys) Format(s fmt.State, _ rune) { _, _ = s.Write([]byte("[secret]")) }

// EverUsed reports whether the database has been worked with: somebody was entered, or a number given out. A fresh one has neither, but
// for those that come with the schema: of the threshold templates, and of the state of the triage list.
func EverUsed(app core.App) (bool, error) {
	return queryValue[bool](app, "look whether the database was used",
		`SELECT EXISTS (SELECT 1 FROM audit_log) OR EXISTS (SELECT 1 FROM users) OR EXISTS (SELECT 1 FROM patients)
		OR EXISTS (SELECT 1 FROM sequences WHERE name NOT IN ('threshold_templates', 'triage_list')) OR EXISTS (SELECT 1 FROM gateway_events)`, nil)
}

// BeforeAuditKeys reports whether the database's index key was sealed before audit trails had a key: then no state can be expected. Nobody
// without the keys can make that form; one that was copied before can be put back, for as long as its key is in the ring. No trail works
// without the index key.
func BeforeAuditKeys(app core.App) (bool, error) {
	s := sealer.Load()
	if s == nil {
		return false, errNoSealer
	}
	sealed, _, err := sealedIndexKey(app)
	return err == nil && s.BeforeAuditKeys(sealed), err
}

// MarkAuditKeys seals the index key anew, in the form that says that the trail has a state from now on.
func MarkAuditKeys(tx core.App) error {
	s := sealer.Load()
	if s == nil {
		return errNoSealer
	}
	sealed, _, err := sealedIndexKey(tx)
	if err != nil || !s.BeforeAuditKeys(sealed) {
		return err
	}
	return resealIndexKey(tx, s.KeyRing, sealed)
}

// AuditFilter chooses rows of the audit log; zero fields choose all. From and To are included.
type AuditFilter struct {
	Event, Outcome           string
	Actor                    string // id or e-mail address
	PatientID                string
	ResourceType, ResourceID string
	From, To                 time.Time
}

// Where is the filter as a condition.
func (f AuditFilter) Where() dbx.Expression {
	conditions := Conditions{}.Equal("event", f.Event).Equal("outcome", f.Outcome).Equal("patient", f.PatientID).
		Equal("resource_type", f.ResourceType).Equal("resource_id", f.ResourceID)
	// No id holds an @ and every e-mail address does, so one column is asked and one index walked.
	if strings.Contains(f.Actor, "@") {
		conditions = conditions.Equal("actor_email", f.Actor).And("actor_email != ''") // the index leaves out who has none
	} else {
		conditions = conditions.Equal("actor_id", f.Actor)
	}
	return Every(conditions.Between("recorded_at", f.From, f.To))
}

// AuditOfPatient chooses the rows about a patient, and those of some events that may name the patient in a sealed list.
func AuditOfPatient(patientID string, events []string, from, to time.Time) dbx.Expression {
	lists := dbx.And(dbx.HashExp{"patient": ""}, dbx.NewExp("changes != ''"), AnyOf("event", events))
	return dbx.And(AuditFilter{From: from, To: to}.Where(), dbx.Or(dbx.HashExp{"patient": patientID}, lists))
}

// auditGuards are the triggers that keep the audit trail append-only and its state in place, by table and name, word for word as the
// migrations made them: the last text is today's, any other is of a folder or a backup that has not been brought up to date.
var auditGuards = map[string]map[string][]string{
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

// ErrGuards says that a trigger that keeps the audit trail is not there, not the one that was made, or one too many.
var ErrGuards = errors.New("the audit log has lost its guards")

// CheckAuditGuards compares the triggers that keep the audit trail, by their text, with those that the migrations made. It fails with
// [ErrGuards] when one is gone or says something else, and when there is one that nobody knows. PocketBase's schema snapshots do not hold them.
func CheckAuditGuards(app core.App) error {
	var found []struct {
		Table string `db:"tbl_name"`
		Name  string `db:"name"`
		SQL   string `db:"sql"`
	}
	err := app.DB().NewQuery(`SELECT lower(tbl_name) AS tbl_name, name, COALESCE(sql, '') AS sql FROM sqlite_master
		WHERE type = 'trigger' AND lower(tbl_name) IN ('audit_log', 'audit_state') ORDER BY name`).All(&found)
	if err != nil {
		return fmt.Errorf("look for the audit log's guards: %w", err)
	}
	hasState, err := HasAuditState(app)
	if err != nil {
		return err
	}
	missing := map[string]bool{}
	for table, guards := range auditGuards {
		for name := range guards {
			missing[name] = table == "audit_log" || hasState
		}
	}
	var wrong []string
	for _, trigger := range found {
		ours := func(text string) bool { return words(trigger.SQL) == words(text) }
		if !slices.ContainsFunc(auditGuards[trigger.Table][trigger.Name], ours) {
			wrong = append(wrong, trigger.Name+" is not ours")
		}
		missing[trigger.Name] = false
	}
	for name, gone := range missing {
		if gone {
			wrong = append(wrong, name+" is gone")
		}
	}
	if len(wrong) > 0 {
		slices.Sort(wrong)
		return fmt.Errorf("%w: trigger %s", ErrGuards, strings.Join(wrong, ", trigger "))
	}
	return nil
}

// words is a text with its white space evened out.
func words(text string) string { return strings.Join(strings.Fields(text), " ") }

// LastAudited is when an event was last recorded; zero for never.
func LastAudited(app core.App, event string) (time.Time, error) {
	at, err := queryValue[string](app, "find the last "+event, `SELECT recorded_at FROM audit_log WHERE event = {:event} ORDER BY id DESC LIMIT 1`,
		dbx.Params{"event": event})
	return ParseInstant(at), unlessMissing(err)
}

// CausingRequest is the id of the request that the audit trail first names for an object; "" when no request caused it.
func CausingRequest(app core.App, resourceType, resourceID string) (requestID string, err error) {
	err = app.DB().NewQuery(`SELECT request_id FROM audit_log WHERE resource_type = {:type} AND resource_id = {:id} ORDER BY id LIMIT 1`).
		Bind(dbx.Params{"type": resourceType, "id": resourceID}).Row(&requestID)
	return requestID, wrap(unlessMissing(err), "find the causing request")
}

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

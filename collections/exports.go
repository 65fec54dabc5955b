package collections

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

// The states of an export.
const (
	ExportQueued   = "queued"
	ExportRunning  = "running"
	ExportComplete = "complete"
	ExportFailed   = "failed"
)

// Export is a bulk export that a client asked for. Its files lie beside the database, sealed under its key.
type Export struct{ dated }

// ExportDraft is an export about to be stored.
type ExportDraft struct {
	ID, Client, Request string
	Types, Ignored      []string
	Since               time.Time
	FileKey             phi.Text
}

// ExportFile is one file of an export.
type ExportFile struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Kind  string `json:"kind"` // output, error or deleted
	Count int    `json:"count"`
}

// AddExport stores an export that is to be made.
func AddExport(tx core.App, d ExportDraft, now time.Time) error {
	_, err := store(tx, "store export", Exports, map[string]any{
		"id": d.ID, "client": d.Client, "request": d.Request, "resource_types": list(d.Types), "ignored": list(d.Ignored), "changed_since": Instant(d.Since),
		"file_key": d.FileKey.Reveal(), "status": ExportQueued, "files": []ExportFile{}, ColumnCreatedAt: Instant(now),
	})
	return err
}

// FindExport finds an export that is not gone yet.
func FindExport(app core.App, id string, now time.Time) (*Export, error) {
	return find[Export](app, Exports, dbx.And(dbx.HashExp{"id": id}, exportKept(now)))
}

func exportKept(now time.Time) dbx.Expression {
	return dbx.NewExp("(expires_at = '' OR expires_at > {:now})", dbx.Params{"now": Instant(now)})
}

// ExportsOfClient counts the exports of a client that are kept, and those among them that are still to be made. soonest is when the first of the
// kept ones will be gone.
func ExportsOfClient(app core.App, client string, now time.Time) (kept, unfinished int, soonest time.Time, err error) {
	var first string
	err = app.DB().NewQuery(`SELECT COUNT(*), COALESCE(SUM(status IN ('queued', 'running')), 0), COALESCE(MIN(NULLIF(expires_at, '')), '') FROM exports
		WHERE client = {:client} AND (expires_at = '' OR expires_at > {:now})`).Bind(dbx.Params{"client": client, "now": Instant(now)}).Row(&kept, &unfinished, &first)
	return kept, unfinished, ParseInstant(first), wrap(err, "count exports of client")
}

// ClaimExport takes the export that waits longest, to be made now; a missing row means that none waits.
func ClaimExport(tx core.App) (*Export, error) {
	var id string
	err := tx.NonconcurrentDB().NewQuery(`UPDATE exports SET status = 'running', attempts = attempts + 1
		WHERE id = (SELECT id FROM exports WHERE status = 'queued' ORDER BY created_at, id LIMIT 1) RETURNING id`).Row(&id)
	if err != nil {
		return nil, wrap(err, "claim export")
	}
	return findWhole[Export](tx, Exports, dbx.HashExp{"id": id})
}

// ReleaseExport puts a claimed export back: the service stops before it was made.
func ReleaseExport(tx core.App, id string) error {
	return exec(tx, "release export", `UPDATE exports SET status = 'queued', attempts = attempts - 1 WHERE id = {:id} AND status = 'running'`, dbx.Params{"id": id})
}

// RequeueExports has those made anew that a service left half made, and gives up those that were begun too often.
func RequeueExports(tx core.App, mostAttempts int, now, expires time.Time) (givenUp []string, err error) {
	err = tx.NonconcurrentDB().NewQuery(`UPDATE exports SET status = 'failed', finished_at = {:now}, expires_at = {:expires}
		WHERE status = 'running' AND attempts >= {:most} RETURNING id`).
		Bind(dbx.Params{"now": Instant(now), "expires": Instant(expires), "most": mostAttempts}).Column(&givenUp)
	if err == nil {
		err = exec(tx, "queue exports again", `UPDATE exports SET status = 'queued' WHERE status = 'running'`, nil)
	}
	return givenUp, wrap(err, "queue exports again")
}

// ExportEnd is what became of an export.
type ExportEnd struct {
	Status              string
	At, TransactionTime time.Time
	Files               []ExportFile
	Expires             time.Time
}

// FinishExport notes what became of an export; done is false when it was removed meanwhile.
func FinishExport(tx core.App, id string, end ExportEnd) (done bool, err error) {
	files, err := json.Marshal(append([]ExportFile{}, end.Files...))
	if err != nil {
		return false, fmt.Errorf("encode files of export: %w", err)
	}
	n, err := updateCounted(tx, "finish export", Exports, dbx.Params{
		"status": end.Status, "finished_at": Instant(end.At), "transaction_time": Instant(end.TransactionTime), "files": string(files),
		"expires_at": Instant(end.Expires),
	}, dbx.HashExp{"id": id, "status": ExportRunning})
	return n > 0, err
}

// RemoveExport removes an export, and with it the key to its files; a missing row is none.
func RemoveExport(tx core.App, id string) (done bool, err error) {
	n, err := change(tx, "remove export", `DELETE FROM exports WHERE id = {:id}`, dbx.Params{"id": id})
	return n > 0, err
}

// GoneExports are those whose time is over, or whose client is no more.
func GoneExports(app core.App, now time.Time) ([]string, error) {
	return queryColumn[string](app, "find exports that are over", `SELECT id FROM exports WHERE expires_at != '' AND expires_at <= {:now}
		OR client NOT IN (SELECT id FROM clients)`, dbx.Params{"now": Instant(now)})
}

// ExportIDs are all exports there are.
func ExportIDs(app core.App) ([]string, error) {
	return queryColumn[string](app, "list exports", `SELECT id FROM exports`, nil)
}

func (e *Export) Client() string             { return e.GetString("client") }
func (e *Export) Request() string            { return e.GetString("request") }
func (e *Export) Types() []string            { return e.GetStringSlice("resource_types") }
func (e *Export) Ignored() []string          { return e.GetStringSlice("ignored") }
func (e *Export) Since() time.Time           { return instantOf(e, "changed_since") }
func (e *Export) FileKey() phi.Text          { return phi.Text(e.GetString("file_key")) }
func (e *Export) Status() string             { return e.GetString("status") }
func (e *Export) Attempts() int              { return e.GetInt("attempts") }
func (e *Export) TransactionTime() time.Time { return instantOf(e, "transaction_time") }
func (e *Export) ExpiresAt() time.Time       { return instantOf(e, "expires_at") }

// Files are the files of an export that was made.
func (e *Export) Files() (files []ExportFile, err error) {
	return files, wrap(e.UnmarshalJSONField("files", &files), "read files of export")
}

// placeAt is how far the changes had gone at a time; exact is for a time that was marked, as the moment of every export is.
func placeAt(app core.App, at time.Time) (place int64, exact bool, err error) {
	err = app.DB().NewQuery(`SELECT COALESCE(MAX(seq), 0), COALESCE(MAX(at) = {:at}, FALSE) FROM change_marks WHERE at <= {:at}`).
		Bind(dbx.Params{"at": Instant(at)}).Row(&place, &exact)
	return place, exact, wrap(err, "find place of a time")
}

// apiID is the record id of what a change names.
const apiID = `CASE type WHEN 'device' THEN (SELECT id FROM devices WHERE device_id = record) ELSE record END`

// ChangedAfter are what was committed of a type after a moment that was marked, until some time later; none when the moment was not.
func ChangedAfter(app core.App, noun string, moment, until time.Time) ([]string, error) {
	place, exact, err := placeAt(app, moment)
	if err != nil || !exact {
		return nil, err
	}
	return queryColumn[string](app, "find what was changed", `SELECT DISTINCT `+apiID+` FROM changes
		WHERE seq > {:place} AND seq <= COALESCE((SELECT MIN(seq) FROM change_marks WHERE at >= {:until}), (SELECT MAX(seq) FROM changes))
			AND type = {:noun} AND change != 'deleted' AND record != ''`,
		dbx.Params{"place": place, "until": Instant(until), "noun": noun})
}

// DeletedSince are what was deleted of a type since a time; what has come back is among it. complete is false when changes are not kept that long.
func DeletedSince(app core.App, noun string, since time.Time) (ids []string, complete bool, err error) {
	place, exact, err := placeAt(app, since)
	if err != nil {
		return nil, false, err
	}
	var kept bool
	err = app.DB().NewQuery(`SELECT COALESCE((SELECT MIN(seq) FROM changes) <= MAX({:place}, 1), FALSE)`).Bind(dbx.Params{"place": place}).Row(&kept)
	if err != nil {
		return nil, false, wrap(err, "find oldest change")
	}
	ids, err = queryColumn[string](app, "find what was deleted", `SELECT DISTINCT record FROM changes
		WHERE seq > {:place} AND ({:exact} OR at >= {:since}) AND type = {:noun} AND change = 'deleted'`,
		dbx.Params{"place": place, "exact": exact, "since": Instant(since), "noun": noun})
	return ids, kept, err
}

// RestoredSince are the patients who were deleted and came back since a time.
func RestoredSince(app core.App, since time.Time) ([]string, error) {
	place, exact, err := placeAt(app, since)
	if err != nil {
		return nil, err
	}
	return queryColumn[string](app, "find who was restored", `SELECT DISTINCT record FROM changes
		WHERE seq > {:place} AND ({:exact} OR at >= {:since}) AND type = 'patient' AND change = 'created' AND event != 'patient.created'`,
		dbx.Params{"place": place, "exact": exact, "since": Instant(since)})
}

// rowsOfPatient are the tables whose rows are a patient's, by noun.
var rowsOfPatient = map[string]string{ChangeObservation: Observations, ChangeAlert: Alerts}

// RowsOfPatients are what there is of a type that is these patients'.
func RowsOfPatients(app core.App, noun string, patientIDs []string) ([]string, error) {
	table, known := rowsOfPatient[noun]
	if !known {
		return nil, nil
	}
	id := "t.id"
	if noun == ChangeAlert {
		id = "ltrim(t.id, '0')"
	}
	return queryColumn[string](app, "find what is of patients", `SELECT `+id+` FROM json_each({:patients}) p CROSS JOIN `+table+` t WHERE t.patient = p.value`,
		dbx.Params{"patients": jsonList(patientIDs)})
}

// teamChange is the entry of a patient's trail that may say that the primary provider is another.
type teamChange struct {
	ID      string `db:"id"`
	Patient string `db:"patient"`
	Changes string `db:"changes"`
}

// EmptiedTeams are the patients whose care team has nobody any more, and had somebody at a time or since. The primary provider is a column of the patient:
// that it was this one which changed, the trail says, where an entry may be dated so long before its commit. Of what cannot be opened it is assumed.
func EmptiedTeams(app core.App, since time.Time, longest time.Duration) (patients []string, err error) {
	place, exact, err := placeAt(app, since)
	if err != nil {
		return nil, err
	}
	params := dbx.Params{"place": place, "exact": exact, "since": Instant(since), "from": Instant(since.Add(-longest))}
	const changed = `SELECT DISTINCT c.record FROM changes c JOIN patients p ON p.id = c.record AND p.primary_provider = ''
			AND NOT EXISTS (SELECT 1 FROM care_team_members m WHERE m.patient = p.id)
		WHERE c.seq > {:place} AND ({:exact} OR c.at >= {:since}) AND c.change = 'updated' AND c.type = `
	if patients, err = queryColumn[string](app, "find teams without members", changed+`'care_team'`, params); err != nil {
		return nil, err
	}
	entries, err := queryAll[teamChange](app, "find teams without a provider", `SELECT a.id, a.patient, a.changes FROM (`+changed+`'patient') t
		CROSS JOIN audit_log a ON a.patient = t.record
		WHERE +a.event IN ('care_team.update', 'patient.update') AND +a.recorded_at >= {:from} AND a.changes != ''`, params)
	for _, e := range entries {
		if e.namesProvider() {
			patients = append(patients, e.Patient)
		}
	}
	return patients, err
}

func (c teamChange) namesProvider() bool {
	text, err := Open(c.Changes, AuditLog+".changes", c.ID)
	if err != nil {
		return true
	}
	var names map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &names) != nil {
		return true
	}
	_, named := names["primary_provider_id"]
	return named
}

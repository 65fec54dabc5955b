package collections

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

// States of an export.
const (
	ExportQueued   = "queued"
	ExportRunning  = "running"
	ExportComplete = "complete"
	ExportFailed   = "failed"
)

// Export is a bulk export of a client. Its files are stored next to the database, sealed under the export's own key.
type Export struct{ datedRecord }

// ExportDraft is an export to store.
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

// AddExport queues an export.
func AddExport(tx core.App, d ExportDraft, now time.Time) error {
	_, err := store(tx, "store export", Exports, map[string]any{
		"id": d.ID, "client": d.Client, "request": d.Request, "resource_types": nonNilCopy(d.Types), "ignored": nonNilCopy(d.Ignored), "changed_since": FormatInstant(d.Since),
		"file_key": d.FileKey.Reveal(), "status": ExportQueued, "files": []ExportFile{}, ColumnCreatedAt: FormatInstant(now),
	})
	return err
}

// FindExport finds an export that has not expired.
func FindExport(app core.App, id string, now time.Time) (*Export, error) {
	return find[Export](app, Exports, dbx.And(dbx.HashExp{"id": id}, notExpired(now)))
}

func notExpired(now time.Time) dbx.Expression {
	return dbx.NewExp("(expires_at = '' OR expires_at > {:now})", dbx.Params{"now": FormatInstant(now)})
}

// ExportsOfClient counts the unexpired exports of a client and the unfinished ones among them. soonest is the earliest expiry.
func ExportsOfClient(app core.App, client string, now time.Time) (stored, unfinished int, soonest time.Time, err error) {
	var first string
	err = app.DB().NewQuery(`SELECT COUNT(*), COALESCE(SUM(status IN ('queued', 'running')), 0), COALESCE(MIN(NULLIF(expires_at, '')), '') FROM exports
		WHERE client = {:client} AND (expires_at = '' OR expires_at > {:now})`).Bind(dbx.Params{"client": client, "now": FormatInstant(now)}).Row(&stored, &unfinished, &first)
	return stored, unfinished, ParseInstant(first), wrap(err, "count exports of client")
}

// LeaseExport leases the oldest queued export. A not-found error means that none is queued.
func LeaseExport(tx core.App) (*Export, error) {
	var id string
	err := tx.NonconcurrentDB().NewQuery(`UPDATE exports SET status = 'running', attempts = attempts + 1
		WHERE id = (SELECT id FROM exports WHERE status = 'queued' ORDER BY created_at, id LIMIT 1) RETURNING id`).Row(&id)
	if err != nil {
		return nil, wrap(err, "claim export")
	}
	return findReadable[Export](tx, Exports, dbx.HashExp{"id": id})
}

// ReleaseExport returns a claimed export to the queue when the service stops.
func ReleaseExport(tx core.App, id string) error {
	return exec(tx, "release export", `UPDATE exports SET status = 'queued', attempts = attempts - 1 WHERE id = {:id} AND status = 'running'`, dbx.Params{"id": id})
}

// RequeueExports queues the exports that a stopped service left running, and fails those with too many attempts.
func RequeueExports(tx core.App, maxAttempts int, now, expires time.Time) (failed []string, err error) {
	err = tx.NonconcurrentDB().NewQuery(`UPDATE exports SET status = 'failed', finished_at = {:now}, expires_at = {:expires}
		WHERE status = 'running' AND attempts >= {:most} RETURNING id`).
		Bind(dbx.Params{"now": FormatInstant(now), "expires": FormatInstant(expires), "most": maxAttempts}).Column(&failed)
	if err == nil {
		err = exec(tx, "queue exports again", `UPDATE exports SET status = 'queued' WHERE status = 'running'`, nil)
	}
	return failed, wrap(err, "queue exports again")
}

// ExportResult is the result of an export.
type ExportResult struct {
	Status              string
	At, TransactionTime time.Time
	Files               []ExportFile
	Expires             time.Time
}

// FinishExport stores the result of an export; done is false if it was deleted in between.
func FinishExport(tx core.App, id string, end ExportResult) (done bool, err error) {
	files, err := json.Marshal(append([]ExportFile{}, end.Files...))
	if err != nil {
		return false, fmt.Errorf("encode files of export: %w", err)
	}
	n, err := updateCounted(tx, "finish export", Exports, dbx.Params{
		"status": end.Status, "finished_at": FormatInstant(end.At), "transaction_time": FormatInstant(end.TransactionTime), "files": string(files),
		"expires_at": FormatInstant(end.Expires),
	}, dbx.HashExp{"id": id, "status": ExportRunning})
	return n > 0, err
}

// RemoveExport deletes an export and the key of its files; done is false if there is none.
func RemoveExport(tx core.App, id string) (done bool, err error) {
	n, err := execCounted(tx, "remove export", `DELETE FROM exports WHERE id = {:id}`, dbx.Params{"id": id})
	return n > 0, err
}

// ExpiredExports returns the exports that have expired or belong to a deleted client.
func ExpiredExports(app core.App, now time.Time) ([]string, error) {
	return queryColumn[string](app, "find expired exports", `SELECT id FROM exports WHERE expires_at != '' AND expires_at <= {:now}
		OR client NOT IN (SELECT id FROM clients)`, dbx.Params{"now": FormatInstant(now)})
}

// ExportIDs returns the ids of all exports.
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

// Files returns the files of a finished export.
func (e *Export) Files() (files []ExportFile, err error) {
	return files, wrap(e.UnmarshalJSONField("files", &files), "read files of export")
}

// changePositionAt returns the position of the change feed at a time. exact is true for a marked time, as the start of every export is.
func changePositionAt(app core.App, at time.Time) (place int64, exact bool, err error) {
	err = app.DB().NewQuery(`SELECT COALESCE(MAX(seq), 0), COALESCE(MAX(at) = {:at}, FALSE) FROM change_marks WHERE at <= {:at}`).
		Bind(dbx.Params{"at": FormatInstant(at)}).Row(&place, &exact)
	return place, exact, wrap(err, "find the change position of a time")
}

// changedRecordID is the record id of a changed object.
const changedRecordID = `CASE type WHEN 'device' THEN (SELECT id FROM devices WHERE device_id = record) ELSE record END`

// ChangedBetween returns the records of a type changed after a marked moment and before another; none if the moment was not marked.
func ChangedBetween(app core.App, noun string, moment, until time.Time) ([]string, error) {
	place, exact, err := changePositionAt(app, moment)
	if err != nil || !exact {
		return nil, err
	}
	return queryColumn[string](app, "find changed records", `SELECT DISTINCT `+changedRecordID+` FROM changes
		WHERE seq > {:place} AND seq <= COALESCE((SELECT MIN(seq) FROM change_marks WHERE at >= {:until}), (SELECT MAX(seq) FROM changes))
			AND type = {:noun} AND change != 'deleted' AND record != ''`,
		dbx.Params{"place": place, "until": FormatInstant(until), "noun": noun})
}

// DeletedSince returns the records of a type deleted since a time, including restored ones. complete is false if older changes have been
// purged.
func DeletedSince(app core.App, noun string, since time.Time) (ids []string, complete bool, err error) {
	place, exact, err := changePositionAt(app, since)
	if err != nil {
		return nil, false, err
	}
	err = app.DB().NewQuery(`SELECT COALESCE((SELECT MIN(seq) FROM changes) <= MAX({:place}, 1), FALSE)`).Bind(dbx.Params{"place": place}).Row(&complete)
	if err != nil {
		return nil, false, wrap(err, "find oldest change")
	}
	ids, err = queryColumn[string](app, "find deleted records", `SELECT DISTINCT record FROM changes
		WHERE seq > {:place} AND ({:exact} OR at >= {:since}) AND type = {:noun} AND change = 'deleted'`,
		dbx.Params{"place": place, "exact": exact, "since": FormatInstant(since), "noun": noun})
	return ids, complete, err
}

// PatientsRestoredSince returns the patients deleted and restored since a time.
func PatientsRestoredSince(app core.App, since time.Time) ([]string, error) {
	place, exact, err := changePositionAt(app, since)
	if err != nil {
		return nil, err
	}
	return queryColumn[string](app, "find restored patients", `SELECT DISTINCT record FROM changes
		WHERE seq > {:place} AND ({:exact} OR at >= {:since}) AND type = 'patient' AND change = 'created' AND event != 'patient.created'`,
		dbx.Params{"place": place, "exact": exact, "since": FormatInstant(since)})
}

// patientTables are the tables with rows of a patient, by type.
var patientTables = map[string]string{ChangeObservation: Observations, ChangeAlert: Alerts}

// RecordsOfPatients returns the records of a type that belong to the patients.
func RecordsOfPatients(app core.App, noun string, patientIDs []string) ([]string, error) {
	table, ok := patientTables[noun]
	if !ok {
		return nil, nil
	}
	id := "t.id"
	if noun == ChangeAlert {
		id = "ltrim(t.id, '0')"
	}
	return queryColumn[string](app, "find records of patients", `SELECT `+id+` FROM json_each({:patients}) p CROSS JOIN `+table+` t WHERE t.patient = p.value`,
		dbx.Params{"patients": jsonList(patientIDs)})
}

// teamChange is an audit entry that may record another primary provider.
type teamChange struct {
	ID      string `db:"id"`
	Patient string `db:"patient"`
	Changes string `db:"changes"`
}

// PatientsWithEmptiedTeams returns the patients with an empty care team that had a member since a time. The primary provider is a column of
// the patient, so the audit entry shows whether that column changed; longest bounds how long before its commit an entry may be dated. An entry
// that cannot be opened counts as such a change.
func PatientsWithEmptiedTeams(app core.App, since time.Time, longest time.Duration) (patients []string, err error) {
	place, exact, err := changePositionAt(app, since)
	if err != nil {
		return nil, err
	}
	params := dbx.Params{"place": place, "exact": exact, "since": FormatInstant(since), "from": FormatInstant(since.Add(-longest))}
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

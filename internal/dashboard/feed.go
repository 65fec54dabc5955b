package dashboard

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/patients"
)

// feedWindow is how far back the feed goes; the audit trail behind it goes further.
// Source: docs/decisions/dashboard.md, "Feed types and severities".
const feedWindow = 400 * 24 * time.Hour

// FeedEntry is one entry of the feed. It refuses to print, because its message may name a patient.
type FeedEntry struct {
	ID        string
	Type      FeedType
	Severity  string
	At        time.Time
	User      string // "" for the system
	PatientID string
	ObjectID  string

	word, alertType, cptCode string
	patient                  string // the patient's name in the message
	kind                     feedKind
}

// Format reveals nothing of the message.
func (e FeedEntry) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "[feed entry "+e.ID+"]") }

// LogValue prints the id only.
func (e FeedEntry) LogValue() slog.Value { return slog.StringValue("[feed entry " + e.ID + "]") }

// Message describes the event.
func (e FeedEntry) Message() string { return e.kind.message(e) }

// FeedQuery selects a page of the feed.
type FeedQuery struct {
	Role authz.Role
	// CareTeamOf limits it to the patients of a user's care teams and entries without a patient; "" does not.
	CareTeamOf string
	Type       FeedType // "" is any
	Severity   string   // "" is any
	Cursor     *string  // nil starts with the newest
	Limit      int
}

// FeedPage is one page of the feed.
type FeedPage struct {
	Entries []FeedEntry
	Next    string // "" at the end
}

// PatientIDs returns the patients that the page names.
func (p FeedPage) PatientIDs() (ids []string) {
	for _, e := range p.Entries {
		if e.PatientID != "" && !slices.Contains(ids, e.PatientID) {
			ids = append(ids, e.PatientID)
		}
	}
	return ids
}

// feedRow is an audit row with the columns for its severity and wording.
type feedRow struct {
	Kind       int    `db:"kind"`
	ID         string `db:"id"`
	RecordedAt string `db:"recorded_at"`
	Actor      string `db:"actor"` // an e-mail address, or the name of a client; "" for the system
	ResourceID string `db:"resource_id"`
	Patient    string `db:"patient"`
	Word       string `db:"word"`
	AlertType  string `db:"alert_type"`
	CPTCode    string `db:"cpt_code"`
}

// Feed reads one page, newest first, in the order of commits. Each kind walks its own index no further than the page needs, so the length
// of the audit trail does not matter.
func (b *Board) Feed(app core.App, q FeedQuery, now time.Time) (page FeedPage, err error) {
	before := ""
	if q.Cursor != nil {
		if before, err = b.readCursor(*q.Cursor); err != nil {
			return page, err
		}
	}
	first, err := oldestVisible(app, now)
	if err != nil || first == "" {
		return page, err
	}
	visible := visibleTo(q.Role, q.Type)
	sql, params := feedQuery(visible, q, first, before)
	if sql == "" {
		return page, nil
	}
	var rows []feedRow
	if err := app.DB().NewQuery(sql).Bind(params).All(&rows); err != nil {
		return page, fmt.Errorf("read feed: %w", err)
	}
	if len(rows) > q.Limit {
		rows = rows[:q.Limit]
		last := rows[q.Limit-1]
		page.Next = b.cursor(last.RecordedAt, last.ID)
	}
	for _, row := range rows {
		page.Entries = append(page.Entries, row.entry(visible[row.Kind]))
	}
	return page, page.setPatientNames(app, q.Role)
}

// oldestVisible returns the id of the oldest row in the feed's window; "" if there is none.
func oldestVisible(app core.App, now time.Time) (id string, err error) {
	err = app.DB().NewQuery(`SELECT id FROM audit_log WHERE recorded_at >= {:since} ORDER BY recorded_at LIMIT 1`).
		Bind(dbx.Params{"since": collections.FormatInstant(now.Add(-feedWindow))}).Row(&id)
	if err != nil && !collections.IsNotFound(err) {
		return "", fmt.Errorf("find the start of the feed: %w", err)
	}
	return id, nil
}

// feedQuery builds one SELECT per kind, merged.
func feedQuery(visible []feedKind, q FeedQuery, first, before string) (string, dbx.Params) {
	params := dbx.Params{"first": first, "limit": q.Limit + 1, "user": q.CareTeamOf}
	var branches []string
	for i, k := range visible {
		if k.severity != "" && q.Severity != "" && k.severity != q.Severity {
			continue
		}
		word, alertType, join := "''", "''", ""
		// A cross join makes SQLite walk the audit trail first, in index order, so the walk ends with the page.
		const numbered = "= substr('000000000000000' || a.resource_id, -15)"
		switch {
		case k.alerts != nil:
			word, alertType, join = "x.level", "x.type", "CROSS JOIN alerts x ON x.id "+numbered
		case k.feed == FeedEscalation:
			word, join = "x.priority", "CROSS JOIN escalations x ON x.id "+numbered
		case k.severity == "":
			word = "a.resource_id"
		}
		code := "''"
		if k.feed == FeedBilling {
			code = "COALESCE((SELECT cpt_code FROM billing_entries WHERE id = a.resource_id), '')"
		}
		where := "a.event = " + quoted(string(k.event)) + " AND a.outcome = '0' AND a.id >= {:first}"
		if before != "" {
			where += " AND a.id < {:before}"
			params["before"] = before
		}
		if k.alerts != nil {
			where += " AND x.type IN (" + quoted(k.alerts...) + ")"
		}
		if q.Severity != "" && k.severity == "" {
			where += " AND " + word + " IN (" + quoted(gradedWords(q.Severity)...) + ")"
		}
		if q.CareTeamOf != "" {
			where += ` AND (a.patient = '' OR EXISTS (SELECT 1 FROM care_team_members m WHERE m.patient = a.patient AND m.user = {:user})
				OR EXISTS (SELECT 1 FROM patients p WHERE p.id = a.patient AND p.primary_provider = {:user}))`
		}
		branches = append(branches, "SELECT * FROM (SELECT "+strconv.Itoa(i)+` AS kind, a.id, a.recorded_at, `+
			"COALESCE(NULLIF(a.actor_email, ''), a.actor_name) AS actor, a.resource_id, a.patient, "+
			word+" AS word, "+alertType+" AS alert_type, "+code+" AS cpt_code FROM audit_log a "+join+" WHERE "+where+" ORDER BY a.id DESC LIMIT +{:limit})")
	}
	if len(branches) == 0 {
		return "", nil
	}
	return strings.Join(branches, " UNION ALL ") + " ORDER BY id DESC LIMIT +{:limit}", params
}

// quoted quotes constants of this package for SQL.
func quoted(list ...string) string {
	quotes := make([]string, len(list))
	for i, word := range list {
		quotes[i] = "'" + word + "'"
	}
	return strings.Join(quotes, ", ")
}

func (r feedRow) entry(k feedKind) FeedEntry {
	severity := k.severity
	if severity == "" {
		severity = graded[r.Word]
	}
	return FeedEntry{
		ID: strconv.FormatInt(collections.Number(r.ID), 10), Type: k.feed, Severity: severity, At: collections.ParseInstant(r.RecordedAt),
		User: r.Actor, PatientID: r.Patient, ObjectID: r.ResourceID, word: r.Word, alertType: r.AlertType, cptCode: r.CPTCode,
		patient: "a patient", kind: k,
	}
}

// setPatientNames fills in the patients' names, except for the billing group.
func (p FeedPage) setPatientNames(app core.App, role authz.Role) error {
	if GroupOf(role) == Billing {
		return nil
	}
	names, err := patients.Names(app, p.PatientIDs())
	if err != nil {
		return err
	}
	for i := range p.Entries {
		if name, found := names[p.Entries[i].PatientID]; found {
			p.Entries[i].patient = name.FullName()
		} else if p.Entries[i].kind.event == audit.ThresholdUpdate && p.Entries[i].PatientID == "" {
			p.Entries[i].patient = "the practice"
		}
	}
	return nil
}

// signatureSize is enough of an HMAC-SHA-256 for a cursor, which grants no access.
const signatureSize = 16

// cursor is the position after an entry, its time and id, signed against forgery.
func (b *Board) cursor(at, id string) string {
	place := at + " " + id
	return base64.RawURLEncoding.EncodeToString(append(b.sign(place), place...))
}

// readCursor returns the id of the entry before the position, or the fault invalid_cursor.
func (b *Board) readCursor(text string) (id string, err error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(raw) <= signatureSize {
		return "", invalidCursor()
	}
	place := string(raw[signatureSize:])
	_, id, found := strings.Cut(place, " ")
	if !hmac.Equal(raw[:signatureSize], b.sign(place)) || !found || collections.Number(id) == 0 {
		return "", invalidCursor()
	}
	return id, nil
}

func (b *Board) sign(place string) []byte {
	mac := hmac.New(sha256.New, b.CursorKey)
	mac.Write([]byte("feed " + place))
	return mac.Sum(nil)[:signatureSize]
}

func invalidCursor() *fault.Error {
	return fault.New(fault.Invalid, "invalid_cursor", "The cursor is not one of this feed.")
}

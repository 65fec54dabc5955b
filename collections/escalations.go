package collections

import (
	"strings"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

// The columns of an escalation that a person can change, and two that must be there from the start.
const (
	EscalationStatus             = "status"
	EscalationPriority           = "priority"
	EscalationAssignedTo         = "assigned_to"
	EscalationResolutionNotes    = "resolution_notes"
	EscalationInteractionMinutes = "interaction_minutes"
	EscalationReason             = "reason"
)

// Escalation is what needs somebody's answer.
type Escalation struct{ aboutPatient }

// AsEscalation reads a record of the escalations collection as an Escalation.
func AsEscalation(record *core.Record) *Escalation { return as[Escalation](record) }

// NewEscalation returns an unsaved escalation with the next number.
func NewEscalation(app core.App) (*Escalation, error) {
	return fresh[Escalation](app, Escalations, nil)
}

// FindEscalation finds one escalation.
func FindEscalation(app core.App, id string) (*Escalation, error) {
	return find[Escalation](app, Escalations, dbx.HashExp{"id": id})
}

// EscalationsByID finds escalations, in no order; ids without one are left out.
func EscalationsByID(app core.App, ids []string) ([]*Escalation, error) {
	return listOf[Escalation](app, Escalations, among(ids))
}

// EscalationFilter narrows a list of escalations; zero values do not.
type EscalationFilter struct {
	PatientID, Priority, Status, AssignedTo string
	// CareTeamOf keeps the patients whose care team this user (record id) belongs to, and those for whom the user was called.
	CareTeamOf string
	// Active keeps what is open or in progress, or what is over.
	Active *bool
	// ByUrgency lists what nobody has taken first, then by priority, then what has waited longest; else the newest is first.
	ByUrgency bool
}

// PageOfEscalations returns a page of escalations, and how many there are in all.
func PageOfEscalations(app core.App, f EscalationFilter, offset, limit int) ([]*Escalation, int, error) {
	where := Conditions{}.Equal("patient", f.PatientID).Equal("priority", f.Priority).Equal("status", f.Status).Equal("assigned_to", f.AssignedTo)
	if f.CareTeamOf != "" {
		where = append(where, onCallOrTeam(f.CareTeamOf))
	}
	order := "created_at DESC, id DESC"
	if f.Active != nil {
		where = append(where, stillOpen(*f.Active))
	}
	if f.ByUrgency {
		order = byUrgency
	}
	page, total, err := where.PageOfPatients(app, Escalations, order, offset, limit)
	return allAs[Escalation](page), total, err
}

// OpenEscalationBy is the id of the escalation that somebody opened for a patient and is not closed; "" for none.
func OpenEscalationBy(tx core.App, patientID, by string) (string, error) {
	id, err := queryValue[string](tx, "find open escalation",
		`SELECT id FROM escalations WHERE patient = {:patient} AND created_by = {:by} AND status IN ('open', 'in_progress')`,
		dbx.Params{"patient": patientID, "by": by})
	return id, unlessMissing(err)
}

// CancelEscalations cancels every open escalation of a patient and returns their ids.
func CancelEscalations(tx core.App, patientID, by string, now time.Time) ([]string, error) {
	return queryColumn[string](tx, "cancel open escalations",
		`UPDATE escalations SET status = 'cancelled', cancelled_by = {:by}, cancelled_at = {:at}, updated_at = {:at}
		WHERE patient = {:patient} AND status IN ('open', 'in_progress') RETURNING id`,
		dbx.Params{"patient": patientID, "by": by, "at": Instant(now)})
}

// escalationChanges are the columns that may be written again.
var escalationChanges = []string{
	"status", "priority", "assigned_to", "assigned_at", "resolution_notes", "interaction_minutes", "resolved_by", "resolved_at",
	"cancelled_by", "cancelled_at", "notified_at", "updated_at", "tier", "waits_since", "tier_at", "on_call", "noted_at", "reminded_at",
}

// Store writes what was changed of it, past the hooks of its collection.
func (e *Escalation) Store(tx core.App) error {
	return Update(tx, e.ProxyRecord(), escalationChanges...)
}

// Open makes it one that was just opened.
func (e *Escalation) Open(by string, now time.Time) {
	at := Instant(now)
	e.Load(map[string]any{
		"status": "open", "created_by": by, "created_at": at, "updated_at": at, "notified_at": at,
		"resolved_by": "", "resolved_at": "", "cancelled_by": "", "cancelled_at": "", "resolution_notes": "", "interaction_minutes": nil,
		"tier": 0, "waits_since": "", "tier_at": "", "on_call": "", "noted_at": "", "reminded_at": "",
	})
}

// About says whose it is, why, and what it is about.
func (e *Escalation) About(patientID, priority string, reason phi.Text, alertID, relatedID string) {
	e.Load(map[string]any{
		"patient": patientID, "priority": priority, "reason": reason.Reveal(), "alert": alertID, "related_escalation": relatedID,
	})
}

// Assign gives it to somebody by e-mail address, or to nobody.
func (e *Escalation) Assign(to string, now time.Time) {
	if to == "" {
		now = time.Time{}
	}
	e.Set("assigned_to", to)
	e.Set("assigned_at", Instant(now))
}

func (e *Escalation) SetResolved(by string, now time.Time)  { stamp(e, "resolved", by, now) }
func (e *Escalation) SetCancelled(by string, now time.Time) { stamp(e, "cancelled", by, now) }
func (e *Escalation) SetNotifiedAt(now time.Time)           { e.Set("notified_at", Instant(now)) }
func (e *Escalation) SetUpdatedAt(now time.Time)            { e.Set("updated_at", Instant(now)) }
func (e *Escalation) SetInteractionMinutes(minutes int)     { e.Set("interaction_minutes", minutes) }

// ReasonShown is the reason, or [UnreadableText].
func (e *Escalation) ReasonShown() string { return TextOf(e.ProxyRecord(), "reason") }

func (e *Escalation) Number() int64             { return Number(e.Id) }
func (e *Escalation) Priority() string          { return e.GetString("priority") }
func (e *Escalation) Status() string            { return e.GetString("status") }
func (e *Escalation) Reason() phi.Text          { return phi.Text(e.GetString("reason")) }
func (e *Escalation) CreatedBy() string         { return e.GetString("created_by") }
func (e *Escalation) AssignedTo() string        { return e.GetString("assigned_to") }
func (e *Escalation) AssignedAt() time.Time     { return instantOf(e, "assigned_at") }
func (e *Escalation) AlertID() string           { return e.GetString("alert") }
func (e *Escalation) RelatedID() string         { return e.GetString("related_escalation") }
func (e *Escalation) ResolutionNotes() phi.Text { return phi.Text(e.GetString("resolution_notes")) }
func (e *Escalation) ResolvedBy() string        { return e.GetString("resolved_by") }
func (e *Escalation) ResolvedAt() time.Time     { return instantOf(e, "resolved_at") }
func (e *Escalation) CancelledBy() string       { return e.GetString("cancelled_by") }
func (e *Escalation) CancelledAt() time.Time    { return instantOf(e, "cancelled_at") }
func (e *Escalation) NotifiedAt() time.Time     { return instantOf(e, "notified_at") }

// InteractionMinutes of live contact; nil when nobody gave them.
func (e *Escalation) InteractionMinutes() *float64 {
	return Optional(e.ProxyRecord(), EscalationInteractionMinutes)
}

// byUrgency orders escalations by who has to act: those that nobody has taken, then by priority, then what has waited longest. An order is cut at
// ", ", which the list of roles must not have.
const byUrgency = `(status IN ('resolved','cancelled')), (status = 'in_progress' AND EXISTS (SELECT 1 FROM users u WHERE u.email = assigned_to
	AND u.email != '' AND u.is_active = TRUE AND u.role IN ('admin','clinical_manager','provider','nurse'))), (CASE priority WHEN 'stat' THEN 0 WHEN 'urgent' THEN 1 ELSE 2 END), ` +
	`ifnull(nullif(waits_since,''),created_at), id`

// stillOpen is true for escalations that somebody has to do something about, or for the others.
func stillOpen(active bool) dbx.Expression {
	if active {
		return dbx.NewExp("status IN ('open', 'in_progress')")
	}
	return dbx.NewExp("status IN ('resolved', 'cancelled')")
}

// TakenEscalations are the ids of those among some that somebody works on who can.
func TakenEscalations(app core.App, ids []string) (map[string]bool, error) {
	list, err := queryColumn[string](app, "look which escalations are taken",
		`SELECT e.id FROM escalations e WHERE e.id IN (SELECT value FROM json_each({:ids})) AND `+taken, dbx.Params{"ids": jsonList(ids)})
	found := make(map[string]bool, len(list))
	for _, id := range list {
		found[id] = true
	}
	return found, err
}

// EscalationEvent is one step of an escalation, as it is stored.
type EscalationEvent struct {
	ID         string `db:"id"`
	Escalation string `db:"escalation"`
	AtText     string `db:"at"`
	Event      string `db:"event"`
	User       string `db:"user"`
	Sealed     string `db:"detail"`
}

// InsertEscalationEvent stores a step of an escalation, past the hooks. It may be one of those on the way of a reading.
func InsertEscalationEvent(tx core.App, escalationID, event, by string, detail phi.Text, now time.Time) error {
	id, err := NextID(tx, EscalationEvents)
	if err != nil {
		return err
	}
	sealed := ""
	if detail != "" {
		if sealed, err = Seal(detail.Reveal(), "escalation_events.detail", id); err != nil {
			return wrap(err, "seal the step of an escalation")
		}
	}
	return insert(tx, "store the step of an escalation", EscalationEvents, dbx.Params{
		"id": id, "escalation": escalationID, "at": Instant(now), "event": event, "user": by, "detail": sealed,
	})
}

// EventsOfEscalations are the steps of escalations, in the order in which they happened. A page of escalations may have a thousand of them.
func EventsOfEscalations(app core.App, ids []string) ([]EscalationEvent, error) {
	return queryAll[EscalationEvent](app, "list the steps of escalations", `SELECT id, escalation, at, event, user, detail FROM escalation_events
		WHERE escalation IN (SELECT value FROM json_each({:ids})) ORDER BY id`, dbx.Params{"ids": jsonList(ids)})
}

// At is when it happened.
func (e EscalationEvent) At() time.Time { return ParseInstant(e.AtText) }

// Detail is opened, or [UnreadableText].
func (e EscalationEvent) Detail() phi.Text {
	if e.Sealed == "" {
		return ""
	}
	plain, err := OpenValue(e.Sealed, EscalationEvents, "detail", e.ID)
	if err != nil {
		return UnreadableText
	}
	return phi.Text(plain)
}

// ToldAlert is a critical alert that people heard of as an escalation. Values are those of the reading behind it, as JSON.
type ToldAlert struct {
	ID        string  `db:"id"`
	Type      string  `db:"type"`
	Parameter string  `db:"parameter"`
	Value     float64 `db:"value"`
	Sealed    string  `db:"reported_values"`
	Values    string  `db:"measured"`
	// Gathered is sealed with the event Shown, where the alert is about several.
	Gathered string `db:"gathered"`
	Shown    string `db:"quarantine_id"`
}

// mostHeard bounds how many alerts are looked at: those of the last tellings.
const mostHeard = 60

// ToldCritical are the critical alerts by which people were told, since a time, of the escalations that the system opened for a patient and
// that are open, or were changed since another time; with each the others of its reading, the one told last first. Left out is what was
// taken back, and what only says again that somebody is waited for: it names no value that is new. columns are the observation's whose values are wanted. The tables are joined in the order written, which is the one with an
// index for each.
func ToldCritical(app core.App, patientID string, since, closedSince time.Time, columns []string) ([]ToldAlert, error) {
	return queryAll[ToldAlert](app, "find what was told", `SELECT b.id, b.type, b.parameter, COALESCE(b.value, 0) AS value, b.reported_values, b.quarantine_id,
			COALESCE((SELECT gathered FROM gateway_events WHERE id = b.quarantine_id AND b.quarantine_id != ''), '') AS gathered,
			json_array(o.`+strings.Join(columns, ", o.")+`) AS measured
		FROM escalations e CROSS JOIN announcements n ON n.key >= 'escalation ' || e.id AND n.key < 'escalation ' || e.id || '!'
			CROSS JOIN alerts a ON a.id = n.alert CROSS JOIN alerts b ON b.id = a.id OR b.observation != '' AND b.observation = a.observation
			LEFT JOIN observations o ON o.id = b.observation
		WHERE e.patient = {:patient} AND e.created_by = 'system' AND (e.status IN ('open', 'in_progress') OR e.updated_at >= {:closed})
			AND n.kind = 'escalation_opened' AND n.created_at >= {:since} AND b.level = 'critical' AND b.late = FALSE AND (b.snoozed = FALSE OR b.id = a.id)
			AND b.resolution_reason != 'withdrawn' AND COALESCE(o.status, '') != 'entered_in_error'
		ORDER BY n.created_at DESC, b.id DESC LIMIT +{:most}`, dbx.Params{
		"patient": patientID, "since": Instant(since), "closed": Instant(closedSince), "most": mostHeard,
	})
}

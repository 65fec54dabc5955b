package collections

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

// Columns of an escalation that a user can change, and two that are set at creation.
const (
	EscalationStatus             = "status"
	EscalationPriority           = "priority"
	EscalationAssignedTo         = "assigned_to"
	EscalationResolutionNotes    = "resolution_notes"
	EscalationInteractionMinutes = "interaction_minutes"
	EscalationReason             = "reason"
)

// Escalation is a task for a clinician.
type Escalation struct{ patientRecord }

// AsEscalation converts a record of the escalations collection.
func AsEscalation(record *core.Record) *Escalation { return as[Escalation](record) }

// NewEscalation returns an unsaved escalation with the next number.
func NewEscalation(app core.App) (*Escalation, error) {
	return newRecord[Escalation](app, Escalations, nil)
}

// FindEscalation finds one escalation.
func FindEscalation(app core.App, id string) (*Escalation, error) {
	return find[Escalation](app, Escalations, dbx.HashExp{"id": id})
}

// EscalationsByID returns escalations in no order, and skips ids without one.
func EscalationsByID(app core.App, ids []string) ([]*Escalation, error) {
	return listOf[Escalation](app, Escalations, idIn(ids))
}

// EscalationFilter narrows a list of escalations; zero values do not narrow.
type EscalationFilter struct {
	PatientID, Priority, Status, AssignedTo string
	// CareTeamOf selects the patients of a user's care teams (record id), and those of escalations with the user on call.
	CareTeamOf string
	// Active selects open and in-progress escalations, or closed ones.
	Active *bool
	// ByUrgency orders by untaken first, then priority, then longest wait; else newest first.
	ByUrgency bool
}

// PageOfEscalations returns a page of escalations, and the total.
func PageOfEscalations(app core.App, f EscalationFilter, offset, limit int) ([]*Escalation, int, error) {
	where := Conditions{}.Equal("patient", f.PatientID).Equal("priority", f.Priority).Equal("status", f.Status).Equal("assigned_to", f.AssignedTo)
	if f.CareTeamOf != "" {
		where = append(where, onCallOrTeam(f.CareTeamOf))
	}
	order := "created_at DESC, id DESC"
	if f.Active != nil {
		where = append(where, openCondition(*f.Active))
	}
	if f.ByUrgency {
		order = byUrgency
	}
	page, total, err := where.PageOfUndeleted(app, Escalations, order, offset, limit)
	return allAs[Escalation](page), total, err
}

// OpenEscalationBy returns the id of a patient's open escalation created by a user or system, or "".
func OpenEscalationBy(tx core.App, patientID, by string) (string, error) {
	id, err := queryValue[string](tx, "find open escalation",
		`SELECT id FROM escalations WHERE patient = {:patient} AND created_by = {:by} AND status IN ('open', 'in_progress')`,
		dbx.Params{"patient": patientID, "by": by})
	return id, IgnoreNotFound(err)
}

// CancelEscalations cancels a patient's open escalations and returns their ids.
func CancelEscalations(tx core.App, patientID, by string, now time.Time) ([]string, error) {
	return queryColumn[string](tx, "cancel open escalations",
		`UPDATE escalations SET status = 'cancelled', cancelled_by = {:by}, cancelled_at = {:at}, updated_at = {:at}
		WHERE patient = {:patient} AND status IN ('open', 'in_progress') RETURNING id`,
		dbx.Params{"patient": patientID, "by": by, "at": FormatInstant(now)})
}

// escalationChanges are the columns that may be written again.
var escalationChanges = []string{
	"status", "priority", "assigned_to", "assigned_at", "resolution_notes", "interaction_minutes", "resolved_by", "resolved_at",
	"cancelled_by", "cancelled_at", "notified_at", "updated_at", "tier", "waits_since", "tier_at", "on_call", "noted_at", "reminded_at",
}

// Store writes the changed columns without running the hooks of its collection.
func (e *Escalation) Store(tx core.App) error {
	return Update(tx, e.ProxyRecord(), escalationChanges...)
}

// Open sets the values of a new escalation.
func (e *Escalation) Open(by string, now time.Time) {
	at := FormatInstant(now)
	e.Load(map[string]any{
		"status": "open", "created_by": by, "created_at": at, "updated_at": at, "notified_at": at,
		"resolved_by": "", "resolved_at": "", "cancelled_by": "", "cancelled_at": "", "resolution_notes": "", "interaction_minutes": nil,
		"tier": 0, "waits_since": "", "tier_at": "", "on_call": "", "noted_at": "", "reminded_at": "",
	})
}

// SetSubject sets the patient, the priority, the reason and the related records.
func (e *Escalation) SetSubject(patientID, priority string, reason phi.Text, alertID, relatedID string) {
	e.Load(map[string]any{
		"patient": patientID, "priority": priority, "reason": reason.Reveal(), "alert": alertID, "related_escalation": relatedID,
	})
}

// Assign assigns the escalation to a user by email address; "" unassigns it.
func (e *Escalation) Assign(to string, now time.Time) {
	if to == "" {
		now = time.Time{}
	}
	e.Set("assigned_to", to)
	e.Set("assigned_at", FormatInstant(now))
}

func (e *Escalation) SetResolved(by string, now time.Time)  { stamp(e, "resolved", by, now) }
func (e *Escalation) SetCancelled(by string, now time.Time) { stamp(e, "cancelled", by, now) }
func (e *Escalation) SetNotifiedAt(now time.Time)           { e.Set("notified_at", FormatInstant(now)) }

func (e *Escalation) SetUpdatedAt(now time.Time) { e.Set("updated_at", FormatInstant(now)) }

func (e *Escalation) SetInteractionMinutes(minutes int) { e.Set("interaction_minutes", minutes) }

// DisplayReason returns the reason, or [UnreadableText].
func (e *Escalation) DisplayReason() string { return TextOf(e.ProxyRecord(), "reason") }

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

// InteractionMinutes of live contact; nil if none were entered.
func (e *Escalation) InteractionMinutes() *float64 {
	return Optional(e.ProxyRecord(), EscalationInteractionMinutes)
}

// byUrgency orders by untaken first, then priority, then longest wait. Orders are split at ", ", so the list of roles has no space after its
// commas.
const byUrgency = `(status IN ('resolved','cancelled')), (status = 'in_progress' AND EXISTS (SELECT 1 FROM users u WHERE u.email = assigned_to
	AND u.email != '' AND u.is_active = TRUE AND u.role IN ('admin','clinical_manager','provider','nurse'))), (CASE priority WHEN 'stat' THEN 0 WHEN 'urgent' THEN 1 ELSE 2 END), ` +
	`ifnull(nullif(waits_since,''),created_at), id`

// openCondition is open and in-progress escalations, or closed ones.
func openCondition(active bool) dbx.Expression {
	if active {
		return dbx.NewExp("status IN ('open', 'in_progress')")
	}
	return dbx.NewExp("status IN ('resolved', 'cancelled')")
}

// TakenEscalations returns which of the escalations a user who may handle them works on.
func TakenEscalations(app core.App, ids []string) (map[string]bool, error) {
	list, err := queryColumn[string](app, "find taken escalations",
		`SELECT e.id FROM escalations e WHERE e.id IN (SELECT value FROM json_each({:ids})) AND `+takenByStaff, dbx.Params{"ids": jsonList(ids)})
	found := make(map[string]bool, len(list))
	for _, id := range list {
		found[id] = true
	}
	return found, err
}

// NotifiedAlert is a critical alert of an announced escalation. Values are those of its reading, as JSON.
type NotifiedAlert struct {
	ID        string  `db:"id"`
	Type      string  `db:"type"`
	Parameter string  `db:"parameter"`
	Value     float64 `db:"value"`
	Sealed    string  `db:"reported_values"`
	Values    string  `db:"measured"`
	// Aggregate is sealed with the event ShownEventID, if the alert covers several events.
	Aggregate    string `db:"gathered"`
	ShownEventID string `db:"quarantine_id"`
}

// maxNotifiedAlerts bounds the result to the latest notifications.
const maxNotifiedAlerts = 60

// NotifiedCriticalAlerts returns the critical alerts announced since a time as escalations that the system opened for a patient and that are
// open, or were changed since closedSince, with the other alerts of the same reading, the latest notification first. It excludes retracted
// alerts and reminders, which name no new value. columns are the observation's values to return. The CROSS JOINs fix the order in which each
// table has an index.
func NotifiedCriticalAlerts(app core.App, patientID string, since, closedSince time.Time, columns []string) ([]NotifiedAlert, error) {
	return queryAll[NotifiedAlert](app, "find notified critical alerts", `SELECT b.id, b.type, b.parameter, COALESCE(b.value, 0) AS value, b.reported_values, b.quarantine_id,
			COALESCE((SELECT gathered FROM gateway_events WHERE id = b.quarantine_id AND b.quarantine_id != ''), '') AS gathered,
			json_array(o.`+strings.Join(columns, ", o.")+`) AS measured
		FROM escalations e CROSS JOIN announcements n ON n.key >= 'escalation ' || e.id AND n.key < 'escalation ' || e.id || '!'
			CROSS JOIN alerts a ON a.id = n.alert CROSS JOIN alerts b ON b.id = a.id OR b.observation != '' AND b.observation = a.observation
			LEFT JOIN observations o ON o.id = b.observation
		WHERE e.patient = {:patient} AND e.created_by = 'system' AND (e.status IN ('open', 'in_progress') OR e.updated_at >= {:closed})
			AND n.kind = 'escalation_opened' AND n.created_at >= {:since} AND b.level = 'critical' AND (b.late = FALSE OR b.escalates_late = TRUE AND b.resolution_reason != 'superseded') AND (b.snoozed = FALSE OR b.id = a.id)
			AND b.resolution_reason != 'withdrawn' AND COALESCE(o.status, '') != 'entered_in_error'
		ORDER BY n.created_at DESC, b.id DESC LIMIT +{:most}`, dbx.Params{
		"patient": patientID, "since": FormatInstant(since), "closed": FormatInstant(closedSince), "most": maxNotifiedAlerts,
	})
}

// BySystem reports whether the service opened the escalation.
func (e *Escalation) BySystem() bool { return e.CreatedBy() == "system" }

// ApplyRetraction sets the priority of the remaining alerts and, if the escalation's own alert was retracted, another alert with its message.
func (e *Escalation) ApplyRetraction(tx core.App, about *Alert, priority string, now time.Time) error {
	changes := map[string]any{"priority": priority, "updated_at": FormatInstant(now)}
	if about.Id != e.AlertID() {
		changes["alert"], changes["reason"] = about.Id, about.Message().Reveal()
	}
	e.Load(changes)
	return Update(tx, e.ProxyRecord(), slices.Sorted(maps.Keys(changes))...)
}

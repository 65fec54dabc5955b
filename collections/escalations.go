package collections

import (
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
type Escalation struct{ core.BaseRecordProxy }

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
func (e *Escalation) PatientID() string         { return e.GetString("patient") }
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
func (e *Escalation) CreatedAt() time.Time      { return instantOf(e, "created_at") }
func (e *Escalation) UpdatedAt() time.Time      { return instantOf(e, "updated_at") }

// InteractionMinutes of live contact; nil when nobody gave them.
func (e *Escalation) InteractionMinutes() *float64 {
	return Optional(e.ProxyRecord(), EscalationInteractionMinutes)
}

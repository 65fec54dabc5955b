package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// The columns that only the ladder writes.
const (
	EscalationTier       = "tier"
	EscalationNotifiedAt = "notified_at"
	EscalationRemindedAt = "reminded_at"
)

// taken is true for an escalation that somebody works on who can.
const taken = `(e.status = 'in_progress' AND EXISTS (SELECT 1 FROM users u WHERE u.email = e.assigned_to AND u.email != '' AND u.is_active = TRUE
	AND u.role IN ('admin', 'clinical_manager', 'provider', 'nurse')))`

// StarterOf is who began to work on an escalation, which may have been given to another.
const StarterOf Tie = `email = (SELECT s.user FROM escalation_events s WHERE s.escalation = {:to} AND s.event = 'in_progress' ORDER BY s.id DESC LIMIT 1)
	AND email != ''`

// EscalationCutoffs say which escalations of a priority something follows of: those that nobody took and that wait since the cutoff of their tier,
// were told of last before the one of the last tier or of what is overdue, or were told to another one than is on call now.
type EscalationCutoffs struct {
	Tiers   [3]time.Time
	Overdue time.Time
	OnCall  string // record id, "" for nobody
}

// WaitingEscalations are the ids of escalations that something follows of, the oldest first.
func WaitingEscalations(app core.App, priority string, c EscalationCutoffs, limit int) ([]string, error) {
	return queryColumn[string](app, "find waiting escalations", `SELECT e.id FROM escalations e
		WHERE e.status IN ('open', 'in_progress') AND e.priority = {:priority} AND NOT `+taken+` AND (
			e.tier < 3 AND COALESCE(NULLIF(e.waits_since, ''), e.created_at) <= CASE e.tier WHEN 0 THEN {:first} WHEN 1 THEN {:second} ELSE {:third} END
			OR e.tier = 3 AND e.tier_at <= {:third}
			OR e.tier > 0 AND {:onCall} NOT IN ('', e.on_call)
			OR e.status = 'open' AND e.created_at <= {:overdue} AND e.notified_at <= {:overdue})
		ORDER BY e.created_at LIMIT +{:limit}`, dbx.Params{
		"priority": priority, "first": Instant(c.Tiers[0]), "second": Instant(c.Tiers[1]), "third": Instant(c.Tiers[2]),
		"overdue": Instant(c.Overdue), "onCall": c.OnCall, "limit": limit,
	})
}

// IdleEscalations are the ids of those that somebody works on without a note, and without a reminder of it, since the cutoff, the oldest first.
func IdleEscalations(app core.App, cutoff time.Time, limit int) ([]string, error) {
	return queryColumn[string](app, "find escalations without a note", `SELECT e.id FROM escalations e
		WHERE `+taken+` AND COALESCE(NULLIF(e.noted_at, ''), e.updated_at) <= {:cutoff} AND e.reminded_at <= {:cutoff}
		ORDER BY e.created_at LIMIT +{:limit}`, dbx.Params{"cutoff": Instant(cutoff), "limit": limit})
}

// EscalationTaken reports whether somebody works on an escalation who can.
func EscalationTaken(app core.App, id string) (bool, error) {
	return queryValue[bool](app, "look whether an escalation is taken", `SELECT `+taken+` FROM escalations e WHERE e.id = {:id}`, dbx.Params{"id": id})
}

// OnCallFor reports whether a user was told, as the one on call, of an escalation of the patient that is not closed.
func OnCallFor(app core.App, patientID, userID string) (bool, error) {
	return queryValue[bool](app, "look who was called for a patient", `SELECT EXISTS (SELECT 1 FROM escalations
		WHERE patient = {:patient} AND on_call = {:user} AND status IN ('open', 'in_progress'))`, dbx.Params{"patient": patientID, "user": userID})
}

// onCallOrTeam is true for escalations of patients of whose care team the user is one, and for those that the user was called for.
func onCallOrTeam(userID string) dbx.Expression {
	return dbx.Or(OnCareTeam("patient", userID), dbx.NewExp("on_call = {:calledUser} AND status IN ('open', 'in_progress')", dbx.Params{"calledUser": userID}))
}

// RaiseEscalation makes an escalation stat, from which on it waits anew; raised is false for one that is stat already.
func RaiseEscalation(tx core.App, id string, now time.Time) (raised bool, err error) {
	n, err := updateCounted(tx, "raise an escalation", Escalations, dbx.Params{
		"priority": "stat", "tier": 0, "waits_since": Instant(now), "tier_at": "", "on_call": "",
	}, dbx.NewExp("id = {:id} AND priority != 'stat'", dbx.Params{"id": id}))
	return n > 0, err
}

// WaitAnew lets the deadlines begin anew, for another urgency or because nobody works on it any more.
func (e *Escalation) WaitAnew(now time.Time) {
	e.Load(map[string]any{"tier": 0, "waits_since": Instant(now), "tier_at": "", "on_call": ""})
}

// SetTier notes which tier was told.
func (e *Escalation) SetTier(tier int, now time.Time) {
	e.Set("tier", tier)
	e.Set("tier_at", Instant(now))
}

// SetOnCall notes who was told as the one on call; "" leaves who was.
func (e *Escalation) SetOnCall(userID string) {
	if userID != "" {
		e.Set("on_call", userID)
	}
}

func (e *Escalation) SetNotedAt(now time.Time)    { e.Set("noted_at", Instant(now)) }
func (e *Escalation) SetRemindedAt(now time.Time) { e.Set("reminded_at", Instant(now)) }

func (e *Escalation) Tier() int             { return e.GetInt("tier") }
func (e *Escalation) TierAt() time.Time     { return instantOf(e, "tier_at") }
func (e *Escalation) OnCall() string        { return e.GetString("on_call") } // record id of who was told, else ""
func (e *Escalation) NotedAt() time.Time    { return instantOf(e, "noted_at") }
func (e *Escalation) RemindedAt() time.Time { return instantOf(e, "reminded_at") }

// WaitsSince is since when somebody has had to take it.
func (e *Escalation) WaitsSince() time.Time {
	if at := instantOf(e, "waits_since"); !at.IsZero() {
		return at
	}
	return e.CreatedAt()
}

// WorksSince is since when the work goes on without a note.
func (e *Escalation) WorksSince() time.Time {
	if at := e.NotedAt(); !at.IsZero() {
		return at
	}
	return e.UpdatedAt()
}

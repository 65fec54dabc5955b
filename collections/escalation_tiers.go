package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// Columns that only the escalation ladder writes.
const (
	EscalationTier       = "tier"
	EscalationNotifiedAt = "notified_at"
	EscalationRemindedAt = "reminded_at"
)

// takenByStaff is an escalation in progress with an active user who may handle it.
const takenByStaff = `(e.status = 'in_progress' AND EXISTS (SELECT 1 FROM users u WHERE u.email = e.assigned_to AND u.email != '' AND u.is_active = TRUE
	AND u.role IN ('admin', 'clinical_manager', 'provider', 'nurse')))`

// StarterOf is the user who started the work on an escalation, which may have been reassigned since.
const StarterOf UserRelation = `email = (SELECT s.user FROM escalation_events s WHERE s.escalation = {:to} AND s.event = 'in_progress' ORDER BY s.id DESC LIMIT 1)
	AND email != ''`

// EscalationCutoffs select the escalations of a priority that need an action: not taken and waiting since before the cutoff of their tier,
// last notified before the cutoff of the last tier or of overdue ones, or notified to a user who is no longer on call.
type EscalationCutoffs struct {
	Tiers   [3]time.Time
	Overdue time.Time
	OnCall  string // record id, or ""
}

// WaitingEscalations returns the ids of escalations that need an action, oldest first.
func WaitingEscalations(app core.App, priority string, c EscalationCutoffs, limit int) ([]string, error) {
	return queryColumn[string](app, "find waiting escalations", `SELECT e.id FROM escalations e
		WHERE e.status IN ('open', 'in_progress') AND e.priority = {:priority} AND NOT `+takenByStaff+` AND (
			e.tier < 3 AND COALESCE(NULLIF(e.waits_since, ''), e.created_at) <= CASE e.tier WHEN 0 THEN {:first} WHEN 1 THEN {:second} ELSE {:third} END
			OR e.tier = 3 AND e.tier_at <= {:third}
			OR e.tier > 0 AND {:onCall} NOT IN ('', e.on_call)
			OR e.status = 'open' AND e.created_at <= {:overdue} AND e.notified_at <= {:overdue})
		ORDER BY e.created_at LIMIT +{:limit}`, dbx.Params{
		"priority": priority, "first": FormatInstant(c.Tiers[0]), "second": FormatInstant(c.Tiers[1]), "third": FormatInstant(c.Tiers[2]),
		"overdue": FormatInstant(c.Overdue), "onCall": c.OnCall, "limit": limit,
	})
}

// IdleEscalations returns the ids of escalations in progress without a note or a reminder since the cutoff, oldest first.
func IdleEscalations(app core.App, cutoff time.Time, limit int) ([]string, error) {
	return queryColumn[string](app, "find escalations without a note", `SELECT e.id FROM escalations e
		WHERE `+takenByStaff+` AND COALESCE(NULLIF(e.noted_at, ''), e.updated_at) <= {:cutoff} AND e.reminded_at <= {:cutoff}
		ORDER BY e.created_at LIMIT +{:limit}`, dbx.Params{"cutoff": FormatInstant(cutoff), "limit": limit})
}

// IsEscalationTaken reports whether a user who may handle an escalation works on it.
func IsEscalationTaken(app core.App, id string) (bool, error) {
	return queryValue[bool](app, "check whether an escalation is taken", `SELECT `+takenByStaff+` FROM escalations e WHERE e.id = {:id}`, dbx.Params{"id": id})
}

// IsOnCallFor reports whether a user was notified, as the one on call, of an open escalation of the patient.
func IsOnCallFor(app core.App, patientID, userID string) (bool, error) {
	return queryValue[bool](app, "check who was on call for a patient", `SELECT EXISTS (SELECT 1 FROM escalations
		WHERE patient = {:patient} AND on_call = {:user} AND status IN ('open', 'in_progress'))`, dbx.Params{"patient": patientID, "user": userID})
}

// onCallOrTeam is escalations of patients of the user's care teams, and open ones for which the user was on call.
func onCallOrTeam(userID string) dbx.Expression {
	return dbx.Or(OnCareTeam("patient", userID), dbx.NewExp("on_call = {:calledUser} AND status IN ('open', 'in_progress')", dbx.Params{"calledUser": userID}))
}

// RaiseToStat makes an escalation stat and restarts its deadlines. raised is false if it was stat already.
func RaiseToStat(tx core.App, id string, now time.Time) (raised bool, err error) {
	n, err := updateCounted(tx, "raise an escalation", Escalations, dbx.Params{
		"priority": "stat", "tier": 0, "waits_since": FormatInstant(now), "tier_at": "", "on_call": "",
	}, dbx.NewExp("id = {:id} AND priority != 'stat'", dbx.Params{"id": id}))
	return n > 0, err
}

// RestartDeadlines restarts the deadlines, for another priority or because the escalation is no longer taken.
func (e *Escalation) RestartDeadlines(now time.Time) {
	e.Load(map[string]any{"tier": 0, "waits_since": FormatInstant(now), "tier_at": "", "on_call": ""})
}

// SetTier records the notified tier.
func (e *Escalation) SetTier(tier int, now time.Time) {
	e.Set("tier", tier)
	e.Set("tier_at", FormatInstant(now))
}

// SetOnCall records the notified user on call; "" keeps the last one.
func (e *Escalation) SetOnCall(userID string) {
	if userID != "" {
		e.Set("on_call", userID)
	}
}

func (e *Escalation) SetNotedAt(now time.Time)    { e.Set("noted_at", FormatInstant(now)) }
func (e *Escalation) SetRemindedAt(now time.Time) { e.Set("reminded_at", FormatInstant(now)) }

func (e *Escalation) Tier() int             { return e.GetInt("tier") }
func (e *Escalation) TierAt() time.Time     { return instantOf(e, "tier_at") }
func (e *Escalation) OnCall() string        { return e.GetString("on_call") } // record id of the notified user, or ""
func (e *Escalation) NotedAt() time.Time    { return instantOf(e, "noted_at") }
func (e *Escalation) RemindedAt() time.Time { return instantOf(e, "reminded_at") }

// WaitingSince is the start of the current wait for a clinician.
func (e *Escalation) WaitingSince() time.Time {
	if at := instantOf(e, "waits_since"); !at.IsZero() {
		return at
	}
	return e.CreatedAt()
}

// LastActivity is the time of the last note, or of the last change if there is none.
func (e *Escalation) LastActivity() time.Time {
	if at := e.NotedAt(); !at.IsZero() {
		return at
	}
	return e.UpdatedAt()
}

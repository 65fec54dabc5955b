package collections

import (
	"maps"
	"slices"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// undecidedClaim is an alert about what became no reading and about which nobody has decided yet; of such only those matter here that
// something newer superseded.
const undecidedClaim = `(resolution_reason = 'superseded' AND
	quarantine_id IN (SELECT id FROM gateway_events WHERE status IN ('` + EventOpen + `', '` + EventRejected + `')))`

// SettledAlerts are the alerts of some types about a patient that what was measured before a time has raised, that hold, and that are
// open, or were resolved by later readings since another time.
func SettledAlerts(tx core.App, patientID string, types []string, before, since time.Time) ([]*Alert, error) {
	return listOf[Alert](tx, Alerts, Every(Conditions{
		dbx.HashExp{"patient": patientID},
		AnyOf("type", types),
		dbx.NewExp("measured_at < {:before} AND (quarantine_id = '' AND observation != '' OR "+undecidedClaim+")", dbx.Params{"before": Instant(before)}),
		dbx.NewExp("(status = 'active' OR status = 'auto_resolved' AND resolved_at >= {:since})", dbx.Params{"since": Instant(since)}),
		dbx.NewExp(`resolution_reason != 'withdrawn' AND NOT EXISTS (SELECT 1 FROM observations o WHERE o.id = observation AND o.status = 'entered_in_error')`),
	}), "measured_at", "id")
}

// SupersededAlerts are a patient's that ended because something newer was there, and hold.
func SupersededAlerts(tx core.App, patientID string, since time.Time) ([]*Alert, error) {
	return listOf[Alert](tx, Alerts, Every(Conditions{
		dbx.HashExp{"patient": patientID, "resolution_reason": "superseded", "status": "auto_resolved"},
		dbx.NewExp("created_at >= {:since} AND (quarantine_id = '' OR "+undecidedClaim+")", dbx.Params{"since": Instant(since)}),
		dbx.NewExp(`NOT EXISTS (SELECT 1 FROM observations o WHERE o.id = observation AND o.status = 'entered_in_error')`),
	}), "measured_at", "id")
}

// AlertsEndedAt are a patient's of a type that the service resolved at a moment.
func AlertsEndedAt(tx core.App, patientID, alertType string, at time.Time) ([]*Alert, error) {
	return listOf[Alert](tx, Alerts, dbx.HashExp{"patient": patientID, "type": alertType, "status": "auto_resolved", "resolved_at": Instant(at)}, "id")
}

// AlertsLeftOf are the alerts attached to an escalation that hold: those of withdrawn readings are left out.
func AlertsLeftOf(tx core.App, escalationID, about string) ([]*Alert, error) {
	return listOf[Alert](tx, Alerts, dbx.NewExp(`(escalation = {:escalation} OR id = {:about}) AND resolution_reason != 'withdrawn'
		AND NOT EXISTS (SELECT 1 FROM observations o WHERE o.id = observation AND o.status = 'entered_in_error')`,
		dbx.Params{"escalation": escalationID, "about": about}), "created_at", "id")
}

// OpenAlertsOf are those of a type about a patient that are not over.
func OpenAlertsOf(tx core.App, patientID, alertType string) ([]*Alert, error) {
	return listOf[Alert](tx, Alerts, Every(Conditions{
		dbx.HashExp{"patient": patientID, "type": alertType}, AnyOf("status", []string{"active", "acknowledged"}),
	}), "measured_at", "id")
}

// Reopen makes an alert that readings had resolved one that waits again, after so many normal readings.
func (a *Alert) Reopen(tx core.App, normalReadings int, now time.Time) error {
	a.Load(map[string]any{
		AlertStatus: "active", "acknowledged": false, "acknowledged_by": "", "acknowledged_at": "", "resolved_by": "", "resolved_at": "",
		"resolution_reason": "", "normal_readings": normalReadings, "updated_at": Instant(now),
	})
	return Update(tx, a.ProxyRecord(), append(alertChanges[:len(alertChanges):len(alertChanges)], "resolution_reason", "normal_readings")...)
}

// Withdraw notes that an alert came of a reading that was entered in error; what else is known of it stays.
func (a *Alert) Withdraw(tx core.App, reason string, now time.Time) error {
	a.Load(map[string]any{"resolution_reason": reason, "updated_at": Instant(now)})
	return Update(tx, a.ProxyRecord(), "resolution_reason", "updated_at")
}

func (a *Alert) NormalReadings() int { return a.GetInt("normal_readings") }

// BySystem reports whether the service opened it.
func (e *Escalation) BySystem() bool { return e.CreatedBy() == "system" }

// Rest gives the escalation what is left of it once alerts were taken back: how urgent that is, and, where what it was about is gone, another
// alert and its message.
func (e *Escalation) Rest(tx core.App, about *Alert, priority string, now time.Time) error {
	changes := map[string]any{"priority": priority, "updated_at": Instant(now)}
	if about.Id != e.AlertID() {
		changes["alert"], changes["reason"] = about.Id, about.Message().Reveal()
	}
	e.Load(changes)
	return Update(tx, e.ProxyRecord(), slices.Sorted(maps.Keys(changes))...)
}

package collections

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// CurrentSnooze is the snooze of a type of alerts about a patient that nobody has ended; it may have run out. Nil when there is none.
func CurrentSnooze(app core.App, patientID, alertType string) (*Snooze, error) {
	snooze, err := find[Snooze](app, Snoozes, dbx.HashExp{"patient": patientID, "type": alertType, "ended_at": ""})
	return snooze, unlessMissing(err)
}

// FindSnoozeByID finds a snooze by its record id.
func FindSnoozeByID(app core.App, id string) (*Snooze, error) {
	return find[Snooze](app, Snoozes, dbx.HashExp{"id": id})
}

// DueSnoozes are the ids of snoozes that have run out and that nobody has ended, the longest due first.
func DueSnoozes(app core.App, now time.Time, limit int) ([]string, error) {
	return queryColumn[string](app, "find snoozes that ran out", `SELECT id FROM snoozes WHERE ended_at = '' AND ends_at <= {:now}
		ORDER BY ends_at LIMIT +{:limit}`, dbx.Params{"now": Instant(now), "limit": limit})
}

// KnownAlert is an alert that everybody knows of when a snooze begins.
type KnownAlert struct {
	ID          string   `db:"id"`
	Observation string   `db:"observation"`
	Parameter   string   `db:"parameter"`
	Value       *float64 `db:"value"`
	Threshold   *float64 `db:"threshold"`
	// Withdrawn: it was taken back since.
	Withdrawn bool `db:"withdrawn"`
}

// KnownAlerts are the alerts of a type about a patient that are not over: those that nobody acknowledged, of readings since one time, and
// those that somebody did, of readings since another.
func KnownAlerts(app core.App, patientID, alertType string, open, acknowledged time.Time) ([]KnownAlert, error) {
	return queryAll[KnownAlert](app, "find known alerts", `SELECT id, observation, parameter, value, threshold FROM alerts
		WHERE patient = {:patient} AND type = {:type} AND level IN ('critical', 'warning') AND value IS NOT NULL
			AND (status = 'active' AND measured_at >= {:open} OR status = 'acknowledged' AND measured_at >= {:acknowledged})`,
		dbx.Params{"patient": patientID, "type": alertType, "open": Instant(open), "acknowledged": Instant(acknowledged)})
}

// KnownAlertsAt are what [KnownAlerts] were at a time, whatever became of them since.
func KnownAlertsAt(app core.App, patientID, alertType string, at, open, acknowledged time.Time) ([]KnownAlert, error) {
	return queryAll[KnownAlert](app, "find alerts that were known", `SELECT id, observation, parameter, value, threshold,
			resolution_reason = 'withdrawn' OR EXISTS (SELECT 1 FROM observations o WHERE o.id = observation AND o.status = 'entered_in_error') AS withdrawn
		FROM alerts WHERE patient = {:patient} AND type = {:type} AND level IN ('critical', 'warning') AND value IS NOT NULL
			AND created_at <= {:at} AND (resolved_at = '' OR resolved_at >= {:at})
			AND measured_at >= CASE WHEN acknowledged_at = '' OR acknowledged_at >= {:at} THEN {:open} ELSE {:acknowledged} END`,
		dbx.Params{"patient": patientID, "type": alertType, "at": Instant(at), "open": Instant(open), "acknowledged": Instant(acknowledged)})
}

// QuietSince are the ids of the unacknowledged critical alerts of a type about a patient that were stored since a time and kept quiet.
func QuietSince(app core.App, patientID, alertType string, since time.Time) ([]string, error) {
	return queryColumn[string](app, "find alerts that were snoozed", `SELECT id FROM alerts
		WHERE patient = {:patient} AND type = {:type} AND acknowledged = FALSE AND level = 'critical' AND snoozed = TRUE AND late = FALSE
			AND created_at >= {:since}`, dbx.Params{"patient": patientID, "type": alertType, "since": Instant(since)})
}

// ToldSince reports whether an alert of a type about a patient was raised since a time and told: a critical one when critical is asked for.
// One that came late says nothing of now, whoever heard of it.
func ToldSince(app core.App, patientID, alertType string, critical bool, since time.Time) (bool, error) {
	return queryValue[bool](app, "look for an alert that was told", `SELECT EXISTS (SELECT 1 FROM alerts
		WHERE patient = {:patient} AND type = {:type} AND created_at >= {:since} AND snoozed = FALSE AND late = FALSE AND level IN ('critical', 'warning')
			AND (level = 'critical' OR NOT {:critical}))`,
		dbx.Params{"patient": patientID, "type": alertType, "since": Instant(since), "critical": critical})
}

// CriticalMeasuredAt is the newest critical alert of a type and status about what was measured of a patient at a time; nil when there is none.
func CriticalMeasuredAt(app core.App, patientID, alertType, status string, at time.Time) (*Alert, error) {
	var found []*Alert
	err := app.RecordQuery(Alerts).
		AndWhere(dbx.HashExp{"patient": patientID, "type": alertType, "level": "critical", "status": status, "measured_at": Instant(at)}).
		OrderBy("id DESC").Limit(1).All(&found)
	if err != nil || len(found) == 0 {
		return nil, wrap(err, "find a critical alert")
	}
	return found[0], nil
}

// LateAlerts are the ids of the unacknowledged alerts of a type about a patient whose readings came late.
func LateAlerts(app core.App, patientID, alertType string) ([]string, error) {
	return queryColumn[string](app, "find late alerts", `SELECT id FROM alerts
		WHERE patient = {:patient} AND type = {:type} AND acknowledged = FALSE AND late = TRUE`,
		dbx.Params{"patient": patientID, "type": alertType})
}

// AttachCriticalAlerts lets the unacknowledged critical alerts of a type about a patient that belong to no escalation belong to one; late
// ones belong to none.
func AttachCriticalAlerts(tx core.App, patientID, alertType, escalationID string, now time.Time) error {
	return exec(tx, "attach critical alerts", `UPDATE alerts SET escalation = {:escalation}, updated_at = {:at}
		WHERE patient = {:patient} AND type = {:type} AND level = 'critical' AND acknowledged = FALSE AND escalation = '' AND late = FALSE`,
		dbx.Params{"patient": patientID, "type": alertType, "escalation": escalationID, "at": Instant(now)})
}

// Known is what was known when it began, as JSON.
func (s *Snooze) Known() string { return s.GetString("known") }

// StoreKnown stores what of that is left.
func (s *Snooze) StoreKnown(tx core.App, known any) error {
	if err := s.SetKnown(known); err != nil {
		return err
	}
	return Update(tx, s.ProxyRecord(), "known")
}

// Over reports whether it was ended, by somebody or because its time had come.
func (s *Snooze) Over() bool { return s.GetString("ended_at") != "" }

// SetKnown stores what was known when it began, as JSON.
func (s *Snooze) SetKnown(known any) error {
	raw, err := json.Marshal(known)
	if err != nil {
		return fmt.Errorf("encode what a snooze knows: %w", err)
	}
	s.Set("known", string(raw))
	return nil
}

// SetRow stores since when alerts have been quiet without a break, and critical ones; zero where they are not.
func (s *Snooze) SetRow(quietSince, criticalSince time.Time) {
	s.Load(map[string]any{"quiet_since": Instant(quietSince), "critical_since": Instant(criticalSince)})
}

// QuietSince is when the first of the snoozes in a row began.
func (s *Snooze) QuietSince() time.Time { return firstOf(instantOf(s, "quiet_since"), s.CreatedAt()) }

// CriticalSince is the same of those that keep critical alerts quiet.
func (s *Snooze) CriticalSince() time.Time {
	return firstOf(instantOf(s, "critical_since"), s.CreatedAt())
}

func firstOf(at, otherwise time.Time) time.Time {
	if at.IsZero() { // stored before it was noted
		return otherwise
	}
	return at
}

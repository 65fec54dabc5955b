package collections

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

// CurrentSnooze returns the snooze of a patient and type that was not ended, or nil. It may have expired.
func CurrentSnooze(app core.App, patientID, alertType string) (*Snooze, error) {
	snooze, err := find[Snooze](app, Snoozes, dbx.HashExp{"patient": patientID, "type": alertType, "ended_at": ""})
	return snooze, IgnoreNotFound(err)
}

// FindSnoozeByID finds a snooze by record id.
func FindSnoozeByID(app core.App, id string) (*Snooze, error) {
	return find[Snooze](app, Snoozes, dbx.HashExp{"id": id})
}

// DueSnoozes returns the ids of expired snoozes that were not ended, the longest overdue first.
func DueSnoozes(app core.App, now time.Time, limit int) ([]string, error) {
	return queryColumn[string](app, "find expired snoozes", `SELECT id FROM snoozes WHERE ended_at = '' AND ends_at <= {:now}
		ORDER BY ends_at LIMIT +{:limit}`, dbx.Params{"now": FormatInstant(now), "limit": limit})
}

// BaselineAlert is an alert that existed when a snooze started.
type BaselineAlert struct {
	ID          string   `db:"id"`
	Observation string   `db:"observation"`
	Parameter   string   `db:"parameter"`
	Value       *float64 `db:"value"`
	Threshold   *float64 `db:"threshold"`
	// Retracted: its reading was retracted since.
	Retracted bool `db:"retracted"`
}

// BaselineAlerts returns a patient's open alerts of a type: active ones of readings since open, acknowledged ones of readings since
// acknowledged.
func BaselineAlerts(app core.App, patientID, alertType string, open, acknowledged time.Time) ([]BaselineAlert, error) {
	return queryAll[BaselineAlert](app, "find baseline alerts", `SELECT id, observation, parameter, value, threshold FROM alerts
		WHERE patient = {:patient} AND type = {:type} AND level IN ('critical', 'warning') AND value IS NOT NULL
			AND (status = 'active' AND measured_at >= {:open} OR status = 'acknowledged' AND measured_at >= {:acknowledged})`,
		dbx.Params{"patient": patientID, "type": alertType, "open": FormatInstant(open), "acknowledged": FormatInstant(acknowledged)})
}

// BaselineAlertsAt returns what [BaselineAlerts] returned at an earlier time.
func BaselineAlertsAt(app core.App, patientID, alertType string, at, open, acknowledged time.Time) ([]BaselineAlert, error) {
	return queryAll[BaselineAlert](app, "find earlier baseline alerts", `SELECT id, observation, parameter, value, threshold,
			resolution_reason = 'withdrawn' OR EXISTS (SELECT 1 FROM observations o WHERE o.id = observation AND o.status = 'entered_in_error') AS retracted
		FROM alerts WHERE patient = {:patient} AND type = {:type} AND level IN ('critical', 'warning') AND value IS NOT NULL
			AND created_at <= {:at} AND (resolved_at = '' OR resolved_at >= {:at})
			AND measured_at >= CASE WHEN acknowledged_at = '' OR acknowledged_at >= {:at} THEN {:open} ELSE {:acknowledged} END`,
		dbx.Params{"patient": patientID, "type": alertType, "at": FormatInstant(at), "open": FormatInstant(open), "acknowledged": FormatInstant(acknowledged)})
}

// SnoozedCriticalAlerts returns the ids of a patient's unacknowledged critical alerts of a type that were stored since a time and suppressed.
func SnoozedCriticalAlerts(app core.App, patientID, alertType string, since time.Time) ([]string, error) {
	return queryColumn[string](app, "find alerts that were snoozed", `SELECT id FROM alerts
		WHERE patient = {:patient} AND type = {:type} AND acknowledged = FALSE AND level = 'critical' AND snoozed = TRUE AND `+isPresent+`
			AND created_at >= {:since}`, dbx.Params{"patient": patientID, "type": alertType, "since": FormatInstant(since)})
}

// NotifiedSince reports whether an alert of a patient and type was raised since a time and not suppressed; critical requires a critical one.
// Alerts about the past do not count, nor warnings that their trend left to the list.
func NotifiedSince(app core.App, patientID, alertType string, critical bool, since time.Time) (bool, error) {
	return queryValue[bool](app, "look for a notified alert", `SELECT EXISTS (SELECT 1 FROM alerts
		WHERE patient = {:patient} AND type = {:type} AND created_at >= {:since} AND snoozed = FALSE AND `+isPresent+` AND push_rule != 'trend' AND level IN ('critical', 'warning')
			AND (level = 'critical' OR NOT {:critical}))`,
		dbx.Params{"patient": patientID, "type": alertType, "since": FormatInstant(since), "critical": critical})
}

// CriticalAlertMeasuredAt returns the newest critical alert of a type and status about a patient's measurement at a time, or nil.
func CriticalAlertMeasuredAt(app core.App, patientID, alertType, status string, at time.Time) (*Alert, error) {
	var found []*Alert
	err := app.RecordQuery(Alerts).
		AndWhere(dbx.HashExp{"patient": patientID, "type": alertType, "level": "critical", "status": status, "measured_at": FormatInstant(at)}).
		OrderBy("id DESC").Limit(1).All(&found)
	if err != nil || len(found) == 0 {
		return nil, wrap(err, "find a critical alert")
	}
	return found[0], nil
}

// isPresent matches alerts about the patient's present state: that a reading is late is certain only if its device's clock is proven.
const isPresent = `(late = FALSE OR escalates_late = TRUE)`

// LateAlerts returns the ids of a patient's unacknowledged alerts of a type about the past.
func LateAlerts(app core.App, patientID, alertType string) ([]string, error) {
	return queryColumn[string](app, "find late alerts", `SELECT id FROM alerts
		WHERE patient = {:patient} AND type = {:type} AND acknowledged = FALSE AND NOT `+isPresent,
		dbx.Params{"patient": patientID, "type": alertType})
}

// AttachCriticalAlerts attaches a patient's unacknowledged critical alerts of a type without an escalation to one, except those about the past.
func AttachCriticalAlerts(tx core.App, patientID, alertType, escalationID string, now time.Time) error {
	return exec(tx, "attach critical alerts", `UPDATE alerts SET escalation = {:escalation}, updated_at = {:at}
		WHERE patient = {:patient} AND type = {:type} AND level = 'critical' AND acknowledged = FALSE AND escalation = '' AND `+isPresent,
		dbx.Params{"patient": patientID, "type": alertType, "escalation": escalationID, "at": FormatInstant(now)})
}

// Baseline returns the alerts that existed when the snooze started, as JSON.
func (s *Snooze) Baseline() string { return s.GetString("known") }

// StoreBaseline stores a reduced baseline.
func (s *Snooze) StoreBaseline(tx core.App, known any) error {
	if err := s.SetBaseline(known); err != nil {
		return err
	}
	return Update(tx, s.ProxyRecord(), "known")
}

// Closed reports whether a user or the expiry ended the snooze.
func (s *Snooze) Closed() bool { return s.GetString("ended_at") != "" }

// SetBaseline sets the alerts that existed when the snooze started, as JSON.
func (s *Snooze) SetBaseline(known any) error {
	raw, err := json.Marshal(known)
	if err != nil {
		return fmt.Errorf("encode snooze baseline: %w", err)
	}
	s.Set("known", string(raw))
	return nil
}

// SetSuppressedSince sets since when alerts, and critical alerts, have been suppressed without a break; zero if they are not.
func (s *Snooze) SetSuppressedSince(quietSince, criticalSince time.Time) {
	s.Load(map[string]any{"quiet_since": FormatInstant(quietSince), "critical_since": FormatInstant(criticalSince)})
}

// SuppressedSince returns when the first of consecutive snoozes started.
func (s *Snooze) SuppressedSince() time.Time {
	return firstNonZero(instantOf(s, "quiet_since"), s.CreatedAt())
}

// CriticalSince returns the same for snoozes that include critical alerts.
func (s *Snooze) CriticalSince() time.Time {
	return firstNonZero(instantOf(s, "critical_since"), s.CreatedAt())
}

// firstNonZero returns at, or fallback for rows stored before the column existed.
func firstNonZero(at, fallback time.Time) time.Time {
	if at.IsZero() {
		return fallback
	}
	return at
}

// Snooze suppresses alerts of one type for a patient until a time.
type Snooze struct{ patientRecord }

// NewSnooze returns an unsaved snooze with the next number.
func NewSnooze(tx core.App, patientID, alertType string, reason phi.Text, until time.Time, by string, now time.Time) (*Snooze, error) {
	return newRecord[Snooze](tx, Snoozes, map[string]any{
		"patient": patientID, "type": alertType, "reason": reason.Reveal(), "ends_at": FormatInstant(until), "created_by": by, "created_at": FormatInstant(now),
	})
}

// FindSnooze finds one snooze of a patient.
func FindSnooze(app core.App, patientID string, number int64) (*Snooze, error) {
	return findReadable[Snooze](app, Snoozes, dbx.HashExp{"id": NumberID(number), "patient": patientID})
}

// PageOfSnoozes returns a page of a patient's snoozes, newest first, and the total. current selects those in force, or the ended ones.
func PageOfSnoozes(app core.App, patientID string, current *bool, now time.Time, offset, limit int) ([]*Snooze, int, error) {
	where := Conditions{}.Equal("patient", patientID)
	if current != nil {
		inForce := "(ended_at = '' AND ends_at > {:now})"
		if !*current {
			inForce = "NOT " + inForce
		}
		where = append(where, dbx.NewExp(inForce, dbx.Params{"now": FormatInstant(now)}))
	}
	return pageOf[Snooze](app, Snoozes, AllOf(where), []string{"created_at DESC", "id DESC"}, offset, limit)
}

// EndSnoozesOf ends the snoozes of a patient and type. Those that had already expired are recorded as ended by system.
func EndSnoozesOf(tx core.App, patientID, alertType, by, system string, now time.Time) error {
	return exec(tx, "end snoozes", `UPDATE snoozes SET ended_at = min(ends_at, {:now}), ended_by = CASE WHEN ends_at <= {:now} THEN {:system} ELSE {:by} END
		WHERE patient = {:patient} AND type = {:type} AND ended_at = ''`,
		dbx.Params{"now": FormatInstant(now), "patient": patientID, "type": alertType, "by": by, "system": system})
}

// SetIncludeCritical sets whether critical alerts are suppressed too.
func (s *Snooze) SetIncludeCritical(include bool) { s.Set("include_critical", include) }

// End stores that a user ended the snooze early.
func (s *Snooze) End(tx core.App, by string, now time.Time) error {
	stamp(s, "ended", by, now)
	return Update(tx, s.ProxyRecord(), "ended_at", "ended_by")
}

// InForce reports whether the snooze suppresses alerts at a time.
func (s *Snooze) InForce(at time.Time) bool {
	return s.GetString("ended_at") == "" && FormatInstant(at) < s.GetString("ends_at")
}

func (s *Snooze) Number() int64         { return Number(s.Id) }
func (s *Snooze) Type() string          { return s.GetString("type") }
func (s *Snooze) IncludeCritical() bool { return s.GetBool("include_critical") }
func (s *Snooze) Reason() phi.Text      { return phi.Text(s.GetString("reason")) }
func (s *Snooze) EndsAt() time.Time     { return instantOf(s, "ends_at") }
func (s *Snooze) CreatedBy() string     { return s.GetString("created_by") }
func (s *Snooze) EndedAt() time.Time    { return instantOf(s, "ended_at") }
func (s *Snooze) EndedBy() string       { return s.GetString("ended_by") }

// SnoozesEndedSince returns the snoozes of a patient and type that ended since a time.
func SnoozesEndedSince(app core.App, patientID, alertType string, since time.Time) ([]*Snooze, error) {
	return listOf[Snooze](app, Snoozes, dbx.NewExp("patient = {:patient} AND type = {:type} AND ended_at >= {:since}",
		dbx.Params{"patient": patientID, "type": alertType, "since": FormatInstant(since)}), "id")
}

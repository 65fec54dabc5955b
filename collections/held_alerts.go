package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// HeldAlerts are the ids of alerts whose escalation has waited long enough for the reading to be confirmed, the longest due first.
func HeldAlerts(app core.App, now time.Time, limit int) ([]string, error) {
	return queryColumn[string](app, "find held alerts", `SELECT id FROM alerts WHERE held_until != '' AND held_until <= {:now}
		ORDER BY held_until, id LIMIT +{:limit}`, dbx.Params{"now": Instant(now), "limit": limit})
}

// HeldUntil is until when the escalation waits; zero when it does not.
func (a *Alert) HeldUntil() time.Time { return instantOf(a, "held_until") }

// MeasuredAt is when the reading behind it was taken.
func (a *Alert) MeasuredAt() time.Time { return instantOf(a, "measured_at") }

// Origin says who vouches for the reading behind it.
func (a *Alert) Origin() string { return a.GetString("origin") }

// EndHold stores that the escalation of an alert no longer waits.
func (a *Alert) EndHold(tx core.App) error {
	a.Set("held_until", "")
	return Update(tx, a.ProxyRecord(), "held_until")
}

// ReleaseHeld lets the alerts of a patient whose escalation waits join the one that is open now. What is over joins nothing.
func ReleaseHeld(tx core.App, patientID, escalationID string, now time.Time) error {
	return exec(tx, "release held alerts", `UPDATE alerts SET escalation = {:escalation}, held_until = '', updated_at = {:at}
		WHERE patient = {:patient} AND held_until != '' AND status IN ('active', 'acknowledged')`,
		dbx.Params{"patient": patientID, "escalation": escalationID, "at": Instant(now)})
}

// Repetition says which readings repeat the one behind an alert: of the same patient and kind, and measured after it.
type Repetition struct {
	Patient, Kind string
	After         time.Time
	// ByPatient: what the patient typed counts, too.
	ByPatient bool
}

func (r Repetition) params() dbx.Params {
	return dbx.Params{"patient": r.Patient, "kind": r.Kind, "after": Instant(r.After), "typed": r.ByPatient}
}

// repeats is the condition of an observation that repeats a reading; doubtful ones do not.
const repeats = `patient = {:patient} AND observation_type = {:kind} AND status = 'final' AND review_state != 'suspect'`

// RepeatedReadings are the readings that repeat one, oldest first.
func RepeatedReadings(app core.App, r Repetition, limit int) (found []*core.Record, err error) {
	err = app.RecordQuery(Observations).
		AndWhere(dbx.NewExp(repeats+` AND measured_at > {:after} AND (origin != 'patient' OR {:typed})`, r.params())).
		OrderBy("measured_at", "created_at").Limit(int64(limit)).All(&found)
	return found, wrap(err, "find repeated readings")
}

// HastenHeld ends the wait of a patient's held alerts of which so many repeated readings are stored.
func HastenHeld(tx core.App, patientID, kind string, enough int, now time.Time) error {
	return exec(tx, "hasten held alerts", `UPDATE alerts SET held_until = {:now} WHERE patient = {:patient} AND held_until > {:now}
			AND (SELECT COUNT(*) FROM observations WHERE `+repeats+` AND measured_at > alerts.measured_at
				AND (observations.origin != 'patient' OR alerts.origin = 'patient')) >= {:enough}`,
		dbx.Params{"patient": patientID, "kind": kind, "enough": enough, "now": Instant(now)})
}

// CriticalWithin reports whether a reading that holds, measured within a time before or after another, raised a critical alert of a type.
func CriticalWithin(app core.App, patientID, alertType string, at time.Time, within time.Duration) (bool, error) {
	return queryValue[bool](app, "look for critical readings", `SELECT EXISTS (SELECT 1 FROM alerts a
		WHERE a.patient = {:patient} AND a.type = {:type} AND a.level = 'critical' AND a.measured_at > {:from} AND a.measured_at < {:to}
			AND NOT EXISTS (SELECT 1 FROM observations WHERE id = a.observation AND status = 'entered_in_error'))`,
		dbx.Params{"patient": patientID, "type": alertType, "from": Instant(at.Add(-within)), "to": Instant(at.Add(within))})
}

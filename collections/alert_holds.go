package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// DueHolds returns the ids of alerts with an expired escalation hold, the longest overdue first.
func DueHolds(app core.App, now time.Time, limit int) ([]string, error) {
	return queryColumn[string](app, "find due holds", `SELECT id FROM alerts WHERE held_until != '' AND held_until <= {:now}
		ORDER BY held_until, id LIMIT +{:limit}`, dbx.Params{"now": FormatInstant(now), "limit": limit})
}

// HeldUntil returns the end of the escalation hold, or zero.
func (a *Alert) HeldUntil() time.Time { return instantOf(a, "held_until") }

// MeasuredAt returns when the alert's reading was measured.
func (a *Alert) MeasuredAt() time.Time { return instantOf(a, "measured_at") }

// CreatedAt is when the alert was raised.
func (a *Alert) CreatedAt() time.Time { return instantOf(a, "created_at") }

// Origin returns the origin of the alert's reading.
func (a *Alert) Origin() string { return a.GetString("origin") }

// EndHold clears the escalation hold of an alert.
func (a *Alert) EndHold(tx core.App) error {
	a.Set("held_until", "")
	return Update(tx, a.ProxyRecord(), "held_until")
}

// ReleaseHolds attaches the open, held alerts of a patient to an escalation and ends their holds.
func ReleaseHolds(tx core.App, patientID, escalationID string, now time.Time) error {
	return exec(tx, "release holds", `UPDATE alerts SET escalation = {:escalation}, held_until = '', updated_at = {:at}
		WHERE patient = {:patient} AND held_until != '' AND status IN ('active', 'acknowledged')`,
		dbx.Params{"patient": patientID, "escalation": escalationID, "at": FormatInstant(now)})
}

// RepeatQuery selects readings that repeat an alert's reading: same patient and kind, measured later.
type RepeatQuery struct {
	Patient, Kind string
	After         time.Time
	// ByPatient includes readings that the patient typed.
	ByPatient bool
}

func (r RepeatQuery) params() dbx.Params {
	return dbx.Params{"patient": r.Patient, "kind": r.Kind, "after": FormatInstant(r.After), "typed": r.ByPatient}
}

// repeats matches an observation that repeats a reading; suspect ones do not.
const repeats = `patient = {:patient} AND observation_type = {:kind} AND status = 'final' AND review_state != 'suspect'`

// RepeatedReadings returns the repeating readings, oldest first.
func RepeatedReadings(app core.App, r RepeatQuery, limit int) (found []*core.Record, err error) {
	err = app.RecordQuery(Observations).
		AndWhere(dbx.NewExp(repeats+` AND measured_at > {:after} AND (origin != 'patient' OR {:typed})`, r.params())).
		OrderBy("measured_at", "created_at").Limit(int64(limit)).All(&found)
	return found, wrap(err, "find repeated readings")
}

// ExpediteHolds makes the holds of a patient's alerts due that have enough repeated readings.
func ExpediteHolds(tx core.App, patientID, kind string, enough int, now time.Time) error {
	return exec(tx, "expedite holds", `UPDATE alerts SET held_until = {:now} WHERE patient = {:patient} AND held_until > {:now}
			AND (SELECT COUNT(*) FROM observations WHERE `+repeats+` AND measured_at > alerts.measured_at
				AND (observations.origin != 'patient' OR alerts.origin = 'patient')) >= {:enough}`,
		dbx.Params{"patient": patientID, "kind": kind, "enough": enough, "now": FormatInstant(now)})
}

// HasHold reports whether the escalation of an open alert of a patient is held.
func HasHold(app core.App, patientID string) (bool, error) {
	return queryValue[bool](app, "look for a hold", `SELECT EXISTS (SELECT 1 FROM alerts WHERE patient = {:patient} AND held_until != ''
		AND status IN ('active', 'acknowledged'))`, dbx.Params{"patient": patientID})
}

// ExpediteWeakSignal makes the holds of a patient's alerts of the types due that were measured before a repeated reading. One that the
// patient typed decides about typed ones only.
func ExpediteWeakSignal(tx core.App, patientID string, types []string, repeated time.Time, typed bool, now time.Time) error {
	which := dbx.And(dbx.NewExp(`patient = {:patient} AND held_until > {:now} AND measured_at < {:repeated} AND (NOT {:typed} OR origin = 'patient')`,
		dbx.Params{"patient": patientID, "now": FormatInstant(now), "repeated": FormatInstant(repeated), "typed": typed}), AnyOf("type", types))
	return update(tx, "expedite holds of weak signals", Alerts, dbx.Params{"held_until": FormatInstant(now)}, which)
}

// HasCriticalWithin reports whether an unretracted reading, measured within a duration before or after another, raised a critical alert of a
// type.
func HasCriticalWithin(app core.App, patientID, alertType string, at time.Time, within time.Duration) (bool, error) {
	return queryValue[bool](app, "look for critical readings", `SELECT EXISTS (SELECT 1 FROM alerts a
		WHERE a.patient = {:patient} AND a.type = {:type} AND a.level = 'critical' AND a.measured_at > {:from} AND a.measured_at < {:to}
			AND NOT EXISTS (SELECT 1 FROM observations WHERE id = a.observation AND status = 'entered_in_error'))`,
		dbx.Params{"patient": patientID, "type": alertType, "from": FormatInstant(at.Add(-within)), "to": FormatInstant(at.Add(within))})
}

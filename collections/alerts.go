package collections

import (
	"context"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

// Columns of an alert that a user can change.
const (
	AlertStatus           = "status"
	AlertNotes            = "notes"
	AlertClinicalNote     = "clinical_note"
	AlertOutcome          = "outcome"
	AlertFollowUpRequired = "follow_up_required"
	AlertFollowUpAt       = "follow_up_at"
)

// alertChanges are the columns of an alert that may be written again. The others are facts.
var alertChanges = []string{
	AlertStatus, AlertNotes, AlertClinicalNote, AlertOutcome, AlertFollowUpRequired, AlertFollowUpAt, "follow_up_by", "follow_up_told",
	"acknowledged", "acknowledged_by", "acknowledged_at", "resolved_by", "resolved_at", "escalation", "updated_at",
}

// Alert is a finding, missed reading or device problem that is shown to the practice.
type Alert struct{ patientRecord }

// AsAlert converts a record of the alerts collection.
func AsAlert(record *core.Record) *Alert { return as[Alert](record) }

// FindAlert finds one alert.
func FindAlert(app core.App, id string) (*Alert, error) {
	return find[Alert](app, Alerts, dbx.HashExp{"id": id})
}

// AlertsByID returns alerts in no order, and skips ids without an alert.
func AlertsByID(app core.App, ids []string) ([]*Alert, error) {
	return listOf[Alert](app, Alerts, idIn(ids))
}

// AlertFilter narrows a list of alerts; zero values do not narrow.
type AlertFilter struct {
	PatientID, DeviceID, Level, Status, Type string
	Acknowledged                             *bool
	// Closed selects resolved alerts, or active and acknowledged ones.
	Closed *bool
	// AcknowledgedBy is the address of the user who acknowledged the alert first.
	AcknowledgedBy string
	// Types selects these types, without alerts that a reading raised.
	Types []string
	// From and To bound the creation time, both inclusive.
	From, To time.Time
	// CareTeamOf selects the patients of a user's care teams (record id).
	CareTeamOf string
}

// PageOfAlerts returns a page of alerts, newest first, and the total.
func PageOfAlerts(app core.App, f AlertFilter, offset, limit int) (page []*core.Record, total int, err error) {
	const newestFirst = "created_at DESC, id DESC"
	kind := Conditions{}.Equal("level", f.Level).Equal("status", f.Status).Equal("type", f.Type).Is("acknowledged", f.Acknowledged)
	if f.Closed != nil {
		statuses := map[bool][]string{false: {"active", "acknowledged"}, true: {"resolved", "auto_resolved"}}
		kind = append(kind, AnyOf("status", statuses[*f.Closed]))
	}
	if f.PatientID+f.DeviceID+f.CareTeamOf+f.AcknowledgedBy == "" && f.Types == nil && f.From.IsZero() && f.To.IsZero() {
		err = app.DB().Select("COALESCE(SUM(alerts), 0)").From("alert_totals").Where(AllOf(kind)).Row(&total)
		if err != nil {
			return nil, 0, wrap(err, "count alerts")
		}
		return kind.PageOfUndeletedCounted(app, Alerts, newestFirst, offset, limit, total)
	}
	if f.Types != nil {
		kind = append(kind, AnyOf("type", f.Types), dbx.NewExp("observation = ''"))
	}
	if f.AcknowledgedBy != "" {
		kind = kind.And("acknowledged_by != ''") // the condition of the partial index
	}
	return kind.Equal("patient", f.PatientID).Equal("acknowledged_by", f.AcknowledgedBy).Equal("device_id", f.DeviceID).Between("created_at", f.From, f.To).
		OnCareTeamOf(f.CareTeamOf).PageOfUndeleted(app, Alerts, newestFirst, offset, limit)
}

// AlertsOfObservations returns the critical and warning alerts of observations, by observation, in order of creation.
func AlertsOfObservations(app core.App, observationIDs ...string) (map[string][]*Alert, error) {
	list, err := listOf[Alert](app, Alerts, dbx.And(AnyOf("observation", observationIDs), dbx.NewExp("observation != ''"),
		dbx.In("level", "critical", "warning")), "id")
	alerts := map[string][]*Alert{}
	for _, alert := range list {
		alerts[alert.ObservationID()] = append(alerts[alert.ObservationID()], alert)
	}
	return alerts, err
}

// RaisedAlert is an alert that a reading raised.
type RaisedAlert struct {
	Observation string   `db:"observation"`
	Type        string   `db:"type"`
	Level       string   `db:"level"`
	Parameter   string   `db:"parameter"`
	Value       *float64 `db:"value"`
	Threshold   *float64 `db:"threshold"`
}

// RaisedAlerts returns the alerts that a patient's readings raised since a time, in no order.
func RaisedAlerts(ctx context.Context, app core.App, patientID string, since time.Time) (raised []RaisedAlert, err error) {
	err = app.DB().NewQuery(`SELECT observation, type, level, parameter, value, threshold FROM alerts
		WHERE patient = {:patient} AND created_at >= {:from} AND observation != '' AND level IN ('critical', 'warning')`).
		Bind(dbx.Params{"patient": patientID, "from": FormatInstant(since)}).WithContext(ctx).All(&raised)
	return raised, wrap(err, "read alerts that were raised")
}

// LastAlertMeasured returns the measurement time of a patient's last alert of a type and parameter, or zero.
func LastAlertMeasured(app core.App, patientID, alertType, parameter string) (time.Time, error) {
	at, err := queryValue[string](app, "find last alert", `SELECT COALESCE(MAX(measured_at), '') FROM alerts
		WHERE patient = {:patient} AND type = {:type} AND parameter = {:parameter}`,
		dbx.Params{"patient": patientID, "type": alertType, "parameter": parameter})
	return ParseInstant(at), err
}

// AlertIDsOfEscalations returns the ids of the alerts attached to escalations, by escalation, in order.
func AlertIDsOfEscalations(app core.App, escalationIDs []string) (map[string][]string, error) {
	var rows []struct {
		ID         string `db:"id"`
		Escalation string `db:"escalation"`
	}
	err := app.DB().Select("id", "escalation").From(Alerts).
		Where(dbx.And(AnyOf("escalation", escalationIDs), dbx.NewExp("escalation != ''"))).OrderBy("id").All(&rows)
	attached := map[string][]string{}
	for _, row := range rows {
		attached[row.Escalation] = append(attached[row.Escalation], row.ID)
	}
	return attached, wrap(err, "find alerts of escalations")
}

// AlertsToFollowUp returns the ids of alerts with a follow-up reminder due, without those of archived patients, the longest overdue first.
func AlertsToFollowUp(app core.App, now time.Time, limit int) ([]string, error) {
	return queryColumn[string](app, "find follow-ups", `SELECT id FROM alerts
		WHERE follow_up_required = TRUE AND follow_up_told = FALSE AND follow_up_at <= {:now}
			AND NOT EXISTS (SELECT 1 FROM patients p WHERE p.id = alerts.patient AND NOT (p.active = TRUE AND p.deleted_at = '')) ORDER BY follow_up_at LIMIT +{:limit}`,
		dbx.Params{"now": FormatInstant(now), "limit": limit})
}

// ResolvedAlert is an alert that was closed, and its patient.
type ResolvedAlert struct {
	ID        string `db:"id"`
	PatientID string `db:"patient"`
}

// ResolveDeviceAlerts gives the active alerts of a type about a device or hub a closed status; patientID narrows to one patient unless "".
func ResolveDeviceAlerts(tx core.App, deviceID, alertType, patientID, status, by string, now time.Time) ([]ResolvedAlert, error) {
	return resolveAlerts(tx, `device_id = {:device} AND device_id != '' AND type = {:type} AND status = 'active' AND {:patient} IN ('', patient)`,
		dbx.Params{"device": deviceID, "type": alertType, "patient": patientID}, status, by, now)
}

// ResolvePatientAlerts gives all open alerts of a patient a closed status.
func ResolvePatientAlerts(tx core.App, patientID, status, by string, now time.Time) ([]ResolvedAlert, error) {
	return resolveAlerts(tx, `patient = {:patient} AND status IN ('active', 'acknowledged')`, dbx.Params{"patient": patientID}, status, by, now)
}

// ResolveObservationAlerts gives the open alerts of a type about a reading a closed status.
func ResolveObservationAlerts(tx core.App, observationID, alertType, status, by string, now time.Time) ([]ResolvedAlert, error) {
	return resolveAlerts(tx, `observation = {:observation} AND observation != '' AND type = {:type} AND status IN ('active', 'acknowledged')`,
		dbx.Params{"observation": observationID, "type": alertType}, status, by, now)
}

// resolveAlerts closes alerts and keeps the first acknowledgment.
func resolveAlerts(tx core.App, where string, params dbx.Params, status, by string, now time.Time) ([]ResolvedAlert, error) {
	params["status"], params["by"], params["at"] = status, by, FormatInstant(now)
	return queryAll[ResolvedAlert](tx, "resolve alerts", `UPDATE alerts SET status = {:status}, resolved_by = {:by}, resolved_at = {:at}, updated_at = {:at},
			acknowledged_by = CASE WHEN acknowledged THEN acknowledged_by ELSE {:by} END,
			acknowledged_at = CASE WHEN acknowledged THEN acknowledged_at ELSE {:at} END, acknowledged = TRUE
		WHERE `+where+` RETURNING id, patient`, params)
}

// Store writes the changed columns of an alert without running the hooks of its collection.
func (a *Alert) Store(tx core.App) error { return Update(tx, a.ProxyRecord(), alertChanges...) }

// SetStatus sets the status.
func (a *Alert) SetStatus(status string, now time.Time) {
	a.Set(AlertStatus, status)
	a.Set("updated_at", FormatInstant(now))
}

// SetAcknowledged records who acknowledged the alert first.
func (a *Alert) SetAcknowledged(by string, now time.Time) {
	a.Set("acknowledged", true)
	stamp(a, "acknowledged", by, now)
}

// SetFollowUp sets the time of the follow-up and the user to remind.
func (a *Alert) SetFollowUp(by string, at time.Time) {
	a.Load(map[string]any{AlertFollowUpRequired: true, "follow_up_told": false})
	stamp(a, "follow_up", by, at)
}

func (a *Alert) SetFollowUpNotified()                 { a.Set("follow_up_told", true) }
func (a *Alert) SetResolved(by string, now time.Time) { stamp(a, "resolved", by, now) }
func (a *Alert) SetEscalation(id string)              { a.Set("escalation", id) }

// stamp records who did something with a record, and when.
func stamp(record core.RecordProxy, what, by string, at time.Time) {
	record.ProxyRecord().Load(map[string]any{what + "_by": by, what + "_at": FormatInstant(at)})
}

// DisplayMessage returns the message, or [UnreadableText].
func (a *Alert) DisplayMessage() string { return TextOf(a.ProxyRecord(), "message") }

func (a *Alert) Number() int64             { return Number(a.Id) }
func (a *Alert) Level() string             { return a.GetString("level") }
func (a *Alert) Type() string              { return a.GetString("type") }
func (a *Alert) ObservationID() string     { return a.GetString("observation") }
func (a *Alert) Message() phi.Text         { return phi.Text(a.GetString("message")) }
func (a *Alert) Value() *float64           { return Optional(a.ProxyRecord(), "value") }
func (a *Alert) Threshold() *float64       { return Optional(a.ProxyRecord(), "threshold") }
func (a *Alert) Status() string            { return a.GetString(AlertStatus) }
func (a *Alert) Acknowledged() bool        { return a.GetBool("acknowledged") }
func (a *Alert) AcknowledgedBy() string    { return a.GetString("acknowledged_by") }
func (a *Alert) AcknowledgedAt() time.Time { return instantOf(a, "acknowledged_at") }
func (a *Alert) ResolvedBy() string        { return a.GetString("resolved_by") }
func (a *Alert) ResolvedAt() time.Time     { return instantOf(a, "resolved_at") }
func (a *Alert) Outcome() string           { return a.GetString(AlertOutcome) }
func (a *Alert) Notes() phi.Text           { return phi.Text(a.GetString(AlertNotes)) }
func (a *Alert) ClinicalNote() phi.Text    { return phi.Text(a.GetString(AlertClinicalNote)) }
func (a *Alert) FollowUpRequired() bool    { return a.GetBool(AlertFollowUpRequired) }
func (a *Alert) FollowUpAt() time.Time     { return instantOf(a, AlertFollowUpAt) }
func (a *Alert) FollowUpBy() string        { return a.GetString("follow_up_by") }
func (a *Alert) EscalationID() string      { return a.GetString("escalation") }
func (a *Alert) Snoozed() bool             { return a.GetBool("snoozed") }
func (a *Alert) Parameter() string         { return a.GetString("parameter") }
func (a *Alert) Late() bool                { return a.GetBool("late") }
func (a *Alert) ClockUnproven() bool       { return a.GetBool("escalates_late") }
func (a *Alert) TimeInDoubt() bool         { return a.GetBool("time_in_doubt") }
func (a *Alert) ResolutionReason() string  { return a.GetString("resolution_reason") }
func (a *Alert) ReportedValues() phi.Text  { return phi.Text(a.GetString("reported_values")) }
func (a *Alert) QuarantineID() string      { return a.GetString("quarantine_id") }
func (a *Alert) PushRule() string          { return a.GetString("push_rule") }
func (a *Alert) PushReason() phi.Text      { return phi.Text(a.GetString("push_reason")) }

// AlertState is the state of an alert before a change that is undone.
type AlertState struct {
	Status       string
	Acknowledged bool // keeps the acknowledgment; else it is cleared
	Notes        phi.Text
	// HeldUntil is the end of its escalation hold; zero changes nothing.
	HeldUntil time.Time
	// ResetNormalReadings: readings arrived in between that were not counted.
	ResetNormalReadings bool
}

// DeviceID returns the device or hub that the alert is about, or "" if it is about a reading.
func (a *Alert) DeviceID() string { return a.GetString("device_id") }

// Restore writes back an earlier state of an alert.
func (a *Alert) Restore(tx core.App, before AlertState, now time.Time) error {
	a.Load(map[string]any{AlertStatus: before.Status, AlertNotes: before.Notes.Reveal(), "resolved_by": "", "resolved_at": "", "updated_at": FormatInstant(now)})
	columns := append(alertChanges[:len(alertChanges):len(alertChanges)], "held_until", "normal_readings")
	if !before.Acknowledged {
		a.Load(map[string]any{"acknowledged": false, "acknowledged_by": "", "acknowledged_at": ""})
	}
	if !before.HeldUntil.IsZero() {
		a.Set("held_until", FormatInstant(before.HeldUntil))
	}
	if before.ResetNormalReadings {
		a.Set("normal_readings", 0)
	}
	return Update(tx, a.ProxyRecord(), columns...)
}

// AcknowledgedOrResolvedAt reports whether a user acknowledged or resolved an alert of a patient at a moment, and it was not undone.
func AcknowledgedOrResolvedAt(app core.App, patientID, by string, at time.Time) (bool, error) {
	return queryValue[bool](app, "look for acknowledged or resolved alerts", `SELECT EXISTS (SELECT 1 FROM alerts WHERE patient = {:patient} AND
		(acknowledged_by = {:by} AND acknowledged_at = {:at} OR resolved_by = {:by} AND resolved_at = {:at}))`,
		dbx.Params{"patient": patientID, "by": by, "at": FormatInstant(at)})
}

// HasMissedReadingAlert reports whether a patient has a missed_reading alert for a day.
func HasMissedReadingAlert(app core.App, patientID, day string) (bool, error) {
	return queryValue[bool](app, "find missed_reading alert",
		`SELECT EXISTS (SELECT 1 FROM alerts WHERE patient = {:patient} AND parameter = {:day} AND type = 'missed_reading')`,
		dbx.Params{"patient": patientID, "day": day})
}

// HasSuspectAlertInRun reports whether an alert of the type was raised for another suspect reading of the same run. A run is the suspect
// readings of a patient and kind with no final one measured in between.
func HasSuspectAlertInRun(app core.App, id, alertType string) (bool, error) {
	return queryValue[bool](app, "look for an alert of the suspect run", `SELECT EXISTS (
		SELECT 1 FROM observations o JOIN observations other ON other.patient = o.patient AND other.observation_type = o.observation_type
			AND other.status = 'suspect' AND other.id != o.id
		JOIN alerts a ON a.observation = other.id AND a.observation != '' AND a.type = {:type}
		WHERE o.id = {:id} AND NOT EXISTS (SELECT 1 FROM observations held WHERE held.patient = o.patient AND held.observation_type = o.observation_type
			AND held.status = 'final' AND held.measured_at BETWEEN min(o.measured_at, other.measured_at) AND max(o.measured_at, other.measured_at)))`,
		dbx.Params{"id": id, "type": alertType})
}

// MeasuringDevice is, in SQL, the device of the measurement behind an alert a.
const MeasuringDevice = `COALESCE((SELECT device_id FROM observations WHERE id = a.observation AND a.observation != ''),
	(SELECT device_id FROM gateway_events WHERE id = a.quarantine_id AND a.quarantine_id != ''), '')`

// UnprovenDevice returns the device of the measurement behind an alert if nothing proved its clock, or nil.
func (a *Alert) UnprovenDevice(tx core.App) (*string, error) {
	if !a.ClockUnproven() {
		return nil, nil
	}
	device, err := queryValue[string](tx, "find the device of an alert", "SELECT "+MeasuringDevice+" FROM alerts a WHERE a.id = {:id}", dbx.Params{"id": a.Id})
	return &device, err
}

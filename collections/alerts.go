package collections

import (
	"context"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

// The columns of an alert that a person can change.
const (
	AlertStatus           = "status"
	AlertNotes            = "notes"
	AlertClinicalNote     = "clinical_note"
	AlertOutcome          = "outcome"
	AlertFollowUpRequired = "follow_up_required"
	AlertFollowUpAt       = "follow_up_at"
)

// alertChanges are the columns of an alert that may be written again; everything else is what happened.
var alertChanges = []string{
	AlertStatus, AlertNotes, AlertClinicalNote, AlertOutcome, AlertFollowUpRequired, AlertFollowUpAt, "follow_up_by", "follow_up_told",
	"acknowledged", "acknowledged_by", "acknowledged_at", "resolved_by", "resolved_at", "escalation", "updated_at",
}

// Alert says that something about a patient wants attention.
type Alert struct{ aboutPatient }

// AsAlert reads a record of the alerts collection as an Alert.
func AsAlert(record *core.Record) *Alert { return as[Alert](record) }

// FindAlert finds one alert.
func FindAlert(app core.App, id string) (*Alert, error) {
	return find[Alert](app, Alerts, dbx.HashExp{"id": id})
}

// AlertsByID finds alerts, in no order; ids without one are left out.
func AlertsByID(app core.App, ids []string) ([]*Alert, error) {
	return listOf[Alert](app, Alerts, among(ids))
}

// AlertFilter narrows a list of alerts; zero values do not.
type AlertFilter struct {
	PatientID, DeviceID, Level, Status, Type string
	Acknowledged                             *bool
	// Over keeps those of which nothing follows, or those that are open or that somebody is at.
	Over *bool
	// AcknowledgedBy is the address of who acknowledged it first.
	AcknowledgedBy string
	// Among keeps these types, and of them what no reading raised.
	Among []string
	// From and To bound the creation, both inclusive.
	From, To time.Time
	// CareTeamOf keeps the patients whose care team this user (record id) belongs to.
	CareTeamOf string
}

// PageOfAlerts returns a page of alerts, newest first, and how many there are in all.
func PageOfAlerts(app core.App, f AlertFilter, offset, limit int) (page []*core.Record, total int, err error) {
	const newestFirst = "created_at DESC, id DESC"
	kind := Conditions{}.Equal("level", f.Level).Equal("status", f.Status).Equal("type", f.Type).Is("acknowledged", f.Acknowledged)
	if f.Over != nil {
		statuses := map[bool][]string{false: {"active", "acknowledged"}, true: {"resolved", "auto_resolved"}}
		kind = append(kind, AnyOf("status", statuses[*f.Over]))
	}
	if f.PatientID+f.DeviceID+f.CareTeamOf+f.AcknowledgedBy == "" && f.Among == nil && f.From.IsZero() && f.To.IsZero() {
		err = app.DB().Select("COALESCE(SUM(alerts), 0)").From("alert_totals").Where(Every(kind)).Row(&total)
		if err != nil {
			return nil, 0, wrap(err, "count alerts")
		}
		return kind.PageOfPatientsAmong(app, Alerts, newestFirst, offset, limit, total)
	}
	if f.Among != nil {
		kind = append(kind, AnyOf("type", f.Among), dbx.NewExp("observation = ''"))
	}
	if f.AcknowledgedBy != "" {
		kind = kind.And("acknowledged_by != ''") // as the index has it
	}
	return kind.Equal("patient", f.PatientID).Equal("acknowledged_by", f.AcknowledgedBy).Equal("device_id", f.DeviceID).Between("created_at", f.From, f.To).
		OnCareTeamOf(f.CareTeamOf).PageOfPatients(app, Alerts, newestFirst, offset, limit)
}

// AlertsOfObservations returns the alerts that the given observations raised, by observation, in order of creation; those
// that only inform are left out.
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

// RaisedAlerts are those that a patient's readings have raised since a time, in no order.
func RaisedAlerts(ctx context.Context, app core.App, patientID string, since time.Time) (raised []RaisedAlert, err error) {
	err = app.DB().NewQuery(`SELECT observation, type, level, parameter, value, threshold FROM alerts
		WHERE patient = {:patient} AND created_at >= {:from} AND observation != '' AND level IN ('critical', 'warning')`).
		Bind(dbx.Params{"patient": patientID, "from": Instant(since)}).WithContext(ctx).All(&raised)
	return raised, wrap(err, "read alerts that were raised")
}

// LastAlertMeasured is the time of the reading for which the last alert of a type and parameter was raised about a patient; zero for none.
func LastAlertMeasured(app core.App, patientID, alertType, parameter string) (time.Time, error) {
	at, err := queryValue[string](app, "find last alert", `SELECT COALESCE(MAX(measured_at), '') FROM alerts
		WHERE patient = {:patient} AND type = {:type} AND parameter = {:parameter}`,
		dbx.Params{"patient": patientID, "type": alertType, "parameter": parameter})
	return ParseInstant(at), err
}

// AlertIDsOfEscalations are the ids of the alerts attached to escalations, by escalation and in order.
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

// AlertsToFollowUp are the ids of alerts of whose follow-up somebody is to be reminded, the longest due first.
func AlertsToFollowUp(app core.App, now time.Time, limit int) ([]string, error) {
	return queryColumn[string](app, "find follow-ups", `SELECT id FROM alerts
		WHERE follow_up_required = TRUE AND follow_up_told = FALSE AND follow_up_at <= {:now} ORDER BY follow_up_at LIMIT +{:limit}`,
		dbx.Params{"now": Instant(now), "limit": limit})
}

// EndedAlert is an alert that is over, and whose it was.
type EndedAlert struct {
	ID        string `db:"id"`
	PatientID string `db:"patient"`
}

// EndAlertsAbout gives the active alerts of a type about a device or hub a status that ends them; those about one patient only
// unless patientID is "".
func EndAlertsAbout(tx core.App, deviceID, alertType, patientID, status, by string, now time.Time) ([]EndedAlert, error) {
	return endAlerts(tx, `device_id = {:device} AND device_id != '' AND type = {:type} AND status = 'active' AND {:patient} IN ('', patient)`,
		dbx.Params{"device": deviceID, "type": alertType, "patient": patientID}, status, by, now)
}

// EndAlertsOf gives every alert of a patient that is not over a status that ends it.
func EndAlertsOf(tx core.App, patientID, status, by string, now time.Time) ([]EndedAlert, error) {
	return endAlerts(tx, `patient = {:patient} AND status IN ('active', 'acknowledged')`, dbx.Params{"patient": patientID}, status, by, now)
}

// endAlerts: who acknowledged one stays on record.
func endAlerts(tx core.App, where string, params dbx.Params, status, by string, now time.Time) ([]EndedAlert, error) {
	params["status"], params["by"], params["at"] = status, by, Instant(now)
	return queryAll[EndedAlert](tx, "end alerts", `UPDATE alerts SET status = {:status}, resolved_by = {:by}, resolved_at = {:at}, updated_at = {:at},
			acknowledged_by = CASE WHEN acknowledged THEN acknowledged_by ELSE {:by} END,
			acknowledged_at = CASE WHEN acknowledged THEN acknowledged_at ELSE {:at} END, acknowledged = TRUE
		WHERE `+where+` RETURNING id, patient`, params)
}

// Store writes what was changed of an alert, past the hooks of its collection.
func (a *Alert) Store(tx core.App) error { return Update(tx, a.ProxyRecord(), alertChanges...) }

// SetStatus says where it stands from now on.
func (a *Alert) SetStatus(status string, now time.Time) {
	a.Set(AlertStatus, status)
	a.Set("updated_at", Instant(now))
}

// SetAcknowledged says who dealt with it first.
func (a *Alert) SetAcknowledged(by string, now time.Time) {
	a.Set("acknowledged", true)
	stamp(a, "acknowledged", by, now)
}

// SetFollowUp says when to remind whom of it.
func (a *Alert) SetFollowUp(by string, at time.Time) {
	a.Load(map[string]any{AlertFollowUpRequired: true, "follow_up_told": false})
	stamp(a, "follow_up", by, at)
}

func (a *Alert) SetFollowUpTold()                     { a.Set("follow_up_told", true) }
func (a *Alert) SetResolved(by string, now time.Time) { stamp(a, "resolved", by, now) }
func (a *Alert) SetEscalation(id string)              { a.Set("escalation", id) }

// stamp notes in a record who did something with it, and when.
func stamp(record core.RecordProxy, what, by string, at time.Time) {
	record.ProxyRecord().Load(map[string]any{what + "_by": by, what + "_at": Instant(at)})
}

// MessageShown is the message, or [UnreadableText].
func (a *Alert) MessageShown() string { return TextOf(a.ProxyRecord(), "message") }

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
func (a *Alert) ResolutionReason() string  { return a.GetString("resolution_reason") }
func (a *Alert) ReportedValues() phi.Text  { return phi.Text(a.GetString("reported_values")) }
func (a *Alert) QuarantineID() string      { return a.GetString("quarantine_id") }

// Snooze keeps alerts of one type about a patient quiet for a while.
type Snooze struct{ aboutPatient }

// NewSnooze returns an unsaved snooze with the next number.
func NewSnooze(tx core.App, patientID, alertType string, reason phi.Text, until time.Time, by string, now time.Time) (*Snooze, error) {
	return fresh[Snooze](tx, Snoozes, map[string]any{
		"patient": patientID, "type": alertType, "reason": reason.Reveal(), "ends_at": Instant(until), "created_by": by, "created_at": Instant(now),
	})
}

// FindSnooze finds one snooze of a patient.
func FindSnooze(app core.App, patientID string, number int64) (*Snooze, error) {
	return findWhole[Snooze](app, Snoozes, dbx.HashExp{"id": NumberID(number), "patient": patientID})
}

// PageOfSnoozes returns a page of a patient's snoozes, newest first, and how many there are in all; current keeps those in
// force, or those that are over.
func PageOfSnoozes(app core.App, patientID string, current *bool, now time.Time, offset, limit int) ([]*Snooze, int, error) {
	where := Conditions{}.Equal("patient", patientID)
	if current != nil {
		inForce := "(ended_at = '' AND ends_at > {:now})"
		if !*current {
			inForce = "NOT " + inForce
		}
		where = append(where, dbx.NewExp(inForce, dbx.Params{"now": Instant(now)}))
	}
	return pageOf[Snooze](app, Snoozes, Every(where), []string{"created_at DESC", "id DESC"}, offset, limit)
}

// EndSnoozesOf ends what keeps a type of alerts about a patient quiet. What was over before ended by itself.
func EndSnoozesOf(tx core.App, patientID, alertType, by, system string, now time.Time) error {
	return exec(tx, "end snoozes", `UPDATE snoozes SET ended_at = min(ends_at, {:now}), ended_by = CASE WHEN ends_at <= {:now} THEN {:system} ELSE {:by} END
		WHERE patient = {:patient} AND type = {:type} AND ended_at = ''`,
		dbx.Params{"now": Instant(now), "patient": patientID, "type": alertType, "by": by, "system": system})
}

// SetIncludeCritical keeps critical alerts quiet too.
func (s *Snooze) SetIncludeCritical(include bool) { s.Set("include_critical", include) }

// End stores that somebody ended it before its time.
func (s *Snooze) End(tx core.App, by string, now time.Time) error {
	stamp(s, "ended", by, now)
	return Update(tx, s.ProxyRecord(), "ended_at", "ended_by")
}

// InForce reports whether it keeps alerts quiet at a time.
func (s *Snooze) InForce(at time.Time) bool {
	return s.GetString("ended_at") == "" && Instant(at) < s.GetString("ends_at")
}

func (s *Snooze) Number() int64         { return Number(s.Id) }
func (s *Snooze) Type() string          { return s.GetString("type") }
func (s *Snooze) IncludeCritical() bool { return s.GetBool("include_critical") }
func (s *Snooze) Reason() phi.Text      { return phi.Text(s.GetString("reason")) }
func (s *Snooze) EndsAt() time.Time     { return instantOf(s, "ends_at") }
func (s *Snooze) CreatedBy() string     { return s.GetString("created_by") }
func (s *Snooze) EndedAt() time.Time    { return instantOf(s, "ended_at") }
func (s *Snooze) EndedBy() string       { return s.GetString("ended_by") }

// AlertBefore is how an alert stood before somebody did something with it.
type AlertBefore struct {
	Status       string
	Acknowledged bool // stays as it is on record, else nobody has
	Notes        phi.Text
	// HeldUntil is until when its escalation waited; zero leaves it.
	HeldUntil time.Time
	// CountAnew: readings came meanwhile that were not counted for it.
	CountAnew bool
}

// DeviceID is the device or hub that it is about; "" when it is about a reading.
func (a *Alert) DeviceID() string { return a.GetString("device_id") }

// Restore makes an alert again what it was.
func (a *Alert) Restore(tx core.App, before AlertBefore, now time.Time) error {
	a.Load(map[string]any{AlertStatus: before.Status, AlertNotes: before.Notes.Reveal(), "resolved_by": "", "resolved_at": "", "updated_at": Instant(now)})
	columns := append(alertChanges[:len(alertChanges):len(alertChanges)], "held_until", "normal_readings")
	if !before.Acknowledged {
		a.Load(map[string]any{"acknowledged": false, "acknowledged_by": "", "acknowledged_at": ""})
	}
	if !before.HeldUntil.IsZero() {
		a.Set("held_until", Instant(before.HeldUntil))
	}
	if before.CountAnew {
		a.Set("normal_readings", 0)
	}
	return Update(tx, a.ProxyRecord(), columns...)
}

// AnsweredAt reports whether somebody acknowledged or resolved an alert of a patient at a moment, as far as that still holds.
func AnsweredAt(app core.App, patientID, by string, at time.Time) (bool, error) {
	return queryValue[bool](app, "look for answered alerts", `SELECT EXISTS (SELECT 1 FROM alerts WHERE patient = {:patient} AND
		(acknowledged_by = {:by} AND acknowledged_at = {:at} OR resolved_by = {:by} AND resolved_at = {:at}))`,
		dbx.Params{"patient": patientID, "by": by, "at": Instant(at)})
}

// Reviewed is when somebody last looked at a patient, and who; zero for never.
func Reviewed(app core.App, patientID string) (at time.Time, by string, err error) {
	rows, err := queryAll[struct {
		At string `db:"last_reviewed_at"`
		By string `db:"last_reviewed_by"`
	}](app, "read the last review", `SELECT last_reviewed_at, last_reviewed_by FROM triage_scores WHERE patient = {:patient}`, dbx.Params{"patient": patientID})
	if err != nil || len(rows) == 0 {
		return time.Time{}, "", err
	}
	return ParseInstant(rows[0].At), rows[0].By, nil
}

// ReadSince reports whether a reading of a patient was stored since a time; of one device only unless deviceID is "".
func ReadSince(app core.App, patientID, deviceID string, since time.Time) (bool, error) {
	return queryValue[bool](app, "look for readings", `SELECT EXISTS (SELECT 1 FROM observations WHERE patient = {:patient}
		AND {:device} IN ('', device_id) AND created_at >= {:since})`, dbx.Params{"patient": patientID, "device": deviceID, "since": Instant(since)})
}

// SnoozesEnded are the snoozes of a type of alerts about a patient that ended since a time.
func SnoozesEnded(app core.App, patientID, alertType string, since time.Time) ([]*Snooze, error) {
	return listOf[Snooze](app, Snoozes, dbx.NewExp("patient = {:patient} AND type = {:type} AND ended_at >= {:since}",
		dbx.Params{"patient": patientID, "type": alertType, "since": Instant(since)}), "id")
}

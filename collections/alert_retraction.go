package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

// undecidedImplausible matches superseded alerts about undecided quarantined events, which have no observation.
const undecidedImplausible = `(resolution_reason = 'superseded' AND
	quarantine_id IN (SELECT id FROM gateway_events WHERE status IN ('` + EventOpen + `', '` + EventRejected + `')))`

// notRetracted excludes alerts of retracted readings.
const notRetracted = `resolution_reason != 'withdrawn'
	AND NOT EXISTS (SELECT 1 FROM observations WHERE id = a.observation AND status = 'entered_in_error')`

// LastUnretractedAlert returns the measurement time of a patient's last alert of a type that was not retracted, or zero.
func LastUnretractedAlert(app core.App, patientID, alertType string) (time.Time, error) {
	at, err := queryValue[string](app, "find last alert", `SELECT COALESCE(MAX(measured_at), '') FROM alerts a
		WHERE patient = {:patient} AND type = {:type} AND `+notRetracted, dbx.Params{"patient": patientID, "type": alertType})
	return ParseInstant(at), err
}

// AlertsToReevaluate returns a patient's unretracted alerts of some types about values measured before a time that are active or were
// auto-resolved since another time.
func AlertsToReevaluate(tx core.App, patientID string, types []string, before, since time.Time) ([]*Alert, error) {
	return listOf[Alert](tx, Alerts, AllOf(Conditions{
		dbx.HashExp{"patient": patientID},
		AnyOf("type", types),
		dbx.NewExp("measured_at < {:before} AND (quarantine_id = '' AND observation != '' OR "+undecidedImplausible+")", dbx.Params{"before": FormatInstant(before)}),
		dbx.NewExp("(status = 'active' OR status = 'auto_resolved' AND resolved_at >= {:since})", dbx.Params{"since": FormatInstant(since)}),
		dbx.NewExp(`resolution_reason != 'withdrawn' AND NOT EXISTS (SELECT 1 FROM observations o WHERE o.id = observation AND o.status = 'entered_in_error')`),
	}), "measured_at", "id")
}

// SupersededAlerts returns a patient's unretracted alerts that ended because newer data was stored first.
func SupersededAlerts(tx core.App, patientID string, since time.Time) ([]*Alert, error) {
	return listOf[Alert](tx, Alerts, AllOf(Conditions{
		dbx.HashExp{"patient": patientID, "resolution_reason": "superseded", "status": "auto_resolved"},
		dbx.NewExp("created_at >= {:since} AND (quarantine_id = '' OR "+undecidedImplausible+")", dbx.Params{"since": FormatInstant(since)}),
		dbx.NewExp(`NOT EXISTS (SELECT 1 FROM observations o WHERE o.id = observation AND o.status = 'entered_in_error')`),
	}), "measured_at", "id")
}

// AlertsResolvedAt returns a patient's alerts of a type that the service resolved at a moment.
func AlertsResolvedAt(tx core.App, patientID, alertType string, at time.Time) ([]*Alert, error) {
	return listOf[Alert](tx, Alerts, dbx.HashExp{"patient": patientID, "type": alertType, "status": "auto_resolved", "resolved_at": FormatInstant(at)}, "id")
}

// UnretractedAlertsOf returns the alerts attached to an escalation, except those of retracted readings.
func UnretractedAlertsOf(tx core.App, escalationID, about string) ([]*Alert, error) {
	return listOf[Alert](tx, Alerts, dbx.NewExp(`(escalation = {:escalation} OR id = {:about}) AND resolution_reason != 'withdrawn'
		AND NOT EXISTS (SELECT 1 FROM observations o WHERE o.id = observation AND o.status = 'entered_in_error')`,
		dbx.Params{"escalation": escalationID, "about": about}), "created_at", "id")
}

// OpenAlertsOf returns a patient's open alerts of a type.
func OpenAlertsOf(tx core.App, patientID, alertType string) ([]*Alert, error) {
	return listOf[Alert](tx, Alerts, AllOf(Conditions{
		dbx.HashExp{"patient": patientID, "type": alertType}, AnyOf("status", []string{"active", "acknowledged"}),
	}), "measured_at", "id")
}

// AlertsMeasuredSince returns a patient's unretracted alerts of a type, in any state but superseded, about values measured since a time, latest
// first.
func AlertsMeasuredSince(tx core.App, patientID, alertType string, since time.Time) ([]*Alert, error) {
	return listOf[Alert](tx, Alerts, AllOf(Conditions{
		dbx.HashExp{"patient": patientID, "type": alertType, "resolution_reason": ""},
		dbx.NewExp("measured_at >= {:since}", dbx.Params{"since": FormatInstant(since)}),
		dbx.NewExp(`NOT EXISTS (SELECT 1 FROM observations o WHERE o.id = observation AND o.status = 'entered_in_error')`),
	}), "measured_at DESC", "id DESC")
}

// StoreFinding replaces the value, message, reported values and measurement of an alert that is about several readings.
func (a *Alert) StoreFinding(tx core.App, value float64, message, reported phi.Text, observationID string, measured, now time.Time) error {
	a.Load(map[string]any{
		"value": value, "message": message.Reveal(), "reported_values": reported.Reveal(), "observation": observationID,
		"measured_at": FormatInstant(measured), "updated_at": FormatInstant(now),
	})
	return Update(tx, a.ProxyRecord(), "value", "message", "reported_values", "observation", "measured_at", "updated_at")
}

// Reopen makes an auto-resolved alert active again, with a number of normal readings already counted.
func (a *Alert) Reopen(tx core.App, normalReadings int, now time.Time) error {
	a.Load(map[string]any{
		AlertStatus: "active", "acknowledged": false, "acknowledged_by": "", "acknowledged_at": "", "resolved_by": "", "resolved_at": "",
		"resolution_reason": "", "normal_readings": normalReadings, "updated_at": FormatInstant(now),
	})
	return Update(tx, a.ProxyRecord(), append(alertChanges[:len(alertChanges):len(alertChanges)], "resolution_reason", "normal_readings")...)
}

// Retract records that an alert's reading was entered in error. Everything else of the alert is kept.
func (a *Alert) Retract(tx core.App, reason string, now time.Time) error {
	a.Load(map[string]any{"resolution_reason": reason, "updated_at": FormatInstant(now)})
	return Update(tx, a.ProxyRecord(), "resolution_reason", "updated_at")
}

func (a *Alert) NormalReadings() int { return a.GetInt("normal_readings") }

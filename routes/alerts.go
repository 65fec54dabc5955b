package routes

import (
	"strconv"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/access"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/escalations"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/input"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/triage"
)

// alertView is an alert as the contract shows it.
type alertView struct {
	ID               int64    `json:"id"`
	PatientID        string   `json:"patient_id"`
	PatientName      string   `json:"patient_name"`
	Level            string   `json:"level"`
	Type             string   `json:"type"`
	Message          *string  `json:"message"`
	ObservationID    *string  `json:"observation_id"`
	Value            *float64 `json:"value"`
	Threshold        *float64 `json:"threshold"`
	Status           string   `json:"status"`
	Acknowledged     bool     `json:"acknowledged"`
	AcknowledgedBy   *string  `json:"acknowledged_by"`
	AcknowledgedAt   *string  `json:"acknowledged_at"`
	Outcome          *string  `json:"outcome"`
	Notes            *string  `json:"notes"`
	ClinicalNote     *string  `json:"clinical_note"`
	FollowUpRequired bool     `json:"follow_up_required"`
	FollowUpAt       *string  `json:"follow_up_at"`
	ResolvedBy       *string  `json:"resolved_by"`
	ResolvedAt       *string  `json:"resolved_at"`
	EscalationID     *int64   `json:"escalation_id"`
	Snoozed          bool     `json:"snoozed"`
	CreatedAt        string   `json:"created_at"`
}

func viewAlert(record *core.Record, names map[string]patients.Name) alertView {
	patientID := record.GetString("patient")
	return alertView{
		ID: collections.Number(record.Id), PatientID: patientID, PatientName: names[patientID].FirstLast(),
		Level: record.GetString("level"), Type: record.GetString("type"), Message: orNull(record.GetString("message")),
		ObservationID: orNull(record.GetString("observation")), Value: collections.Optional(record, "value"),
		Threshold: collections.Optional(record, "threshold"), Status: record.GetString("status"), Acknowledged: record.GetBool("acknowledged"),
		AcknowledgedBy: orNull(record.GetString("acknowledged_by")), AcknowledgedAt: storedInstant(record, "acknowledged_at"),
		Outcome: orNull(record.GetString("outcome")), Notes: orNull(record.GetString("notes")), ClinicalNote: orNull(record.GetString("clinical_note")),
		FollowUpRequired: record.GetBool("follow_up_required"), FollowUpAt: storedInstant(record, "follow_up_at"),
		ResolvedBy: orNull(record.GetString("resolved_by")), ResolvedAt: storedInstant(record, "resolved_at"),
		Snoozed: record.GetBool("snoozed"), CreatedAt: *storedInstant(record, "created_at"),
		EscalationID: storedNumber(record, "escalation"),
	}
}

func (a *api) listAlerts(c *call) error {
	q := c.query()
	p := q.paging()
	filter := alerts.Filter{
		PatientID: q.patientID(), Acknowledged: q.boolean("acknowledged"), Type: q.oneOf("type", alerts.Types...),
		Level: q.oneOf("level", string(alerts.Critical), string(alerts.Warning), string(alerts.Normal), string(alerts.NoData)),
		Status: q.oneOf("status", string(alerts.StatusActive), string(alerts.StatusAcknowledged), string(alerts.StatusResolved),
			string(alerts.StatusAutoResolved)),
	}
	between := q.between()
	filter.From, filter.To = between.From, between.To
	mine := q.boolean("mine")
	if err := q.err(); err != nil {
		return err
	}
	var err error
	if filter.CareTeamOf, err = a.team(c, filter.PatientID); err != nil {
		return err
	}
	if mine != nil && *mine {
		filter.CareTeamOf = c.Caller.RecordID
	}
	page, total, err := alerts.List(c.App, filter, p.Offset(), p.Size)
	if err != nil {
		return err
	}
	return listOfPatients(c, p, total, page, "Alert", viewAlert)
}

// trailView is one line of an alert's audit trail.
type trailView struct {
	Action    string  `json:"action"`
	Timestamp string  `json:"timestamp"`
	Actor     string  `json:"actor"`
	Detail    *string `json:"detail"`
}

// alertDetailView is an alert read by itself.
type alertDetailView struct {
	alertView
	AuditTrail []trailView `json:"audit_trail"`
}

// acknowledgedView answers the plain acknowledgement, outcomeView the one with an outcome.
// Source: docs/decisions/alerts.md, "Acknowledge variants".
type acknowledgedView struct {
	ID             int64   `json:"id"`
	Acknowledged   bool    `json:"acknowledged"`
	AcknowledgedBy *string `json:"acknowledged_by"`
	AcknowledgedAt *string `json:"acknowledged_at"`
	Notes          *string `json:"notes"`
}

type outcomeView struct {
	ID             int64       `json:"id"`
	Status         string      `json:"status"`
	AcknowledgedBy *string     `json:"acknowledged_by"`
	AcknowledgedAt *string     `json:"acknowledged_at"`
	Outcome        *string     `json:"outcome"`
	AuditTrail     []trailView `json:"audit_trail"`
}

// alert finds the alert of the path, if the caller may see its patient.
func (a *api) alert(c *call) (*core.Record, error) {
	number, err := c.pathInteger("id")
	if err != nil {
		return nil, err
	}
	record, err := alerts.Find(c.App, number)
	if err != nil {
		return nil, err
	}
	return record, a.reachStored(c, record)
}

func viewTrail(app core.App, record *core.Record) ([]trailView, error) {
	trail, err := alerts.Trail(app, record.Id)
	views := make([]trailView, len(trail))
	for i, step := range trail {
		views[i] = trailView{step.Action, input.FormatInstant(step.At), step.Actor, orNull(step.Detail)}
	}
	return views, err
}

func (a *api) readAlert(c *call) error {
	record, err := a.alert(c)
	if err != nil {
		return err
	}
	patientID := record.GetString("patient")
	if err := c.recordRead(audit.PatientRead, "Alert", strconv.FormatInt(collections.Number(record.Id), 10), patientID); err != nil {
		return err
	}
	return a.answerAlert(c, record)
}

// answerAlert answers 200 with an alert and its trail.
func (a *api) answerAlert(c *call, record *core.Record) error {
	names, err := namesOf(c, []*core.Record{record})
	if err != nil {
		return err
	}
	trail, err := viewTrail(c.App, record)
	if err != nil {
		return err
	}
	return c.ok(alertDetailView{viewAlert(record, names), trail})
}

func (a *api) acknowledgeAlert(c *call) error {
	record, err := a.alert(c)
	if err != nil {
		return err
	}
	if c.Scope == access.NonCritical && record.GetString("level") == string(alerts.Critical) {
		return fault.Denied()
	}
	var body alerts.AcknowledgeBody
	if err := c.decodeOptional(&body); err != nil {
		return err
	}
	checks := input.NewChecks()
	action := body.Read(checks, c.Now)
	if action.Move == alerts.Resolve && access.Reach(c.Caller.Role, access.ResolveAlerts) == access.None {
		return fault.Denied()
	}
	if err := checks.Err(); err != nil {
		return err
	}
	if record, err = triage.ActOnAlert(c.App, collections.Number(record.Id), action, c.actor(), c.Now); err != nil {
		return err
	}
	id, by, at := collections.Number(record.Id), orNull(record.GetString("acknowledged_by")), storedInstant(record, "acknowledged_at")
	if !action.Detailed {
		return c.ok(acknowledgedView{id, record.GetBool("acknowledged"), by, at, orNull(record.GetString("notes"))})
	}
	trail, err := viewTrail(c.App, record)
	if err != nil {
		return err
	}
	return c.ok(outcomeView{id, record.GetString("status"), by, at, orNull(record.GetString("outcome")), trail})
}

func (a *api) resolveAlert(c *call) error { return a.actOnAlert(c, alerts.Resolve) }

func (a *api) annotateAlert(c *call) error { return a.actOnAlert(c, alerts.Annotate) }

func (a *api) actOnAlert(c *call, move alerts.Move) error {
	record, err := a.alert(c)
	if err != nil {
		return err
	}
	var body alerts.NoteBody
	if err := c.decodeOptional(&body); err != nil {
		return err
	}
	checks := input.NewChecks()
	action := body.Read(checks, move)
	if err := checks.Err(); err != nil {
		return err
	}
	if record, err = triage.ActOnAlert(c.App, collections.Number(record.Id), action, c.actor(), c.Now); err != nil {
		return err
	}
	return a.answerAlert(c, record)
}

func (a *api) escalateAlert(c *call) error {
	alert, err := a.alert(c)
	if err != nil {
		return err
	}
	var body escalations.Body
	if err := c.decodeOptional(&body); err != nil {
		return err
	}
	checks := input.NewChecks()
	draft := body.ReadForAlert(checks)
	if err := checks.Err(); err != nil {
		return err
	}
	record, err := escalations.OfAlert(c.App, collections.Number(alert.Id), draft, c.actor(), c.Now)
	if err != nil {
		return err
	}
	return a.answerEscalation(c, record, c.created)
}

package routes

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/escalations"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/routes/web"
)

type alertView struct {
	ID               int64           `json:"id"`
	PatientID        string          `json:"patient_id"`
	PatientName      string          `json:"patient_name"`
	Level            string          `json:"level"`
	Type             string          `json:"type"`
	Message          *string         `json:"message"`
	ObservationID    *string         `json:"observation_id"`
	Value            *float64        `json:"value"`
	Threshold        *float64        `json:"threshold"`
	Status           string          `json:"status"`
	Acknowledged     bool            `json:"acknowledged"`
	AcknowledgedBy   *string         `json:"acknowledged_by"`
	AcknowledgedAt   *string         `json:"acknowledged_at"`
	Outcome          *string         `json:"outcome"`
	Notes            *string         `json:"notes"`
	ClinicalNote     *string         `json:"clinical_note"`
	FollowUpRequired bool            `json:"follow_up_required"`
	FollowUpAt       *string         `json:"follow_up_at"`
	ResolvedBy       *string         `json:"resolved_by"`
	ResolvedAt       *string         `json:"resolved_at"`
	EscalationID     *int64          `json:"escalation_id"`
	Snoozed          bool            `json:"snoozed"`
	Parameter        *string         `json:"parameter"`
	Late             bool            `json:"late"`
	TimeInDoubt      bool            `json:"time_in_doubt"`
	ResolutionReason *string         `json:"resolution_reason"`
	ReportedValues   json.RawMessage `json:"reported_values"`
	QuarantineID     *string         `json:"quarantine_id"`
	ReportedCount    *int            `json:"reported_count"`
	LatestValues     json.RawMessage `json:"latest_values"`
	HeldUntil        *string         `json:"held_until"`
	PatientPhone     *string         `json:"patient_phone"`
	Pushed           *bool           `json:"pushed"`
	PushRule         *string         `json:"push_rule"`
	PushReason       *string         `json:"push_reason"`
	CreatedAt        string          `json:"created_at"`
	// Reading is the observation behind the alert, if the query requests it.
	Reading *observationView `json:"reading,omitempty"`
}

// wasPushed reports whether an alert was pushed; nil if no decision is stored.
func wasPushed(alert *collections.Alert) *bool {
	if alert.PushRule() == "" {
		return nil
	}
	return new(alerts.PushRule(alert.PushRule()).Pushes())
}

func viewAlert(alert *collections.Alert, names map[string]patients.Name) alertView {
	return alertView{
		ID: alert.Number(), PatientID: alert.PatientID(), PatientName: names[alert.PatientID()].FullName(),
		Level: alert.Level(), Type: alert.Type(), Message: orNull(alert.Message().Reveal()), ObservationID: orNull(alert.ObservationID()),
		Value: alert.Value(), Threshold: alert.Threshold(), Status: alert.Status(), Acknowledged: alert.Acknowledged(),
		AcknowledgedBy: orNull(alert.AcknowledgedBy()), AcknowledgedAt: instantOrNull(alert.AcknowledgedAt()),
		Outcome: orNull(alert.Outcome()), Notes: orNull(alert.Notes().Reveal()), ClinicalNote: orNull(alert.ClinicalNote().Reveal()),
		FollowUpRequired: alert.FollowUpRequired(), FollowUpAt: instantOrNull(alert.FollowUpAt()),
		ResolvedBy: orNull(alert.ResolvedBy()), ResolvedAt: instantOrNull(alert.ResolvedAt()),
		Parameter: orNull(alert.Parameter()), Late: alert.Late(), TimeInDoubt: alert.TimeInDoubt(), ResolutionReason: orNull(alert.ResolutionReason()),
		ReportedValues: json.RawMessage(cmp.Or(alert.ReportedValues().Reveal(), "null")), QuarantineID: orNull(alert.QuarantineID()),
		LatestValues: json.RawMessage("null"), Pushed: wasPushed(alert), PushRule: orNull(alert.PushRule()), PushReason: orNull(alert.PushReason().Reveal()),
		Snoozed: alert.Snoozed(), HeldUntil: instantOrNull(alert.HeldUntil()), CreatedAt: validate.FormatInstant(alert.CreatedAt()), EscalationID: numberOrNull(alert.EscalationID()),
	}
}

func (a *api) listAlerts(c *web.Call) error {
	q, p := c.Listing()
	filter, mine := alertFilter(q, alerts.Types), q.IsTrue("mine")
	filter.AcknowledgedBy = strings.ToLower(q.Text("acknowledged_by", 254))
	filter.Closed = q.Boolean("over")
	withReadings := q.IsTrue("readings")
	if err := q.Err(); err != nil {
		return err
	}
	if withReadings {
		if err := c.RequireScopes(authz.ScopeObservationsRead); err != nil {
			return err
		}
		return a.answerAlerts(c, p, filter, mine, viewReadings)
	}
	return a.answerAlerts(c, p, filter, mine, viewAlertsOf)
}

// viewAlertsOf renders alerts for the caller's role.
func viewAlertsOf(c *web.Call, page []*collections.Alert) ([]alertView, error) {
	return viewAlerts(c.Caller.Role)(c.App, page)
}

// alertFilter reads the filters of an alert list; types are the values that the type filter accepts.
func alertFilter(q *web.Query, types []string) collections.AlertFilter {
	between := q.Between()
	return collections.AlertFilter{
		PatientID: q.PatientID(), Acknowledged: q.Boolean("acknowledged"), Type: q.OneOf("type", types...),
		Level:  q.OneOf("level", string(alerts.Critical), string(alerts.Warning), string(alerts.Normal), string(alerts.NoData)),
		Status: q.OneOf("status", alerts.Statuses...), From: between.From, To: between.To,
	}
}

// answerAlerts answers with a page of alerts; mine limits it to patients of the caller's care teams.
func (a *api) answerAlerts(
	c *web.Call, p web.Paging, filter collections.AlertFilter, mine bool, view func(*web.Call, []*collections.Alert) ([]alertView, error),
) (err error) {
	if filter.CareTeamOf, err = a.careTeamFilter(c, filter.PatientID); err != nil {
		return err
	}
	if mine {
		filter.CareTeamOf = c.Caller.RecordID
	}
	page, total, err := collections.PageOfAlerts(c.App, filter, p.Offset(), p.Size)
	shown := func(_ core.App, page []*collections.Alert) ([]alertView, error) { return view(c, page) }
	return list(c, p, audit.ResourceAlert, shown)(web.Map(page, collections.AsAlert), total, err)
}

// trailView is one entry of an alert's audit trail.
type trailView struct {
	Action    string  `json:"action"`
	Timestamp string  `json:"timestamp"`
	Actor     string  `json:"actor"`
	Detail    *string `json:"detail"`
}

// alertDetailView is a single alert with its audit trail.
type alertDetailView struct {
	alertView
	AuditTrail []trailView `json:"audit_trail"`
}

// acknowledgedView answers an acknowledgment without an outcome, outcomeView one with an outcome. Source:
// docs/decisions/alerts.md, "Acknowledge variants".
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

// alert finds the alert of the path and checks that the caller may see its patient.
func (a *api) alert(c *web.Call) (*collections.Alert, error) {
	number, err := c.PathInteger("id")
	if err != nil {
		return nil, err
	}
	alert, err := alerts.Find(c.App, number)
	if err != nil {
		return nil, err
	}
	return alert, a.authorizePresentPatient(c, alert.PatientID())
}

func viewTrail(app core.App, alert *collections.Alert) ([]trailView, error) {
	trail, err := alerts.Trail(app, alert.Id)
	return web.Map(trail, func(step alerts.TrailStep) trailView {
		return trailView{step.Action, validate.FormatInstant(step.At), step.Actor, orNull(step.Detail)}
	}), err
}

func (a *api) readAlert(c *web.Call, alert *collections.Alert) error {
	if err := c.RecordRead(audit.PatientRead, audit.ResourceAlert, strconv.FormatInt(alert.Number(), 10), alert.PatientID()); err != nil {
		return err
	}
	return answerAlert(c, alert)
}

// answerAlert answers 200 with an alert and its audit trail.
func answerAlert(c *web.Call, alert *collections.Alert) error {
	views, err := viewAlerts(c.Caller.Role)(c.App, []*collections.Alert{alert})
	if err != nil {
		return err
	}
	trail, err := viewTrail(c.App, alert)
	return c.Respond(alertDetailView{views[0], trail}, err)
}

func (a *api) acknowledgeAlert(c *web.Call, alert *collections.Alert) error {
	if c.Reach == authz.NonCritical && alert.Level() == string(alerts.Critical) {
		return fault.Denied()
	}
	action, err := web.ReadOptional(c, func(body alerts.AcknowledgeBody, checks *validate.Checks) alerts.Action {
		return body.Read(checks, c.Now)
	})
	if action.Move == alerts.Resolve && authz.ReachOf(c.Caller.Role, authz.ResolveAlerts) == authz.None {
		return fault.Denied() // before the body is validated
	}
	if err != nil {
		return err
	}
	if alert, err = triage.ActOnAlert(c.App, alert.Number(), action, c.Actor(), c.Now); err != nil {
		return err
	}
	by, at := orNull(alert.AcknowledgedBy()), instantOrNull(alert.AcknowledgedAt())
	if !action.Detailed {
		return c.OK(acknowledgedView{alert.Number(), alert.Acknowledged(), by, at, orNull(alert.Notes().Reveal())})
	}
	trail, err := viewTrail(c.App, alert)
	return c.Respond(outcomeView{alert.Number(), alert.Status(), by, at, orNull(alert.Outcome()), trail}, err)
}

// actOnAlert serves an alert action with an optional note in the body.
func actOnAlert(move alerts.Move) handler {
	return withRecord((*api).alert, func(_ *api, c *web.Call, alert *collections.Alert) error {
		action, err := web.ReadOptional(c, func(body alerts.NoteBody, checks *validate.Checks) alerts.Action { return body.Read(checks, move) })
		if err != nil {
			return err
		}
		if alert, err = triage.ActOnAlert(c.App, alert.Number(), action, c.Actor(), c.Now); err != nil {
			return err
		}
		return answerAlert(c, alert)
	})
}

func (a *api) escalateAlert(c *web.Call, alert *collections.Alert) error {
	return change(c, alert.Number(), fromOptionalBody(escalations.Body.ReadForAlert), triage.EscalateAlert, show(c, c.Created, viewEscalations))
}

type snoozeView struct {
	ID              int64   `json:"id"`
	PatientID       string  `json:"patient_id"`
	Type            string  `json:"type"`
	IncludeCritical bool    `json:"include_critical"`
	Reason          *string `json:"reason"`
	InForce         bool    `json:"in_force"`
	EndsAt          *string `json:"ends_at"`
	CreatedBy       string  `json:"created_by"`
	CreatedAt       *string `json:"created_at"`
	EndedAt         *string `json:"ended_at"`
	EndedBy         *string `json:"ended_by"`
}

func snoozeFor(c *web.Call) func(*collections.Snooze) snoozeView {
	return func(s *collections.Snooze) snoozeView {
		return snoozeView{
			ID: s.Number(), PatientID: s.PatientID(), Type: s.Type(), IncludeCritical: s.IncludeCritical(), Reason: orNull(s.Reason().Reveal()),
			InForce: s.InForce(c.Now), EndsAt: instantOrNull(s.EndsAt()), CreatedBy: s.CreatedBy(),
			CreatedAt: instantOrNull(s.CreatedAt()), EndedAt: instantOrNull(s.EndedAt()), EndedBy: orNull(s.EndedBy()),
		}
	}
}

func (a *api) listSnoozes(c *web.Call, patient *collections.Patient) error {
	q, p := c.Listing()
	inForce := q.Boolean("in_force")
	if err := q.Err(); err != nil {
		return err
	}
	return listOfPatient(c, p, patient.Id, audit.ResourceSnooze, eachWithoutLookup(snoozeFor(c)))(
		collections.PageOfSnoozes(c.App, patient.Id, inForce, c.Now, p.Offset(), p.Size))
}

func (a *api) startSnooze(c *web.Call, patient *collections.Patient) error {
	return change(c, patient.Id, fromBodyAt(alerts.SnoozeBody.Read), triage.StartSnooze, web.RespondWith(c.Created, snoozeFor(c)))
}

func (a *api) endSnooze(c *web.Call, patient *collections.Patient) error {
	number, err := c.PathInteger("snooze_id")
	if err != nil {
		return err
	}
	return web.RespondWith(c.OK, snoozeFor(c))(triage.EndSnooze(c.App, patient.Id, number, c.Actor(), c.Now))
}

// phoneAlertTypes are the alerts below critical that a clinician follows up with a phone call: readings are missing, or the
// device is unreliable.
var phoneAlertTypes = []string{alerts.TypeMissedReading, alerts.TypeNoReading24h, alerts.TypeStaleReading, alerts.TypeDeviceBattery}

// needsPhoneCall reports whether an open alert calls for phoning the patient.
func needsPhoneCall(alert *collections.Alert) bool {
	status := alerts.Status(alert.Status())
	urgent := alert.Level() == string(alerts.Critical) || slices.Contains(phoneAlertTypes, alert.Type())
	return urgent && (status == alerts.StatusActive || status == alerts.StatusAcknowledged)
}

// viewAlerts renders alerts for a role. It includes the patient's phone if a call is needed and the role may see the
// number. Source: docs/decisions/devices.md, "Patient phone on alerts".
func viewAlerts(role authz.Role) func(core.App, []*collections.Alert) ([]alertView, error) {
	return func(app core.App, page []*collections.Alert) ([]alertView, error) {
		views, err := withPatientNames(viewAlert)(app, page)
		if err != nil {
			return nil, err
		}
		phones, err := phonesToCall(app, page, role)
		if err != nil {
			return nil, err
		}
		for i, alert := range page {
			views[i].PatientPhone = orNull(phones[alert.Id].Reveal())
		}
		return views, addReportedCounts(app, page, views)
	}
}

// phonesToCall returns, by the id of each alert that calls for a phone call, the patient's number, if the role may see it.
func phonesToCall(app core.App, page []*collections.Alert, role authz.Role) (map[string]phi.Text, error) {
	calls := slices.DeleteFunc(slices.Clone(page), func(a *collections.Alert) bool { return !needsPhoneCall(a) })
	phones, err := patients.Phones(app, distinct(calls, (*collections.Alert).PatientID), role)
	if err != nil {
		return nil, err
	}
	byAlert := map[string]phi.Text{}
	for _, alert := range calls {
		byAlert[alert.Id] = phones[alert.PatientID()]
	}
	return byAlert, nil
}

// viewLiveAlerts renders alerts for the live triage list; every role that may follow the list may see the phone.
var viewLiveAlerts = viewAlerts(authz.Nurse)

// addReportedCounts adds to alerts about implausible values how many events each covers and the values of the latest.
// Source: docs/decisions/observations.md, "Many implausible values".
func addReportedCounts(app core.App, page []*collections.Alert, views []alertView) error {
	var events []string
	for _, alert := range page {
		if id := alert.QuarantineID(); id != "" {
			events = append(events, id)
		}
	}
	gathered, err := collections.AggregatesOfEvents(app, events...)
	if err != nil {
		return err
	}
	for i, alert := range page {
		if alert.QuarantineID() == "" {
			continue
		}
		views[i].ReportedCount, views[i].LatestValues = new(1), views[i].ReportedValues
		if g := gathered[alert.QuarantineID()]; g.Count > 0 {
			views[i].ReportedCount, views[i].LatestValues = &g.Count, g.Latest
		}
	}
	return nil
}

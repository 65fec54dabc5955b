package routes

import (
	"strconv"
	"strings"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/escalations"
	"github.com/vigilhealth/vigil/internal/input"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/routes/web"
)

// escalationView is an escalation as the contract shows it.
type escalationView struct {
	ID                  int64    `json:"id"`
	PatientID           string   `json:"patient_id"`
	PatientName         string   `json:"patient_name"`
	Priority            string   `json:"priority"`
	Status              string   `json:"status"`
	Reason              *string  `json:"reason"`
	CreatedBy           string   `json:"created_by"`
	AssignedTo          *string  `json:"assigned_to"`
	AssignedAt          *string  `json:"assigned_at"`
	AlertID             *int64   `json:"alert_id"`
	AlertIDs            []int64  `json:"alert_ids"`
	RelatedEscalationID *int64   `json:"related_escalation_id"`
	CreatedAt           *string  `json:"created_at"`
	UpdatedAt           *string  `json:"updated_at"`
	ResolutionNotes     string   `json:"resolution_notes"`
	ResolvedBy          *string  `json:"resolved_by"`
	ResolvedAt          *string  `json:"resolved_at"`
	CancelledBy         *string  `json:"cancelled_by"`
	CancelledAt         *string  `json:"cancelled_at"`
	InteractionMinutes  *float64 `json:"interaction_minutes"`
}

func viewEscalation(record *core.Record, names map[string]patients.Name, alertIDs []string) escalationView {
	patientID := record.GetString("patient")
	view := escalationView{
		ID: collections.Number(record.Id), PatientID: patientID, PatientName: names[patientID].FirstLast(),
		Priority: record.GetString("priority"), Status: record.GetString("status"), Reason: orNull(record.GetString("reason")),
		CreatedBy: record.GetString("created_by"), AssignedTo: orNull(record.GetString("assigned_to")), AssignedAt: storedInstant(record, "assigned_at"),
		AlertID: storedNumber(record, "alert"), AlertIDs: []int64{}, RelatedEscalationID: storedNumber(record, "related_escalation"),
		CreatedAt: storedInstant(record, "created_at"), UpdatedAt: storedInstant(record, "updated_at"),
		ResolutionNotes: record.GetString("resolution_notes"), ResolvedBy: orNull(record.GetString("resolved_by")),
		ResolvedAt: storedInstant(record, "resolved_at"), CancelledBy: orNull(record.GetString("cancelled_by")),
		CancelledAt: storedInstant(record, "cancelled_at"), InteractionMinutes: collections.Optional(record, "interaction_minutes"),
	}
	for _, id := range alertIDs {
		view.AlertIDs = append(view.AlertIDs, collections.Number(id))
	}
	return view
}

// viewEscalations shows a page of escalations with the names of their patients and the alerts that belong to them.
func viewEscalations(app core.App, page []*core.Record) ([]escalationView, map[string]patients.Name, error) {
	ids := map[string]bool{}
	for _, record := range page {
		ids[record.GetString("patient")] = true
	}
	names, err := patients.Names(app, sortedKeys(ids))
	if err != nil {
		return nil, nil, err
	}
	attached, err := escalations.AlertsOf(app, page...)
	if err != nil {
		return nil, nil, err
	}
	views := make([]escalationView, len(page))
	for i, record := range page {
		views[i] = viewEscalation(record, names, attached[record.Id])
	}
	return views, names, nil
}

// answerEscalation answers with one escalation.
func (a *api) answerEscalation(c *web.Call, record *core.Record, answer func(any) error) error {
	views, _, err := viewEscalations(c.App, []*core.Record{record})
	if err != nil {
		return err
	}
	return answer(views[0])
}

// escalation finds the escalation of the path, if the caller may see its patient.
func (a *api) escalation(c *web.Call) (*core.Record, error) {
	number, err := c.PathInteger("id")
	if err != nil {
		return nil, err
	}
	record, err := escalations.Find(c.App, number)
	if err != nil {
		return nil, err
	}
	return record, a.reachStored(c, record)
}

func (a *api) listEscalations(c *web.Call) error {
	q := c.Query()
	p := q.Paging()
	filter := escalations.Filter{
		PatientID: q.PatientID(), AssignedTo: strings.ToLower(q.Text("assigned_to", 254)),
		Priority: q.OneOf("priority", string(triage.Routine), string(triage.Urgent), string(triage.Stat)),
		Status: q.OneOf("status", string(escalations.StatusOpen), string(escalations.StatusInProgress), string(escalations.StatusResolved),
			string(escalations.StatusCancelled)),
	}
	if err := q.Err(); err != nil {
		return err
	}
	var err error
	if filter.CareTeamOf, err = a.team(c, filter.PatientID); err != nil {
		return err
	}
	page, total, err := escalations.List(c.App, filter, p.Offset(), p.Size)
	if err != nil {
		return err
	}
	page, unreadable := collections.ReadableRecords(page)
	views, names, err := viewEscalations(c.App, page)
	if err != nil {
		return err
	}
	if err := recordListed(c, audit.ResourceEscalation, names); err != nil {
		return err
	}
	return web.List(c, p, total, views, unreadable)
}

func (a *api) readEscalation(c *web.Call) error {
	record, err := a.escalation(c)
	if err != nil {
		return err
	}
	number := strconv.FormatInt(collections.Number(record.Id), 10)
	if err := c.RecordRead(audit.PatientRead, audit.ResourceEscalation, number, record.GetString("patient")); err != nil {
		return err
	}
	return a.answerEscalation(c, record, c.OK)
}

func (a *api) createEscalation(c *web.Call) error {
	var body escalations.Body
	if err := c.Decode(&body); err != nil {
		return err
	}
	checks := input.NewChecks()
	draft := body.Read(checks)
	if err := checks.Err(); err != nil {
		return err
	}
	if err := a.reach(c, draft.PatientID); err != nil {
		return err
	}
	record, err := escalations.Create(c.App, draft, c.Actor(), c.Now)
	if err != nil {
		return err
	}
	return a.answerEscalation(c, record, c.Created)
}

func (a *api) updateEscalation(c *web.Call) error {
	record, err := a.escalation(c)
	if err != nil {
		return err
	}
	var body escalations.ChangeBody
	if err := c.Decode(&body); err != nil {
		return err
	}
	checks := input.NewChecks()
	change := body.Read(checks)
	if err := checks.Err(); err != nil {
		return err
	}
	if record, err = escalations.Update(c.App, collections.Number(record.Id), change, c.Actor(), c.Now); err != nil {
		return err
	}
	return a.answerEscalation(c, record, c.OK)
}

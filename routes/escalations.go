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
	"github.com/vigilhealth/vigil/internal/ranking"
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

func viewEscalation(e *collections.Escalation, names map[string]patients.Name, alertIDs []string) escalationView {
	view := escalationView{
		ID: e.Number(), PatientID: e.PatientID(), PatientName: names[e.PatientID()].FirstLast(),
		Priority: e.Priority(), Status: e.Status(), Reason: orNull(e.Reason().Reveal()),
		CreatedBy: e.CreatedBy(), AssignedTo: orNull(e.AssignedTo()), AssignedAt: instantOrNull(e.AssignedAt()),
		AlertID: numberOrNull(e.AlertID()), AlertIDs: []int64{}, RelatedEscalationID: numberOrNull(e.RelatedID()),
		CreatedAt: instantOrNull(e.CreatedAt()), UpdatedAt: instantOrNull(e.UpdatedAt()),
		ResolutionNotes: e.ResolutionNotes().Reveal(), ResolvedBy: orNull(e.ResolvedBy()), ResolvedAt: instantOrNull(e.ResolvedAt()),
		CancelledBy: orNull(e.CancelledBy()), CancelledAt: instantOrNull(e.CancelledAt()), InteractionMinutes: e.InteractionMinutes(),
	}
	for _, id := range alertIDs {
		view.AlertIDs = append(view.AlertIDs, collections.Number(id))
	}
	return view
}

// viewEscalations shows a page of escalations with the names of their patients and the alerts that belong to them.
func viewEscalations(app core.App, page []*collections.Escalation) ([]escalationView, map[string]patients.Name, error) {
	ids := map[string]bool{}
	for _, e := range page {
		ids[e.PatientID()] = true
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
	for i, e := range page {
		views[i] = viewEscalation(e, names, attached[e.Id])
	}
	return views, names, nil
}

// answerEscalation answers with one escalation.
func (a *api) answerEscalation(c *web.Call, e *collections.Escalation, answer func(any) error) error {
	views, _, err := viewEscalations(c.App, []*collections.Escalation{e})
	if err != nil {
		return err
	}
	return answer(views[0])
}

// escalation finds the escalation of the path, if the caller may see its patient.
func (a *api) escalation(c *web.Call) (*collections.Escalation, error) {
	number, err := c.PathInteger("id")
	if err != nil {
		return nil, err
	}
	e, err := escalations.Find(c.App, number)
	if err != nil {
		return nil, err
	}
	return e, a.reachPresent(c, e.PatientID())
}

func (a *api) listEscalations(c *web.Call) error {
	q := c.Query()
	p := q.Paging()
	filter := collections.EscalationFilter{
		PatientID: q.PatientID(), AssignedTo: strings.ToLower(q.Text("assigned_to", 254)),
		Priority: q.OneOf("priority", escalations.Priorities...), Status: q.OneOf("status", escalations.Statuses...),
	}
	if err := q.Err(); err != nil {
		return err
	}
	var err error
	if filter.CareTeamOf, err = a.team(c, filter.PatientID); err != nil {
		return err
	}
	page, total, err := collections.PageOfEscalations(c.App, filter, p.Offset(), p.Size)
	if err != nil {
		return err
	}
	page, unreadable := collections.ReadableOnly(page)
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
	e, err := a.escalation(c)
	if err != nil {
		return err
	}
	if err := c.RecordRead(audit.PatientRead, audit.ResourceEscalation, strconv.FormatInt(e.Number(), 10), e.PatientID()); err != nil {
		return err
	}
	return a.answerEscalation(c, e, c.OK)
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
	e, err := ranking.OpenEscalation(c.App, draft, c.Actor(), c.Now)
	if err != nil {
		return err
	}
	return a.answerEscalation(c, e, c.Created)
}

func (a *api) updateEscalation(c *web.Call) error {
	e, err := a.escalation(c)
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
	if e, err = ranking.UpdateEscalation(c.App, a.Billing, e.Number(), change, c.Actor(), c.Now); err != nil {
		return err
	}
	return a.answerEscalation(c, e, c.OK)
}

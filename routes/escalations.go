package routes

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/escalations"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/routes/web"
)

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

	Tier       int         `json:"tier"`
	RemindedAt *string     `json:"reminded_at"`
	History    []eventView `json:"history"`

	escalationDeadline
}

type eventView struct {
	At     string  `json:"at"`
	Event  string  `json:"event"`
	User   string  `json:"user"`
	Detail *string `json:"detail"`
}

func viewEscalationEvent(e escalations.Event) eventView {
	return eventView{validate.FormatInstant(e.At), e.Name, e.User, orNull(e.Detail.Reveal())}
}

func viewEscalation(e *collections.Escalation, names map[string]patients.Name, alertIDs []string, history []escalations.Event) escalationView {
	view := escalationView{
		ID: e.Number(), PatientID: e.PatientID(), PatientName: names[e.PatientID()].FullName(),
		Priority: e.Priority(), Status: e.Status(), Reason: orNull(e.Reason().Reveal()),
		CreatedBy: e.CreatedBy(), AssignedTo: orNull(e.AssignedTo()), AssignedAt: instantOrNull(e.AssignedAt()),
		AlertID: numberOrNull(e.AlertID()), AlertIDs: []int64{}, RelatedEscalationID: numberOrNull(e.RelatedID()),
		CreatedAt: instantOrNull(e.CreatedAt()), UpdatedAt: instantOrNull(e.UpdatedAt()),
		ResolutionNotes: e.ResolutionNotes().Reveal(), ResolvedBy: orNull(e.ResolvedBy()), ResolvedAt: instantOrNull(e.ResolvedAt()),
		CancelledBy: orNull(e.CancelledBy()), CancelledAt: instantOrNull(e.CancelledAt()), InteractionMinutes: e.InteractionMinutes(),
		Tier: e.Tier(), RemindedAt: instantOrNull(e.RemindedAt()), History: web.Map(history, viewEscalationEvent),
	}
	for _, id := range alertIDs {
		view.AlertIDs = append(view.AlertIDs, collections.Number(id))
	}
	return view
}

// viewEscalations renders a page of escalations with patient names, alerts and events.
func viewEscalations(app core.App, page []*collections.Escalation) ([]escalationView, error) {
	names, err := patients.Names(app, distinct(page, (*collections.Escalation).PatientID))
	if err != nil {
		return nil, err
	}
	attached, err := escalations.AlertIDsByEscalation(app, page...)
	if err != nil {
		return nil, err
	}
	histories, err := escalations.Histories(app, page...)
	if err != nil {
		return nil, err
	}
	waits, err := escalationDeadlines(app, page)
	return web.Map(page, func(e *collections.Escalation) escalationView {
		view := viewEscalation(e, names, attached[e.Id], histories[e.Id])
		view.escalationDeadline = waits[e.Id]
		return view
	}), err
}

// escalation finds the escalation of the path and checks that the caller may see its patient.
func (a *api) escalation(c *web.Call) (*collections.Escalation, error) {
	number, err := c.PathInteger("id")
	if err != nil {
		return nil, err
	}
	e, err := escalations.Find(c.App, number)
	if err != nil {
		return nil, err
	}
	return e, a.authorizePresentPatient(c, e.PatientID())
}

func (a *api) listEscalations(c *web.Call) (err error) {
	q, p := c.Listing()
	filter := collections.EscalationFilter{
		PatientID: q.PatientID(), AssignedTo: strings.ToLower(q.Text("assigned_to", 254)),
		Priority: q.OneOf("priority", escalations.Priorities...), Status: q.OneOf("status", escalations.Statuses...),
	}
	filter.Active, filter.ByUrgency = q.Boolean("active"), q.Ordering(newestFirst, byUrgency) == byUrgency
	if filter.CareTeamOf, err = a.careTeamFilterAfter(c, q, filter.PatientID); err != nil {
		return err
	}
	return list(c, p, audit.ResourceEscalation, viewEscalations)(collections.PageOfEscalations(c.App, filter, p.Offset(), p.Size))
}

func (a *api) readEscalation(c *web.Call, e *collections.Escalation) error {
	return show(c, c.OK, viewEscalations)(e, c.RecordRead(audit.PatientRead, audit.ResourceEscalation, strconv.FormatInt(e.Number(), 10), e.PatientID()))
}

func (a *api) createEscalation(c *web.Call) error {
	draft, err := web.Read(c, escalations.Body.Read)
	if err != nil {
		return err
	}
	if err := a.authorizePatient(c, draft.PatientID); err != nil {
		return err
	}
	return show(c, c.Created, viewEscalations)(triage.OpenEscalation(c.App, draft, c.Actor(), c.Now))
}

func (a *api) updateEscalation(c *web.Call, e *collections.Escalation) error {
	change, err := web.Read(c, escalations.ChangeBody.Read)
	if err != nil {
		return err
	}
	return show(c, c.OK, viewEscalations)(triage.UpdateEscalation(c.App, a.Billing, e.Number(), change, c.Actor(), c.Now))
}

const (
	newestFirst = "-created_at"
	byUrgency   = "urgency"
)

// escalationDeadline is when the next step of an escalation is due and which user owns it; null once it is closed.
type escalationDeadline struct {
	AssignedName *string `json:"assigned_name"`
	Taken        bool    `json:"taken"`
	WaitsSince   *string `json:"waits_since"`
	TierAt       *string `json:"tier_at"`
	WorksSince   *string `json:"works_since"`
}

// escalationDeadlines returns the deadlines of escalations, by record id.
func escalationDeadlines(app core.App, page []*collections.Escalation) (map[string]escalationDeadline, error) {
	ids := web.Map(page, func(e *collections.Escalation) string { return e.Id })
	taken, err := collections.TakenEscalations(app, ids)
	if err != nil {
		return nil, err
	}
	names, err := collections.StaffNames(app, distinct(page, (*collections.Escalation).AssignedTo))
	if err != nil {
		return nil, err
	}
	waits := make(map[string]escalationDeadline, len(page))
	for _, e := range page {
		w := escalationDeadline{AssignedName: orNull(names[e.AssignedTo()].Reveal()), Taken: taken[e.Id]}
		switch {
		case escalations.Status(e.Status()).IsClosed():
		case w.Taken:
			w.WorksSince = instantOrNull(slices.MaxFunc([]time.Time{e.LastActivity(), e.RemindedAt()}, time.Time.Compare))
		default:
			w.WaitsSince, w.TierAt = instantOrNull(e.WaitingSince()), instantOrNull(e.TierAt())
		}
		waits[e.Id] = w
	}
	return waits, nil
}

// deadlinesView is how long an escalation of a priority may stay untaken before each next tier is notified, in seconds
// from its start.
type deadlinesView struct {
	OnCall   int64 `json:"on_call_seconds"`
	Managers int64 `json:"managers_seconds"`
	Everyone int64 `json:"everyone_seconds"`
}

// allDeadlinesView is the configured ladder.
type allDeadlinesView struct {
	Stat    deadlinesView `json:"stat"`
	Urgent  deadlinesView `json:"urgent"`
	Routine deadlinesView `json:"routine"`
	// Note is how long work may continue without a note.
	Note int64 `json:"note_seconds"`
}

func (a *api) readDeadlines(c *web.Call) error {
	of := func(p escalations.Priority) deadlinesView {
		d := a.Ladder.Tiers[p]
		return deadlinesView{seconds(d[0]), seconds(d[1]), seconds(d[2])}
	}
	return c.OK(allDeadlinesView{of(escalations.Stat), of(escalations.Urgent), of(escalations.Routine), seconds(escalations.IdleAfter)})
}

func seconds(d time.Duration) int64 { return int64(d / time.Second) }

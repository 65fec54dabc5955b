package routes

import (
	"net/http"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/questionnaires"
	"github.com/vigilhealth/vigil/internal/ratelimit"
	"github.com/vigilhealth/vigil/routes/web"
)

func questionnaireRows() []route {
	const assignment = "/patients/{id}/questionnaires/{assignment}/"
	return []route{
		{http.MethodGet, "/patients/{id}/questionnaires/", authz.ReadQuestionnaires, ratelimit.User, withPatient((*api).listQuestionnaires)},
		{http.MethodPost, "/patients/{id}/questionnaires/", authz.AssignQuestionnaires, ratelimit.User, withPatient((*api).assignQuestionnaire)},
		{http.MethodDelete, assignment, authz.AssignQuestionnaires, ratelimit.User, withPatient((*api).endQuestionnaire)},
		{http.MethodPost, assignment + "answers/", authz.AnswerQuestionnaires, ratelimit.User, withPatient((*api).answerQuestionnaire)},
	}
}

// questionnaireView is an assignment with its questionnaire and latest answers.
type questionnaireView struct {
	ID            int64                `json:"id"`
	PatientID     string               `json:"patient_id"`
	Questionnaire string               `json:"questionnaire"`
	Version       string               `json:"version"`
	Title         questionnaires.Text  `json:"title"`
	Introduction  questionnaires.Text  `json:"introduction"`
	Copyright     *string              `json:"copyright"`
	Items         []questionnaireItem  `json:"items"`
	EveryDays     *int                 `json:"every_days"` // null for once
	Until         *string              `json:"until"`
	DueOn         *string              `json:"due_on"` // null if no answers are expected any more
	Due           bool                 `json:"due"`
	AssignedBy    *string              `json:"assigned_by"` // null for the portal
	CreatedAt     *string              `json:"created_at"`
	EndedAt       *string              `json:"ended_at"`
	AnsweredAt    *string              `json:"answered_at"`
	Responses     []questionnaireReply `json:"responses"` // latest first; none for caregivers
}

type questionnaireItem struct {
	Item   string                `json:"item"`
	Text   questionnaires.Text   `json:"text"`
	Values []questionnaireOption `json:"values"`
}

type questionnaireOption struct {
	Value string              `json:"value"`
	Text  questionnaires.Text `json:"text"`
}

// questionnaireReply is one set of answers, with its result.
type questionnaireReply struct {
	ID         string                `json:"id"`
	AuthoredAt *string               `json:"authored_at"`
	Source     string                `json:"source"` // patient, caregiver or staff
	Author     *string               `json:"author"` // null for the portal
	Version    string                `json:"version"`
	Answers    []questionnaireAnswer `json:"answers"`
	Score      *int                  `json:"score"` // null if the questionnaire has none
	Result     string                `json:"result"`
	Advice     questionnaires.Text   `json:"advice"`
}

type questionnaireAnswer struct {
	Item  string `json:"item"`
	Value string `json:"value"`
}

func viewQuestionnaire(c *web.Call) func(questionnaires.Assignment) questionnaireView {
	isPortal := c.Caller.Role == authz.Patient
	return func(a questionnaires.Assignment) questionnaireView {
		q := a.Questionnaire
		view := questionnaireView{
			ID: a.Number(), PatientID: a.PatientID(), Questionnaire: q.ID, Version: q.Version, Title: q.Title, Introduction: q.Introduction,
			Copyright: orNull(q.Copyright), Until: orNull(a.Until()), DueOn: orNull(a.DueOn), Due: a.IsDue, AssignedBy: orNull(a.AssignedBy()),
			CreatedAt: instantOrNull(a.CreatedAt()), EndedAt: instantOrNull(a.EndedAt()), AnsweredAt: instantOrNull(a.AnsweredAt), Responses: []questionnaireReply{},
		}
		if every := a.EveryDays(); every > 0 {
			view.EveryDays = &every
		}
		for _, item := range q.Items {
			view.Items = append(view.Items, questionnaireItem{item.ID, item.Text, web.Map(item.Options, func(o questionnaires.Option) questionnaireOption {
				return questionnaireOption{o.Value, o.Text}
			})})
		}
		if isPortal {
			view.AssignedBy = nil
		}
		if !isPortal || c.Caller.Scope == authz.PortalSelf { // a caregiver sees when it was answered, not how
			view.Responses = web.Map(a.Responses, viewQuestionnaireReply(c))
		}
		return view
	}
}

func viewQuestionnaireReply(c *web.Call) func(questionnaires.Response) questionnaireReply {
	return func(r questionnaires.Response) questionnaireReply {
		view := questionnaireReply{
			ID: r.Id, AuthoredAt: instantOrNull(r.AuthoredAt()), Source: r.Source(), Version: r.Version(),
			Answers: []questionnaireAnswer{}, Result: r.Result.ID, Advice: r.Result.Advice,
		}
		for _, item := range r.Questionnaire.Items {
			view.Answers = append(view.Answers, questionnaireAnswer{item.ID, r.Answers[item.ID]})
		}
		if r.Questionnaire.Total != nil {
			view.Score = &r.Score
		}
		if c.Caller.Role == authz.Patient {
			view.Author = nil
		} else if author, err := collections.FindUser(c.App, r.Author()); err == nil {
			view.Author = orNull(author.Email())
		}
		return view
	}
}

// listQuestionnaires shows staff all assignments, and the portal those that expect answers.
func (a *api) listQuestionnaires(c *web.Call, patient *collections.Patient) error {
	q, p := c.Listing()
	if err := q.Err(); err != nil {
		return err
	}
	list, err := questionnaires.Of(c.App, patient, c.Caller.Role == authz.Patient, a.Zone, c.Now)
	if err != nil {
		return err
	}
	if err := c.RecordRead(audit.PatientRead, audit.ResourceQuestionnaireResponse, "", patient.Id); err != nil {
		return err
	}
	return web.RespondPage(c, p, len(list), web.Map(web.Cut(p, list), viewQuestionnaire(c)), 0)
}

func (a *api) assignQuestionnaire(c *web.Call, patient *collections.Patient) error {
	draft, err := fromBodyIn(collections.Zone(patient.TimeZone(), a.Zone), questionnaires.AssignBody.Read)(c)
	if err != nil {
		return err
	}
	return web.RespondWith(c.Created, viewQuestionnaire(c))(questionnaires.Assign(c.App, patient.Id, draft, c.Actor(), a.Zone, c.Now))
}

func (a *api) endQuestionnaire(c *web.Call, patient *collections.Patient) error {
	number, err := c.PathInteger("assignment")
	if err != nil {
		return err
	}
	return c.NoContent(questionnaires.End(c.App, patient.Id, number, c.Actor(), c.Now))
}

func (a *api) answerQuestionnaire(c *web.Call, patient *collections.Patient) error {
	number, err := c.PathInteger("assignment")
	if err != nil {
		return err
	}
	var body questionnaires.AnswersBody
	if err := c.Decode(&body); err != nil {
		return err
	}
	source := collections.AnsweredByStaff
	if c.Caller.Role == authz.Patient {
		source = collections.AnsweredByPatient
		if c.Caller.Scope != authz.PortalSelf {
			source = collections.AnsweredByCaregiver
		}
	}
	return web.RespondWith(c.Created, viewQuestionnaireReply(c))(questionnaires.Answer(c.App, patient.Id, number, body, source, c.Actor(), a.Zone, c.Now))
}

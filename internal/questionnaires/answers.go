package questionnaires

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/escalations"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/validate"
)

// Format hides the answers.
func (Answers) Format(s fmt.State, _ rune) { _, _ = s.Write([]byte("[redacted]")) }

// LogValue hides the answers.
func (Answers) LogValue() slog.Value { return slog.StringValue("[redacted]") }

// AnswersBody is the body with the answers to a questionnaire.
type AnswersBody struct {
	Answers validate.Field[[]validate.Field[AnswerBody]] `json:"answers"`
}

// AnswerBody is the answer to an item.
type AnswerBody struct {
	Item  validate.String `json:"item"`
	Value validate.String `json:"value"`
}

// Read checks that the body answers each item of the questionnaire once, with one of its values.
func (b AnswersBody) Read(c *validate.Checks, q *Questionnaire) Answers {
	const list = "answers"
	answers := Answers{}
	validate.NotNull(c, list, b.Answers)
	for name, answer := range validate.Items(c, list, b.Answers, len(q.Items), "Must be a list of answers.") {
		if !answer.Given() {
			c.Reject(name, "Must be an object with item and value.")
			continue
		}
		id := c.Text(name+".item", answer.Value.Item, validate.Required(0).OneOf(q.itemIDs()...))
		item := q.item(id)
		if item == nil {
			continue
		}
		if _, isRepeated := answers[id]; isRepeated {
			c.Reject(name+".item", "This item is answered already.")
		}
		answers[id] = c.Text(name+".value", answer.Value.Value, validate.Required(0).OneOf(item.values()...))
	}
	if len(c.Fields) == 0 && len(answers) < len(q.Items) {
		c.Reject(list, "Answer every item.")
	}
	return answers
}

func (q *Questionnaire) item(id string) *Item {
	for i := range q.Items {
		if q.Items[i].ID == id {
			return &q.Items[i]
		}
	}
	return nil
}

func (q *Questionnaire) itemIDs() (ids []string) {
	for _, item := range q.Items {
		ids = append(ids, item.ID)
	}
	return ids
}

func (i *Item) values() (values []string) {
	for _, o := range i.Options {
		values = append(values, o.Value)
	}
	return values
}

// Response is stored answers with what they show.
type Response struct {
	*collections.QuestionnaireResponse
	Questionnaire *Questionnaire
	Answers       Answers
	Score         int
	Result        Result
}

// Read evaluates a stored response with a sealed value that opens.
func Read(stored *collections.QuestionnaireResponse) (Response, error) {
	r := Response{QuestionnaireResponse: stored, Questionnaire: Find(stored.Questionnaire(), stored.Version())}
	if r.Questionnaire == nil {
		return r, fmt.Errorf("the version %s of the questionnaire %s is unknown", stored.Version(), stored.Questionnaire())
	}
	if err := json.Unmarshal([]byte(stored.Answers().Reveal()), &r.Answers); err != nil {
		return r, fmt.Errorf("read the answers %s: %w", stored.Id, err)
	}
	r.Score, r.Result = r.Questionnaire.Evaluate(r.Answers)
	return r, nil
}

const (
	msgArchived = "The patient is archived."
	msgFinished = "This questionnaire is finished. The practice can assign it again."
)

// Answer stores the answers to an assigned questionnaire and acts on them, in one transaction.
// Source: docs/decisions/questionnaires.md, "What answers cause".
func Answer(app core.App, patientID string, number int64, body AnswersBody, source string, by audit.Actor, practice *time.Location, now time.Time) (r Response, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		patient, err := collections.FindPatient(tx, patientID)
		if err != nil {
			return fault.OrMissing(err)
		}
		stored, err := collections.FindQuestionnaireAssignment(tx, patientID, number)
		if err != nil {
			return fault.OrMissing(err)
		}
		if !stored.EndedAt().IsZero() {
			return fault.Missing()
		}
		assignment, err := load(tx, stored, patient, practice, 1, now)
		if err != nil {
			return err
		}
		checks := validate.NewChecks()
		answers := body.Read(checks, assignment.Questionnaire)
		switch {
		case checks.Err() != nil:
			return checks.Err()
		case !patient.Active():
			return fault.State("invalid_state", msgArchived)
		case assignment.DueOn == "":
			return fault.State("invalid_state", msgFinished)
		}
		if r, err = add(tx, assignment, answers, source, by, now); err != nil {
			return err
		}
		return act(tx, r, now)
	})
	return r, err
}

func add(tx core.App, a Assignment, answers Answers, source string, by audit.Actor, now time.Time) (r Response, err error) {
	encoded, err := json.Marshal(map[string]string(answers))
	if err != nil {
		return r, err
	}
	author, err := strconv.ParseInt(by.ID, 10, 64)
	if err != nil {
		return r, fmt.Errorf("read the number of the author: %w", err)
	}
	stored, err := collections.AddQuestionnaireResponse(tx, collections.QuestionnaireResponseDraft{
		Assignment: a.QuestionnaireAssignment, Version: a.Questionnaire.Version, Answers: phi.Text(encoded), Source: source, Author: collections.NumberID(author),
	}, now)
	if err != nil {
		return r, err
	}
	r = Response{QuestionnaireResponse: stored, Questionnaire: a.Questionnaire, Answers: answers}
	r.Score, r.Result = a.Questionnaire.Evaluate(answers)
	return r, audit.Append(tx, audit.Entry{
		Event: audit.QuestionnaireAnswer, Actor: by, ResourceType: audit.ResourceQuestionnaireResponse, ResourceID: stored.Id, PatientID: a.PatientID(),
	}, now)
}

// act notifies the care team of what the answers show, or escalates it.
func act(tx core.App, r Response, now time.Time) error {
	switch r.Result.Effect {
	case effectNotify:
		label, err := collections.PatientLabel(tx, r.PatientID())
		if err != nil {
			return err
		}
		return notifications.Announce(tx, notifications.Announcement{
			Kind: notifications.QuestionnaireFinding, Severity: "info", PatientID: r.PatientID(), Body: label + ": " + r.Result.Finding + ".",
			Key: "questionnaire " + r.Id,
		}, now)
	case effectEscalate:
		draft := escalations.Draft{PatientID: r.PatientID(), Priority: escalations.Urgent, Reason: phi.Text("The patient answered: " + r.Result.Finding + ".")}
		if _, err := escalations.JoinOrOpenForMessage(tx, draft, now); err != nil {
			return err
		}
		_, err := triage.Rescore(tx, r.PatientID(), now)
		return err
	}
	return nil
}

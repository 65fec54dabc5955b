package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

// Sources of answers to a questionnaire.
const (
	AnsweredByPatient   = "patient"
	AnsweredByCaregiver = "caregiver"
	AnsweredByStaff     = "staff" // for the patient, on the phone
)

// QuestionnaireAssignment is a questionnaire that a patient is to answer, once or regularly.
type QuestionnaireAssignment struct{ patientRecord }

// QuestionnaireAssignmentDraft is an assignment to store.
type QuestionnaireAssignmentDraft struct {
	PatientID, Questionnaire string
	EveryDays                int    // 0 for once
	Until                    string // the last day, YYYY-MM-DD; "" for no end
	AssignedBy               string // email address
}

// AddQuestionnaireAssignment stores an assignment with the next number.
func AddQuestionnaireAssignment(tx core.App, d QuestionnaireAssignmentDraft, now time.Time) (*QuestionnaireAssignment, error) {
	a, err := newRecord[QuestionnaireAssignment](tx, QuestionnaireAssignments, map[string]any{
		ColumnPatient: d.PatientID, "questionnaire": d.Questionnaire, "every_days": d.EveryDays, "until": d.Until, "assigned_by": d.AssignedBy,
		ColumnCreatedAt: FormatInstant(now),
	})
	if err != nil {
		return nil, err
	}
	return a, wrap(tx.Save(a), "store the assignment of a questionnaire")
}

// FindQuestionnaireAssignment finds an assignment of a patient by number.
func FindQuestionnaireAssignment(app core.App, patientID string, number int64) (*QuestionnaireAssignment, error) {
	return find[QuestionnaireAssignment](app, QuestionnaireAssignments, dbx.HashExp{"id": NumberID(number), ColumnPatient: patientID})
}

// QuestionnaireAssignmentsOf returns a patient's assignments, latest first.
func QuestionnaireAssignmentsOf(app core.App, patientID string) ([]*QuestionnaireAssignment, error) {
	return listOf[QuestionnaireAssignment](app, QuestionnaireAssignments, dbx.HashExp{ColumnPatient: patientID}, "id DESC")
}

func (a *QuestionnaireAssignment) Number() int64         { return Number(a.Id) }
func (a *QuestionnaireAssignment) Questionnaire() string { return a.GetString("questionnaire") }
func (a *QuestionnaireAssignment) EveryDays() int        { return a.GetInt("every_days") }     // 0 for once
func (a *QuestionnaireAssignment) Until() string         { return a.GetString("until") }       // YYYY-MM-DD, or ""
func (a *QuestionnaireAssignment) AssignedBy() string    { return a.GetString("assigned_by") } // email address
func (a *QuestionnaireAssignment) EndedAt() time.Time    { return instantOf(a, "ended_at") }   // zero while in force
func (a *QuestionnaireAssignment) EndedBy() string       { return a.GetString("ended_by") }    // email address, system or ""

// End ends the assignment.
func (a *QuestionnaireAssignment) End(tx core.App, by string, at time.Time) error {
	a.Set("ended_at", FormatInstant(at))
	a.Set("ended_by", by)
	return wrap(tx.Save(a), "end the assignment of a questionnaire")
}

// QuestionnaireResponse is the answers to a questionnaire, which are encrypted. It is never changed.
type QuestionnaireResponse struct{ patientRecord }

// AsQuestionnaireResponse converts a record of the collection.
func AsQuestionnaireResponse(record *core.Record) *QuestionnaireResponse {
	return as[QuestionnaireResponse](record)
}

// QuestionnaireResponseDraft is a response to store.
type QuestionnaireResponseDraft struct {
	Assignment *QuestionnaireAssignment
	Version    string
	Answers    phi.Text // JSON
	Source     string
	Author     string // record id of the account
}

// AddQuestionnaireResponse stores a response.
func AddQuestionnaireResponse(tx core.App, d QuestionnaireResponseDraft, now time.Time) (*QuestionnaireResponse, error) {
	r, err := newRecord[QuestionnaireResponse](tx, QuestionnaireResponses, map[string]any{
		ColumnPatient: d.Assignment.PatientID(), "assignment": d.Assignment.Id, "questionnaire": d.Assignment.Questionnaire(), "version": d.Version,
		"answers": d.Answers.Reveal(), "source": d.Source, "author": d.Author, "authored_at": FormatInstant(now),
	})
	if err != nil {
		return nil, err
	}
	return r, wrap(tx.Save(r), "store the answers to a questionnaire")
}

// LatestQuestionnaireResponses returns the latest responses of an assignment, latest first.
func LatestQuestionnaireResponses(app core.App, assignmentID string, limit int) ([]*QuestionnaireResponse, error) {
	page, _, err := pageOf[QuestionnaireResponse](app, QuestionnaireResponses, dbx.HashExp{"assignment": assignmentID},
		[]string{"authored_at DESC", "id DESC"}, 0, limit)
	return page, err
}

func (r *QuestionnaireResponse) Assignment() int64     { return Number(r.GetString("assignment")) }
func (r *QuestionnaireResponse) Questionnaire() string { return r.GetString("questionnaire") }
func (r *QuestionnaireResponse) Version() string       { return r.GetString("version") }
func (r *QuestionnaireResponse) Answers() phi.Text     { return phi.Text(r.GetString("answers")) } // JSON
func (r *QuestionnaireResponse) Source() string        { return r.GetString("source") }
func (r *QuestionnaireResponse) Author() string        { return r.GetString("author") } // record id of the account
func (r *QuestionnaireResponse) AuthoredAt() time.Time { return instantOf(r, "authored_at") }

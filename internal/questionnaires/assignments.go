package questionnaires

import (
	"fmt"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/validate"
)

// MaxEveryDays is the longest time between two answers, in days.
const MaxEveryDays = 90

// shownResponses is how many of an assignment's responses are shown with it.
const shownResponses = 12

// AssignBody is the body that assigns a questionnaire.
type AssignBody struct {
	Questionnaire validate.String  `json:"questionnaire"`
	EveryDays     validate.Integer `json:"every_days"`
	Until         validate.String  `json:"until"`
}

// AssignDraft is a validated [AssignBody].
type AssignDraft struct {
	questionnaire string
	everyDays     int    // 0 for once
	until         string // the last day, YYYY-MM-DD in the patient's zone; "" for no end
}

// Read checks the body. The last day must not be over in the patient's zone.
func (b AssignBody) Read(c *validate.Checks, now time.Time, zone *time.Location) AssignDraft {
	d := AssignDraft{
		questionnaire: c.Text("questionnaire", b.Questionnaire, validate.Required(0).OneOf(IDs...)),
		until:         c.Date("until", b.Until, false),
	}
	if every := c.Integer("every_days", b.EveryDays, false); every != nil {
		if d.everyDays = int(*every); *every < 1 || *every > MaxEveryDays {
			c.Reject("every_days", fmt.Sprintf("Must be from 1 to %d.", MaxEveryDays))
		}
	}
	if d.until != "" && d.until < now.In(zone).Format(time.DateOnly) {
		c.Reject("until", "Must not be in the past.")
	}
	return d
}

// Assignment is a stored assignment with its latest responses.
type Assignment struct {
	*collections.QuestionnaireAssignment
	Questionnaire *Questionnaire // its latest version
	Responses     []Response     // latest first
	// DueOn is the day, YYYY-MM-DD in the patient's zone, from which the next answers are due; "" if none are expected any more.
	DueOn      string
	AnsweredAt time.Time // the latest time; zero for never
	IsDue      bool      // now; never on hold or for an archived patient
}

// dueOn returns the day from which the next answers are due, "" for none. Days are calendar days, so a change of clocks does not move them.
// Source: docs/decisions/questionnaires.md, "When it is due".
func dueOn(assigned, last time.Time, everyDays int, until string, zone *time.Location, now time.Time) string {
	due := assigned.In(zone).Format(time.DateOnly)
	if !last.IsZero() {
		if everyDays == 0 {
			return ""
		}
		year, month, day := last.In(zone).Date()
		due = time.Date(year, month, day+everyDays, 0, 0, 0, 0, time.UTC).Format(time.DateOnly)
	}
	if until != "" && (due > until || now.In(zone).Format(time.DateOnly) > until) {
		return ""
	}
	return due
}

// load reads an assignment's latest responses, at most the limit, and when the next ones are due.
func load(app core.App, stored *collections.QuestionnaireAssignment, p *collections.Patient, practice *time.Location, limit int, now time.Time) (Assignment, error) {
	a := Assignment{QuestionnaireAssignment: stored, Questionnaire: Find(stored.Questionnaire(), "")}
	if a.Questionnaire == nil {
		return a, fmt.Errorf("the questionnaire %s is unknown", stored.Questionnaire())
	}
	latest, err := collections.LatestQuestionnaireResponses(app, stored.Id, limit)
	if err != nil {
		return a, err
	}
	if len(latest) > 0 {
		a.AnsweredAt = latest[0].AuthoredAt()
	}
	readable, _ := collections.ReadableOnly(latest)
	for _, one := range readable {
		r, err := Read(one)
		if err != nil {
			return a, err
		}
		a.Responses = append(a.Responses, r)
	}
	if zone := collections.Zone(p.TimeZone(), practice); stored.EndedAt().IsZero() {
		a.DueOn = dueOn(stored.CreatedAt(), a.AnsweredAt, stored.EveryDays(), stored.Until(), zone, now)
		a.IsDue = a.DueOn != "" && a.DueOn <= now.In(zone).Format(time.DateOnly) && p.Active() && !p.Hold().InForce(now)
	}
	return a, nil
}

// Of returns a patient's assignments, latest first; onlyOpen leaves out those that expect no answers any more.
func Of(app core.App, p *collections.Patient, onlyOpen bool, practice *time.Location, now time.Time) (list []Assignment, err error) {
	stored, err := collections.QuestionnaireAssignmentsOf(app, p.Id)
	if err != nil {
		return nil, err
	}
	for _, one := range stored {
		a, err := load(app, one, p, practice, shownResponses, now)
		if err != nil {
			return nil, err
		}
		if !onlyOpen || a.DueOn != "" {
			list = append(list, a)
		}
	}
	return list, nil
}

// Assign assigns a questionnaire to an active patient. An assignment of the same questionnaire that is finished ends; one that is not is a fault.
func Assign(app core.App, patientID string, d AssignDraft, by audit.Actor, practice *time.Location, now time.Time) (a Assignment, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		patient, err := collections.FindPatient(tx, patientID)
		if err != nil {
			return fault.OrMissing(err)
		}
		if !patient.Active() {
			return fault.State("invalid_state", msgArchived)
		}
		if err := endFinished(tx, patient, d.questionnaire, practice, now); err != nil {
			return err
		}
		stored, err := collections.AddQuestionnaireAssignment(tx, collections.QuestionnaireAssignmentDraft{
			PatientID: patientID, Questionnaire: d.questionnaire, EveryDays: d.everyDays, Until: d.until, AssignedBy: by.Email,
		}, now)
		if err != nil {
			return err
		}
		if a, err = load(tx, stored, patient, practice, shownResponses, now); err != nil {
			return err
		}
		return record(tx, audit.QuestionnaireAssign, stored, by, now)
	})
	return a, err
}

func endFinished(tx core.App, p *collections.Patient, questionnaire string, practice *time.Location, now time.Time) error {
	earlier, err := Of(tx, p, false, practice, now)
	if err != nil {
		return err
	}
	for _, one := range earlier {
		if one.QuestionnaireAssignment.Questionnaire() != questionnaire || !one.EndedAt().IsZero() {
			continue
		}
		if one.DueOn != "" {
			return fault.Field("questionnaire", "Is assigned already. End that assignment first.")
		}
		if err := one.End(tx, "system", now); err != nil {
			return err
		}
	}
	return nil
}

// End ends an assignment; its answers stay. One that has ended is a not-found fault.
func End(app core.App, patientID string, number int64, by audit.Actor, now time.Time) error {
	return app.RunInTransaction(func(tx core.App) error {
		stored, err := collections.FindQuestionnaireAssignment(tx, patientID, number)
		if err != nil {
			return fault.OrMissing(err)
		}
		if !stored.EndedAt().IsZero() {
			return fault.Missing()
		}
		if err := stored.End(tx, by.Email, now); err != nil {
			return err
		}
		return record(tx, audit.QuestionnaireEnd, stored, by, now)
	})
}

func record(tx core.App, event audit.Event, a *collections.QuestionnaireAssignment, by audit.Actor, now time.Time) error {
	return audit.Append(tx, audit.Entry{
		Event: event, Actor: by, ResourceType: audit.ResourceQuestionnaire, ResourceID: fmt.Sprint(a.Number()), PatientID: a.PatientID(),
	}, now)
}

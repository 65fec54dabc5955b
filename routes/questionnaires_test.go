package routes_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// assign assigns a questionnaire and returns the path of the assignment.
func (c *clinic) assign(patient string, body object) string {
	c.t.Helper()
	id := c.request(authz.Nurse, "POST", "/patients/"+patient+"/questionnaires/", body).want(201).object()["id"].(float64)
	return fmt.Sprintf("/patients/%s/questionnaires/%d/", patient, int(id))
}

// phq2 are answers with the two scores.
func phq2(interest, mood int) object {
	values := []string{"LA6568-5", "LA6569-3", "LA6570-1", "LA6571-9"}
	return object{"answers": []object{{"item": "44250-9", "value": values[interest]}, {"item": "44255-8", "value": values[mood]}}}
}

// zoneAnswers are those of a heart failure check without complaints, with changes.
func zoneAnswers(changes object) object {
	values := object{"breathing": "usual", "weight": "usual", "swelling": "usual", "dizziness": "usual", "lying-flat": "usual", "chest-pain": "none"}
	for item, value := range changes {
		values[item] = value
	}
	answers := []object{}
	for item, value := range values {
		answers = append(answers, object{"item": item, "value": value})
	}
	return object{"answers": answers}
}

// announced returns the kinds of announcements about a patient.
func (c *clinic) announced(patient string) (kinds []string) {
	c.t.Helper()
	if err := c.app.DB().Select("kind").From("announcements").Where(dbx.HashExp{"patient": patient}).OrderBy("rowid").Column(&kinds); err != nil {
		c.t.Fatal(err)
	}
	return kinds
}

// A PHQ-2 is assigned, answered in the portal and, by phone, by staff; a positive one notifies the care team, and nothing is stored in the clear.
func TestQuestionnaireIsAnswered(t *testing.T) {
	f := newFamily(t)
	list := "/patients/" + f.ada + "/questionnaires/"
	assignment := f.assign(f.ada, object{"questionnaire": "phq-2", "every_days": 14})
	open := f.requestAs(f.adaPortal, "GET", list, nil).results()
	if len(open) != 1 || open[0]["due"] != true || open[0]["due_on"] != "2026-01-15" || open[0]["assigned_by"] != nil {
		t.Fatalf("the portal shows %v", open)
	}
	items := open[0]["items"].([]any)
	if text := items[0].(object)["text"].(object); len(items) != 2 || !strings.HasPrefix(text["en"].(string), "Little interest") || !strings.HasPrefix(text["es"].(string), "Poco interés") {
		t.Errorf("the items are %v", items)
	}
	f.requestAs(f.adaPortal, "POST", assignment+"answers/", phq2(1, 1)).want(201).wantAt(object{"score": 2.0, "result": "negative", "source": "patient", "author": nil})
	if got := f.announced(f.ada); len(got) != 0 {
		t.Errorf("a negative screen announces %v", got)
	}
	if open = f.requestAs(f.adaPortal, "GET", list, nil).results(); open[0]["due"] != false || open[0]["due_on"] != "2026-01-29" {
		t.Errorf("after the answers the portal shows %v, %v", open[0]["due"], open[0]["due_on"])
	}
	f.request(authz.MA, "POST", assignment+"answers/", phq2(0, 3)).want(201).wantAt(object{"score": 3.0, "result": "positive", "source": "staff", "author": f.people[authz.MA].Email()})
	var clear int
	if err := f.app.DB().NewQuery(`SELECT COUNT(*) FROM questionnaire_responses WHERE author LIKE '%@%' OR author = ''`).Row(&clear); err != nil || clear != 0 {
		t.Errorf("%d authors are stored by address or not at all (%v)", clear, err)
	}
	if got := f.announced(f.ada); len(got) != 1 || got[0] != "questionnaire_finding" {
		t.Errorf("a positive screen announces %v", got)
	}
	shown := f.request(authz.Provider, "GET", list, nil).results()[0]
	if responses := shown["responses"].([]any); len(responses) != 2 || responses[0].(object)["score"] != 3.0 || responses[1].(object)["score"] != 2.0 {
		t.Errorf("staff see %v", responses)
	}
	var stored []string
	if err := f.app.DB().Select("answers").From(collections.QuestionnaireResponses).Column(&stored); err != nil || len(stored) != 2 {
		t.Fatalf("%d responses, %v", len(stored), err)
	}
	for _, text := range stored {
		if strings.Contains(text, "LA65") || strings.Contains(text, "44250") {
			t.Error("answers are stored in the clear")
		}
	}
	events := strings.Join(f.events(f.ada), " ")
	if strings.Count(events, "questionnaire.answer") != 2 || strings.Count(events, "questionnaire.assign") != 1 {
		t.Errorf("the audit trail has %s", events)
	}
	f.request(authz.Nurse, "DELETE", assignment, nil).want(204)
	f.request(authz.Nurse, "DELETE", assignment, nil).want(404)
	f.requestAs(f.adaPortal, "POST", assignment+"answers/", phq2(0, 0)).want(404)
	if open = f.requestAs(f.adaPortal, "GET", list, nil).results(); len(open) != 0 {
		t.Errorf("the portal shows an ended assignment: %v", open)
	}
	if ended := f.request(authz.Nurse, "GET", list, nil).results(); len(ended) != 1 || ended[0]["ended_at"] == nil || len(ended[0]["responses"].([]any)) != 2 {
		t.Errorf("staff see %v", ended)
	}
}

// Each kind of wrong answers is 400 with the field's name and stores nothing.
func TestWrongAnswersToQuestionnaire(t *testing.T) {
	c := newIngestingClinic(t)
	patient := c.enroll(nil)
	assignment := c.assign(patient, object{"questionnaire": "phq-2"})
	before := vigiltest.RowCounts(t, c.app)
	for body, field := range map[string]string{
		`{}`:                 "answers",
		`{"answers":null}`:   "answers",
		`{"answers":"all"}`:  "answers",
		`{"answers":[]}`:     "answers",
		`{"answers":[null]}`: "answers.0",
		`{"answers":[{"item":"44250-9","value":"LA6568-5"}]}`:                                                                             "answers",
		`{"answers":[{"item":"44250-9","value":"LA6568-5"},{"item":"44250-9","value":"LA6569-3"}]}`:                                       "answers.1.item",
		`{"answers":[{"item":"44250-9","value":"LA6568-5"},{"item":"breathing","value":"usual"}]}`:                                        "answers.1.item",
		`{"answers":[{"item":"44250-9","value":"usual"},{"item":"44255-8","value":"LA6568-5"}]}`:                                          "answers.0.value",
		`{"answers":[{"item":"44250-9","value":0},{"item":"44255-8","value":"LA6568-5"}]}`:                                                "answers.0.value",
		`{"answers":[{"item":"44250-9"},{"item":"44255-8","value":"LA6568-5"}]}`:                                                          "answers.0.value",
		`{"answers":[{"item":"44250-9","value":"la6568-5"},{"item":"44255-8","value":"LA6568-5"}]}`:                                       "answers.0.value",
		`{"answers":[{"item":"44250-9","value":"LA6568-5"},{"item":"44255-8","value":"LA6568-5"},{"item":"44255-8","value":"LA6568-5"}]}`: "answers",
	} {
		c.request(authz.Nurse, "POST", assignment+"answers/", body).want(400).wantFields(field)
	}
	for path, status := range map[string]int{
		"/patients/" + c.enroll(object{"first_name": "Eve"}) + strings.TrimPrefix(assignment, "/patients/"+patient) + "answers/": 404,
		"/patients/" + patient + "/questionnaires/999/answers/":                                                                  404,
		"/patients/" + patient + "/questionnaires/one/answers/":                                                                  404,
	} {
		c.request(authz.Nurse, "POST", path, phq2(3, 3)).want(status)
	}
	if added := vigiltest.RowsAdded(t, c.app, before); added[collections.QuestionnaireResponses] != 0 || added["announcements"] != 0 {
		t.Errorf("refused answers add %v", added)
	}
	c.request(authz.Nurse, "POST", assignment+"answers/", phq2(0, 0)).want(201)
	c.request(authz.Nurse, "POST", assignment+"answers/", phq2(3, 3)).want(400, "invalid_state")

	list := "/patients/" + patient + "/questionnaires/"
	for body, field := range map[string]string{
		`{}`:                        "questionnaire",
		`{"questionnaire":"PHQ-2"}`: "questionnaire",
		`{"questionnaire":"phq-9"}`: "questionnaire",
		`{"questionnaire":"phq-2","every_days":0}`:       "every_days",
		`{"questionnaire":"phq-2","every_days":91}`:      "every_days",
		`{"questionnaire":"phq-2","every_days":1.5}`:     "every_days",
		`{"questionnaire":"phq-2","until":"soon"}`:       "until",
		`{"questionnaire":"phq-2","until":"2026-01-14"}`: "until",
	} {
		c.request(authz.Nurse, "POST", list, body).want(400).wantFields(field)
	}
}

// The first of two equal assignments must be finished; an Idempotency-Key makes a repeated request harmless.
func TestQuestionnaireTwice(t *testing.T) {
	c := newIngestingClinic(t)
	patient := c.enroll(nil)
	list := "/patients/" + patient + "/questionnaires/"
	assignment := c.assign(patient, object{"questionnaire": "heart-failure-zone"})
	c.request(authz.Nurse, "POST", list, object{"questionnaire": "heart-failure-zone", "every_days": 1}).want(400).wantFields("questionnaire")
	c.assign(patient, object{"questionnaire": "phq-2"})
	key := []string{"Idempotency-Key", "answers-1"}
	red := object{"answers": []object{
		{"item": "breathing", "value": "resting"},
		{"item": "weight", "value": "usual"},
		{"item": "swelling", "value": "usual"},
		{"item": "dizziness", "value": "usual"},
		{"item": "lying-flat", "value": "usual"},
		{"item": "chest-pain", "value": "none"},
	}}
	first := c.request(authz.Nurse, "POST", assignment+"answers/", red, key...).want(201)
	if again := c.request(authz.Nurse, "POST", assignment+"answers/", red, key...).want(201); again.at("id") != first.at("id") {
		t.Error("a repeated request is a second answer")
	}
	if list := c.request(authz.Nurse, "GET", "/escalations/"+query("patient_id", patient), nil).results(); len(list) != 1 {
		t.Errorf("%d escalations", len(list))
	}
	c.assign(patient, object{"questionnaire": "heart-failure-zone", "every_days": 1}) // the first is finished
	if all := c.request(authz.Nurse, "GET", list, nil).results(); len(all) != 3 {
		t.Errorf("%d assignments", len(all))
	}
}

// Green causes nothing, yellow notifies the care team, and red opens an urgent escalation, or joins an open one.
func TestHeartFailureZones(t *testing.T) {
	c := newIngestingClinic(t)
	patient := c.enroll(nil)
	assignment := c.assign(patient, object{"questionnaire": "heart-failure-zone", "every_days": 1})
	answer := func(changes object, result string) reply {
		return c.request(authz.Nurse, "POST", assignment+"answers/", zoneAnswers(changes)).want(201).wantAt(object{"result": result, "score": nil})
	}
	answer(nil, "green")
	if got := c.announced(patient); len(got) != 0 {
		t.Errorf("green announces %v", got)
	}
	answer(object{"swelling": "more", "weight": "gained"}, "yellow")
	if got := c.announced(patient); len(got) != 1 || got[0] != "questionnaire_finding" {
		t.Errorf("yellow announces %v", got)
	}
	advice := answer(object{"chest-pain": "present"}, "red").at("advice").(object)
	if !strings.Contains(advice["en"].(string), "911") || !strings.Contains(advice["es"].(string), "911") {
		t.Errorf("red advises %v", advice)
	}
	escalations := c.request(authz.Nurse, "GET", "/escalations/"+query("patient_id", patient), nil).results()
	if len(escalations) != 1 || escalations[0]["priority"] != "urgent" || !strings.Contains(escalations[0]["reason"].(string), "red zone") {
		t.Fatalf("red opens %v", escalations)
	}
	answer(object{"dizziness": "worse"}, "red")
	if list := c.request(authz.Nurse, "GET", "/escalations/"+query("patient_id", patient), nil).results(); len(list) != 1 {
		t.Errorf("a second red opens %d escalations", len(list))
	}
}

// The patient sees the own answers; a caregiver enters by scope and sees only when; another's assignment does not exist.
func TestCaregiversAndQuestionnaires(t *testing.T) {
	f := newFamily(t)
	ofAda, ofBob := f.assign(f.ada, object{"questionnaire": "phq-2", "every_days": 7}), f.assign(f.bob, object{"questionnaire": "phq-2"})
	f.asCaregiver("POST", ofAda+"answers/", phq2(2, 2)).want(201).wantAt(object{"source": "caregiver", "result": "positive"})
	f.asCaregiver("POST", ofBob+"answers/", phq2(2, 2)).want(403, "permission_denied")
	for _, patient := range []string{f.ada, f.bob} {
		for _, one := range f.asCaregiver("GET", "/patients/"+patient+"/questionnaires/", nil).results() {
			if len(one["responses"].([]any)) != 0 || (one["answered_at"] == nil) != (patient == f.bob) {
				t.Errorf("a caregiver sees %v, %v", one["responses"], one["answered_at"])
			}
		}
	}
	if own := f.requestAs(f.adaPortal, "GET", "/patients/"+f.ada+"/questionnaires/", nil).results(); len(own[0]["responses"].([]any)) != 1 {
		t.Errorf("the patient sees %v", own)
	}
	f.requestAs(f.adaPortal, "GET", "/patients/"+f.bob+"/questionnaires/", nil).want(404)
	f.requestAs(f.adaPortal, "POST", ofBob+"answers/", phq2(0, 0)).want(404)
	f.requestAs(f.adaPortal, "POST", "/patients/"+f.ada+strings.TrimPrefix(ofBob, "/patients/"+f.bob)+"answers/", phq2(0, 0)).want(404)
	f.requestAs(f.adaPortal, "POST", "/patients/"+f.ada+"/questionnaires/", object{"questionnaire": "phq-2"}).want(403)
	f.requestAs(f.adaPortal, "DELETE", ofAda, nil).want(403)
}

// Due days are the patient's calendar days, also across both changes of clocks, and in zones that are a day ahead.
func TestQuestionnaireDueDays(t *testing.T) {
	for _, step := range []struct {
		zone, now, until string
		every            int
		dueOn            any
	}{
		{"America/New_York", "2026-03-08T04:30:00Z", "", 1, "2026-03-08"},   // answered on March 7; the next day has 23 hours
		{"America/New_York", "2026-03-08T05:30:00Z", "", 1, "2026-03-09"},   // the 23-hour day itself
		{"America/New_York", "2026-11-01T03:59:00Z", "", 1, "2026-11-01"},   // October 31
		{"America/New_York", "2026-11-02T04:30:00Z", "", 1, "2026-11-02"},   // late on the 25-hour day
		{"Pacific/Kiritimati", "2026-01-15T12:00:00Z", "", 7, "2026-01-23"}, // the 16th there
		{"Pacific/Pago_Pago", "2026-01-15T08:00:00Z", "", 90, "2026-04-14"}, // the 14th there
		{"America/New_York", "2026-01-31T20:00:00Z", "", 30, "2026-03-02"},  // over the end of February
		{"America/New_York", "2026-01-15T20:00:00Z", "2026-01-21", 7, nil},  // the next would be after the last day
		{"America/New_York", "2026-01-15T20:00:00Z", "2026-01-22", 7, "2026-01-22"},
		{"America/New_York", "2026-01-15T20:00:00Z", "", 0, nil}, // once
	} {
		c := newIngestingClinic(t)
		patient := c.enroll(object{"time_zone": step.zone})
		at, err := time.Parse(time.RFC3339, step.now)
		if err != nil {
			t.Fatal(err)
		}
		c.now = at
		body := object{"questionnaire": "phq-2"}
		if step.every > 0 {
			body["every_days"] = step.every
		}
		if step.until != "" {
			body["until"] = step.until
		}
		assignment := c.assign(patient, body)
		c.request(authz.Nurse, "POST", assignment+"answers/", phq2(0, 0)).want(201)
		shown := c.request(authz.Nurse, "GET", "/patients/"+patient+"/questionnaires/", nil).results()[0]
		if shown["due_on"] != step.dueOn || shown["due"] != false {
			t.Errorf("%+v: due on %v, %v", step, shown["due_on"], shown["due"])
		}
		if step.dueOn == nil {
			continue
		}
		next, _ := time.LoadLocation(step.zone)
		day, _ := time.ParseInLocation(time.DateOnly, step.dueOn.(string), next)
		for moment, isDue := range map[time.Time]bool{day.Add(-time.Second): false, day: true} {
			c.now = moment
			shown := c.request(authz.Nurse, "GET", "/patients/"+patient+"/questionnaires/", nil).results()[0]
			if shown["due"] != isDue {
				t.Errorf("%+v: at %s due is %v", step, moment, shown["due"])
			}
		}
	}
}

// On hold nothing is due, and answers still count; after the last day and for an archived patient they are refused.
func TestQuestionnaireOnHoldAndArchived(t *testing.T) {
	c := newIngestingClinic(t)
	patient := c.enroll(nil)
	list := "/patients/" + patient + "/questionnaires/"
	assignment := c.assign(patient, object{"questionnaire": "heart-failure-zone", "every_days": 1, "until": "2026-01-17"})
	due := func() any { return c.request(authz.Nurse, "GET", list, nil).results()[0]["due"] }
	c.request(authz.Nurse, "POST", "/patients/"+patient+"/hold/", object{"reason": "hospital", "until": "2026-01-16"}).want(201)
	if due() != false {
		t.Error("due on hold")
	}
	c.request(authz.Nurse, "POST", assignment+"answers/", zoneAnswers(object{"breathing": "resting"})).want(201).wantAt(object{"result": "red"})
	c.now = c.now.Add(48 * time.Hour)
	if due() != true {
		t.Error("not due after the hold")
	}
	c.now = c.now.Add(24 * time.Hour)
	c.request(authz.Nurse, "POST", assignment+"answers/", zoneAnswers(nil)).want(400, "invalid_state")
	second := c.assign(patient, object{"questionnaire": "heart-failure-zone", "every_days": 1})
	c.request(authz.Nurse, "POST", "/patients/"+patient+"/archive/", object{"reason": "Moved away."}).want(200)
	c.request(authz.Nurse, "POST", second+"answers/", zoneAnswers(nil)).want(400, "invalid_state")
	c.request(authz.Nurse, "POST", list, object{"questionnaire": "phq-2"}).want(400, "invalid_state")
	if due() != false {
		t.Error("due for an archived patient")
	}
}

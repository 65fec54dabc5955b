package routes_test

import (
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
)

// Once the reading that a run's question is about is decided, a new question is raised about the rest of the run.
func TestStoryRestOfASuspectRun(t *testing.T) {
	const question = "suspect_reading warning weight "
	for name, story := range map[string]struct {
		run     []float64 // a day apart; the question is about the first
		decide  int
		confirm bool
		want    []string // all questions ever
	}{
		"the first is retracted":            {[]float64{62, 110, 50}, 0, false, []string{question + "62/78", question + "110/98"}},
		"another is retracted":              {[]float64{62, 110, 50}, 1, false, []string{question + "62/78"}},
		"the first is confirmed":            {[]float64{62, 110, 50}, 0, true, []string{question + "62/78", question + "110/98"}},
		"the last is confirmed":             {[]float64{62, 110, 50}, 2, true, []string{question + "62/78"}},
		"the middle parts the run":          {[]float64{62, 110, 50}, 1, true, []string{question + "62/78", question + "50/78"}},
		"none remains":                      {[]float64{62}, 0, false, []string{question + "62/78"}},
		"a run that is parted in the midst": {[]float64{62, 110, 50, 115}, 1, true, []string{question + "62/78", question + "50/78"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newIngestingClinic(t)
			c.t = t
			patient, at := c.weighedDaily(88, 88, 88, 88, 88, 88, 88)
			var ids []string
			for i, kg := range story.run {
				sent := c.sendWeight("GW-1", kg, at.Add(time.Duration(i)*25*time.Hour)).wantAt(object{"review_state": "suspect"})
				ids = append(ids, sent.at("id").(string))
			}
			notified := func() int {
				return len(c.queryRows(t, `SELECT a.id FROM announcements n JOIN alerts a ON a.id = n.alert WHERE a.type = 'suspect_reading'`))
			}
			if story.confirm {
				c.confirmReading(authz.Nurse, ids[story.decide]).want(200)
			} else {
				c.request(authz.Nurse, "POST", "/ingestion/observations/"+ids[story.decide]+"/entered-in-error/", object{"reason": "The spouse"}).want(200)
			}
			var questions []string
			for _, raised := range c.alertsRaised(patient) {
				if len(raised) > len(question) && raised[:len(question)] == question {
					questions = append(questions, raised)
				}
			}
			wantSame(t, "questions", questions, story.want)
			if n := notified(); n != len(story.want) {
				t.Errorf("%d questions notify, want %d", n, len(story.want))
			}
		})
	}
}

// A late weight of the patient, measured between suspect ones, splits their run: each part has its question.
func TestStoryLateWeightSplitsSuspectRun(t *testing.T) {
	const question = "suspect_reading warning weight "
	for name, story := range map[string]struct {
		run  []float64     // a day and an hour apart
		late time.Duration // after the first
		want []string
	}{
		"between the two":      {[]float64{62, 110}, 12 * time.Hour, []string{question + "62/78", question + "110/98"}},
		"a minute before one":  {[]float64{62, 110}, 25*time.Hour - time.Minute, []string{question + "62/78", question + "110/98"}},
		"days ago":             {[]float64{62, 110, 50, 115, 61}, time.Hour, []string{question + "62/78", question + "110/98"}},
		"before all of them":   {[]float64{62, 110}, -time.Hour, []string{question + "62/78"}},
		"after all of them":    {[]float64{62, 110}, 26 * time.Hour, []string{question + "62/78"}},
		"one alone, before it": {[]float64{62}, -time.Hour, []string{question + "62/78"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newIngestingClinic(t)
			c.t = t
			patient, at := c.weighedDaily(88, 88, 88, 88, 88, 88, 88)
			for i, kg := range story.run {
				c.sendWeight("GW-1", kg, at.Add(time.Duration(i)*25*time.Hour)).wantAt(object{"review_state": "suspect"})
			}
			c.sendWeightFrom("W-2", "GW-1", 88.1, at.Add(story.late)).wantAt(object{"review_state": "accepted", "alert_triggered": false})
			wantSame(t, "questions", c.alertsRaised(patient), story.want)
			if notified := c.queryRows(t, `SELECT a.id FROM announcements n JOIN alerts a ON a.id = n.alert WHERE a.type = 'suspect_reading'`); len(notified) != len(story.want) {
				t.Errorf("%d questions notify", len(notified))
			}
			if stored := c.queryRows(t, `SELECT COUNT(*) FROM triage_scores`); stored[0] != "1" {
				t.Errorf("%s places", stored)
			}
			c.sendWeightFrom("W-2", "GW-1", 88.2, at.Add(story.late+30*time.Second)).wantAt(object{"review_state": "accepted"})
			wantSame(t, "questions after another one", c.alertsRaised(patient), story.want)
		})
	}
}

package routes_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
)

// cuffReading is a blood pressure with a pulse, some minutes after the first.
type cuffReading struct{ minutes, systolic, pulse int }

// addCuff stores readings of one cuff from start on, in the given order, and returns the ids of the observations.
func (w *ward) addCuff(device string, start time.Time, readings ...cuffReading) (ids []string) {
	w.t.Helper()
	for _, r := range readings {
		at := start.Add(time.Duration(r.minutes) * time.Minute)
		w.now = at.Add(time.Hour)
		event := strings.Replace(cuffEvent(device, "GW-1", r.systolic, at), `"diastolic":80`, fmt.Sprintf(`"diastolic":72,"pulse":%d`, r.pulse), 1)
		ids = append(ids, w.postEvent(w.t, event).want(200).wantAt(object{"status": "accepted"}).at("observation_id").(string))
	}
	return ids
}

// questions returns the questions about readings that may be another person's.
func (w *ward) questions() []object {
	w.t.Helper()
	return w.request(authz.Nurse, "GET", "/alerts/"+query("patient_id", w.patient, "type", "suspect_reading"), nil).results()
}

// Two people use one cuff: neither resolves the other's alert, in any order of arrival, and one question is asked. Readings that differ in
// the pressure or the pulse alone, later ones, and those of another cuff are the patient's.
func TestStoryTwoPeopleOneCuff(t *testing.T) {
	for name, c := range map[string]struct {
		readings  []cuffReading
		questions int
		want      []string
	}{
		"the spouse is normal":       {[]cuffReading{{0, 186, 88}, {4, 117, 64}, {9, 119, 64}}, 1, []string{"186 critical active"}},
		"a warning":                  {[]cuffReading{{0, 152, 90}, {5, 118, 70}}, 1, []string{"152 warning active"}},
		"the spouse is low":          {[]cuffReading{{0, 86, 104}, {5, 124, 70}}, 1, []string{"86 warning active"}},
		"the pulse is the same":      {[]cuffReading{{0, 186, 88}, {4, 117, 80}, {9, 119, 82}}, 0, []string{"186 critical auto_resolved"}},
		"the pulse differs by 15":    {[]cuffReading{{0, 186, 88}, {4, 117, 73}, {9, 119, 73}}, 0, []string{"186 critical auto_resolved"}},
		"the pressure is close":      {[]cuffReading{{0, 152, 95}, {5, 122, 70}}, 0, []string{"152 warning auto_resolved"}},
		"half an hour later":         {[]cuffReading{{0, 152, 90}, {30, 118, 70}}, 1, []string{"152 warning active"}},
		"more than half an hour":     {[]cuffReading{{0, 152, 90}, {31, 118, 70}}, 0, []string{"152 warning auto_resolved"}},
		"the patient again":          {[]cuffReading{{0, 152, 90}, {5, 117, 66}, {9, 134, 86}}, 1, []string{"152 warning auto_resolved"}},
		"both are high":              {[]cuffReading{{0, 188, 100}, {5, 152, 70}, {10, 120, 78}}, 1, []string{"188 critical active", "152 warning auto_resolved"}},
		"an older alert is resolved": {[]cuffReading{{-300, 150, 70}, {0, 118, 64}, {5, 186, 88}}, 1, []string{"150 warning auto_resolved", "186 critical active"}},
	} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(41, 12))
			for range 3 {
				w := newWard(t, nil)
				w.addCuff("BP-1", w.now, c.readings...)
				w.wantAlertStates(fmt.Sprint(c.readings), append(questionStates(w), c.want...)...)
				if n := len(w.questions()); n != c.questions {
					t.Errorf("%v: %d questions, want %d", c.readings, n, c.questions)
				}
				random.Shuffle(len(c.readings), func(i, j int) { c.readings[i], c.readings[j] = c.readings[j], c.readings[i] })
			}
		})
	}
	w := newWard(t, nil)
	w.addCuff("BP-1", w.now, cuffReading{0, 186, 88})
	w.addCuff("BP-2", w.now.Add(-time.Hour), cuffReading{4, 117, 64}, cuffReading{9, 119, 64})
	w.wantAlertStates("two cuffs", "186 critical auto_resolved")
}

// questionStates are the states of the questions among the alerts.
func questionStates(w *ward) (states []string) {
	for _, q := range w.questions() {
		states = append(states, fmt.Sprintf("%v %v %v", q["value"], q["level"], q["status"]))
	}
	return states
}

// A clinician answers the question: the reading is confirmed, or one of the two is marked as entered in error.
func TestStoryTwoPeopleOneCuffAnswered(t *testing.T) {
	w := newWard(t, nil)
	ids := w.addCuff("BP-1", w.now, cuffReading{0, 186, 88}, cuffReading{4, 117, 64}, cuffReading{9, 119, 64})
	question := w.questions()[0]
	if question["observation_id"] != ids[1] || question["parameter"] != "systolic" || question["level"] != "warning" {
		t.Errorf("the question is %v", question)
	}
	if message := question["message"].(string); !strings.Contains(message, "186") || !strings.Contains(message, "117") || !strings.Contains(message, "64") {
		t.Errorf("it reads %q", message)
	}
	w.request(authz.Nurse, "POST", "/ingestion/observations/"+ids[2]+"/confirm/", object{}).want(400, "invalid_state")
	w.request(authz.Nurse, "POST", "/ingestion/observations/"+ids[1]+"/confirm/", object{"notes": "After a rest."}).want(200).wantAt(object{"review_state": "confirmed"})
	if question = w.questions()[0]; question["status"] != "resolved" {
		t.Errorf("after the confirmation it is %v", question["status"])
	}
	w.addCuff("BP-1", w.now.Add(-time.Hour), cuffReading{12, 120, 64})
	if n := len(w.questions()); n != 1 {
		t.Errorf("asked again: %d", n)
	}

	for _, wrong := range []int{0, 1} {
		w = newWard(t, nil)
		ids = w.addCuff("BP-1", w.now, cuffReading{0, 186, 88}, cuffReading{4, 117, 64})
		w.retract(ids[wrong])
		if status := w.questions()[0]["status"]; status != "resolved" {
			t.Errorf("without reading %d the question is %v", wrong, status)
		}
		left := w.request(authz.Nurse, "GET", "/alerts/"+query("patient_id", w.patient, "type", "blood_pressure", "status", "active"), nil).results()
		if open := slices.ContainsFunc(left, func(a object) bool { return a["value"] == 186.0 }); open != (wrong == 1) {
			t.Errorf("without reading %d the alert is open: %t", wrong, open)
		}
	}
}

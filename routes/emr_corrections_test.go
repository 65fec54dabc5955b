package routes_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/sandbox"
)

// correctionsDue returns the EMR copies that a person has to correct, and checks that all counts of them agree.
func (a *atTheEMR) correctionsDue() (list []object) {
	a.t.Helper()
	list = a.request(authz.Nurse, "GET", "/fhir/transmissions/?correction_due=true", nil).results()
	a.request(authz.MA, "GET", "/fhir/status/", nil).want(200).wantAt(object{"queue.corrections_due": float64(len(list))})
	a.request(authz.DataMonitor, "GET", "/billing/reports/tasks-summary/", nil).want(200).wantAt(object{"emr_corrections": float64(len(list))})
	return list
}

// A retracted reading that the EMR still shows is a task that stays until a person closes it or an update succeeds.
func TestStoryRefusedUpdateIsATask(t *testing.T) {
	for _, status := range []int{405, 501, 403, 422, 400, 503} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			a := newAtTheEMR(t)
			id := a.postEvent(t, cuffEvent("BP-1", "gw-1", 150, a.now)).want(200).at("observation_id").(string)
			a.deliver(time.Minute)
			a.emr.Fail(sandbox.Fault{Match: "PUT ", Status: status})
			if got := a.correctionsDue(); len(got) != 0 {
				t.Fatalf("due %v", got)
			}
			a.retract(id)
			for range 8 {
				a.deliver(time.Hour)
			}
			list := a.correctionsDue()
			if len(list) != 1 || list[0]["observation_id"] != id {
				t.Fatalf("due %v", list)
			}
			path := "/fhir/transmissions/" + list[0]["id"].(string) + "/"
			task := list[0]["correction"].(object)
			if task["due_since"] == nil || task["acknowledged_at"] != nil {
				t.Errorf("task %v", task)
			}
			a.request(authz.Nurse, "POST", path+"acknowledge/", object{}).wantFields("notes")
			a.request(authz.MA, "POST", path+"acknowledge/", object{"notes": "Done."}).want(403)
			if got := a.correctionsDue(); len(got) != 1 {
				t.Fatalf("due %v", got)
			}
			a.request(authz.Nurse, "POST", path+"acknowledge/", object{"notes": "Marked in the chart of Ada."}).want(200).wantAt(object{
				"correction.acknowledged_by": a.people[authz.Nurse].Email(), "correction.notes": "Marked in the chart of Ada.",
			})
			a.request(authz.Nurse, "POST", path+"acknowledge/", object{"notes": "Again."}).want(400, "invalid_state")
			// A second failure opens no second task.
			a.request(authz.Nurse, "POST", "/fhir/observations/"+id+"/transform/", nil).want(200)
			for range 3 {
				a.deliver(time.Hour)
			}
			if got := a.correctionsDue(); len(got) != 0 {
				t.Errorf("opened again: %v", got)
			}
			if events := a.events(a.patient); !slices.Contains(events, "emr.corrected") {
				t.Errorf("the trail has %v", events)
			}
			a.emr.ClearFaults()
			a.request(authz.Nurse, "POST", "/fhir/observations/"+id+"/transform/", nil).want(200)
			a.deliver(time.Minute)
			a.request(authz.Nurse, "GET", path, nil).want(200).wantAt(object{"status": "transmitted", "correction": nil})
		})
	}
}

// An update that succeeds later closes the task automatically.
func TestLateCorrectionClosesTask(t *testing.T) {
	a := newAtTheEMR(t)
	id := a.postEvent(t, cuffEvent("BP-1", "gw-1", 150, a.now)).want(200).at("observation_id").(string)
	a.deliver(time.Minute)
	a.emr.Fail(sandbox.Fault{Match: "PUT ", Status: 403, Times: 1})
	a.retract(id)
	a.deliver(time.Minute)
	if got := a.correctionsDue(); len(got) != 1 {
		t.Fatalf("due %v", got)
	}
	a.deliver(time.Hour)
	if got := a.correctionsDue(); len(got) != 0 {
		t.Errorf("due %v", got)
	}
	if got := a.copies(1)[0]; got.Status != "entered-in-error" {
		t.Errorf("copy %s", got.Status)
	}
}

// A reading that the EMR took without showing it is sent again only on a person's word.
func TestResolveTransmission(t *testing.T) {
	for outcome, sent := range map[string]int{"present": 0, "absent": 1} {
		a := newAtTheEMR(t)
		id := a.postEvent(t, cuffEvent("BP-1", "gw-1", 150, a.now)).want(200).at("observation_id").(string)
		a.emr.Fail(sandbox.Fault{Match: "POST /fhir/demo/Observation", Status: 202})
		for range 8 {
			a.deliver(24 * time.Hour)
		}
		a.emr.ClearFaults()
		list := a.request(authz.Nurse, "GET", "/fhir/transmissions/?error_code=outcome_unknown", nil).results()
		if len(list) != 1 || list[0]["observation_id"] != id || list[0]["next_retry_at"] != nil {
			t.Fatalf("%v", list)
		}
		a.request(authz.Admin, "POST", "/fhir/transmissions/retry/", object{"since": "3000d"}).want(200).wantAt(object{"requeued": 0.0})
		a.request(authz.Nurse, "POST", "/fhir/observations/"+id+"/transform/", nil).want(400, "outcome_unknown")
		path := "/fhir/transmissions/" + list[0]["id"].(string) + "/"
		a.request(authz.Nurse, "POST", path+"resolve/", object{"outcome": "maybe"}).wantFields("notes", "outcome")
		a.request(authz.MA, "POST", path+"resolve/", object{"outcome": outcome, "notes": "Looked."}).want(403)
		before := a.emr.Stats().Observations
		a.request(authz.Nurse, "POST", path+"resolve/", object{"outcome": outcome, "notes": "Looked in Ada's chart."}).want(200)
		a.request(authz.Nurse, "POST", path+"resolve/", object{"outcome": outcome, "notes": "Again."}).want(400, "invalid_state")
		a.deliver(time.Minute)
		a.request(authz.Nurse, "GET", path, nil).want(200).wantAt(object{"status": "transmitted", "error_code": nil})
		if got := a.emr.Stats().Observations - before; got != sent {
			t.Errorf("%s: %d stored, want %d", outcome, got, sent)
		}
		if events := a.events(a.patient); !slices.Contains(events, "emr.resolve") {
			t.Errorf("the trail has %v", events)
		}
	}
}

package routes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/routes"
)

// changes lists the change log as field, old and new value, oldest first.
func (c *clinic) changes(filter ...string) (list []string) {
	c.t.Helper()
	for _, entry := range c.request(authz.Nurse, "GET", "/threshold-changes/"+query(filter...), nil).results() {
		list = append(list, fmt.Sprintf("%s %v→%v", entry["field"], entry["old_value"], entry["new_value"]))
	}
	slices.Reverse(list)
	return list
}

func TestThresholds(t *testing.T) {
	c := newClinic(t)
	id := c.enroll(nil)
	path := "/patients/" + id + "/vital-config/"
	c.request(authz.MA, "GET", path, nil).want(200).wantAt(object{
		"patient_id": id, "is_default": true, "updated_at": nil, "updated_by": nil,
		"blood_pressure.systolic_high": 140.0, "blood_pressure.systolic_critical": 180.0, "blood_pressure.systolic_low": 90.0, "blood_pressure.systolic_critical_low": 80.0,
		"blood_pressure.diastolic_high": 90.0, "pulse.high": 110.0, "pulse_oximetry.low": 92.0, "blood_glucose.critical": 300.0,
		"weight.change_threshold_kg": 2.3, "weight.change_window_days": 7.0, "weight.critical_change_kg": 4.6,
	})

	c.now = c.now.Add(time.Minute)
	changed := c.request(authz.Nurse, "PUT", path, object{
		"reason": "Per Dr. Grey", "blood_pressure": object{"systolic_high": 135, "systolic_low": 80, "systolic_critical_low": nil},
		"weight": object{"change_threshold_kg": 3, "change_window_days": 3},
	}).want(200)
	changed.wantAt(object{
		"is_default": false, "updated_at": "2026-01-15T13:46:00Z", "updated_by": c.people[authz.Nurse].Email(),
		"blood_pressure.systolic_high": 135.0, "blood_pressure.systolic_low": 80.0, "blood_pressure.systolic_critical_low": nil,
		"blood_pressure.systolic_critical": 180.0, "weight.critical_change_kg": 6.0, "weight.change_window_days": 3.0, "pulse.high": 110.0,
	})
	want := []string{"systolic_critical_low 80→<nil>", "systolic_low 90→80", "systolic_high 140→135", "weight_change_threshold_kg 2.3→3", "weight_change_window_days 7→3"}
	if got := c.changes("patient_id", id); !slices.Equal(got, want) {
		t.Errorf("the change log has %v, want %v", got, want)
	}

	before := len(c.events(id))
	c.request(authz.Nurse, "PUT", path, object{"reason": "Same again", "blood_pressure": object{"systolic_high": 135}}).want(200).
		wantAt(object{"updated_at": "2026-01-15T13:46:00Z"})
	c.request(authz.Nurse, "PUT", path, object{"reason": "Nothing"}).want(200)
	if len(c.events(id)) != before || len(c.changes()) != len(want) {
		t.Error("a change of nothing leaves traces")
	}

	c.request(authz.Nurse, "PUT", path, object{"reason": "Athlete", "pulse": nil, "blood_glucose": object{"high": nil}}).want(200).
		wantAt(object{"pulse": nil, "blood_glucose.high": nil, "blood_glucose.critical": 300.0})
	want = append(want, "pulse_critical_low 40→<nil>", "pulse_low 50→<nil>", "pulse_high 110→<nil>", "pulse_critical 130→<nil>", "glucose_high 250→<nil>")
	if got := c.changes("patient_id", id); !slices.Equal(got, want) {
		t.Errorf("the change log has %v, want %v", got, want)
	}
	c.request(authz.Nurse, "PUT", path, object{"reason": "Watched again", "pulse": object{"high": 120}}).want(200).
		wantAt(object{"pulse.high": 120.0, "pulse.low": 50.0})

	var reason string
	err := c.app.DB().Select("reason").From(collections.ThresholdChanges).Limit(1).Row(&reason)
	if err != nil || strings.Contains(reason, "Grey") || !strings.HasPrefix(reason, "v2:") {
		t.Errorf("the reason is stored as %q, %v", reason, err)
	}
	if events := c.events(id); !slices.Contains(events, "threshold.update") {
		t.Errorf("the audit trail has %v", events)
	}
}

func TestThresholdRefusals(t *testing.T) {
	c := newClinic(t)
	id := c.enroll(nil)
	path := "/patients/" + id + "/vital-config/"
	for name, test := range map[string]struct {
		body  object
		wrong []string
	}{
		"no reason":             {object{"pulse": object{"high": 100}}, []string{"reason"}},
		"blank reason":          {object{"reason": "  "}, []string{"reason"}},
		"long reason":           {object{"reason": strings.Repeat("x", 501)}, []string{"reason"}},
		"out of range":          {object{"reason": "x", "blood_pressure": object{"systolic_high": 301, "diastolic_low": 29}}, []string{"blood_pressure.systolic_high", "blood_pressure.diastolic_low"}},
		"wrong type":            {object{"reason": "x", "pulse": object{"high": "100"}}, []string{"pulse.high"}},
		"group of wrong type":   {object{"reason": "x", "pulse": 7, "weight": []int{1}}, []string{"pulse", "weight"}},
		"order, upper blamed":   {object{"reason": "x", "pulse": object{"low": 100, "high": 90}}, []string{"pulse.high"}},
		"equal":                 {object{"reason": "x", "pulse": object{"low": 90, "high": 90}}, []string{"pulse.high"}},
		"weight change":         {object{"reason": "x", "weight": object{"change_threshold_kg": 0.1}}, []string{"weight.change_threshold_kg"}},
		"weight window":         {object{"reason": "x", "weight": object{"change_window_days": 31}}, []string{"weight.change_window_days"}},
		"window of half a day":  {object{"reason": "x", "weight": object{"change_window_days": 1.5}}, []string{"weight.change_window_days"}},
		"critical below change": {object{"reason": "x", "weight": object{"change_threshold_kg": 3, "critical_change_kg": 2}}, []string{"weight.critical_change_kg"}},
	} {
		t.Run(name, func(t *testing.T) {
			answer := c.request(authz.Nurse, "PUT", path, test.body)
			answer.t = t
			answer.wantFields(test.wrong...)
		})
	}
	c.request(authz.Nurse, "PUT", path, object{"reason": "x", "pulse": object{"high": 100}}).want(200)
	c.request(authz.Nurse, "PUT", path, object{"reason": "x", "pulse": object{"low": 100}}).wantFields("pulse.low") // the member that was sent
	if got := c.changes("patient_id", id); len(got) != 1 {
		t.Errorf("refused changes are logged: %v", got)
	}
	c.wantRoles("PUT", "/patients/"+unknownPatient+"/vital-config/", object{"reason": "x"}, archivers...)
	c.wantRoles("GET", "/patients/"+unknownPatient+"/vital-config/", nil, append([]authz.Role{authz.Patient}, clinical...)...)
	c.wantRoles("GET", "/threshold-changes/", nil, clinical...)
}

func TestDefaultThresholds(t *testing.T) {
	calls := 0
	c := newClinic(t, func(e *routes.Engines) { e.DefaultsChanged = func() { calls++ } })
	own, inherits := c.enroll(nil), c.enroll(nil)
	c.request(authz.Nurse, "PUT", "/patients/"+own+"/vital-config/", object{"reason": "x", "pulse": object{"high": 100}}).want(200)
	const path = "/settings/default-thresholds/"
	c.request(authz.MA, "GET", path, nil).want(200).wantAt(object{"patient_id": nil, "is_default": true, "updated_at": nil, "pulse.high": 110.0})
	c.request(authz.Admin, "PUT", path, object{"pulse": object{"high": 105}}).wantFields("reason")
	c.request(authz.Admin, "PUT", path, object{"reason": "x", "pulse": object{"high": 40}}).wantFields("pulse.high")
	c.request(authz.Admin, "PUT", path, object{"reason": "Board decision", "pulse": object{"high": 105}}).want(200).
		wantAt(object{"patient_id": nil, "pulse.high": 105.0, "updated_by": c.people[authz.Admin].Email()})
	if calls != 1 {
		t.Errorf("the ranking job is notified %d times", calls)
	}
	c.request(authz.MA, "GET", "/patients/"+inherits+"/vital-config/", nil).want(200).wantAt(object{"pulse.high": 105.0, "is_default": true, "updated_at": nil})
	c.request(authz.MA, "GET", "/patients/"+own+"/vital-config/", nil).want(200).wantAt(object{"pulse.high": 100.0, "is_default": false})
	log := c.request(authz.Nurse, "GET", "/threshold-changes/", nil).results()
	if len(log) != 2 || log[0]["patient_id"] != nil || log[0]["reason"] != "Board decision" || log[1]["patient_id"] != own {
		t.Errorf("the change log has %v", log)
	}
	c.wantRoles("GET", path, nil, clinical...)
	c.wantRoles("PUT", path, object{"reason": "x"}, authz.Admin)
}

func TestThresholdChangeFilters(t *testing.T) {
	c := newClinic(t)
	one, two := c.enroll(nil), c.enroll(nil)
	for i, change := range []struct {
		role    authz.Role
		patient string
		body    object
	}{
		{authz.Nurse, one, object{"pulse": object{"high": 101}}},
		{authz.Provider, one, object{"pulse": object{"high": 102, "low": 45}}},
		{authz.Nurse, two, object{"pulse_oximetry": object{"low": 91}}},
	} {
		c.now = clock.AddDate(0, 0, i)
		change.body["reason"] = "x"
		c.request(change.role, "PUT", "/patients/"+change.patient+"/vital-config/", change.body).want(200)
	}
	for filter, count := range map[string]int{
		"": 4, query("patient_id", one): 3, query("patient_id", unknownPatient): 0, query("field", "pulse_high"): 2, query("changed_by", c.people[authz.Nurse].Email()): 2,
		query("date_from", "2026-01-16"): 3, query("date_to", "2026-01-16"): 3, query("date_from", "2026-01-16", "date_to", "2026-01-16"): 2,
		query("patient_id", one, "field", "pulse_low"): 1,
	} {
		if got := c.request(authz.MA, "GET", "/threshold-changes/"+filter, nil).results(); len(got) != count {
			t.Errorf("%s finds %d changes, want %d", filter, len(got), count)
		}
	}
	c.request(authz.MA, "GET", "/threshold-changes/"+query("field", "pulse", "patient_id", "7"), nil).wantFields("field", "patient_id")
	if newest := c.request(authz.MA, "GET", "/threshold-changes/", nil).results()[0]; newest["field"] != "spo2_low" || newest["changed_at"] != "2026-01-17T13:45:00Z" {
		t.Errorf("the newest is %v", newest)
	}
}

// New bounds rerank the patient in the same transaction.
func TestThresholdsRescore(t *testing.T) {
	c := newClinic(t)
	id := c.enroll(nil)
	latest := `{"blood_pressure":{"systolic":150,"diastolic":80,"measured_at":"` + clock.Format(time.RFC3339) + `"}}`
	if _, err := c.app.DB().Update(collections.TriageScores, dbx.Params{"latest_vitals": latest}, dbx.HashExp{"patient": id}).Execute(); err != nil {
		t.Fatal(err)
	}
	score := func() (value int) {
		if err := c.app.DB().Select("risk_score").From(collections.TriageScores).Where(dbx.HashExp{"patient": id}).Row(&value); err != nil {
			t.Fatal(err)
		}
		return value
	}
	path := "/patients/" + id + "/vital-config/"
	c.request(authz.Nurse, "PUT", path, object{"reason": "x", "blood_pressure": object{"systolic_critical": 150}}).want(200)
	strict := score()
	c.request(authz.Nurse, "PUT", path, object{"reason": "x", "blood_pressure": object{"systolic_high": 160, "systolic_critical": 190}}).want(200)
	if calm := score(); strict < 50 || calm >= strict {
		t.Errorf("scores %d under strict and %d under wide bounds", strict, calm)
	}
}

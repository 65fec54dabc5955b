package routes_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/routes"
)

// pulse28 is the story's measurement.
func pulse28(c *clinic, patient string) string {
	return measured("BP-1", patient, "blood_pressure", "mmHg", c.now, `"systolic":104,"diastolic":58,"pulse":28`)
}

// The patient's bounds decide whether an implausible value is stat; its critical alert cannot be turned off.
func TestImplausibleAndThresholds(t *testing.T) {
	for name, config := range map[string]object{
		"the bound was removed": {"pulse": object{"critical_low": nil}, "reason": "pacemaker"},
		"the group is off":      {"pulse": nil, "reason": "pacemaker"},
		"a bound of their own":  {"pulse": object{"critical_low": 30}, "reason": "athlete"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newIngestingClinic(t)
			c.t = t
			patient := c.enroll(object{"gateway_patient_id": "gw-1"})
			c.request(authz.Provider, "PUT", "/patients/"+patient+"/vital-config/", config).want(200)
			c.postEvent(t, pulse28(c, "gw-1")).want(400)
			wantIn(t, c.implausible(patient), object{"level": "critical", "status": "active", "parameter": "pulse", "value": 28.0})
			if stat := len(c.statEscalations(t)) == 1; stat != (name == "a bound of their own") {
				t.Errorf("escalations: %q", c.statEscalations(t))
			}
		})
	}
}

// An implausible value joins the escalation that a critical reading opened, and leaves it when discarded.
func TestImplausibleJoinsAnEscalation(t *testing.T) {
	c := newIngestingClinic(t)
	patient := c.enroll(object{"gateway_patient_id": "gw-1"})
	c.postEvent(t, cuffEvent("BP-1", "gw-1", 204, c.now.Add(-time.Minute))).want(200)
	c.request(authz.Provider, "PATCH", "/escalations/1/", object{"status": "in_progress"}).want(200)
	c.postEvent(t, pulse28(c, "gw-1")).want(400)
	alert := c.implausible(patient)
	wantIn(t, alert, object{"escalation_id": 1.0})
	c.request(authz.Nurse, "POST", "/ingestion/quarantine/"+alert["quarantine_id"].(string)+"/discard/", object{"reason": "A loose cuff."}).want(200)
	if got := c.statEscalations(t); !slices.Equal(got, []string{"stat in_progress system"}) {
		t.Errorf("escalations: %q", got)
	}

	// An escalation opened by an implausible value stays for a measured one.
	other := c.enroll(object{"gateway_patient_id": "gw-2"})
	c.postEvent(t, pulse28(c, "gw-2")).want(400)
	c.now = c.now.Add(time.Minute)
	c.postEvent(t, strings.Replace(cuffEvent("BP-1", "gw-2", 204, c.now), "BP-1", "BP-2", 1)).want(200)
	c.request(authz.Nurse, "POST", "/ingestion/quarantine/"+c.implausible(other)["quarantine_id"].(string)+"/discard/", object{"reason": "A loose cuff."}).want(200)
	if got := c.statEscalations(t); !slices.Equal(got, []string{"stat in_progress system", "stat open system"}) {
		t.Errorf("escalations: %q", got)
	}
}

// A snooze of a known value does not cover an implausible one.
func TestImplausibleUnderSnooze(t *testing.T) {
	c := newIngestingClinic(t)
	patient := c.enroll(object{"gateway_patient_id": "gw-1"})
	c.request(authz.Provider, "POST", "/patients/"+patient+"/snoozes/", object{
		"type": "pulse", "include_critical": true, "reason": "known", "ends_at": c.now.Add(time.Hour).Format(time.RFC3339),
	}).want(201)
	c.postEvent(t, pulse28(c, "gw-1")).want(400)
	wantIn(t, c.implausible(patient), object{"snoozed": false})
	if got := c.statEscalations(t); !slices.Equal(got, []string{"stat open system"}) {
		t.Errorf("escalations: %q", got)
	}
}

// An event of an archived patient stays in quarantine without an alert.
func TestImplausibleOfArchivedPatient(t *testing.T) {
	c := newIngestingClinic(t)
	patient := c.enroll(object{"gateway_patient_id": "gw-1"})
	c.request(authz.Provider, "POST", "/patients/"+patient+"/archive/", object{"reason": "moved", "confirm": true}).want(200)
	c.postEvent(t, pulse28(c, "gw-1")).want(400)
	c.request(authz.Nurse, "POST", "/ingestion/blood-pressure/", object{"patient_id": patient, "systolic": 55, "diastolic": 30, "measured_at": c.now.Format(time.RFC3339)}).want(400)
	c.wantAlerts(t)
	id := c.queryRows(t, `SELECT id FROM gateway_events`)[0]
	c.request(authz.MA, "POST", "/ingestion/quarantine/"+id+"/release/", object{"patient_id": patient}).wantFields("patient_id")
}

// With access restricted to care teams, other clinicians cannot confirm an event, nor make one that alerts another team.
func TestImplausibleAndCareTeams(t *testing.T) {
	c := newIngestingClinic(t, func(e *routes.Engines) { e.RestrictToCareTeam = true })
	patient := c.enroll(object{"gateway_patient_id": "gw-1"})
	c.request(authz.Nurse, "POST", "/ingestion/blood-pressure/", object{"patient_id": patient, "systolic": 55, "diastolic": 30, "measured_at": c.now.Format(time.RFC3339)}).wantFields("systolic")
	c.wantAlerts(t)
	c.postEvent(t, pulse28(c, "gw-1")).want(400)
	id := c.queryRows(t, `SELECT quarantine_id FROM alerts`)[0]
	c.request(authz.Nurse, "POST", "/ingestion/quarantine/"+id+"/confirm/", object{"notes": "x"}).want(403)
	c.request(authz.Nurse, "POST", "/ingestion/quarantine/"+id+"/discard/", object{"reason": "x"}).want(403)
	c.request(authz.Nurse, "POST", "/ingestion/quarantine/"+id+"/confirm/", object{"notes": "By palpation."}, "X-Emergency-Access", "Found unconscious in the lobby").want(201)

	// The other answer is open to them as well; an unmatched event grants no emergency access.
	c.now = c.now.Add(time.Hour)
	c.postEvent(t, pulse28(c, "gw-1")).want(400)
	other := c.queryRows(t, `SELECT quarantine_id FROM alerts ORDER BY id DESC LIMIT 1`)[0]
	c.request(authz.Nurse, "POST", "/ingestion/quarantine/"+other+"/discard/", object{"reason": "x"}, "X-Emergency-Access", "short").wantFields("X-Emergency-Access")
	c.request(authz.Nurse, "POST", "/ingestion/quarantine/"+other+"/discard/", object{"reason": "A loose cuff."}, "X-Emergency-Access", "Found unconscious in the lobby").
		want(200).wantAt(object{"status": "discarded"})
	if events := c.events(patient); !slices.Contains(events, "access.emergency") {
		t.Errorf("recorded %v", events)
	}
	c.postEvent(t, pulse28(c, "nobody")).want(400)
	unmatched := c.queryRows(t, `SELECT id FROM gateway_events ORDER BY received_at DESC, id DESC LIMIT 1`)[0]
	c.request(authz.MA, "POST", "/ingestion/quarantine/"+unmatched+"/discard/", object{"reason": "x"}, "X-Emergency-Access", "Found unconscious in the lobby").want(403, "permission_denied")
	c.request(authz.MA, "POST", "/ingestion/quarantine/"+unmatched+"/discard/", object{"reason": "x"}).want(200)
}

// An acknowledged implausible event still waits for a decision, and the audit trail has who decided.
func TestImplausibleAcknowledged(t *testing.T) {
	c := newIngestingClinic(t)
	patient := c.enroll(object{"gateway_patient_id": "gw-1"})
	c.postEvent(t, pulse28(c, "gw-1")).want(400)
	alert := c.implausible(patient)
	c.request(authz.MA, "POST", "/alerts/"+formatID(alert)+"/acknowledge/", nil).want(403)
	c.request(authz.Provider, "POST", "/alerts/"+formatID(alert)+"/acknowledge/", object{"notes": "calling"}).want(200)
	c.request(authz.Nurse, "POST", "/ingestion/quarantine/"+alert["quarantine_id"].(string)+"/discard/", object{"reason": "A loose cuff."}).want(200)
	wantIn(t, c.implausible(patient), object{
		"status": "resolved", "acknowledged_by": c.people[authz.Provider].Email(), "resolved_by": c.people[authz.Nurse].Email(),
		"resolution_reason": "withdrawn", "outcome": "discarded", "notes": "calling\nA loose cuff.",
	})
	var steps []string
	for _, step := range c.request(authz.Nurse, "GET", "/alerts/"+formatID(alert)+"/", nil).want(200).at("audit_trail").([]any) {
		steps = append(steps, step.(object)["action"].(string))
	}
	if !slices.Equal(steps, []string{"created", "acknowledged", "resolved"}) {
		t.Errorf("the audit trail has %q", steps)
	}
	for _, event := range []string{"alert.create", "escalation.create", "alert.acknowledge", "webhook.discarded", "alert.resolve", "escalation.update"} {
		if !slices.Contains(c.events(patient), event) {
			t.Errorf("%s is not audited: %q", event, c.events(patient))
		}
	}
}

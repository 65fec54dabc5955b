package routes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/routes"
)

// missingSteps returns a patient's incomplete enrollment steps, each with what is missing: "payer: missing_member_id".
func (c *clinic) missingSteps(patient string) (list []string) {
	c.t.Helper()
	found := c.request(authz.Nurse, "GET", "/patients/"+patient+"/enrolment/", nil).want(200).object()
	for _, step := range found["steps"].([]any) {
		step := step.(object)
		if step["state"] == "waiting" {
			list = append(list, fmt.Sprint(step["step"], ": waits"))
		}
		for _, item := range step["missing"].([]any) {
			list = append(list, fmt.Sprint(step["step"], ": ", item.(object)["code"]))
		}
	}
	return list
}

func (c *clinic) wantMissingSteps(patient string, want ...string) {
	c.t.Helper()
	if got := c.missingSteps(patient); !slices.Equal(got, want) {
		c.t.Errorf("lacking are %q, want %q", got, want)
	}
}

// The whole enrollment, step by step: each completed step leaves the list of missing ones and changes no other.
func TestEnrollmentStepByStep(t *testing.T) {
	c := newClinic(t)
	id := c.enroll(nil)
	at := "/patients/" + id + "/"
	patch := func(body object) { t.Helper(); c.request(authz.Nurse, "PATCH", at, body).want(200) }
	c.wantMissingSteps(id, "person: missing_address", "consent: missing_consent", "payer: self_pay", "order: missing_rendering_provider", "order: missing_order",
		"diagnoses: missing_diagnosis", "team: no_team", "device: no_device", "reading: waits")

	patch(object{"address": object{"line1": "1 Elm St", "city": "Springfield", "state": "IL", "zip": "62701"}})
	c.consent(id)
	payer := c.request(authz.Admin, "POST", "/billing/payers/", object{"name": "Acme", "payer_id": "AC", "edi_payer_id": "60054", "claim_filing_code": "CI"}).want(201).object()["id"]
	patch(object{"insurance": object{"payer_id": payer, "relationship": "spouse"}})
	c.wantMissingSteps(id, "payer: missing_member_id", "payer: missing_subscriber", "order: missing_rendering_provider", "order: missing_order",
		"diagnoses: missing_diagnosis", "team: no_team", "device: no_device", "reading: waits")
	patch(object{"insurance": object{"member_id": "AC-1", "relationship": "self"}})
	patch(object{"primary_provider_id": c.people[authz.Provider].Number(), "icd10_codes": []string{"I10", "Z99.99"}})
	c.request(authz.Nurse, "POST", at+"orders/", object{"kind": "rpm_order", "dated": "2026-01-02", "author_id": c.people[authz.Provider].Number()}).want(201)
	c.wantMissingSteps(id, "diagnoses: unknown_icd10", "device: no_device", "reading: waits")
	patch(object{"icd10_codes": []string{"I10"}})
	c.request(authz.Nurse, "POST", "/devices/assign/", object{"device_id": "E-1", "patient_id": id, "device_type": "weight"}).want(200)
	c.wantMissingSteps(id, "device: missing_setup", "reading: waits")
	c.request(authz.Nurse, "POST", "/devices/E-1/setup-complete/", object{}).want(200)
	c.wantMissingSteps(id, "reading: waits")
	if rows := c.request(authz.Nurse, "GET", "/enrolments/?state=waiting", nil).results(); len(rows) != 1 || rows[0]["patient_id"] != id {
		t.Errorf("waiting are %v", rows)
	}
}

// A step that depends on another record changes with it: the list agrees at once with the patient's own answer.
func TestEnrollmentsFollowTheirRecords(t *testing.T) {
	c := newClinic(t)
	payer := c.request(authz.Admin, "POST", "/billing/payers/", object{"name": "Acme", "payer_id": "AC", "edi_payer_id": "60054", "claim_filing_code": "CI"}).want(201).object()["id"]
	whole := object{
		"icd10_codes": []string{"I10"}, "primary_provider_id": c.people[authz.Provider].Number(), "insurance": object{"payer_id": payer, "member_id": "AC-1"},
		"address": object{"line1": "1 Elm St", "city": "Springfield", "state": "IL", "zip": "62701"},
	}
	id := c.enroll(whole)
	listed := func(query string) (row object) {
		t.Helper()
		for _, one := range c.request(authz.Nurse, "GET", "/enrolments/?page_size=100"+query, nil).want(200).object()["results"].([]any) {
			if one.(object)["patient_id"] == id {
				row = one.(object)
			}
		}
		return row
	}
	same := func(what string) {
		t.Helper()
		var fromList []string
		if row := listed(""); row != nil {
			for _, item := range row["missing"].([]any) {
				fromList = append(fromList, item.(object)["code"].(string))
			}
		}
		var own []string
		for _, item := range c.missingSteps(id) {
			if _, code, _ := strings.Cut(item, ": "); code != "waits" {
				own = append(own, code)
			}
		}
		if !slices.Equal(fromList, own) {
			t.Errorf("%s: the list has %q, the patient %q", what, fromList, own)
		}
	}
	same("at first")
	c.consent(id)
	same("with consent")
	if listed("&stops=claims") != nil || listed("&stops=billing") == nil || listed("&step=device") == nil || listed("&step=consent") != nil {
		t.Error("the filters do not hold")
	}
	c.request(authz.Nurse, "PATCH", "/patients/"+id+"/", object{"insurance": object{"member_id": nil}}).want(200)
	same("without a member id")
	if listed("&stops=claims") == nil {
		t.Error("a claim without a member id is not reported as blocked")
	}
	c.request(authz.Nurse, "PATCH", "/patients/"+id+"/", object{"insurance": nil}).want(200)
	same("without a payer")
	c.request(authz.Nurse, "PATCH", "/patients/"+id+"/", object{"insurance": object{"self_pay": true}}).want(200)
	same("who pays alone")
	if got := c.missingSteps(id); slices.ContainsFunc(got, func(item string) bool { return strings.HasPrefix(item, "payer") }) {
		t.Errorf("a self-pay patient lacks %q", got)
	}
	c.request(authz.Admin, "POST", "/patients/"+id+"/archive/", object{"reason": "Moved"}).want(200)
	if listed("") != nil {
		t.Error("an archived patient is still being enrolled")
	}
}

func TestSelfPayIsStated(t *testing.T) {
	c := newClinic(t)
	payer := c.request(authz.Admin, "POST", "/billing/payers/", object{"name": "Acme", "payer_id": "AC"}).want(201).object()["id"]
	c.request(authz.Nurse, "POST", "/patients/", patientBody(object{"insurance": object{"payer_id": payer, "self_pay": true}})).wantFields("insurance.self_pay")
	id := c.enroll(object{"insurance": object{"self_pay": true}})
	if got := c.request(authz.Nurse, "GET", "/patients/"+id+"/", nil).want(200).at("insurance.self_pay"); got != true {
		t.Errorf("self_pay is %v", got)
	}
	c.request(authz.Nurse, "PATCH", "/patients/"+id+"/", object{"insurance": object{"payer_id": payer, "self_pay": nil}}).want(200)
	if got := c.request(authz.Nurse, "GET", "/patients/"+id+"/", nil).want(200).at("insurance.self_pay"); got != false {
		t.Errorf("self_pay is %v beside a payer", got)
	}
}

// With access restricted to care teams, only the team's patients are listed, and the audit trail records which.
func TestEnrollmentsOfOwnPatients(t *testing.T) {
	c := newClinic(t, func(e *routes.Engines) { e.RestrictToCareTeam = true })
	mine, theirs := c.enroll(nil), c.enroll(object{"first_name": "Grace"})
	c.request(authz.Admin, "PUT", "/patients/"+mine+"/care-team/", object{"members": []object{{"user_id": c.people[authz.Nurse].Number()}}}).want(200)
	listed := func(role authz.Role) (ids []string) {
		for _, row := range c.request(role, "GET", "/enrolments/", nil).results() {
			ids = append(ids, row["patient_id"].(string))
		}
		return ids
	}
	if got := listed(authz.Nurse); !slices.Equal(got, []string{mine}) {
		t.Errorf("a nurse sees %v", got)
	}
	if got := listed(authz.Admin); len(got) != 2 {
		t.Errorf("an administrator sees %v", got)
	}
	c.request(authz.Nurse, "GET", "/patients/"+theirs+"/enrolment/", nil).want(403)
	if events := c.events(mine); !slices.Contains(events[1:], "patient.read") {
		t.Errorf("the trail of the patient is %v", events)
	}
}

func TestICD10WhileTyping(t *testing.T) {
	c := newClinic(t)
	codes := func(query string) (list []string) {
		t.Helper()
		for _, row := range c.request(authz.MA, "GET", "/icd10/?"+query, nil).want(200).object()["results"].([]any) {
			list = append(list, row.(object)["code"].(string))
		}
		return list
	}
	for query, want := range map[string][]string{
		"search=heart+fail&page_size=1": {"I50.9"},
		"search=i509":                   {"I50.9"},
		"search=I50.2&billable=true":    {"I50.20", "I50.21", "I50.22", "I50.23"},
		"codes=E11.9,i10,Q99.999":       {"E11.9", "I10"},
		"page_size=5":                   nil,
		"search=U07.1":                  nil,

		"search=type+2+diab+neph&page_size=1": {"E11.21"},
	} {
		if got := codes(query); !slices.Equal(got, want) {
			t.Errorf("%s finds %v, want %v", query, got, want)
		}
	}
	c.request(authz.MA, "GET", "/icd10/?codes=I10&search=heart", nil).wantFields("codes")
	c.request(authz.MA, "GET", "/icd10/?codes="+strings.Repeat("I10,", 13), nil).wantFields("codes")
	c.wantRoles("GET", "/icd10/?search=heart", nil, authz.Admin, authz.ClinicalManager, authz.Provider, authz.Nurse, authz.MA, authz.DataMonitor)
	// Every well-formed code is accepted, also outside the list.
	id := c.enroll(object{"icd10_codes": []string{"Z99.99", "I10"}})
	if got := fmt.Sprint(c.request(authz.MA, "GET", "/patients/"+id+"/", nil).want(200).object()["icd10_codes"]); got != "[Z99.99 I10]" {
		t.Errorf("kept is %s", got)
	}
	c.request(authz.MA, "PATCH", "/patients/"+id+"/", object{"icd10_codes": []string{"I10", "heart"}}).wantFields("icd10_codes.1")
}

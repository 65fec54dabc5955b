package routes_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fhirserver"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// Every served resource of every type is valid, and so are bundles, the capability statement and OperationOutcomes.
func TestServedResourcesAreValid(t *testing.T) {
	p := newPractice(t)
	p.request(authz.Nurse, "POST", p.assign(p.ada, object{"questionnaire": "phq-2"})+"answers/", phq2(1, 2)).want(201)
	p.request(authz.Nurse, "POST", p.assign(p.bob, object{"questionnaire": "heart-failure-zone"})+"answers/", zoneAnswers(nil)).want(201)
	for _, relationship := range auth.Relationships[:9] {
		p.request(authz.Nurse, "POST", "/patients/"+p.ada+"/caregivers/", caregiverBody(object{"email": relationship + "@family.example", "relationship": relationship})).want(201)
	}
	for _, relationship := range auth.Relationships[9:] {
		p.request(authz.Nurse, "POST", "/patients/"+p.bob+"/caregivers/", caregiverBody(object{"email": relationship + "@family.example", "relationship": relationship})).want(201)
	}
	resources := map[string]json.RawMessage{
		"PHQ-2": p.requestFHIR("", "GET", "/Questionnaire/phq-2", "").Body.Bytes(), "zones": p.requestFHIR("", "GET", "/Questionnaire/heart-failure-zone", "").Body.Bytes(),
	}
	id := regexp.MustCompile(`^[A-Za-z0-9.-]{1,64}$`)
	for _, kind := range fhirserver.ResourceTypes {
		rec := p.requestFHIR(p.machine, "GET", "/"+kind.Type+"?_count=200&_revinclude=Provenance:target&_include=Observation:device", "")
		if rec.Code != 200 {
			t.Fatalf("%s: %d %s", kind.Type, rec.Code, rec.Body)
		}
		resources["Bundle of "+kind.Type] = rec.Body.Bytes()
		all := found(parsed(t, rec), "match")
		if len(all) == 0 {
			t.Errorf("there is no %s", kind.Type)
		}
		for _, resource := range all {
			name := resource["id"].(string)
			if !id.MatchString(name) || resource["resourceType"] != kind.Type {
				t.Errorf("%s: %v", kind.Type, resource)
			}
			single := p.requestFHIR(p.machine, "GET", "/"+kind.Type+"/"+name, "")
			whole, _ := json.Marshal(resource)
			if again, _ := json.Marshal(parsed(t, single)); string(again) != string(whole) {
				t.Errorf("%s/%s is found as %s and read as %s", kind.Type, name, whole, again)
			}
			resources[kind.Type+"/"+name] = single.Body.Bytes()
		}
	}
	resources["CapabilityStatement"] = p.requestFHIR("", "GET", "/metadata", "").Body.Bytes()
	resources["OperationOutcome"] = p.requestFHIR(p.machine, "GET", "/Observation?date=yesterday&_count=x", "").Body.Bytes()
	resources["broken"] = json.RawMessage(`{"resourceType":"Flag","id":"1","status":"active"}`)
	for name, issues := range vigiltest.FHIRIssues(t, resources) {
		if (len(issues) > 0) != (name == "broken") {
			t.Errorf("%s: %v\n%s", name, issues, resources[name])
		}
	}
}

// What the bedside rules add is valid: the Flag of an early warning, interpretations and ranges, a weak signal, and the date of a death.
func TestBedsideFormsAreValid(t *testing.T) {
	c := newScoringClinic(t)
	c.now = c.now.AddDate(0, 0, 1)
	patient := c.enroll(nil)
	resources := map[string]json.RawMessage{}
	keep := func(name string, resource any) {
		t.Helper()
		encoded, err := json.Marshal(resource)
		if err != nil {
			t.Fatal(err)
		}
		resources[name] = encoded
	}
	c.measureSign(patient, vitalSign{"weight", `"weight":80`, 0})
	c.now = c.now.AddDate(0, 0, 1)
	c.measureAll(patient, septic...)
	c.measureSign(patient, vitalSign{"pulse_oximetry", `"spo2":85,"pulse":140,"perfusion_index":0.1`, 0})
	c.measureSign(patient, vitalSign{"weight", `"weight":84.8`, 0})
	c.measureSign(patient, vitalSign{"blood_glucose", `"glucose":"HI"`, 0})
	for _, kind := range []string{"Flag", "Observation"} {
		for i, resource := range found(c.fhir(authz.Provider, "/"+kind+"?_count=100&patient="+patient), "match") {
			keep(fmt.Sprint(kind, " ", i), resource)
		}
	}
	c.request(authz.Nurse, "POST", "/patients/"+patient+"/archive/", object{
		"reason": "Died at home", "deceased_at": c.now.Format(time.DateOnly), "confirm": true,
	}).want(200)
	keep("Patient", c.request(authz.Nurse, "GET", "/fhir/patients/"+patient+"/", nil).want(200).object())
	all := fmt.Sprintf("%s", resources)
	for _, part := range []string{`"early_warning"`, `"deceasedDateTime"`, `"61006-3"`, `"AA"`, `"U"`, `"LL"`, `"referenceRange"`, "weak signal", `"comparator":"\u003e"`} {
		if !strings.Contains(all, part) {
			t.Errorf("no resource has %s", part)
		}
	}
	for name, issues := range vigiltest.FHIRIssues(t, resources) {
		if len(issues) > 0 {
			t.Errorf("%s: %v\n%s", name, issues, resources[name])
		}
	}
}

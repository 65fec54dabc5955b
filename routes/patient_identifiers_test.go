package routes_test

import (
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/internal/authz"
)

func TestPatientsByIdentifier(t *testing.T) {
	c := newClinic(t)
	known := c.enroll(object{"mrn": "Ab-100.7", "external_id": "emr/77", "gateway_patient_id": "gw-1"})
	c.enroll(object{"mrn": "AB-100.71", "gateway_patient_id": "gw-2"})
	for query, want := range map[string]string{
		"mrn=Ab-100.7": known, "mrn=ab-100.7": known, "mrn=AB-100": "", "external_id=emr/77": known, "external_id=Patient/emr/77": known, "external_id=emr/7": "",
		"mrn=Ab-100.7&external_id=emr/77": known, "mrn=AB-100.71&external_id=emr/77": "", "mrn=Ab-100.7&active=false": "", "mrn=Ab-100.7&search=nobody": "",
	} {
		var ids []string
		for _, row := range c.request(authz.Nurse, "GET", "/patients/?"+query, nil).want(200).results() {
			ids = append(ids, row["id"].(string))
		}
		if got := strings.Join(ids, " "); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	c.request(authz.Nurse, "GET", "/patients/?mrn=", nil).want(400, "validation_error")
	c.request(authz.Nurse, "GET", "/patients/?mrn="+strings.Repeat("1", 51), nil).want(400, "validation_error")
}

func TestReadingsByIdentifier(t *testing.T) {
	c := newIngestingClinic(t)
	known := c.enroll(object{"mrn": "Ab-100.7", "external_id": "emr/77", "gateway_patient_id": "gw-1"})
	reading := func(changes object) object {
		body := object{"systolic": 128, "diastolic": 82, "measured_at": c.now.Add(-3600e9).Format("2006-01-02T15:04:05Z")}
		for name, value := range changes {
			body[name] = value
		}
		return body
	}
	const path = "/ingestion/blood-pressure/"
	for i, by := range []object{
		{"patient_mrn": "Ab-100.7"}, {"patient_mrn": "AB-100.7", "patient_id": nil}, {"patient_external_id": "emr/77"}, {"patient_external_id": "Patient/emr/77"},
	} {
		by["systolic"] = 120 + i
		if got := c.request(authz.Nurse, "POST", path, reading(by)).want(201).text("patient_id"); got != known {
			t.Errorf("%v: stored for %q", by, got)
		}
	}
	for _, wrong := range []struct {
		by     object
		status int
		field  string
	}{
		{object{"patient_mrn": "AB-100"}, 404, "patient_mrn"},
		{object{"patient_external_id": "emr/78"}, 404, "patient_external_id"},
		{object{"patient_id": known, "patient_mrn": "Ab-100.7"}, 400, "patient_mrn"},
		{object{"patient_mrn": "Ab-100.7", "patient_external_id": "emr/77"}, 400, "patient_external_id"},
		{object{"patient_mrn": 5}, 400, "patient_mrn"},
		{object{"patient_mrn": ""}, 400, "patient_mrn"},
		{object{"patient_mrn": strings.Repeat("9", 101)}, 400, "patient_mrn"},
		{object{}, 400, "patient_id"},
	} {
		answer := c.request(authz.Nurse, "POST", path, reading(wrong.by)).want(wrong.status)
		if answer.fieldErrors(wrong.field) == "" {
			t.Errorf("%v: %s names no %s", wrong.by, answer.body, wrong.field)
		}
	}
	lines := []object{}
	for _, by := range []object{{"patient_mrn": "ab-100.7", "systolic": 141}, {"patient_mrn": "nobody"}, {"patient_external_id": "emr/77", "systolic": 142}} {
		by["type"] = "blood_pressure"
		lines = append(lines, reading(by))
	}
	taken := c.request(authz.Nurse, "POST", "/ingestion/batch/", object{"readings": lines}).want(200).object()
	if taken["accepted"] != float64(2) || taken["rejected"] != float64(1) || !strings.Contains(taken["results"].([]any)[1].(object)["errors"].(object)["patient_mrn"].([]any)[0].(string), "No patient") {
		t.Errorf("the batch: %v", taken)
	}
}

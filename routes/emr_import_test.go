package routes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/sandbox"
)

const importPath = "/patients/import_selected_from_emr/"

// gaps adds patients with incomplete records, as real ones have.
var gaps = append(sandbox.DemoEMRPatients(),
	sandbox.EMRPatient{ID: "no-name", MRN: "G1", BirthDate: "1950-01-01"},
	sandbox.EMRPatient{ID: "half", MRN: "not an MRN!", Family: "Half", Given: []string{"Hana"}, BirthDate: "1950-01-01", Phone: "12", Email: "at", City: "Nowhere"},
	sandbox.EMRPatient{ID: "same-mrn", MRN: "E1001", Family: "Double", Given: []string{"Dora"}, BirthDate: "1950-01-01"},
	sandbox.EMRPatient{ID: "year-only", Family: "Year", Given: []string{"Yara"}, BirthDate: "1950"},
	sandbox.EMRPatient{ID: "unborn", Family: "Future", Given: []string{"Fay"}, BirthDate: "2050-01-01"},
)

func TestImportVariantB(t *testing.T) {
	c := newEMRClinic(t, gaps)
	ids := []string{
		"Patient/pat-1001", "pat-1001", "pat-1009", "pat-1010", "pat-1011", "pat-1012", "nobody", "no-name", "half", "same-mrn", "year-only", "unborn",
	}
	answer := c.request(authz.MA, "POST", importPath, object{"emr_patient_ids": ids}).want(200).wantAt(object{"imported": 4.0, "skipped": 6.0, "errors": 1.0})
	var held string
	want := map[string]string{
		"pat-1010": "no usable date of birth", "pat-1012": "deceased", "nobody": "Patient not found in EMR.", "no-name": "no usable first name, last name",
		"same-mrn": "The MRN belongs to patient ", "year-only": "no usable date of birth", "unborn": "no usable date of birth",
		"Patient/pat-1001": "", "pat-1009": "", "pat-1011": "", "half": "",
	}
	details := answer.object()["details"].([]any)
	if len(details) != len(want) {
		t.Errorf("%d details for %d ids", len(details), len(want))
	}
	for _, d := range details {
		detail := d.(object)
		reason, _ := detail["reason"].(string)
		expected, known := want[detail["emr_id"].(string)]
		if !known || !strings.Contains(reason, expected) || (expected == "") != (detail["status"] == "imported") {
			t.Errorf("%v", detail)
		}
		if detail["emr_id"] == "Patient/pat-1001" {
			held = detail["patient_id"].(string)
		}
		if detail["emr_id"] == "half" && fmt.Sprint(detail["left_out"]) != "[address email mrn phone]" {
			t.Errorf("%v", detail)
		}
	}
	if !strings.Contains(answer.body, "The MRN belongs to patient "+held+".") {
		t.Error("the holder of the number is not named")
	}
	for _, name := range []string{"Quintanar", "Haddadin", "Hana", "E1001"} {
		if strings.Contains(answer.body, name) {
			t.Errorf("the answer names %s", name)
		}
	}
	c.checkImported(held)
	// A second import creates no patient and names the existing ones, also when they were archived or deleted in the
	// meantime.
	c.request(authz.Admin, "POST", "/patients/"+held+"/archive/", object{"reason": "moved away"}).want(200)
	again := c.request(authz.MA, "POST", importPath, object{"emr_patient_ids": ids}).want(200).wantAt(object{"imported": 0.0, "skipped": 10.0, "errors": 1.0})
	if !strings.Contains(again.body, "Already imported as patient "+held+".") {
		t.Errorf("%s", again.body)
	}
}

// checkImported checks the sandbox's first patient after an import.
func (c *emrClinic) checkImported(id string) {
	c.t.Helper()
	c.request(authz.Admin, "GET", "/patients/"+id+"/", nil).want(200).wantAt(object{
		"first_name": "Marisol", "last_name": "Quintanar", "date_of_birth": "1951-03-14", "gender": "female", "mrn": "E1001",
		"phone": "+14135551001", "email": "patient1001@example.org", "external_id": "pat-1001", "address.zip": "01103", "address.city": "Springfield",
	})
	if events := c.events(id); len(events) == 0 || events[0] != "patient.import" || slices.Contains(events, "patient.create") {
		c.t.Errorf("events %v", events)
	}
	var rows int
	if err := c.app.DB().NewQuery("SELECT COUNT(*) FROM triage_scores WHERE patient = {:id} AND listed").Bind(map[string]any{"id": id}).Row(&rows); err != nil || rows != 1 {
		c.t.Errorf("%d triage rows, %v", rows, err)
	}
	p, err := collections.FindPatient(c.app, id)
	if err != nil || !slices.Equal(p.Programs(), []string{"rpm"}) {
		c.t.Errorf("programs %v, %v", p.Programs(), err)
	}
}

func TestImportVariantA(t *testing.T) {
	c := newEMRClinic(t, nil)
	provider := c.people[authz.Provider]
	answer := c.request(authz.Admin, "POST", importPath, object{
		"patient_ids": []string{"Patient/pat-1002", "pat-1012", "nobody"}, "assign_to_provider": strings.ToUpper(provider.Email()), "program": "ccm",
	}).want(201).wantAt(object{"imported": 1.0, "skipped": 2.0}).object()
	one := answer["patients"].([]any)[0].(object)
	if one["emr_id"] != "Patient/pat-1002" || one["name"] != "Everett Lindqvist" || one["status"] != "imported" || len(answer["skipped_details"].([]any)) != 2 {
		t.Errorf("%v", answer)
	}
	p, err := collections.FindPatient(c.app, one["local_id"].(string))
	if err != nil || p.PrimaryProviderID() != provider.Number() || !slices.Equal(p.Programs(), []string{"ccm"}) {
		t.Errorf("provider %d, programs %v, %v", p.PrimaryProviderID(), p.Programs(), err)
	}
	c.request(authz.Admin, "POST", importPath, object{"patient_ids": []string{"pat-1002"}, "assign_to_provider": fmt.Sprint(provider.Number())}).
		want(201).wantAt(object{"imported": 0.0, "skipped": 1.0})
}

func TestImportBodies(t *testing.T) {
	c := newEMRClinic(t, nil)
	many := make([]string, 101)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	for _, test := range []struct {
		body   object
		fields []string
	}{
		{object{}, []string{"non_field_errors"}},
		{object{"patient_ids": []string{"1"}, "emr_patient_ids": []string{"1"}}, []string{"non_field_errors"}},
		{object{"patient_ids": nil}, []string{"patient_ids"}},
		{object{"patient_ids": "1"}, []string{"patient_ids"}},
		{object{"emr_patient_ids": []string{}}, []string{"emr_patient_ids"}},
		{object{"emr_patient_ids": many}, []string{"emr_patient_ids"}},
		{object{"emr_patient_ids": []any{"1", 2, "", "../x", "Observation/1"}}, []string{"emr_patient_ids.1", "emr_patient_ids.2", "emr_patient_ids.3", "emr_patient_ids.4"}},
		{object{"patient_ids": []string{"1"}, "assign_to_provider": "nobody@x.example"}, []string{"assign_to_provider"}},
		{object{"patient_ids": []string{"1"}, "assign_to_provider": c.people[authz.Nurse].Email()}, []string{"assign_to_provider"}},
		{object{"patient_ids": []string{"1"}, "program": strings.Repeat("x", 51)}, []string{"program"}},
	} {
		c.request(authz.Admin, "POST", importPath, test.body).wantFields(test.fields...)
	}
	c.wantRoles("POST", importPath, object{"emr_patient_ids": []string{"nobody"}}, authz.Admin, authz.ClinicalManager, authz.MA)
}

// aHundred returns a hundred EMR patients and their ids.
func aHundred() (crowd []sandbox.EMRPatient, ids []string) {
	for n := range 100 {
		id := fmt.Sprintf("c%03d", n)
		ids = append(ids, id)
		crowd = append(crowd, sandbox.EMRPatient{ID: id, MRN: "C" + id, Family: "Crowd", Given: []string{"Cy"}, Gender: "female", BirthDate: "1949-09-09"})
	}
	return crowd, ids
}

// An import is complete for each patient and reports the result of every id, for each kind of EMR failure.
func TestImportOfAHundred(t *testing.T) {
	crowd, ids := aHundred()
	c := newEMRClinic(t, crowd)
	total := func() (patients, rows, trail int) {
		err := c.app.DB().NewQuery(`SELECT (SELECT COUNT(*) FROM patients), (SELECT COUNT(*) FROM triage_scores),
			(SELECT COUNT(*) FROM audit_log WHERE event = 'patient.import')`).Row(&patients, &rows, &trail)
		if err != nil {
			t.Fatal(err)
		}
		return patients, rows, trail
	}
	for name, test := range map[string]struct {
		fault  sandbox.Fault
		status int
		code   string
	}{
		"down":       {sandbox.Fault{Match: "/Patient/", Status: 503}, 502, "emr_error"},
		"gone":       {sandbox.Fault{Match: "/", Drop: sandbox.DropBefore}, 502, "emr_unavailable"},
		"no sign-in": {sandbox.Fault{Match: "/oauth", Status: 400}, 502, "emr_error"},
	} {
		c.emr.Fail(test.fault)
		before := c.emr.Stats().Faulted
		c.request(authz.Admin, "POST", importPath, object{"emr_patient_ids": ids}).want(test.status, test.code)
		if requests := c.emr.Stats().Faulted - before; requests > 3 {
			t.Errorf("%s: %d requests to an unavailable EMR", name, requests)
		}
		c.emr.ClearFaults()
		c.now = c.now.Add(2 * 3600e9) // the access token of the completed sign-in has expired
	}
	if patients, _, _ := total(); patients != 0 {
		t.Fatalf("%d patients after failed imports", patients)
	}
	c.emr.Fail(sandbox.Fault{Match: "/Patient/c01", Status: 500}) // the first request fails, too
	c.emr.Fail(sandbox.Fault{Match: "/Patient/c000", Status: 500})
	c.emr.Fail(sandbox.Fault{Match: "/Patient/c02", Answer: sandbox.AnswerHTML})
	c.emr.Fail(sandbox.Fault{Match: "/Patient/c03", Answer: sandbox.AnswerHalf})
	c.request(authz.Admin, "POST", importPath, object{"emr_patient_ids": ids}).want(200).wantAt(object{"imported": 69.0, "errors": 31.0, "skipped": 0.0})
	if patients, rows, trail := total(); patients != 69 || rows != 69 || trail != 69 {
		t.Errorf("%d patients, %d triage rows, %d audit entries", patients, rows, trail)
	}
	c.emr.ClearFaults()
	c.request(authz.Admin, "POST", importPath, object{"emr_patient_ids": ids}).want(200).wantAt(object{"imported": 31.0, "errors": 0.0, "skipped": 69.0})
	if patients, rows, trail := total(); patients != 100 || rows != 100 || trail != 100 {
		t.Errorf("%d patients, %d triage rows, %d audit entries", patients, rows, trail)
	}
}

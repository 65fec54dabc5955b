package routes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/emrcontext"
	"github.com/vigilhealth/vigil/internal/sandbox"
	"github.com/vigilhealth/vigil/routes"
)

// chartClinic is a clinic that reads charts of a sandbox EMR with one patient.
type chartClinic struct {
	*emrClinic
	engine  *emrcontext.Engine
	patient string
	path    string
}

func newChartClinic(t *testing.T, change ...func(*emrcontext.Options)) *chartClinic {
	t.Helper()
	c := &chartClinic{}
	c.emrClinic = newEMRClinic(t, []sandbox.EMRPatient{
		{ID: "e1", MRN: "E1", Family: "Lovelace", Given: []string{"Ada"}, Gender: "female", BirthDate: "1955-12-10"},
		{ID: "e2", MRN: "E2", Family: "Somerville", Given: []string{"Mary"}, Gender: "female", BirthDate: "1950-12-26"},
	}, func(e *routes.Engines) {
		o := emrcontext.Options{Client: e.EMR.Client, Enabled: true, Stale: 4 * time.Hour, Zone: newYork}
		for _, f := range change {
			f(&o)
		}
		c.engine = emrcontext.New(o)
		e.EMR.Context = c.engine
	})
	c.patient = c.enroll(object{"external_id": "e1"})
	c.path = "/patients/" + c.patient + "/emr-context/"
	return c
}

// chart adds resources of the first patient to the EMR. A reference to the patient is added unless there is one.
func (c *chartClinic) chart(kind, id string, more object) {
	c.t.Helper()
	r := object{"resourceType": kind, "id": id}
	of := map[string]string{"Coverage": "beneficiary", "AllergyIntolerance": "patient"}[kind]
	if of == "" {
		of = "subject"
	}
	r[of] = object{"reference": "Patient/e1"}
	for name, value := range more {
		r[name] = value
	}
	if err := c.emr.AddChart(r); err != nil {
		c.t.Fatal(err)
	}
}

func (c *chartClinic) refresh() reply {
	c.t.Helper()
	return c.request(authz.Nurse, "POST", c.path+"refresh/", nil).want(200)
}

// list returns a list of the answer.
func (r reply) list(name string) (items []object) {
	r.t.Helper()
	found, ok := r.object()[name].([]any)
	if !ok {
		r.t.Fatalf("%s has no list %s: %s", r.what, name, r.body)
	}
	for _, item := range found {
		items = append(items, item.(object))
	}
	return items
}

// lacks returns the entries of unavailable, as "Resource: reason".
func (r reply) lacks() (list []string) {
	for _, item := range r.list("unavailable") {
		list = append(list, fmt.Sprintf("%v: %v", item["resource"], item["reason"]))
	}
	return list
}

func texts(items []object, name string) (list []string) {
	for _, item := range items {
		list = append(list, fmt.Sprint(item[name]))
	}
	return list
}

func wantTexts(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

func concept(system, code, display string) object {
	return object{"coding": []object{{"system": system, "code": code, "display": display}}}
}

func icd10(code, display string) object {
	return concept("http://hl7.org/fhir/sid/icd-10-cm", code, display)
}

func coded(code string) object { return object{"coding": []object{{"code": code}}} }

func TestEMRContextIsOff(t *testing.T) {
	c := newChartClinic(t, func(o *emrcontext.Options) { o.Enabled = false })
	c.request(authz.Nurse, "GET", c.path, nil).want(200).wantAt(object{"state": "off", "fetched_at": nil})
	c.request(authz.Nurse, "POST", c.path+"refresh/", nil).want(400, "emr_context_off")
	if c.emr.Stats().ChartReads != 0 {
		t.Error("a chart was read")
	}
}

func TestEMRContextOfUnlinkedPatient(t *testing.T) {
	c := newChartClinic(t)
	other := c.enroll(object{"last_name": "Byron"})
	c.request(authz.Nurse, "GET", "/patients/"+other+"/emr-context/", nil).want(200).wantAt(object{"state": "unlinked"})
	c.request(authz.Nurse, "POST", "/patients/"+other+"/emr-context/refresh/", nil).want(400, "invalid_state")
}

// Everything that a chart has comes back as it is there: texts without codes, codes without display, medicines by reference.
func TestEMRContextShowsTheChart(t *testing.T) {
	c := newChartClinic(t)
	c.chart("Condition", "c1", object{"code": icd10("I10", "Essential hypertension"), "clinicalStatus": coded("active"), "recordedDate": "2024-05-02"})
	c.chart("Condition", "c2", object{"code": object{"coding": []object{{"system": "http://snomed.info/sct", "code": "44054006"}}}, "clinicalStatus": coded("resolved")})
	c.chart("Condition", "c3", object{"code": object{"text": "Gout"}, "verificationStatus": coded("refuted")})
	c.chart("Condition", "c4", object{"code": object{"text": "Migraine"}, "verificationStatus": coded("entered-in-error")})
	c.chart("MedicationRequest", "m1", object{"intent": "order", "status": "active", "authoredOn": "2025-11-02T09:00:00Z", "medicationCodeableConcept": object{"text": "Lisinopril 10 mg"}, "dosageInstruction": []object{{"text": "once a day"}}})
	c.chart("MedicationRequest", "m2", object{"intent": "order", "status": "stopped", "medicationReference": object{"reference": "#in"}, "contained": []object{{"resourceType": "Medication", "id": "in", "code": object{"text": "Metoprolol"}}}})
	c.chart("MedicationRequest", "m3", object{"intent": "order", "status": "active", "medicationReference": object{"reference": "Medication/shelf"}})
	c.chart("MedicationRequest", "m4", object{"intent": "plan", "status": "active", "medicationCodeableConcept": object{"text": "Planned"}})
	c.chart("MedicationRequest", "m5", object{"intent": "order", "status": "entered-in-error", "medicationCodeableConcept": object{"text": "Wrong"}})
	if err := c.emr.AddChart(object{"resourceType": "Medication", "id": "shelf", "code": object{"text": "Furosemide 40 mg"}}); err != nil {
		t.Fatal(err)
	}
	c.chart("Encounter", "v1", object{"status": "finished", "class": object{"code": "AMB", "display": "ambulatory"}, "period": object{"start": "2025-12-01T10:00:00Z"}})
	c.chart("Encounter", "v2", object{"status": "finished", "class": object{"code": "AMB"}, "period": object{"start": "2019-01-01", "end": "2019-01-02"}})
	c.chart("ServiceRequest", "s1", object{"status": "active", "code": object{"text": "ECG"}, "authoredOn": "2025-12-02"})
	c.chart("DeviceRequest", "d1", object{"status": "active", "codeCodeableConcept": object{"text": "Blood pressure cuff"}})
	c.chart("Coverage", "k1", object{"status": "active", "payor": []object{{"display": "Aetna"}}, "subscriberId": "W123", "relationship": coded("self"), "order": 1})
	c.chart("AllergyIntolerance", "a1", object{"code": object{"text": "Penicillin"}, "criticality": "high", "reaction": []object{{"manifestation": []object{{"text": "Hives"}}}}})

	c.request(authz.Nurse, "GET", c.path, nil).want(200).wantAt(object{"state": "stale", "fetched_at": nil})
	got := c.refresh().wantAt(object{"state": "current"})
	wantTexts(t, "conditions", texts(got.list("conditions"), "text"), "Essential hypertension", "44054006")
	wantTexts(t, "medications", texts(got.list("medications"), "text"), "Lisinopril 10 mg", "Furosemide 40 mg", "Metoprolol")
	wantTexts(t, "encounters", texts(got.list("encounters"), "source"), "Encounter/v1")
	wantTexts(t, "orders", texts(got.list("orders"), "text"), "ECG", "Blood pressure cuff")
	wantTexts(t, "coverage", texts(got.list("coverage"), "member_id"), "W123")
	wantTexts(t, "allergies", texts(got.list("allergies"), "reaction"), "Hives")
	wantTexts(t, "unavailable", got.lacks())
	if again := c.request(authz.MA, "GET", c.path, nil).want(200); again.body != got.body {
		t.Errorf("read answers\n%s\nafter refresh\n%s", again.body, got.body)
	}
	if events := strings.Join(c.events(c.patient), " "); !strings.HasSuffix(events, "emr_context.refresh emr_context.read emr_context.read") {
		t.Errorf("audited %s", events)
	}
	c.now = c.now.Add(5 * time.Hour)
	c.request(authz.Nurse, "GET", c.path, nil).want(200).wantAt(object{"state": "stale"})
}

// What was read is on disk as ciphertext only.
func TestEMRContextIsSealed(t *testing.T) {
	c := newChartClinic(t)
	c.chart("Condition", "c1", object{"code": icd10("I10", "Essential hypertension"), "clinicalStatus": coded("active")})
	c.refresh()
	for _, table := range []string{"emr_contexts", "emr_proposals"} {
		rows, err := c.app.DB().NewQuery("SELECT * FROM " + table).Rows()
		if err != nil {
			t.Fatal(err)
		}
		count := 0
		for rows.Next() {
			row := dbx.NullStringMap{}
			if err := rows.ScanMap(row); err != nil {
				t.Fatal(err)
			}
			count++
			for column, value := range row {
				if strings.Contains(value.String, "I10") || strings.Contains(value.String, "hypertension") {
					t.Errorf("%s.%s is readable", table, column)
				}
			}
		}
		if err := rows.Close(); err != nil || count != 1 {
			t.Errorf("%s has %d rows, %v", table, count, err)
		}
	}
}

func TestEMRContextRoles(t *testing.T) {
	c := newChartClinic(t)
	c.wantRoles("GET", c.path, nil, authz.Admin, authz.ClinicalManager, authz.Provider, authz.Nurse, authz.MA)
	c.wantRoles("POST", c.path+"proposals/1/dismiss/", nil, authz.Admin, authz.ClinicalManager, authz.Provider, authz.Nurse, authz.MA)
}

// The EMR grants less than requested, does not have a resource, or fails for one: the others are shown.
func TestEMRContextUnavailable(t *testing.T) {
	c := newChartClinic(t)
	c.chart("Condition", "c1", object{"code": object{"text": "Asthma"}})
	c.chart("AllergyIntolerance", "a1", object{"code": object{"text": "Latex"}})
	c.refresh()
	c.emr.Fail(sandbox.Fault{Match: "GET /fhir/demo/Condition", Status: 500})
	c.emr.Fail(sandbox.Fault{Match: "GET /fhir/demo/Coverage", Status: 404})
	c.emr.Fail(sandbox.Fault{Match: "GET /fhir/demo/ServiceRequest", Status: 422})
	got := c.refresh()
	wantTexts(t, "conditions of the earlier read", texts(got.list("conditions"), "text"), "Asthma")
	wantTexts(t, "unavailable", got.lacks(), "Condition: failed", "ServiceRequest: refused", "Coverage: not_supported")

	c = newChartClinic(t)
	c.chart("Condition", "c1", object{"code": object{"text": "Asthma"}})
	c.emr.GrantChart("system/Condition.rs", "system/Encounter.r")
	got = c.refresh()
	wantTexts(t, "conditions", texts(got.list("conditions"), "text"), "Asthma")
	wantTexts(t, "unavailable", got.lacks(), "MedicationRequest: no_scope", "Encounter: no_scope", "ServiceRequest: no_scope", "DeviceRequest: no_scope",
		"Coverage: no_scope", "AllergyIntolerance: no_scope")

	c = newChartClinic(t)
	c.emr.GrantChart()
	if got = c.refresh(); len(got.lacks()) != 7 {
		t.Errorf("without any scope unavailable is %q", got.lacks())
	}
}

// An EMR that asks for fewer requests gets none for the remaining types.
func TestEMRContextOfEMRWithRateLimit(t *testing.T) {
	c := newChartClinic(t)
	c.chart("Condition", "c1", object{"code": object{"text": "Asthma"}})
	c.emr.Fail(sandbox.Fault{Match: "GET /fhir/demo/MedicationRequest", Status: 429})
	got := c.refresh()
	wantTexts(t, "conditions", texts(got.list("conditions"), "text"), "Asthma")
	if reads := c.emr.Stats().ChartReads; reads != 1 || len(got.lacks()) != 6 {
		t.Errorf("%d requests; unavailable: %q", reads, got.lacks())
	}
}

func TestEMRContextOfEMRThatIsAway(t *testing.T) {
	c := newChartClinic(t)
	c.chart("Condition", "c1", object{"code": object{"text": "Asthma"}})
	before := c.refresh().at("fetched_at")
	c.now = c.now.Add(time.Hour)
	c.emr.Fail(sandbox.Fault{Match: "GET /fhir/demo/", Status: 503})
	c.request(authz.Nurse, "POST", c.path+"refresh/", nil).want(502, "emr_error")
	got := c.request(authz.Nurse, "GET", c.path, nil).want(200).wantAt(object{"fetched_at": before})
	wantTexts(t, "conditions", texts(got.list("conditions"), "text"), "Asthma")
}

// Another patient's resources are left out, and so is the chart of an earlier link.
func TestEMRContextOfAnotherPatient(t *testing.T) {
	c := newChartClinic(t)
	c.chart("Condition", "c1", object{"code": icd10("I10", "Essential hypertension"), "clinicalStatus": coded("active")})
	if got := c.refresh(); len(got.list("proposals")) != 1 {
		t.Fatalf("proposals: %s", got.body)
	}
	c.request(authz.Admin, "PATCH", "/patients/"+c.patient+"/", object{"external_id": "e2"}).want(200)
	got := c.request(authz.Nurse, "GET", c.path, nil).want(200).wantAt(object{"state": "stale", "fetched_at": nil})
	if len(got.list("conditions")) != 0 || len(got.list("proposals")) != 0 {
		t.Errorf("shows the chart of the earlier link: %s", got.body)
	}
	c.request(authz.Nurse, "POST", c.path+"proposals/1/accept/", nil).want(404)
}

func TestEMRContextOfFiveThousandConditions(t *testing.T) {
	c := newChartClinic(t)
	for i := range 5100 {
		c.chart("Condition", fmt.Sprintf("c%d", i), object{"code": object{"coding": []object{{"code": fmt.Sprintf("x%d", i)}}}, "clinicalStatus": coded("resolved")})
	}
	c.chart("Condition", "last", object{"code": object{"text": "beyond"}, "clinicalStatus": coded("active")})
	got := c.refresh()
	if count := len(got.list("conditions")); count != 500 {
		t.Errorf("%d conditions are kept", count)
	}
	wantTexts(t, "unavailable", got.lacks(), "Condition: truncated")
}

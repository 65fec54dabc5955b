package routes_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// family is two patients and a caregiver, who may enter readings of the first and read those of the second.
type family struct {
	*clinic
	ada, bob  string
	adaPortal *collections.User
	caregiver *collections.User
	access    map[string]int64 // numbers of the accesses, by patient
}

const daughter = "daughter@family.example"

func newFamily(t *testing.T) *family {
	t.Helper()
	f := &family{clinic: newIngestingClinic(t), access: map[string]int64{}}
	f.ada, f.bob = f.enroll(object{"first_name": "Ada"}), f.enroll(object{"first_name": "Bob"})
	f.adaPortal = vigiltest.User(t, f.app, authz.Patient, vigiltest.PortalOf(f.ada))
	f.add(f.ada, object{"scope": "enter"})
	f.add(f.bob, object{})
	var err error
	if f.caregiver, err = collections.FindUserByEmail(f.app, daughter); err != nil {
		t.Fatal(err)
	}
	return f
}

// add gives the daughter access to a patient.
func (f *family) add(patient string, changes object) {
	f.t.Helper()
	added := f.request(authz.Nurse, "POST", "/patients/"+patient+"/caregivers/", caregiverBody(changes)).want(201).object()
	f.access[patient] = int64(added["id"].(float64))
}

func caregiverBody(changes object) object {
	body := object{"email": daughter, "relationship": "child", "scope": "read"}
	for name, value := range changes {
		body[name] = value
	}
	return body
}

func (f *family) pressure(patient string) object {
	body := object{"systolic": 122, "diastolic": 78, "measured_at": f.now.Format(time.RFC3339)}
	if patient != "" {
		body["patient_id"] = patient
	}
	return body
}

func (f *family) asCaregiver(method, path string, body any, header ...string) reply {
	f.t.Helper()
	return f.requestAs(f.caregiver, method, path, body, header...)
}

func (f *family) fhir(path string) *httptest.ResponseRecorder {
	return f.requestWithToken("GET", "/fhir/R4"+path, vigiltest.Token(f.t, f.caregiver, f.now))
}

// A new caregiver gets an account with the role patient and one mail with a link; a second patient adds a mail without one.
func TestCaregiverIsInvited(t *testing.T) {
	f := newFamily(t)
	if f.caregiver.Role() != "patient" || f.caregiver.PatientID() != "" || !f.caregiver.MustChangePassword() {
		t.Errorf("the account has the role %s and the patient %q", f.caregiver.Role(), f.caregiver.PatientID())
	}
	var templates []string
	if err := f.app.DB().Select("template").From(collections.Mails).Where(dbx.HashExp{"user": f.caregiver.Id}).OrderBy("created_at", "template DESC").Column(&templates); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(templates) != "[welcome caregiver_added]" {
		t.Errorf("the caregiver gets the mails %v", templates)
	}
	mine := f.asCaregiver("GET", "/auth/me/", nil).want(200).object()["patients"].([]any)
	if len(mine) != 2 || mine[0].(object)["scope"] != "enter" || mine[1].(object)["scope"] != "read" || mine[1].(object)["first_name"] != "Bob" {
		t.Errorf("the caregiver may choose %v", mine)
	}
	if own := f.requestAs(f.adaPortal, "GET", "/auth/me/", nil).want(200).object()["patients"].([]any); len(own) != 1 || own[0].(object)["scope"] != "self" {
		t.Errorf("the patient may choose %v", own)
	}
	if staff := f.request(authz.Nurse, "GET", "/auth/me/", nil).want(200).object()["patients"]; staff != nil {
		t.Errorf("a nurse may choose %v", staff)
	}
	if shown := f.asCaregiver("GET", "/patients/", nil).results(); len(shown) != 2 {
		t.Errorf("the caregiver sees %d patients", len(shown))
	}
}

// With several patients every request names one, and sees that one only.
func TestCaregiverNamesThePatient(t *testing.T) {
	f := newFamily(t)
	other := f.enroll(object{"first_name": "Eve"})
	ids := map[string]string{}
	for _, patient := range []string{f.ada, f.bob, other} {
		ids[patient] = f.request(authz.Nurse, "POST", "/ingestion/blood-pressure/", f.pressure(patient)).want(201).object()["id"].(string)
		f.request(authz.Nurse, "POST", "/devices/assign/", object{"device_id": "BP-" + patient[30:], "patient_id": patient, "device_type": "blood_pressure"}).want(200)
	}
	for _, path := range []string{"/ingestion/observations/", "/devices/", "/ingestion/observations/" + ids[f.ada] + "/", "/devices/BP-" + f.ada[30:] + "/"} {
		f.asCaregiver("GET", path, nil).wantFields("patient_id")
		f.asCaregiver("GET", path+"?patient_id=ada", nil).wantFields("patient_id")
		f.asCaregiver("GET", path+"?patient_id=", nil).wantFields("patient_id")
		f.asCaregiver("GET", path+"?patient_id="+f.ada+"&patient_id="+f.bob, nil).wantFields("patient_id")
		f.asCaregiver("GET", path+"?patient_id="+strings.ToUpper(f.ada), nil).want(200)
	}
	for _, patient := range []string{f.ada, f.bob} {
		for _, o := range f.asCaregiver("GET", "/ingestion/observations/?patient_id="+patient, nil).results() {
			if o["patient_id"] != patient {
				t.Errorf("a list of %s shows %v", patient, o["patient_id"])
			}
		}
		if found := f.asCaregiver("GET", "/devices/?patient_id="+patient, nil).results(); len(found) != 1 || found[0]["patient_id"] != patient {
			t.Errorf("the devices of %s are %v", patient, found)
		}
		for _, path := range []string{"", "vital-config/", "care-team/", "vitals/summary/"} {
			f.asCaregiver("GET", "/patients/"+patient+"/"+path, nil).want(200)
		}
	}
	f.asCaregiver("GET", "/ingestion/observations/"+ids[f.ada]+"/?patient_id="+f.ada, nil).want(200)
	f.asCaregiver("GET", "/ingestion/observations/"+ids[f.ada]+"/?patient_id="+f.bob, nil).want(404)
	f.asCaregiver("GET", "/ingestion/observations/"+ids[other]+"/?patient_id="+f.ada, nil).want(404)
	f.asCaregiver("GET", "/ingestion/observations/"+ids[other]+"/?patient_id="+other, nil).want(404)
	f.asCaregiver("GET", "/devices/BP-"+f.ada[30:]+"/?patient_id="+f.bob, nil).want(404)
	if list := f.asCaregiver("GET", "/ingestion/observations/?patient_id="+other, nil).results(); len(list) != 0 {
		t.Errorf("another patient's readings are %v", list)
	}
	if list := f.asCaregiver("GET", "/devices/?patient_id="+other, nil).results(); len(list) != 0 {
		t.Errorf("another patient's devices are %v", list)
	}
	for _, path := range []string{"", "vital-config/", "care-team/", "vitals/summary/", "consents/", "caregivers/", "access-log/"} {
		f.asCaregiver("GET", "/patients/"+other+"/"+path, nil).want(404)
	}
}

// A caregiver enters readings only of the named patient and with the scope to do so.
func TestCaregiverScopes(t *testing.T) {
	f := newFamily(t)
	other := f.enroll(object{"first_name": "Eve"})
	const path = "/ingestion/blood-pressure/"
	f.asCaregiver("POST", path, f.pressure("")).wantFields("patient_id")
	f.asCaregiver("POST", path, f.pressure(f.ada)).want(201).wantAt(object{"patient_id": f.ada, "source": "patient_portal"})
	f.asCaregiver("POST", path, f.pressure(f.bob)).want(403, "permission_denied")
	f.asCaregiver("POST", path, f.pressure(other)).want(404)
	f.asCaregiver("POST", path+"?patient_id="+f.ada, f.pressure(f.bob)).wantFields("patient_id")
	implausible := f.pressure(f.bob)
	implausible["systolic"] = 299
	before := vigiltest.RowCounts(t, f.app)
	f.asCaregiver("POST", path, implausible).want(403)
	if added := vigiltest.RowsAdded(t, f.app, before); added["gateway_events"] != 0 || added["observations"] != 0 {
		t.Errorf("a refused reading adds %v", added)
	}
	for _, path := range []string{"consents/", "caregivers/", "access-log/"} {
		f.asCaregiver("GET", "/patients/"+f.ada+"/"+path, nil).want(403)
	}
	f.asCaregiver("POST", "/patients/"+f.ada+"/caregivers/", caregiverBody(object{"email": "x@family.example"})).want(403)
	uncle := f.request(authz.Nurse, "POST", "/patients/"+f.ada+"/caregivers/", caregiverBody(object{"email": "uncle@family.example"})).want(201).object()
	f.asCaregiver("DELETE", fmt.Sprintf("/patients/%s/caregivers/%v/", f.ada, uncle["id"]), nil).want(404) // another's

	line := func(patient string, minute int) object {
		body := f.pressure(patient)
		body["type"], body["measured_at"] = "blood_pressure", f.now.Add(time.Duration(minute-30)*time.Minute).Format(time.RFC3339)
		return body
	}
	answer := f.asCaregiver("POST", "/ingestion/batch/", object{"readings": []object{
		line(f.ada, 1), line(f.bob, 2), line("", 3), line(other, 4), line(f.ada, 5),
	}}).want(200).object()
	if answer["accepted"] != 2.0 || answer["rejected"] != 3.0 {
		t.Errorf("a mixed batch is answered with %v", answer)
	}
	var role string
	if err := f.app.DB().Select("actor_role").From(collections.AuditLog).Where(dbx.HashExp{"event": "observation.create", "actor_email": daughter}).
		OrderBy("id DESC").Limit(1).Row(&role); err != nil || role != "caregiver" {
		t.Errorf("the audit trail names the role %q, %v", role, err)
	}
}

// Two patients with the scope to enter do not mix in a batch or behind an idempotency key.
func TestCaregiverCannotMixTwoPatients(t *testing.T) {
	f := newFamily(t)
	f.request(authz.Nurse, "DELETE", fmt.Sprintf("/patients/%s/caregivers/%d/", f.bob, f.access[f.bob]), nil).want(204)
	f.add(f.bob, object{"scope": "enter"})
	first, second := f.pressure(f.ada), f.pressure(f.bob)
	first["type"], second["type"] = "blood_pressure", "blood_pressure"
	answer := f.asCaregiver("POST", "/ingestion/batch/", object{"readings": []object{first, second}}).want(200).object()
	if answer["accepted"] != 1.0 || answer["rejected"] != 1.0 {
		t.Errorf("a batch of two patients is answered with %v", answer)
	}
	key := []string{"Idempotency-Key", "0197a3c4-5e6f-7a8b-9c0d-1e2f3a4b5c6d"}
	f.asCaregiver("POST", "/ingestion/blood-pressure/", f.pressure(f.ada), key...).want(200) // a duplicate of the batch's
	if got := f.asCaregiver("POST", "/ingestion/blood-pressure/", f.pressure(f.bob), key...); got.status < 400 || strings.Contains(got.body, f.ada) {
		t.Errorf("the key of another patient's reading answers %d %s", got.status, got.body)
	}
	f.request(authz.Nurse, "DELETE", fmt.Sprintf("/patients/%s/caregivers/%d/", f.ada, f.access[f.ada]), nil).want(204)
	f.asCaregiver("POST", "/ingestion/blood-pressure/", f.pressure(f.ada), key...).want(403)
	tag := f.requestWithToken("GET", "/api/v1/patients/"+f.bob+"/", vigiltest.Token(t, f.caregiver, f.now)).Header().Get("ETag")
	f.asCaregiver("GET", "/patients/"+f.ada+"/", nil, "If-None-Match", tag).want(404)
}

// Searches and reads as FHIR name the patient too.
func TestCaregiverReadsFHIR(t *testing.T) {
	f := newFamily(t)
	ids := map[string]string{}
	for _, patient := range []string{f.ada, f.bob} {
		ids[patient] = f.request(authz.Nurse, "POST", "/ingestion/blood-pressure/", f.pressure(patient)).want(201).object()["id"].(string)
	}
	other := f.enroll(object{"first_name": "Eve"})
	for path, want := range map[string]int{
		"/Observation": 400, "/Patient": 400, "/Observation?code=85354-9": 400, "/Observation?patient=" + f.ada + "," + f.bob: 400,
		"/Observation?patient=" + f.ada: 200, "/Observation?subject=Patient/" + f.bob: 200, "/Patient?_id=" + f.ada: 200, "/Patient?_id=" + f.ada + "," + f.bob: 400,
		"/Patient/" + f.ada: 200, "/Patient/" + other: 404, "/Observation/" + ids[f.ada]: 400, "/Observation/" + ids[f.ada] + "?patient_id=" + f.ada: 200,
		"/Observation/" + ids[f.ada] + "?patient_id=" + f.bob: 404, "/Observation/" + ids[f.ada] + "?patient_id=" + f.ada + "&patient_id=" + f.bob: 400,
		"/Patient/" + f.bob + "/Observation": 200, "/Observation/$lastn?patient=" + f.ada: 200, "/Observation/$lastn": 400,
		"/Provenance/" + ids[f.ada]: 400, "/Device": 400, "/CareTeam": 400, "/Observation?patient=" + f.ada + "&patient=" + f.bob: 400,
	} {
		answer := f.fhir(path)
		if answer.Code != want {
			t.Errorf("%s answers %d: %s", path, answer.Code, answer.Body)
		}
		if strings.Contains(path, f.ada) && strings.Contains(answer.Body.String(), ids[f.bob]) || strings.Contains(path, f.bob) && strings.Contains(answer.Body.String(), ids[f.ada]) && want == 404 {
			t.Errorf("%s shows another patient: %s", path, answer.Body)
		}
	}
	if answer := f.fhir("/Observation?patient=" + other); answer.Code != 200 || strings.Contains(answer.Body.String(), `"match"`) {
		t.Errorf("another patient's readings: %s", answer.Body)
	}
}

// A revoked access ends with the next request; the account and its other patients stay, and nothing must be named any more.
func TestCaregiverIsRevoked(t *testing.T) {
	f := newFamily(t)
	f.asCaregiver("GET", "/patients/"+f.ada+"/", nil).want(200)
	path := fmt.Sprintf("/patients/%s/caregivers/%d/", f.ada, f.access[f.ada])
	f.request(authz.Nurse, "DELETE", fmt.Sprintf("/patients/%s/caregivers/%d/", f.bob, f.access[f.ada]), nil).want(404)
	f.requestAs(f.adaPortal, "DELETE", path, nil).want(204)
	f.requestAs(f.adaPortal, "DELETE", path, nil).want(404)
	f.asCaregiver("GET", "/patients/"+f.ada+"/", nil).want(404)
	f.asCaregiver("POST", "/ingestion/blood-pressure/", f.pressure(f.ada)).want(404)
	f.asCaregiver("GET", "/ingestion/observations/", nil).want(200)
	if shown := f.asCaregiver("GET", "/patients/", nil).results(); len(shown) != 1 || shown[0]["id"] != f.bob {
		t.Errorf("the caregiver sees %v", shown)
	}
	if events := fmt.Sprint(f.events(f.ada)); !strings.Contains(events, "caregiver.grant") || !strings.Contains(events, "caregiver.end") {
		t.Errorf("the audit trail has %s", events)
	}
	f.add(f.ada, object{"scope": "read"})
	f.asCaregiver("GET", "/patients/"+f.ada+"/", nil).want(200)
	f.asCaregiver("POST", "/ingestion/blood-pressure/", f.pressure(f.ada)).want(403)
}

// An access ends with its last day in the patient's zone, and with the patient's death; an archived patient stays readable.
func TestCaregiverAccessEnds(t *testing.T) {
	f := newFamily(t) // 15 January, in New York
	honolulu := f.enroll(object{"first_name": "Kai", "time_zone": "Pacific/Honolulu"})
	zone, err := time.LoadLocation("Pacific/Honolulu")
	if err != nil {
		t.Fatal(err)
	}
	today := f.now.In(zone)
	path := "/patients/" + honolulu + "/caregivers/"
	f.request(authz.Nurse, "POST", path, caregiverBody(object{"until": today.AddDate(0, 0, -1).Format(time.DateOnly)})).wantFields("until")
	f.add(honolulu, object{"until": today.Format(time.DateOnly)})
	end := collections.StartOfNextDay(today)
	f.now = end.Add(-time.Second).UTC()
	f.asCaregiver("GET", "/patients/"+honolulu+"/", nil).want(200)
	f.now = end.UTC()
	f.asCaregiver("GET", "/patients/"+honolulu+"/", nil).want(404)
	if list := f.request(authz.Nurse, "GET", path, nil).results(); len(list) != 0 {
		t.Errorf("an expired access is listed: %v", list)
	}
	f.add(honolulu, object{}) // the same account again
	f.asCaregiver("GET", "/patients/"+honolulu+"/", nil).want(200)

	f.request(authz.Nurse, "POST", "/patients/"+f.ada+"/archive/", object{"reason": "Moved away"}).want(200)
	f.asCaregiver("GET", "/patients/"+f.ada+"/", nil).want(200)
	f.asCaregiver("POST", "/ingestion/blood-pressure/", f.pressure(f.ada)).want(400)
	f.request(authz.Nurse, "POST", "/patients/"+f.ada+"/caregivers/", caregiverBody(object{"email": "late@family.example"})).want(400, "invalid_state")
	f.request(authz.Nurse, "POST", "/patients/"+f.bob+"/archive/", object{"reason": "Deceased", "deceased_at": f.now.Format(time.DateOnly)}).want(200)
	f.now = f.now.Add(time.Minute)
	f.asCaregiver("GET", "/patients/"+f.bob+"/", nil).want(404)
	if list := f.request(authz.Nurse, "GET", "/patients/"+f.bob+"/caregivers/", nil).results(); len(list) != 0 {
		t.Errorf("after the death are in force: %v", list)
	}
	f.request(authz.Admin, "DELETE", "/patients/"+honolulu+"/", nil).want(204)
	f.now = f.now.Add(time.Minute)
	f.asCaregiver("GET", "/patients/"+honolulu+"/", nil).want(404)
}

// Who may become a caregiver, and what a bad request answers.
func TestCaregiverRequests(t *testing.T) {
	f := newFamily(t)
	path := "/patients/" + f.ada + "/caregivers/"
	bobPortal := vigiltest.User(t, f.app, authz.Patient, vigiltest.PortalOf(f.bob))
	before := vigiltest.RowCounts(t, f.app)
	for name, body := range map[string]object{
		"email":        {"email": f.people[authz.Nurse].Email()},
		"Email ":       {"email": strings.ToUpper(f.people[authz.Admin].Email())},
		"email  ":      {"email": "no address"},
		"email   ":     {"email": nil},
		"email    ":    {"email": f.adaPortal.Email()},
		"email     ":   {"email": daughter},
		"relationship": {"relationship": "daughter"},
		"scope":        {"scope": "self"},
		"Scope":        {"scope": "admin"},
		"until":        {"until": "2026-02-30"},
		"Until":        {"until": "2020-01-01"},
		"UNTIL":        {"until": "tomorrow"},
		"role":         {"role": "admin"},
		"patient_id":   {"patient_id": f.bob},
	} {
		f.requestAs(f.adaPortal, "POST", path, caregiverBody(body)).wantFields(strings.ToLower(strings.TrimSpace(name)))
	}
	if added := vigiltest.RowsAdded(t, f.app, before); len(added) != 0 {
		t.Errorf("refused requests add %v", added)
	}
	f.requestAs(bobPortal, "POST", path, caregiverBody(object{"email": "x@family.example"})).want(404)
	f.wantRoles("GET", path, nil, authz.Admin, authz.ClinicalManager, authz.Provider, authz.Nurse, authz.MA, authz.Patient)

	// Another patient's account cares for Ada too, and then has two patients.
	f.requestAs(f.adaPortal, "POST", path, caregiverBody(object{"email": bobPortal.Email(), "scope": "enter", "relationship": "spouse"})).want(201).
		wantAt(object{"granted_by": f.adaPortal.Email(), "scope": "enter", "until": nil})
	f.request(authz.Nurse, "POST", "/ingestion/blood-pressure/", f.pressure(f.bob)).want(201)
	if own := f.requestAs(bobPortal, "GET", "/ingestion/observations/", nil).results(); len(own) != 1 || own[0]["patient_id"] != f.bob {
		t.Errorf("without a name Bob reads %v", own)
	}
	f.now = f.now.Add(time.Minute)
	f.requestAs(bobPortal, "POST", "/ingestion/blood-pressure/", f.pressure("")).want(201).wantAt(object{"patient_id": f.bob})
	f.requestAs(bobPortal, "POST", "/ingestion/blood-pressure/", f.pressure(f.ada)).want(201).wantAt(object{"patient_id": f.ada})
	f.requestAs(bobPortal, "GET", "/patients/"+f.bob+"/consents/", nil).want(200)
	f.requestAs(bobPortal, "GET", "/patients/"+f.ada+"/consents/", nil).want(403)
	if list := f.requestAs(f.adaPortal, "GET", path, nil).results(); len(list) != 2 || list[0]["granted_by"] != nil {
		t.Errorf("the patient sees %v", list)
	}
	for i := range 8 {
		f.request(authz.Nurse, "POST", path, caregiverBody(object{"email": fmt.Sprintf("c%d@family.example", i)})).want(201)
	}
	f.request(authz.Nurse, "POST", path, caregiverBody(object{"email": "eleventh@family.example"})).want(400, "invalid_state")
}

// A patient who names an address learns nothing about an account of it: the answers for one with an account and one without are the same.
func TestCaregiverNamesAreNotTold(t *testing.T) {
	f := newFamily(t)
	stranger := vigiltest.User(t, f.app, authz.Patient, vigiltest.PortalOf(f.enroll(object{"first_name": "Eve"})))
	path := "/patients/" + f.ada + "/caregivers/"
	for _, names := range []object{{}, {"first_name": "Dee", "last_name": "Doe"}, {"first_name": "Dee"}, {"last_name": nil}} {
		seen := []any{}
		for _, email := range []string{stranger.Email(), "nobody@family.example"} {
			names["email"] = email
			made := f.requestAs(f.adaPortal, "POST", path, caregiverBody(names)).want(201).object()
			f.requestAs(f.adaPortal, "DELETE", fmt.Sprint(path, made["id"], "/"), nil).want(204)
			if made["email"] != email {
				t.Errorf("%v answers %v", names, made)
			}
			seen = append(seen, made["name"])
		}
		if seen[0] != seen[1] {
			t.Errorf("%v tells %v", names, seen)
		}
	}
	f.requestAs(f.adaPortal, "POST", path, caregiverBody(object{"email": stranger.Email()})).want(201).wantAt(object{"name": nil})
	tells := func(answer string) bool {
		return strings.Contains(answer, " "+stranger.LastName()+`"`) || strings.Contains(answer, `"`+stranger.LastName()+`"`)
	}
	for _, answer := range []string{
		f.requestAs(f.adaPortal, "GET", path, nil).want(200).body,
		f.requestWithToken("GET", "/fhir/R4/RelatedPerson?patient="+f.ada, vigiltest.Token(t, f.adaPortal, f.now)).Body.String(),
	} {
		if !strings.Contains(answer, stranger.Email()) || tells(answer) {
			t.Errorf("the patient learns %q: %s", stranger.LastName(), answer)
		}
	}
	if !tells(f.request(authz.Nurse, "GET", path, nil).want(200).body) {
		t.Error("the staff sees no name")
	}
}

// A caregiver gives up the own access.
func TestCaregiverGivesUp(t *testing.T) {
	f := newFamily(t)
	for _, of := range f.asCaregiver("GET", "/auth/me/", nil).want(200).object()["patients"].([]any) {
		path := fmt.Sprintf("/patients/%v/caregivers/%v/", of.(object)["id"], of.(object)["caregiver_id"])
		f.asCaregiver("DELETE", path, nil).want(204)
		f.asCaregiver("DELETE", path, nil).want(404)
		f.asCaregiver("GET", fmt.Sprintf("/patients/%v/", of.(object)["id"]), nil).want(404)
	}
	if left, _ := f.asCaregiver("GET", "/auth/me/", nil).want(200).object()["patients"].([]any); len(left) != 0 {
		t.Errorf("left are %v", left)
	}
	if list := f.request(authz.Nurse, "GET", "/patients/"+f.ada+"/caregivers/", nil).results(); len(list) != 0 {
		t.Errorf("still listed: %v", list)
	}
}

// The path of a FHIR resource of the API names its patient.
func TestCaregiverPathsNameThePatient(t *testing.T) {
	f := newFamily(t)
	other := f.enroll(object{"first_name": "Eve"})
	for patient, status := range map[string]int{f.ada: 200, f.bob: 200, other: 404} {
		id := f.request(authz.Nurse, "POST", "/ingestion/blood-pressure/", f.pressure(patient)).want(201).object()["id"].(string)
		f.asCaregiver("GET", "/fhir/observations/"+id+"/", nil).want(status)
		f.asCaregiver("GET", "/fhir/patients/"+patient+"/", nil).want(status)
	}
	f.asCaregiver("GET", "/fhir/observations/0197a3c4-5e6f-7a8b-9c0d-1e2f3a4b5c6d/", nil).want(404)
	f.asCaregiver("GET", "/fhir/patients/0197a3c4-5e6f-7a8b-9c0d-1e2f3a4b5c6d/", nil).want(404)
}

// The patient sees who looked at the record: caregivers by name, staff by role.
func TestPatientSeesWhoLooked(t *testing.T) {
	f := newFamily(t)
	f.request(authz.Nurse, "GET", "/patients/"+f.ada+"/", nil).want(200)
	f.asCaregiver("GET", "/patients/"+f.ada+"/", nil).want(200)
	roles := map[string]any{}
	for _, entry := range f.requestAs(f.adaPortal, "GET", "/patients/"+f.ada+"/access-log/", nil).results() {
		roles[entry["actor_role"].(string)] = entry["actor_email"]
		if entry["source_ip"] != nil || entry["reason"] != nil {
			t.Errorf("the patient sees %v", entry)
		}
	}
	if email, seen := roles["nurse"]; !seen || email != nil {
		t.Errorf("the nurse is shown as %v", email)
	}
	if roles["caregiver"] != daughter {
		t.Errorf("the caregiver is shown as %v", roles["caregiver"])
	}
	f.requestAs(f.adaPortal, "GET", "/patients/"+f.bob+"/access-log/", nil).want(404)
}

// An open stream of a caregiver does not exist: the topic is for the staff, and a caregiver is refused.
func TestCaregiverSignsIn(t *testing.T) {
	f := newFamily(t)
	caller, err := f.auth.AuthenticatePassively(f.app, vigiltest.Token(t, f.caregiver, f.now), f.now)
	if err != nil || len(caller.Patients) != 2 || caller.PatientID != "" {
		t.Fatalf("the caller is %+v, %v", caller.Patients, err)
	}
	f.request(authz.Admin, "POST", fmt.Sprintf("/users/%d/deactivate/", f.caregiver.Number()), nil).want(200)
	f.asCaregiver("GET", "/patients/"+f.ada+"/", nil).want(401)
	var none auth.Caller
	if none.ScopeFor(f.ada) != "" || none.ScopeFor("") != "" {
		t.Error("a caller without patients has a scope")
	}
}

package routes_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/sandbox"
)

// weigh stores a patient's weight, measured the given minutes ago.
func (a *atTheEMR) weigh(patient string, kg float64, minutesAgo int) (id string) {
	a.t.Helper()
	at := a.now.Add(-time.Duration(minutesAgo) * time.Minute).Format(time.RFC3339)
	return a.request(authz.Nurse, "POST", "/ingestion/weight/", object{"patient_id": patient, "weight_kg": kg, "measured_at": at}).
		want(201).at("id").(string)
}

// arrived returns the weights at the EMR in order of arrival.
func (a *atTheEMR) arrived() (weights []string) {
	a.t.Helper()
	for _, o := range a.emr.Observations() {
		var sent struct {
			Subject       struct{ Reference string }
			ValueQuantity struct{ Value float64 }
		}
		if err := json.Unmarshal(o.Resource, &sent); err != nil {
			a.t.Fatal(err)
		}
		weights = append(weights, fmt.Sprintf("%v %s", sent.ValueQuantity.Value, sent.Subject.Reference))
	}
	return weights
}

// Readings of a patient without an EMR link wait: they count as no failure, use no slot, and are sent automatically, in
// order of measurement, once the patient is linked in any way.
func TestStoryUnlinkedPatient(t *testing.T) {
	for name, link := range map[string]func(a *atTheEMR, patient string){
		"PUT": func(a *atTheEMR, patient string) {
			a.request(authz.MA, "PUT", "/patients/"+patient+"/", patientBody(object{"mrn": "M-2", "external_id": "Patient/erx-2"})).want(200)
		},
		"link": func(a *atTheEMR, patient string) {
			a.request(authz.MA, "POST", "/emr/unlinked-patients/"+patient+"/link/", object{"emr_id": "Patient/erx-2"}).want(200).
				wantAt(object{"patient_id": patient, "emr_id": "Patient/erx-2"})
		},
		"import": func(a *atTheEMR, patient string) {
			answer := a.request(authz.MA, "POST", "/patients/import_selected_from_emr/", object{"emr_patient_ids": []string{"erx-2"}}).want(200).
				wantAt(object{"imported": 0.0, "skipped": 1.0, "errors": 0.0})
			detail := answer.object()["details"].([]any)[0].(object)
			if detail["patient_id"] != patient || !strings.HasPrefix(detail["reason"].(string), "Linked to patient "+patient) {
				a.t.Errorf("import result %v", detail)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAtTheEMR(t)
			a.emr.AddPatient(sandbox.EMRPatient{ID: "erx-2", MRN: "m-2", Family: "Lovelace", Given: []string{"Ada"}, Gender: "female", BirthDate: "1955-12-10"})
			patient := a.enroll(object{"mrn": "M-2"})
			third, first, second := a.weigh(patient, 83, 10), a.weigh(patient, 81, 120), a.weigh(patient, 82, 60)
			known := a.weigh(a.patient, 70, 5)
			a.deliver(time.Minute)
			for range 12 {
				a.deliver(7 * time.Hour)
			}
			if got := a.arrived(); !slices.Equal(got, []string{"70 Patient/erx-1"}) {
				t.Fatalf("the EMR has %v", got)
			}
			a.request(authz.MA, "GET", "/fhir/status/", nil).want(200).wantAt(object{
				"queue.unlinked": 3.0, "queue.pending": 0.0, "queue.failed_awaiting_retry": 0.0, "today_stats.failed": 0.0, "today_stats.success_rate": 100.0,
			})
			for _, id := range []string{first, second, third} {
				a.request(authz.Nurse, "GET", "/ingestion/observations/"+id+"/", nil).want(200).wantAt(object{"fhir_status": "pending"})
			}
			for _, record := range a.request(authz.Nurse, "GET", "/fhir/transmissions/?patient_id="+patient, nil).results() {
				if record["status"] != "pending" || record["attempt_count"] != 0.0 || record["error_code"] != nil || record["waits_for"] != "link" {
					t.Errorf("waits as %v", record)
				}
			}
			list := a.request(authz.MA, "GET", "/emr/unlinked-patients/", nil).results()
			if len(list) != 1 || list[0]["patient_id"] != patient || list[0]["waiting_readings"] != 3.0 || list[0]["mrn"] != "M-2" ||
				list[0]["patient_name"] != "Ada Lovelace" || list[0]["oldest_reading_at"] != clock.Add(-120*time.Minute).Format(time.RFC3339) {
				t.Errorf("list %v", list)
			}
			// A manual delivery fails at once with the reason, and the reading keeps waiting.
			a.sendRequested(a.request(authz.Provider, "POST", "/fhir/observations/"+second+"/transmit/", nil).want(200).at("transmission_id").(string))
			record := a.request(authz.Nurse, "GET", "/fhir/transmissions/?status=failed", nil).results()
			if len(record) != 1 || record[0]["error_code"] != "patient_not_found" || record[0]["error_message"] != "Patient has no EMR id" ||
				record[0]["attempt_count"] != 0.0 || record[0]["next_retry_at"] != nil {
				t.Errorf("requested: %v", record)
			}
			a.request(authz.MA, "GET", "/fhir/status/", nil).want(200).wantAt(object{"queue.unlinked": 3.0, "today_stats.failed": 0.0})

			link(a, patient)
			for range 4 {
				a.deliver(time.Second)
			}
			if got := a.arrived(); !slices.Equal(got, []string{"70 Patient/erx-1", "81 Patient/erx-2", "82 Patient/erx-2", "83 Patient/erx-2"}) {
				t.Fatalf("the EMR has %v", got)
			}
			for _, id := range []string{first, second, third, known} {
				a.request(authz.Nurse, "GET", "/ingestion/observations/"+id+"/", nil).want(200).wantAt(object{"fhir_status": "transmitted"})
			}
			a.request(authz.MA, "GET", "/fhir/status/", nil).want(200).wantAt(object{"queue.unlinked": 0.0, "queue.pending": 0.0})
			if list := a.request(authz.MA, "GET", "/emr/unlinked-patients/", nil).results(); len(list) != 0 {
				t.Errorf("still unlinked: %v", list)
			}
		})
	}
}

// A reading retracted while it waited is never sent; readings of a patient who is unlinked wait again.
func TestUnlinkedAndRetracted(t *testing.T) {
	a := newAtTheEMR(t)
	patient := a.enroll(object{"mrn": "M-2"})
	wrong, right := a.weigh(patient, 180, 60), a.weigh(patient, 80, 30)
	a.deliver(time.Minute)
	a.retract(wrong)
	put := func(external any) {
		body := patientBody(object{"mrn": "M-2"})
		body["external_id"] = external
		a.request(authz.MA, "PUT", "/patients/"+patient+"/", body).want(200)
	}
	put("erx-2")
	put(nil)
	a.deliver(time.Minute)
	a.deliver(time.Minute)
	a.request(authz.MA, "GET", "/fhir/status/", nil).want(200).wantAt(object{"queue.unlinked": 1.0, "queue.pending": 0.0})
	a.emr.AddPatient(sandbox.EMRPatient{ID: "erx-2", Family: "Lovelace", Given: []string{"Ada"}, BirthDate: "1955-12-10"})
	put("erx-2")
	for range 3 {
		a.deliver(time.Minute)
	}
	if got := a.arrived(); !slices.Equal(got, []string{"80 Patient/erx-2"}) {
		t.Errorf("the EMR has %v", got)
	}
	a.request(authz.Nurse, "GET", "/ingestion/observations/"+right+"/", nil).want(200).wantAt(object{"fhir_status": "transmitted"})
	a.request(authz.Nurse, "GET", "/ingestion/observations/"+wrong+"/", nil).want(200).wantAt(object{"fhir_status": "failed"})
}

// After a wrong EMR id is corrected, deliveries that the EMR refused as unknown are sent again automatically.
func TestCorrectedLink(t *testing.T) {
	a := newAtTheEMR(t)
	patient := a.enroll(object{"mrn": "M-2", "external_id": "erx-9"})
	a.weigh(patient, 80, 60)
	a.emr.Fail(sandbox.Fault{Match: "/Observation", Times: 1, Status: 404})
	a.deliver(time.Minute)
	if got := a.arrived(); len(got) != 0 {
		t.Fatalf("the EMR has %v", got)
	}
	a.emr.AddPatient(sandbox.EMRPatient{ID: "erx-2", Family: "Lovelace", Given: []string{"Ada"}, BirthDate: "1955-12-10"})
	a.request(authz.MA, "PUT", "/patients/"+patient+"/", patientBody(object{"mrn": "M-2", "external_id": "erx-2"})).want(200)
	a.deliver(time.Second)
	if got := a.arrived(); !slices.Equal(got, []string{"80 Patient/erx-2"}) {
		t.Errorf("the EMR has %v", got)
	}
}

// A link is checked at the EMR before it is stored.
func TestLinkIsChecked(t *testing.T) {
	a := newAtTheEMR(t)
	a.emr.AddPatient(sandbox.EMRPatient{ID: "erx-2", MRN: "X-9", Family: "LOVELÁCE", Given: []string{"ada"}, BirthDate: "1955-12-10", Deceased: true})
	a.emr.AddPatient(sandbox.EMRPatient{ID: "erx-3", Family: "Lovelace", Given: []string{"Ada"}, BirthDate: "1955-12-01"})
	a.emr.AddPatient(sandbox.EMRPatient{ID: "erx-4", Family: "Byron", Given: []string{"Ada"}, BirthDate: "1955-12-10"})
	patient := a.enroll(object{"mrn": "M-2"})
	path := "/emr/unlinked-patients/" + patient + "/link/"
	link := func(body object) reply { return a.request(authz.ClinicalManager, "POST", path, body) }
	link(object{}).wantFields("emr_id")
	link(object{"emr_id": "a/b"}).wantFields("emr_id")
	link(object{"emr_id": "nobody"}).wantFields("emr_id")
	link(object{"emr_id": "erx-1"}).wantFields("emr_id") // belongs to another
	for id, differs := range map[string]string{"erx-3": "date_of_birth_differs", "erx-4": "name_differs"} {
		if refused := link(object{"emr_id": id}).want(400, "identity_differs").at("warnings").([]any); len(refused) != 1 || refused[0] != differs {
			t.Errorf("%s: %v", id, refused)
		}
	}
	for _, id := range []string{"erx-3", "erx-4"} { // a stranger's record was read, and the audit trail has it
		if entries, total, err := audit.List(a.app, audit.Filter{Event: "emr.search", ResourceID: id}, 0, 10); err != nil || total != 1 || entries[0].Patient != patient {
			t.Errorf("in the trail of %s: %v, %v", id, entries, err)
		}
	}
	a.emr.Fail(sandbox.Fault{Match: "/Patient/", Times: 1, Status: 503})
	link(object{"emr_id": "erx-2"}).want(502, "emr_error")
	if list := a.request(authz.MA, "GET", "/emr/unlinked-patients/", nil).results(); len(list) != 1 || list[0]["waiting_readings"] != 0.0 || list[0]["oldest_reading_at"] != nil {
		t.Errorf("list %v", list)
	}
	if warned := link(object{"emr_id": "erx-2"}).want(200).at("warnings").([]any); len(warned) != 2 || warned[0] != "mrn_differs" || warned[1] != "deceased" {
		t.Errorf("warned of %v", warned)
	}
	link(object{"emr_id": "Patient/erx-2"}).want(200)
	link(object{"emr_id": "erx-3"}).want(400, "invalid_state")
	a.request(authz.Admin, "POST", "/emr/unlinked-patients/0190b2c4-0000-7000-8000-000000000001/link/", object{"emr_id": "x"}).want(404)

	other := a.enroll(nil)
	a.request(authz.Admin, "POST", "/emr/unlinked-patients/"+other+"/link/", object{"emr_id": "erx-4", "confirmed": true}).want(200)
	if events := a.events(other); events[len(events)-1] != "patient.update" {
		t.Errorf("events %v", events)
	}
	a.wantRoles("GET", "/emr/unlinked-patients/", nil, authz.Admin, authz.ClinicalManager, authz.MA)
	a.wantRoles("POST", path, object{"emr_id": "erx-2"}, authz.Admin, authz.ClinicalManager, authz.MA)
}

// The search finds patients by full name and reports deceased and inactive ones.
func TestSearchByWholeName(t *testing.T) {
	c := newEMRClinic(t, []sandbox.EMRPatient{
		{ID: "e-1", Family: "Lovelace", Given: []string{"Ada"}},
		{ID: "e-2", Family: "van der Berg", Given: []string{"Maria"}, Deceased: true},
		{ID: "e-3", Family: "Lopez", Given: []string{"Ana", "Maria"}},
		{ID: "e-4", Family: "Lovelace", Given: []string{"Byron"}},
	})
	for name, want := range map[string]string{
		"Ada Lovelace": "Patient/e-1", "lovelace ADA": "Patient/e-1", "Lovelace, Ada": "Patient/e-1", "Love": "Patient/e-1 Patient/e-4",
		"Maria van der Berg": "Patient/e-2", "van der Berg, Maria": "Patient/e-2", "Ana Maria Lopez": "Patient/e-3", "Ada Byron": "",
	} {
		answer := c.request(authz.MA, "GET", "/emr/patients/"+query("name", name), nil).want(200)
		var got []string
		for _, p := range answer.at("patients").([]any) {
			found := p.(object)
			got = append(got, found["emr_id"].(string))
			if found["active"] != true || found["deceased"] != (found["emr_id"] == "Patient/e-2") {
				t.Errorf("%v", found)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", name, got, want)
		}
	}
}

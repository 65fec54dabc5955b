package routes_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/routes"
)

var (
	clinical  = []authz.Role{authz.Admin, authz.ClinicalManager, authz.Provider, authz.Nurse, authz.MA}
	archivers = clinical[:4]
)

const unknownPatient = "0192f0c1-2a3b-7c4d-8e5f-60718293a4b5"

func TestReplacePatient(t *testing.T) {
	c := newClinic(t)
	full := object{
		"mrn": "A-1", "phone": "555-0100-200", "email": "ada@mail.test", "ssn": "123-45-6789", "external_id": "Patient/e-1",
		"gateway_patient_id": "g-1", "time_zone": "America/Chicago", "icd10_codes": []string{"I10"}, "insurance": object{"member_id": "m-1"},
		"address": object{"line1": "1 Main St", "city": "Springfield", "state": "il", "zip": "62701"},
	}
	id := c.enroll(full)
	path := "/patients/" + id + "/"

	c.now = c.now.Add(time.Hour)
	replaced := c.request(authz.Nurse, "PUT", path, patientBody(object{"last_name": "King"})).want(200)
	replaced.wantAt(object{
		"last_name": "King", "phone": nil, "email": nil, "address": nil, "mrn": "A-1", "external_id": "e-1",
		"gateway_patient_id": "g-1", "time_zone": "America/Chicago", "insurance.member_id": "m-1", "updated_at": "2026-01-15T14:45:00Z",
		"created_at": "2026-01-15T13:45:00Z", "active": true,
	})
	c.request(authz.Admin, "GET", path, nil).want(200).wantAt(object{"ssn_last4": "6789", "last_name": "King"})
	c.request(authz.Admin, "PUT", path, patientBody(object{"ssn": ""})).want(200)
	cleared := c.request(authz.Admin, "PUT", path, `{"first_name":"Ada","last_name":"King","date_of_birth":"1955-12-10","gender":"female",
		"ssn":null,"external_id":null,"gateway_patient_id":null,"time_zone":null,"insurance":null,"icd10_codes":null}`).want(200)
	cleared.wantAt(object{"ssn_last4": nil, "external_id": nil, "gateway_patient_id": nil, "time_zone": nil, "insurance": nil})

	if found := c.request(authz.Admin, "GET", "/patients/"+query("search", "king"), nil).results(); len(found) != 1 {
		t.Errorf("the new name finds %d patients", len(found))
	}
	if found := c.request(authz.Admin, "GET", "/patients/"+query("search", "lovelace"), nil).results(); len(found) != 0 {
		t.Error("the old name still finds the patient")
	}
	if events := c.events(id); !slices.Contains(events, "patient.update") {
		t.Errorf("the audit trail has %v", events)
	}

	other := c.enroll(object{"mrn": "B-1"})
	c.request(authz.Admin, "PUT", path, patientBody(object{"mrn": "b-1"})).wantFields("mrn")
	c.request(authz.Nurse, "GET", "/patients/"+query("search", strings.Repeat("a", 101))+"&ordering=first_name", nil).wantFields("search", "ordering")
	c.request(authz.Admin, "PUT", path, `{"mrn":null}`).wantFields("mrn", "first_name", "last_name", "date_of_birth", "gender")
	c.request(authz.Admin, "PUT", path, patientBody(object{"mrn": "  "})).wantFields("mrn")
	c.request(authz.Admin, "PUT", path, patientBody(object{
		"last_name": strings.Repeat("x", 101), "phone": "12", "email": "no",
		"address": object{"line1": "1"}, "ssn": "000-12-3456", "icd10_codes": []string{"nonsense"},
	})).
		wantFields("last_name", "phone", "email", "address.city", "ssn", "icd10_codes.0")
	c.request(authz.Admin, "PUT", path, `{"first_name"`).want(400, "parse_error")
	c.request(authz.Admin, "PUT", "/patients/"+unknownPatient+"/", patientBody(nil)).want(404, "not_found")
	c.request(authz.Admin, "PUT", "/patients/12/", patientBody(nil)).want(404, "not_found")
	c.wantRoles("PUT", "/patients/"+other+"/", patientBody(nil), clinical...)
}

func TestArchive(t *testing.T) {
	c := newClinic(t)
	id := c.enroll(nil)
	path := "/patients/" + id + "/"
	c.wantRoles("POST", "/patients/"+unknownPatient+"/archive/", object{"reason": "x"}, archivers...)
	c.wantRoles("POST", "/patients/"+unknownPatient+"/unarchive/", nil, archivers...)

	c.request(authz.Nurse, "POST", path+"unarchive/", nil).want(400, "invalid_state")
	c.request(authz.Nurse, "POST", path+"archive/", object{}).wantFields("reason")
	c.request(authz.Nurse, "POST", path+"archive/", object{"reason": " "}).wantFields("reason")
	c.request(authz.Nurse, "POST", path+"archive/", object{"reason": strings.Repeat("é", 501)}).wantFields("reason")
	c.request(authz.Nurse, "POST", path+"archive/", object{"reason": "Moved away"}).want(200).wantAt(object{
		"id": id, "status": "archived",
		"archived_at": "2026-01-15T13:45:00Z", "archived_by": c.people[authz.Nurse].Email(), "archive_reason": "Moved away",
	})
	c.request(authz.Nurse, "POST", path+"archive/", object{"reason": "Again"}).want(400, "invalid_state")
	c.request(authz.MA, "GET", path, nil).want(200).wantAt(object{"active": false, "status": "archived", "archive_reason": "Moved away"})

	if found := c.request(authz.MA, "GET", "/patients/", nil).results(); len(found) != 0 {
		t.Error("an archived patient is on the list of active ones")
	}
	if found := c.request(authz.MA, "GET", "/patients/?active=false", nil).results(); len(found) != 1 {
		t.Error("active=false does not find the archived patient")
	}
	archived := c.request(authz.DataMonitor, "GET", "/patients/archived/", nil).results()
	if len(archived) != 1 || archived[0]["id"] != id || archived[0]["archive_reason"] != "Moved away" || archived[0]["last_name"] != "Lovelace" {
		t.Errorf("the archived list has %v", archived)
	}
	c.wantRoles("GET", "/patients/archived/", nil, authz.Admin, authz.ClinicalManager, authz.Provider, authz.Nurse, authz.MA, authz.DataMonitor)

	c.now = c.now.Add(time.Hour)
	c.request(authz.Nurse, "PUT", path, patientBody(object{"last_name": "King"})).want(200).wantAt(object{"active": false, "archived_at": "2026-01-15T13:45:00Z"})
	c.request(authz.Provider, "POST", path+"unarchive/", nil).want(200).wantAt(object{
		"id": id, "status": "active",
		"unarchived_at": "2026-01-15T14:45:00Z", "unarchived_by": c.people[authz.Provider].Email(),
	})
	c.request(authz.MA, "GET", path, nil).want(200).wantAt(object{
		"active": true, "status": "active", "archive_reason": "Moved away",
		"archived_by": c.people[authz.Nurse].Email(), "archived_at": "2026-01-15T13:45:00Z",
	})
	c.request(authz.Nurse, "POST", path+"archive/", object{"reason": "Again"}).want(200).wantAt(object{
		"archived_by": c.people[authz.Nurse].Email(),
		"archived_at": "2026-01-15T14:45:00Z",
	})
	if events := c.events(id); !slices.Equal(slices.DeleteFunc(events, func(e string) bool { return e == "patient.read" }),
		[]string{"patient.create", "patient.archive", "patient.update", "patient.unarchive", "patient.archive"}) {
		t.Errorf("the audit trail has %v", events)
	}
}

func TestDeleteAndRestore(t *testing.T) {
	c := newClinic(t)
	id, other := c.enroll(nil), c.enroll(object{"last_name": "Other"})
	path := "/patients/" + id + "/"
	c.wantRoles("DELETE", "/patients/"+unknownPatient+"/", nil, authz.Admin, authz.ClinicalManager)
	c.wantRoles("POST", "/patients/"+unknownPatient+"/restore/", nil, authz.Admin)
	c.wantRoles("GET", "/patients/?deleted=true", nil, authz.Admin)
	c.wantRoles("GET", path+"?deleted=true", nil, authz.Admin)
	c.request(authz.Admin, "GET", "/patients/?deleted=maybe", nil).wantFields("deleted")

	for i, patient := range []string{id, other} {
		at := collections.FormatInstant(clock)
		device := "D-" + string(rune('1'+i))
		c.insert(collections.Devices, dbx.Params{"id": device, "device_id": device, "status": "assigned", "patient": patient, "assigned_at": at})
		c.insert(collections.DeviceAssignments, dbx.Params{"id": device, "device_id": device, "patient": patient, "assigned_at": at, "unassigned_at": ""})
		for _, status := range []string{"active", "acknowledged", "auto_resolved"} {
			alert, err := alerts.Store(c.app, alerts.Draft{PatientID: patient, Finding: alerts.Finding{Type: "pulse", Level: alerts.Critical}}, clock)
			if err != nil {
				t.Fatal(err)
			}
			columns := dbx.Params{"status": status, "acknowledged": status != "active", "acknowledged_by": map[bool]string{true: "n@vigil.test"}[status != "active"]}
			if _, err := c.app.DB().Update(collections.Alerts, columns, dbx.HashExp{"id": alert}).Execute(); err != nil {
				t.Fatal(err)
			}
		}
		for _, status := range []string{"open", "in_progress", "resolved"} {
			number, err := collections.NextID(c.app, collections.Escalations)
			if err != nil {
				t.Fatal(err)
			}
			c.insert(collections.Escalations, dbx.Params{"id": number, "patient": patient, "priority": "urgent", "status": status, "created_by": "a@vigil.test"})
		}
	}

	c.request(authz.ClinicalManager, "DELETE", path, nil).want(204)
	c.request(authz.ClinicalManager, "DELETE", path, nil).want(404)
	for _, method := range [][2]string{
		{"GET", path},
		{"PUT", path},
		{"POST", path + "archive/"},
		{"POST", path + "unarchive/"},
		{"GET", path + "vital-config/"},
		{"PUT", path + "vital-config/"},
		{"GET", path + "care-team/"},
		{"PUT", path + "care-team/"},
		{"GET", path + "consents/"},
		{"POST", path + "consents/"},
		{"POST", path + "consents/1/revoke/"},
		{"GET", "/fhir" + path},
	} {
		c.request(authz.Admin, method[0], method[1], object{"reason": "x"}).want(404, "not_found")
	}
	if found := c.request(authz.Admin, "GET", "/patients/", nil).results(); len(found) != 1 || found[0]["id"] != other {
		t.Errorf("the list has %v", found)
	}
	deleted := c.request(authz.Admin, "GET", "/patients/?deleted=true", nil).results()
	if len(deleted) != 1 || deleted[0]["id"] != id || deleted[0]["deleted_by"] != c.people[authz.ClinicalManager].Email() {
		t.Errorf("the list of deleted patients has %v", deleted)
	}
	c.request(authz.Admin, "GET", path+"?deleted=true", nil).want(200).wantAt(object{"deleted_at": "2026-01-15T13:45:00Z"})

	for name, test := range map[string]struct {
		sql  string
		want []string
	}{
		"devices":     {"SELECT status || patient FROM devices WHERE patient = {:patient} OR device_id = 'D-1'", []string{"inventory"}},
		"assignments": {"SELECT unassigned_by FROM device_assignments WHERE patient = {:patient} AND unassigned_at != ''", []string{c.people[authz.ClinicalManager].Email()}},
		"alerts": {
			"SELECT status || ' ' || acknowledged_by || ' ' || resolved_by FROM alerts WHERE patient = {:patient} AND acknowledged ORDER BY id",
			[]string{"resolved system system", "resolved n@vigil.test system", "auto_resolved n@vigil.test "},
		},
		"escalations": {"SELECT status || cancelled_by FROM escalations WHERE patient = {:patient} ORDER BY id", []string{"cancelledsystem", "cancelledsystem", "resolved"}},
		"triage":      {"SELECT listed || '/' || unacknowledged_alerts || '/' || active_escalations FROM triage_scores WHERE patient = {:patient}", []string{"0/0/0"}},
	} {
		var got []string
		if err := c.app.DB().NewQuery(test.sql).Bind(dbx.Params{"patient": id}).Column(&got); err != nil {
			t.Fatal(name, err)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s are %q, want %q", name, got, test.want)
		}
	}
	var open int
	err := c.app.DB().NewQuery("SELECT COUNT(*) FROM escalations WHERE patient = {:patient} AND status IN ('open','in_progress')").Bind(dbx.Params{"patient": other}).Row(&open)
	if err != nil || open != 2 {
		t.Error("another patient's escalations changed", open, err)
	}

	c.request(authz.Admin, "POST", path+"restore/", nil).want(200).wantAt(object{"id": id, "active": true, "deleted_at": nil})
	c.request(authz.Admin, "POST", path+"restore/", nil).want(400, "invalid_state")
	c.request(authz.Nurse, "GET", path, nil).want(200)
	if found := c.request(authz.Nurse, "GET", "/patients/"+query("search", "lovelace"), nil).results(); len(found) != 1 {
		t.Error("a restored patient is not found")
	}
	want := []string{"patient.create", "device.unassign", "alert.resolve", "alert.resolve", "escalation.update", "escalation.update", "patient.delete", "patient.restore"}
	if events := slices.DeleteFunc(c.events(id), func(e string) bool { return e == "patient.read" || e == "patient.search" }); !slices.Equal(events, want) {
		t.Errorf("the audit trail has %v, want %v", events, want)
	}
}

// Portal users reach only their own record.
func TestPortalConfinement(t *testing.T) {
	c := newClinic(t)
	own, foreign := c.enroll(object{"phone": "555-0100-200"}), c.enroll(nil)
	user := vigiltest.User(t, c.app, authz.Patient, vigiltest.PortalOf(own))
	unlinked := c.people[authz.Patient]
	for _, part := range []string{"", "vital-config/", "care-team/", "consents/"} {
		c.requestAs(user, "GET", "/patients/"+own+"/"+part, nil).want(200)
		c.requestAs(user, "GET", "/patients/"+foreign+"/"+part, nil).want(404, "not_found")
		c.requestAs(unlinked, "GET", "/patients/"+own+"/"+part, nil).want(404, "not_found")
	}
	c.requestAs(user, "GET", "/fhir/patients/"+own+"/", nil).want(200)
	c.requestAs(user, "GET", "/fhir/patients/"+foreign+"/", nil).want(404)
	if list := c.requestAs(user, "GET", "/patients/", nil).results(); len(list) != 1 || list[0]["id"] != own || list[0]["phone"] != "555-0100-200" {
		t.Errorf("the portal's list has %v", list)
	}
	if list := c.requestAs(unlinked, "GET", "/patients/", nil).results(); len(list) != 0 {
		t.Errorf("an unlinked portal user sees %v", list)
	}
	c.request(authz.Nurse, "POST", "/patients/"+own+"/consents/", object{"type": "rpm", "method": "written", "granted_at": "2026-01-01", "obtained_by": "Nurse Joy"}).want(201)
	c.request(authz.Nurse, "PUT", "/patients/"+own+"/vital-config/", object{"pulse": object{"high": 100}, "reason": "x"}).want(200)
	c.requestAs(user, "GET", "/patients/"+own+"/vital-config/", nil).want(200).wantAt(object{"updated_by": nil, "pulse.high": 100.0})
	if consents := c.requestAs(user, "GET", "/patients/"+own+"/consents/", nil).results(); consents[0]["obtained_by"] != nil || consents[0]["recorded_by"] != nil {
		t.Errorf("the portal names staff: %v", consents)
	}
	c.request(authz.Admin, "DELETE", "/patients/"+own+"/", nil).want(204)
	c.requestAs(user, "GET", "/patients/"+own+"/", nil).want(404)
	if list := c.requestAs(user, "GET", "/patients/", nil).results(); len(list) != 0 {
		t.Error("a portal user sees a deleted record")
	}
}

// With access restricted to care teams, clinicians reach their teams' patients, and others only in an emergency.
func TestRestrictedToCareTeam(t *testing.T) {
	c := newClinic(t, func(e *routes.Engines) { e.RestrictToCareTeam = true })
	own, foreign := c.enroll(object{"last_name": "Own"}), c.enroll(object{"last_name": "Foreign"})
	nurse := c.people[authz.Nurse]
	c.request(authz.Admin, "PUT", "/patients/"+own+"/care-team/", object{
		"members":             []object{{"user_id": nurse.Number()}},
		"primary_provider_id": c.people[authz.Provider].Number(),
	}).want(200)
	for role, sees := range map[authz.Role]int{authz.Nurse: 1, authz.Provider: 1, authz.MA: 0, authz.ClinicalManager: 2, authz.Admin: 2, authz.DataMonitor: 2} {
		if found := c.request(role, "GET", "/patients/", nil).results(); len(found) != sees {
			t.Errorf("a %s sees %d patients, want %d", role, len(found), sees)
		}
	}
	c.request(authz.Nurse, "GET", "/patients/"+own+"/", nil).want(200)
	c.request(authz.ClinicalManager, "GET", "/patients/"+foreign+"/", nil).want(200)
	for _, part := range []string{"", "vital-config/", "care-team/", "consents/"} {
		c.request(authz.Nurse, "GET", "/patients/"+foreign+"/"+part, nil).want(403, "permission_denied")
	}
	c.request(authz.Nurse, "PUT", "/patients/"+foreign+"/", patientBody(nil)).want(403)
	c.request(authz.Nurse, "POST", "/ingestion/weight/", object{"patient_id": foreign, "weight_kg": 80, "measured_at": "2026-01-15T13:00:00Z"}).want(403)
	c.request(authz.Provider, "PUT", "/patients/"+own+"/vital-config/", object{"pulse": object{"high": 100}, "reason": "x"}).want(200)
	c.request(authz.ClinicalManager, "PUT", "/patients/"+foreign+"/vital-config/", object{"pulse": object{"high": 100}, "reason": "x"}).want(200)
	for _, list := range []string{"/triage/patients/", "/threshold-changes/"} {
		if found := c.request(authz.Nurse, "GET", list, nil).results(); len(found) != 1 || found[0]["patient_id"] != own {
			t.Errorf("%s shows %v", list, found)
		}
	}
	for _, list := range []string{"/threshold-changes/", "/alerts/", "/ingestion/observations/", "/fhir/transmissions/"} {
		c.request(authz.Nurse, "GET", list, nil).want(200)
		c.request(authz.Nurse, "GET", list+query("patient_id", foreign), nil).want(403)
		c.request(authz.Nurse, "GET", list+query("patient_id", own), nil).want(200)
		c.request(authz.Nurse, "GET", list+query("patient_id", foreign), nil, "X-Emergency-Access", "Found unconscious in the lobby").want(200)
	}
	c.request(authz.Nurse, "GET", "/patients/"+foreign+"/", nil, "X-Emergency-Access", "short").wantFields("X-Emergency-Access")
	c.request(authz.Nurse, "GET", "/patients/"+foreign+"/", nil, "X-Emergency-Access", "Found unconscious in the lobby").want(200)
	c.request(authz.Nurse, "GET", "/patients/"+unknownPatient+"/", nil, "X-Emergency-Access", "Found unconscious in the lobby").want(404)
	if events := c.events(foreign); !slices.Contains(events, "access.emergency") {
		t.Errorf("the audit trail has %v", events)
	}
	var notified []string
	err := c.app.DB().NewQuery(`SELECT u.role FROM notifications n JOIN users u ON u.id = n.user WHERE n.type = 'emergency_access'`).Column(&notified)
	if err != nil || !slices.Equal(notified, []string{"clinical_manager"}) {
		t.Errorf("notified of the emergency: %v (%v)", notified, err)
	}
	if events := c.events(own); slices.Contains(events, "access.emergency") {
		t.Error("an own patient counts as an emergency")
	}
}

// A record with a damaged field is neither shown nor changed, and does not affect other records.
func TestDamagedFields(t *testing.T) {
	c := newClinic(t)
	id, other := c.enroll(object{"phone": "555-0100-200", "email": "ada@mail.test"}), c.enroll(object{"first_name": "Grace", "last_name": "Hopper"})
	column := func(name, id string) (value string) {
		if err := c.app.DB().Select(name).From(collections.Patients).Where(dbx.HashExp{"id": id}).Row(&value); err != nil {
			t.Fatal(err)
		}
		return value
	}
	phone := column("phone", id)
	_, err := c.app.DB().Update(collections.Patients, dbx.Params{
		"last_name": column("last_name", other), "first_name": column("last_name", id),
		"phone": phone[:len(phone)-5], "email": "plain@planted.test",
	}, dbx.HashExp{"id": id}).Execute()
	if err != nil {
		t.Fatal(err)
	}
	phone = column("phone", id)
	for method, body := range map[string]any{"GET": nil, "PUT": patientBody(nil), "DELETE": nil} {
		c.request(authz.Admin, method, "/patients/"+id+"/", body).want(503, "record_unreadable").wantAt(object{
			"detail": "A stored value of patient " + id + " cannot be opened; nothing was changed.",
		})
	}
	c.request(authz.Admin, "GET", "/fhir/patients/"+id+"/", nil).want(503, "record_unreadable")
	c.request(authz.Admin, "POST", "/patients/"+id+"/archive/", object{"reason": "Lost"}).want(503, "record_unreadable")
	c.request(authz.Admin, "GET", "/patients/", nil).want(200).wantAt(object{"count": 2.0, "unreadable": 1.0})
	if found := c.request(authz.Admin, "GET", "/patients/", nil).results(); len(found) != 1 || found[0]["id"] != other {
		t.Errorf("the list shows %v", found)
	}
	if column("phone", id) != phone || column("email", id) != "plain@planted.test" {
		t.Error("a field that cannot be decrypted was overwritten")
	}
}

func TestFHIRPatient(t *testing.T) {
	c := newClinic(t)
	id := c.enroll(object{"mrn": "A-1", "external_id": "e-1", "ssn": "123-45-6789"})
	got := c.request(authz.Nurse, "GET", "/fhir/patients/"+id+"/", nil).want(200)
	got.wantAt(object{"resourceType": "Patient", "id": id, "active": true, "gender": "female", "birthDate": "1955-12-10", "meta.versionId": "1"})
	if !strings.Contains(got.body, `"system":"https://vigil.example.org/fhir/identifier/emr","value":"e-1"`) || strings.Contains(got.body, "6789") {
		t.Errorf("the resource is %s", got.body)
	}
	c.request(authz.Nurse, "GET", "/fhir/patients/"+id+"/", nil, "Accept", "application/fhir+json").want(200)
	c.request(authz.Admin, "POST", "/patients/"+id+"/archive/", object{"reason": "x"}).want(200)
	c.request(authz.Nurse, "GET", "/fhir/patients/"+id+"/", nil).want(200).wantAt(object{"active": false, "meta.versionId": "2"})
	c.wantRoles("GET", "/fhir/patients/"+unknownPatient+"/", nil, append([]authz.Role{authz.Patient}, clinical...)...)
}

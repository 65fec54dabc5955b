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
	"github.com/vigilhealth/vigil/internal/emr"
	"github.com/vigilhealth/vigil/internal/phi"
)

// storeDeadLetter stores a delivery that became a dead letter the given time ago; columns override its values.
func (d *delivering) storeDeadLetter(number int, ago time.Duration, columns dbx.Params) (id, observation string) {
	id, observation = fmt.Sprintf("TXN-2026-%06d", number), d.observe()
	at := collections.FormatInstant(d.now.Add(-ago))
	row := dbx.Params{
		"id": id, "observation": observation, "patient": d.patient, "observation_type": "weight", "status": "failed", "error_code": emr.CodeUnavailable,
		"error_message": "EMR unavailable (503)", "attempt_count": 5, "first_attempted_at": at, "last_attempted_at": at, "created_at": at,
	}
	for column, value := range columns {
		row[column] = value
	}
	d.insert(collections.Transmissions, row)
	return id, observation
}

const retryPath = "/fhir/transmissions/retry/"

// After a weekend without the EMR one call requeues the dead letters, and nothing else.
func TestRequeueTransmissions(t *testing.T) {
	d := newDelivering(t)
	for i := range 3 {
		d.storeDeadLetter(900001+i, time.Duration(i+1)*12*time.Hour, nil) // 12, 24 and 36 hours ago
	}
	d.storeDeadLetter(900010, time.Hour, dbx.Params{"error_code": emr.CodeAuth, "error_message": "EMR authorization failed (403: insufficient scope)"})
	d.storeDeadLetter(900011, time.Hour, dbx.Params{"next_retry_at": collections.FormatInstant(d.now.Add(time.Hour))})
	d.storeDeadLetter(900012, time.Hour, dbx.Params{"error_code": "entered_in_error"})
	other := d.enroll(object{"external_id": "e-2", "mrn": "M-2"})
	d.storeDeadLetter(900013, time.Hour, dbx.Params{"patient": other, "error_code": emr.CodeInvalidResource})

	d.request(authz.MA, "GET", "/fhir/status/", nil).want(200).wantAt(object{"queue.given_up": 5.0, "queue.failed_awaiting_retry": 1.0, "status": "degraded"})
	d.stopWorker()
	for body, want := range map[string]float64{
		`{"since":"36h","dry_run":true}`:                              5,
		`{"since":"35h","dry_run":true}`:                              4,
		`{"since":"30m","dry_run":true}`:                              0,
		`{"since":"1d","dry_run":true}`:                               4,
		`{"since":"2026-01-15","dry_run":true}`:                       2, // midnight in New York is 05:00Z
		`{"since":"2026-01-14T13:45:00Z","dry_run":true}`:             4,
		`{"since":"2026-01-14T13:45:00.000001Z","dry_run":true}`:      3,
		`{"since":"2027-01-01","dry_run":true}`:                       0,
		`{"since":"36h","error_code":"auth_error","dry_run":true}`:    1,
		`{"since":"36h","error_code":"timeout","dry_run":true}`:       0,
		`{"since":"36h","error_code":"entered_in_error"}`:             0,
		`{"since":"36h","error_code":null,"dry_run":true}`:            5,
		`{"since":"36h","date_to":"2026-01-14","dry_run":true}`:       3,
		`{"since":"36h","patient_id":"` + other + `","dry_run":true}`: 1,
	} {
		dry := strings.Contains(body, "dry_run")
		d.request(authz.DataMonitor, "POST", retryPath, body).want(200).wantAt(object{"requeued": want, "dry_run": dry})
	}
	for body, field := range map[string]string{
		`{}`: "since", `{"since":""}`: "since", `{"since":null}`: "since", `{"since":36}`: "since", `{"since":"yesterday"}`: "since", `{"since":"-36h"}`: "since",
		`{"since":"0h"}`: "since", `{"since":"36h","error_code":"broken"}`: "error_code", `{"since":"36h","error_code":""}`: "error_code",
		`{"since":"36h","error_code":7}`: "error_code", `{"since":"36h","patient_id":"x"}`: "patient_id", `{"since":"36h","date_to":"x"}`: "date_to",
		`{"since":"2026-01-15","date_to":"2026-01-14"}`: "since", `{"since":"36h","date_to":""}`: "date_to",
		`{"since":"36h","dry_run":"yes"}`: "dry_run",
	} {
		d.request(authz.Admin, "POST", retryPath, body).wantFields(field)
	}
	d.request(authz.Admin, "POST", retryPath, `{"since":"x","error_code":"y"}`).wantFields("since", "error_code")
	d.wantRoles("POST", retryPath, object{"since": "1m"}, authz.Admin, authz.DataMonitor)

	d.request(authz.DataMonitor, "POST", retryPath, object{"since": "24h", "error_code": "emr_unavailable"}).want(200).wantAt(object{"requeued": 2.0, "dry_run": false})
	d.request(authz.Admin, "POST", retryPath, object{"since": "36h"}).want(200).wantAt(object{"requeued": 3.0})
	d.request(authz.Admin, "POST", retryPath, object{"since": "36h"}).want(200).wantAt(object{"requeued": 0.0})
	d.request(authz.Admin, "GET", "/fhir/transmissions/TXN-2026-900003/", nil).want(200).wantAt(object{
		"status": "pending", "attempt_count": 0.0, "error_code": nil, "error_message": nil, "next_retry_at": nil, "given_up": false, "remedy": nil, "diagnostics": nil,
	})
	d.request(authz.MA, "GET", "/fhir/status/", nil).want(200).wantAt(object{"queue.given_up": 0.0, "queue.pending": 5.0})

	var actors []string
	if err := d.app.DB().NewQuery("SELECT actor_role FROM audit_log WHERE event = 'emr.requeue' ORDER BY id").Column(&actors); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(actors, []string{"data_monitor", "admin"}) {
		t.Errorf("on record: %v", actors)
	}
}

// A requeued delivery is delivered at once, once, by the worker that the request wakes.
func TestRequeuedIsDelivered(t *testing.T) {
	d := newDelivering(t)
	id, observation := d.storeDeadLetter(900001, time.Hour, nil)
	d.request(authz.Admin, "POST", retryPath, object{"since": "2h"}).want(200).wantAt(object{"requeued": 1.0})
	if s := <-d.finished; s.TransmissionID != id || s.Failed() {
		t.Errorf("%+v", s)
	}
	d.request(authz.Nurse, "GET", "/fhir/transmissions/"+id+"/", nil).want(200).wantAt(object{"status": "transmitted"})
	d.request(authz.Nurse, "POST", "/fhir/observations/"+observation+"/transmit/", nil).want(400, "invalid_state")
	d.request(authz.Admin, "POST", retryPath, object{"since": "2h"}).want(200).wantAt(object{"requeued": 0.0})
}

// The list's filters combine with each other and with paging.
func TestTransmissionsByError(t *testing.T) {
	d := newDelivering(t)
	d.stopWorker()
	for i := range 25 {
		code := []string{emr.CodeUnavailable, emr.CodePatientNotFound}[i%2]
		d.storeDeadLetter(900001+i, time.Duration(i)*time.Hour, dbx.Params{"error_code": code})
	}
	d.storeDeadLetter(900100, time.Hour, dbx.Params{"next_retry_at": collections.FormatInstant(d.now.Add(time.Hour))})
	d.storeDeadLetter(900101, time.Hour, dbx.Params{"status": "transmitted", "error_code": "", "error_message": ""})
	d.storeDeadLetter(900102, time.Hour, dbx.Params{"error_code": "entered_in_error"})
	for filter, want := range map[string]float64{
		"": 28, "given_up=true": 25, "given_up=false": 3, "error_code=emr_unavailable": 14, "given_up=true&error_code=emr_unavailable": 13,
		"given_up=false&error_code=emr_unavailable": 1, "given_up=true&error_code=patient_not_found&page_size=5&page=3": 12,
		"given_up=true&status=failed": 25, "given_up=true&status=transmitted": 0, "given_up=true&error_code=entered_in_error": 0, "error_code=entered_in_error": 1,
		"given_up=true&date_from=2026-01-15T11:45:00Z": 3, "given_up=true&date_to=2026-01-14T13:45:00Z": 1, "given_up=true&patient_id=" + d.patient: 25,
		"given_up=true&error_code=timeout": 0, "status=failed&error_code=patient_not_found": 12,
	} {
		if got := d.request(authz.Nurse, "GET", "/fhir/transmissions/?"+filter, nil).want(200).at("count"); got != want {
			t.Errorf("%q finds %v, want %v", filter, got, want)
		}
	}
	page := d.request(authz.Nurse, "GET", "/fhir/transmissions/?given_up=true&page_size=10&page=3", nil).want(200)
	if rows, _ := page.at("results").([]any); len(rows) != 5 {
		t.Errorf("%d on the last page", len(rows))
	}
	d.request(authz.Nurse, "GET", "/fhir/transmissions/?given_up=perhaps&error_code=broken", nil).wantFields("given_up", "error_code")
	row := d.request(authz.Nurse, "GET", "/fhir/transmissions/?error_code=patient_not_found&page_size=1", nil).want(200).at("results").([]any)[0].(object)
	if remedy, _ := row["remedy"].(object); row["given_up"] != true || remedy["code"] != "correct_link" || remedy["text"] == "" {
		t.Errorf("%v", row)
	}
}

// The EMR's diagnostics are shown only to roles that may repair deliveries, and reading them is audited.
func TestEMRDiagnostics(t *testing.T) {
	d := newDelivering(t)
	d.emr.refuse(&emr.Error{Code: emr.CodeInvalidResource, Status: 422, Message: "Invalid FHIR resource: value", Diagnostics: phi.Text("Ada Lovelace weighs 80")})
	id := d.observe()
	d.request(authz.Provider, "POST", "/fhir/observations/"+id+"/transform/", nil).want(200)
	number := (<-d.finished).TransmissionID
	path := "/fhir/transmissions/" + number + "/"
	read := func() (n int) {
		if err := d.app.DB().NewQuery(`SELECT COUNT(*) FROM audit_log WHERE event = 'emr_words.read' AND resource_type = 'Transmission' AND resource_id = '` + number +
			`' AND patient = '` + d.patient + `'`).Row(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, role := range authz.Roles {
		if role == authz.Patient {
			continue
		}
		want, before := any(nil), read()
		if role == authz.Admin || role == authz.DataMonitor {
			want = "Ada Lovelace weighs 80"
		}
		answer := d.request(role, "GET", path, nil).want(200).wantAt(object{"diagnostics": want, "remedy.code": "agree_on_profile", "given_up": false})
		if noted := read() - before; noted != map[bool]int{true: 1}[want != nil] {
			t.Errorf("%s: %d lines in the trail", role, noted)
		}
		if want == nil && strings.Contains(answer.body, "weighs") {
			t.Errorf("%s reads %s", role, answer.body)
		}
	}
	if list := d.request(authz.Admin, "GET", "/fhir/transmissions/", nil).want(200); strings.Contains(list.body, "weighs") {
		t.Error("the list shows the words")
	}
	var stored string
	if err := d.app.DB().NewQuery("SELECT diagnostics FROM transmissions").Row(&stored); err != nil || stored == "" || strings.Contains(stored, "weighs") {
		t.Errorf("stored as %q, %v", stored, err)
	}
}

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/dbx"
)

// wantUnreadable checks that an answer is the contract's for a record with a value that cannot be decrypted.
func wantUnreadable(t *testing.T, a answer, record string) {
	t.Helper()
	var said struct {
		Detail, Code string
		RequestID    string `json:"request_id"`
	}
	if err := json.Unmarshal(a.body, &said); err != nil || a.status != http.StatusServiceUnavailable || said.Code != "record_unreadable" ||
		!strings.Contains(said.Detail, record) || said.RequestID == "" || said.RequestID != a.header.Get("X-Request-ID") {
		t.Errorf("%s answered %d, want 503 record_unreadable that names %q\n%s", a.request, a.status, record, a.body)
	}
	for _, word := range []string{"Broken", "Whole", "v1:", "v2:"} {
		if strings.Contains(string(a.body), word) {
			t.Errorf("%s shows %q\n%s", a.request, word, a.body)
		}
	}
}

// A patient with a damaged name: the record cannot be read, replaced or saved, nothing else fails, and no answer contains
// null for it.
func TestUnreadablePatient(t *testing.T) {
	t.Parallel()
	metrics := freeAddr(t)
	p := newPractice(t, "VIGIL_METRICS_ADDR="+metrics)
	p.serve(t, "")
	if samples, _ := scrape(t, metrics); len(samples) == 0 || sum(samples, "vigil_unreadable_values_total") != 0 {
		t.Errorf("from the start: %v", sum(samples, "vigil_unreadable_values_total"))
	} else if _, there := samples["vigil_unreadable_values_total"]; !there {
		t.Error("the metric is missing at the start")
	}
	const gatewayID = "GW-BROKEN"
	broken := p.patient(t, object{"last_name": "Broken", "gateway_patient_id": gatewayID, "phone": "555 010 0100"})
	whole := p.patient(t, object{"last_name": "Whole"})
	p.giveDevice(t, "CUFF-BROKEN", broken)
	if err := p.Stop(t); err != nil {
		t.Fatal(err)
	}
	db := p.writable(t)
	damaged := damage(t, db, "patients", "last_name", broken)
	row := rowOf(t, db, "patients", broken)
	p.serve(t, "") // the name index is built nevertheless
	admin := p.Admin(t)
	path := "/api/v1/patients/" + broken + "/"
	body := object{"first_name": "Other", "last_name": "Name", "date_of_birth": "1950-01-02", "gender": "female"}

	name := "patient " + broken
	wantUnreadable(t, p.get(t, path, admin), name)
	wantUnreadable(t, p.send(t, http.MethodPut, path, admin, encode(t, body)), name)
	wantUnreadable(t, p.get(t, "/api/v1/fhir/patients/"+broken+"/", admin), name)
	wantUnreadable(t, p.post(t, path+"archive/", admin, object{"reason": "moved"}), name)
	super, native := p.Superuser(t), "/api/collections/patients/records/"
	wantUnreadable(t, p.get(t, native+broken, super), name)
	for _, change := range []object{
		{"last_name": "Name"}, {"last_name": nil}, {"last_name": ""}, {"gender": "other"}, {"first_name": "Other", "last_name": nil, "gender": "other", "mrn": "M-NEW"},
	} {
		wantUnreadable(t, p.send(t, http.MethodPatch, native+broken, super, encode(t, change)), name)
	}
	for column, value := range rowOf(t, db, "patients", broken) {
		if row[column] != value {
			t.Errorf("%s was changed", column)
		}
	}

	list := p.get(t, "/api/v1/patients/", admin).expect(t, 200)
	wantAt(t, list, object{"unreadable": 1.0, "count": 2.0, "results.0.id": whole, "results.0.last_name": "Whole", "results.1": nil})
	dashboard := p.get(t, strings.TrimSuffix(native, "/"), super).expect(t, 200)
	wantAt(t, dashboard, object{"unreadable": 1.0, "items.0.id": whole, "items.1": nil})
	if search := p.get(t, "/api/v1/patients/?search=whole", admin).expect(t, 200); strings.Contains(string(search.body), "unreadable") {
		t.Errorf("a complete list reports left-out records\n%s", search.body)
	}

	// Readings are stored, alert, notify and rank; only the name is missing, and the answers mark it as unreadable.
	reading := p.post(t, "/api/v1/ingestion/blood-pressure/", admin, bloodPressure(broken, 230, 140, now().Add(-0*time.Minute))).expect(t, 201)
	p.signed(t, measurement(gatewayID, "CUFF-BROKEN", 231, 140, now().Add(-1*time.Minute))).expect(t, 200)
	for _, where := range []string{"/api/v1/triage/patients/", "/api/v1/alerts/", "/api/v1/escalations/"} {
		a := p.get(t, where, admin).expect(t, 200)
		wantAt(t, a, object{"results.0.patient_id": broken, "results.0.patient_name": "[unreadable]"})
	}
	wantUnreadable(t, p.get(t, "/api/v1/fhir/observations/"+text(t, reading, "id")+"/", admin), name)
	p.get(t, "/api/v1/ingestion/observations/?patient_id="+broken, admin).expect(t, 200)
	p.get(t, "/api/v1/notifications/", admin).expect(t, 200)

	if lastNameColumn(t, db, broken) != damaged {
		t.Error("the damaged value was rewritten")
	}
	if samples, _ := scrape(t, metrics); sum(samples, "vigil_unreadable_values_total") < 10 {
		t.Errorf("counted %v", sum(samples, "vigil_unreadable_values_total"))
	}
	if said := p.Output(); !strings.Contains(said, broken) || strings.Contains(said, "Broken\"") {
		t.Error("the log does not name the record, or names the patient")
	}
}

// A record that is only left out, or shown without its name, is logged once, by its id.
func TestUnreadableIsNamedOnce(t *testing.T) {
	t.Parallel()
	metrics := freeAddr(t)
	p := newPractice(t, "VIGIL_METRICS_ADDR="+metrics)
	p.serve(t, "")
	admin := p.Admin(t)
	var ids []string
	for _, name := range []string{"Broken", "Brokener"} {
		ids = append(ids, p.patient(t, object{"last_name": name, "phone": "555 010 0100"}))
	}
	p.patient(t, object{"last_name": "Whole"})
	db := p.writable(t)
	damage(t, db, "patients", "phone", ids[0])
	damage(t, db, "patients", "last_name", ids[1])
	count := func() float64 {
		t.Helper()
		samples, _ := scrape(t, metrics)
		return sum(samples, "vigil_unreadable_values_total")
	}
	for range 3 {
		before := count()
		wantAt(t, p.get(t, "/api/v1/patients/", admin).expect(t, 200), object{"unreadable": 2.0})
		if n := count() - before; n != 2 {
			t.Errorf("a list with two such values counts %v", n)
		}
	}
	for _, id := range ids {
		line := `"msg":"a stored value cannot be opened","collection":"patients","id":"` + id + `"}`
		if n := strings.Count(p.Output(), line); n != 1 || !strings.Contains(p.Output(), `"level":"ERROR",`+line) {
			t.Errorf("%s is named %d times", id, n)
		}
	}
}

// Every sealed column of every record that the contract returns alone or in a list.
func TestUnreadableRecords(t *testing.T) {
	t.Parallel()
	p := newPractice(t)
	p.serve(t, "")
	admin := p.Admin(t)
	patient := p.patient(t, object{"last_name": "Whole"})
	p.post(t, "/api/v1/ingestion/blood-pressure/", admin, bloodPressure(patient, 230, 140, now().Add(-0*time.Minute))).expect(t, 201)
	consents := "/api/v1/patients/" + patient + "/consents/"
	consent := p.post(t, consents, admin, object{
		"type": "rpm", "method": "written", "granted_at": "2026-01-01T10:00:00Z", "document_reference": "scan 1",
	}).expect(t, 201)
	db := p.writable(t)
	var alertID, escalationID string
	if err := db.NewQuery("SELECT id FROM alerts").Row(&alertID); err != nil {
		t.Fatal(err)
	}
	if err := db.NewQuery("SELECT id FROM escalations").Row(&escalationID); err != nil {
		t.Fatal(err)
	}
	one := func(id string) string { return strings.TrimLeft(id, "0") }
	consentID := fmt.Sprintf("%015.0f", at(t, consent, "id"))
	for _, tc := range []struct{ table, column, id, list, single, name string }{
		{"alerts", "message", alertID, "/api/v1/alerts/", "/api/v1/alerts/" + one(alertID) + "/", "alert " + one(alertID)},
		{"escalations", "reason", escalationID, "/api/v1/escalations/", "/api/v1/escalations/" + one(escalationID) + "/", "escalation " + one(escalationID)},
		{"consents", "document_reference", consentID, consents, "", ""},
	} {
		before := rowOf(t, db, tc.table, tc.id)
		damage(t, db, tc.table, tc.column, tc.id)
		a := p.get(t, tc.list, admin).expect(t, 200)
		wantAt(t, a, object{"unreadable": 1.0, "count": 1.0, "results.0": nil})
		if tc.single != "" {
			wantUnreadable(t, p.get(t, tc.single, admin), tc.name)
		}
		if _, err := db.Update(tc.table, dbx.Params{tc.column: before[tc.column]}, dbx.HashExp{"id": tc.id}).Execute(); err != nil {
			t.Fatal(err)
		}
		wantAt(t, p.get(t, tc.list, admin).expect(t, 200), object{"unreadable": nil, "count": 1.0})
	}
}

// An unreadable account: it cannot be read or signed in to, and the others are listed.
func TestUnreadableAccount(t *testing.T) {
	t.Parallel()
	p := newPractice(t)
	p.serve(t, "")
	admin := p.Admin(t)
	token := p.user(t, "nurse", object{"first_name": "Nina", "last_name": "Broken"})
	db := p.writable(t)
	var id string
	if err := db.NewQuery("SELECT id FROM users WHERE email = 'nurse@vigil.test'").Row(&id); err != nil {
		t.Fatal(err)
	}
	number := strings.TrimLeft(id, "0")
	damage(t, db, "users", "first_name", id)
	path, name := "/api/v1/users/"+number+"/", "user "+number
	wantUnreadable(t, p.get(t, path, admin), name)
	wantUnreadable(t, p.send(t, http.MethodPatch, path, admin, `{"first_name":"New"}`), name)
	wantUnreadable(t, p.get(t, "/api/v1/auth/profile/", token), name)
	wantUnreadable(t, p.post(t, "/api/v1/auth/login/", "", object{"email": "nurse@vigil.test", "password": password}), name)
	p.post(t, "/api/v1/auth/login/", "", object{"email": "nurse@vigil.test", "password": "Wrong-Horse-42!"}).expect(t, 401)
	wantAt(t, p.get(t, "/api/v1/users/", admin).expect(t, 200), object{"count": 2.0, "unreadable": 1.0, "results.0.email": adminEmail, "results.1": nil})
	for page, results := range map[string]any{"1": adminEmail, "2": nil} { // an account without a readable name is on no page
		got := p.get(t, "/api/v1/users/?page_size=1&page="+page, admin).expect(t, 200)
		wantAt(t, got, object{"count": 2.0, "unreadable": 1.0, "results.0.email": results, "results.1": nil})
	}

	// It can still be logged out.
	before := rowOf(t, db, "users", id)
	p.post(t, path+"logout/", admin, nil).expect(t, 200)
	wantAt(t, p.get(t, "/api/v1/auth/profile/", token).expect(t, 401), object{"code": "token_invalid"})
	wantAt(t, p.post(t, path+"deactivate/", admin, nil).expect(t, 200), object{"is_active": false, "first_name": "[unreadable]", "last_name": "Broken"})
	if after := rowOf(t, db, "users", id); after["first_name"] != before["first_name"] || after["last_name"] != before["last_name"] {
		t.Error("a name was rewritten")
	}

	// A second factor that cannot be decrypted is removed.
	if _, err := db.NewQuery("UPDATE users SET two_factor_enabled = TRUE, totp_secret = {:other} WHERE id = {:id}").
		Bind(dbx.Params{"other": before["last_name"], "id": id}).Execute(); err != nil {
		t.Fatal(err)
	}
	p.post(t, path+"2fa/reset/", admin, nil).expect(t, 200)
	if after := rowOf(t, db, "users", id); after["totp_secret"] != "" {
		t.Error("the second factor is still there")
	}
}

// rowOf returns a row as stored.
func rowOf(t *testing.T, db *dbx.DB, table, id string) map[string]string {
	t.Helper()
	var row dbx.NullStringMap
	if err := db.Select().From(table).Where(dbx.HashExp{"id": id}).One(&row); err != nil {
		t.Fatal(err)
	}
	values := map[string]string{}
	for name, value := range row {
		values[name] = value.String
	}
	return values
}

package routes_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/routes"
)

// postWithKey sends a POST under a key and returns the whole answer, checked against the contract.
func (c *clinic) postWithKey(token, path, body string, keys ...string) *httptest.ResponseRecorder {
	c.t.Helper()
	r := httptest.NewRequestWithContext(c.t.Context(), http.MethodPost, "/api/v1"+path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	r.Header["Idempotency-Key"] = keys
	rec := httptest.NewRecorder()
	c.handler.ServeHTTP(rec, r)
	vigiltest.CheckResponse(c.t, http.MethodPost, r.URL.Path, rec.Code, rec.Header(), rec.Body.Bytes())
	return rec
}

func (c *clinic) tokenOf(role authz.Role) string { return vigiltest.Token(c.t, c.people[role], c.now) }

// answered checks an answer: its status, its error code, and whether it is a stored one.
func answered(t *testing.T, rec *httptest.ResponseRecorder, status int, code string, again bool) string {
	t.Helper()
	if rec.Code != status || code != "" && !strings.Contains(rec.Body.String(), `"code":"`+code+`"`) || (rec.Header().Get("Idempotent-Replayed") == "true") != again {
		t.Errorf("answered %d, want %d %s, given before: %t\n%v\n%s", rec.Code, status, code, again, rec.Header(), rec.Body)
	}
	return rec.Body.String()
}

const ada = `{"first_name":"Ada","last_name":"Lovelace","date_of_birth":"1955-12-10","gender":"female"}`

// A request repeated under its key runs once per caller, for one day. Source: docs/decisions/conventions.md,
// "Idempotency keys".
func TestStoryIdempotencyKey(t *testing.T) {
	c := newClinic(t)
	nurse := c.tokenOf(authz.Nurse)
	before := vigiltest.RowCounts(t, c.app)
	first := answered(t, c.postWithKey(nurse, "/patients/", ada, "k-1"), 201, "", false)
	for _, key := range []string{"k-1", `"k-1"`, "  k-1 "} {
		rec := c.postWithKey(nurse, "/patients", ada, key)
		if got := answered(t, rec, 201, "", true); got != first {
			t.Errorf("%s\nbecame\n%s", first, got)
		}
		if got := rec.Header().Get("Content-Type"); got != "application/json" {
			t.Errorf("content type %q", got)
		}
	}
	added := vigiltest.RowsAdded(t, c.app, before)
	if added["patients"] != 1 || added["audit_log"] != 1 {
		t.Errorf("one request sent four times added %v", added)
	}

	// A different body under the same key.
	answered(t, c.postWithKey(nurse, "/patients/", strings.Replace(ada, "Ada", "Eva", 1), "k-1"), 422, "idempotency_key_reused", false)
	answered(t, c.postWithKey(nurse, "/escalations/", ada, "k-1"), 422, "idempotency_key_reused", false)

	// Another caller's equal key is independent, and so is a request without one.
	second := answered(t, c.postWithKey(c.tokenOf(authz.Provider), "/patients/", ada, "k-1"), 201, "", false)
	machine := c.token(c.addClient(object{"scopes": []string{"patients.write"}}), "patients.write")
	third := answered(t, c.postWithKey(machine, "/patients/", ada, "k-1"), 201, "", false)
	if second == first || third == first || third == second {
		t.Error("one caller received another caller's answer")
	}
	if again := answered(t, c.postWithKey(machine, "/patients/", ada, "k-1"), 201, "", true); again != third {
		t.Error("a client did not receive its own answer")
	}

	// The key is kept for one day.
	c.now = c.now.Add(24*time.Hour - time.Second)
	answered(t, c.postWithKey(c.tokenOf(authz.Nurse), "/patients/", ada, "k-1"), 201, "", true)
	c.now = c.now.Add(time.Second)
	if got := answered(t, c.postWithKey(c.tokenOf(authz.Nurse), "/patients/", ada, "k-1"), 201, "", false); got == first {
		t.Error("after a day nothing was created")
	}
	answered(t, c.postWithKey(c.tokenOf(authz.Nurse), "/patients/", ada, "k-1"), 201, "", true)
}

// Every authenticated POST honors the key, and no other request does.
func TestEveryPostTakesAKey(t *testing.T) {
	c := newClinic(t)
	keyed := 0
	for _, row := range routes.Rows() {
		if row.Method != http.MethodPost || !strings.HasPrefix(row.Path, "/api/v1/") {
			continue
		}
		role := authz.Admin
		path := strings.TrimPrefix(pathParameter.ReplaceAllString(row.Path, "999999"), "/api/v1")
		rec := c.postWithKey(c.tokenOf(role), path, "{}", strings.Repeat("k", 256))
		complains := rec.Code == 400 && strings.Contains(rec.Body.String(), `"Idempotency-Key"`)
		if open := row.Public || row.Gateway; complains == open && rec.Code != 403 {
			t.Errorf("%s answers %d to a key that is too long: %s", row.Path, rec.Code, rec.Body)
		} else if complains {
			keyed++
		}
	}
	if keyed < 80 {
		t.Errorf("%d POSTs accept a key", keyed)
	}
}

func TestMalformedKeys(t *testing.T) {
	c := newClinic(t)
	for name, keys := range map[string][]string{
		"empty": {""}, "blank": {"  "}, "empty string": {`""`}, "too long": {strings.Repeat("x", 256)}, "umlaut": {"schlüssel"}, "control": {"a\x01b"},
		"two": {"a", "b"}, "open": {`"abc`}, "more after it": {`"abc", "def"`}, "bad escape": {`"a\b"`}, "ends in escape": {`"a\`}, "delete": {"a\x7f"},
	} {
		rec := c.postWithKey(c.tokenOf(authz.Nurse), "/patients/", ada, keys...)
		if answered(t, rec, 400, "validation_error", false); !strings.Contains(rec.Body.String(), `"field_errors":{"Idempotency-Key":[`) {
			t.Errorf("%s: %s", name, rec.Body)
		}
	}
	for _, key := range []string{strings.Repeat("x", 255), `"` + strings.Repeat(`\"`, 255) + `"`, "a b,c", "8e03978e-40d5-43e8-bc93-6894a57f9324"} {
		answered(t, c.postWithKey(c.tokenOf(authz.Nurse), "/patients/", ada, key), 201, "", false)
	}
	if n := len(c.queryColumn("SELECT id FROM patients")); n != 4 {
		t.Errorf("%d patients", n)
	}
}

// A stored refusal is returned again; a failure or a refusal about the caller is tried again.
func TestWhichAnswersAreStored(t *testing.T) {
	c := newClinic(t)
	nurse := c.tokenOf(authz.Nurse)
	bad := answered(t, c.postWithKey(nurse, "/patients/", `{"first_name":"Ada"}`, "bad"), 400, "validation_error", false)
	if answered(t, c.postWithKey(nurse, "/patients/", `{"first_name":"Ada"}`, "bad"), 400, "validation_error", true) != bad {
		t.Error("another refusal")
	}
	answered(t, c.postWithKey(nurse, "/patients/import_selected_from_emr/", "{}", "403"), 403, "permission_denied", false)

	failing := true
	c.app.OnRecordCreate(collections.Patients).BindFunc(func(e *core.RecordEvent) error {
		if failing {
			return errors.New("the disk is full")
		}
		return e.Next()
	})
	answered(t, c.postWithKey(nurse, "/patients/", ada, "500"), 500, "server_error", false)
	answered(t, c.postWithKey(nurse, "/patients/", ada, "500"), 500, "server_error", false)
	failing = false
	answered(t, c.postWithKey(nurse, "/patients/", ada, "500"), 201, "", false)
	answered(t, c.postWithKey(nurse, "/patients/", ada, "500"), 201, "", true)
}

// A stored answer is returned only to a caller who may still see it.
func TestKeyAfterLossOfPermission(t *testing.T) {
	c := newClinic(t, func(e *routes.Engines) { e.RestrictToCareTeam = true })
	nurse := c.people[authz.Nurse]
	id := c.enroll(nil)
	c.request(authz.Admin, "PUT", "/patients/"+id+"/care-team/", object{"members": []object{{"user_id": nurse.Number()}}}).want(200)
	body := fmt.Sprintf(`{"patient_id":%q,"priority":"routine","reason":"Swollen ankles"}`, id)
	answered(t, c.postWithKey(c.tokenOf(authz.Nurse), "/escalations/", body, "k"), 201, "", false)
	answered(t, c.postWithKey(c.tokenOf(authz.Nurse), "/escalations/", body, "k"), 201, "", true)
	c.request(authz.Admin, "PUT", "/patients/"+id+"/care-team/", object{"members": []object{}}).want(200)
	answered(t, c.postWithKey(c.tokenOf(authz.Nurse), "/escalations/", body, "k"), 403, "permission_denied", false)
	c.request(authz.Admin, "PUT", "/patients/"+id+"/care-team/", object{"members": []object{{"user_id": nurse.Number()}}}).want(200)
	answered(t, c.postWithKey(c.tokenOf(authz.Nurse), "/escalations/", body, "k"), 201, "", true)

	users := "/users/" + fmt.Sprint(nurse.Number()) + "/"
	c.request(authz.Admin, "PATCH", users, object{"role": "ma", "current_password": vigiltest.Password}).want(200)
	answered(t, c.postWithKey(c.tokenOf(authz.Nurse), "/escalations/", body, "k"), 403, "permission_denied", false) // a medical assistant may open one, too
	c.request(authz.Admin, "PATCH", users, object{"role": "data_monitor", "current_password": vigiltest.Password}).want(200)
	answered(t, c.postWithKey(c.tokenOf(authz.Nurse), "/escalations/", body, "k"), 403, "permission_denied", false)
	c.request(authz.Admin, "POST", users+"deactivate/", nil).want(200)
	answered(t, c.postWithKey(c.tokenOf(authz.Nurse), "/escalations/", body, "k"), 401, "", false)
	if n := len(c.queryColumn("SELECT id FROM escalations")); n != 1 {
		t.Errorf("%d escalations", n)
	}

	m := c.addClient(object{"scopes": []string{"patients.write", "ingest"}})
	both := c.token(m, "patients.write ingest")
	answered(t, c.postWithKey(both, "/patients/", ada, "k"), 201, "", false)
	answered(t, c.postWithKey(c.token(m, "ingest"), "/patients/", ada, "k"), 403, "insufficient_scope", false)
	c.request(authz.Admin, "DELETE", "/clients/"+m.id+"/", nil).want(204)
	answered(t, c.postWithKey(both, "/patients/", ada, "k"), 401, "", false)
}

// Fifty concurrent requests with one key have one effect; each receives that answer or is advised to wait.
func TestRaceWithOneKey(t *testing.T) {
	c := newClinic(t)
	nurse := c.tokenOf(authz.Nurse)
	before := vigiltest.RowCounts(t, c.app)
	var run sync.WaitGroup
	answers := make([]*httptest.ResponseRecorder, 50)
	for i := range answers {
		run.Go(func() { answers[i] = c.postWithKey(nurse, "/patients/", ada, "race") })
	}
	run.Wait()
	bodies, first := map[string]bool{}, 0
	for _, rec := range answers {
		switch again := rec.Header().Get("Idempotent-Replayed") == "true"; {
		case rec.Code == 201:
			if bodies[rec.Body.String()] = true; !again {
				first++
			}
		case rec.Code != 409 || !strings.Contains(rec.Body.String(), "idempotency_in_progress") || rec.Header().Get("Retry-After") == "":
			t.Errorf("%d %v %s", rec.Code, rec.Header(), rec.Body)
		}
	}
	if added := vigiltest.RowsAdded(t, c.app, before); added["patients"] != 1 || len(bodies) != 1 || first != 1 {
		t.Errorf("%v, %d bodies, %d first answers", added, len(bodies), first)
	}
	answered(t, c.postWithKey(nurse, "/patients/", ada, "race"), 201, "", true)
}

// A stored answer can be opened only with the caller's key and contains neither names nor one-time secrets in plain
// text. It is removed after a day.
func TestStoredAnswersAreSealed(t *testing.T) {
	c := newClinic(t)
	admin := c.tokenOf(authz.Admin)
	made := answered(t, c.postWithKey(admin, "/clients/", `{"name":"Device cloud","scopes":["ingest"],"current_password":"`+vigiltest.Password+`"}`, "a key of the caller"), 201, "", false)
	_, secret, _ := strings.Cut(made, `"client_secret":"`)
	secret, _, _ = strings.Cut(secret, `"`)
	if answered(t, c.postWithKey(admin, "/clients/", `{"name":"Device cloud","scopes":["ingest"],"current_password":"`+vigiltest.Password+`"}`, "a key of the caller"), 201, "", true) != made {
		t.Error("another secret")
	}
	var row struct{ ID, Request, Answer string }
	if err := c.app.DB().NewQuery("SELECT id, request, answer FROM idempotency_keys").One(&row); err != nil {
		t.Fatal(err)
	}
	ours, err := collections.OpenValue(row.Answer, collections.IdempotencyKeys, "answer", row.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, kept := range []string{row.ID, row.Request, row.Answer, ours} {
		if len(secret) < 20 || strings.Contains(kept, secret) || strings.Contains(kept, "Device cloud") || strings.Contains(kept, "a key of the caller") {
			t.Errorf("%q is kept in the open", kept)
		}
	}
	for _, run := range []struct {
		after time.Duration
		gone  int
	}{{24*time.Hour - time.Second, 0}, {24 * time.Hour, 1}, {25 * time.Hour, 0}} {
		if gone, err := collections.PurgeIdempotencyKeys(context.Background(), c.app, c.now.Add(run.after)); gone != run.gone || err != nil {
			t.Errorf("after %s %d are gone (%v)", run.after, gone, err)
		}
	}
}

// A repeated reading under a key returns the first answer, not a duplicate error; a request that a killed process left
// unfinished runs again, once.
func TestReadingsUnderAKey(t *testing.T) {
	c := newIngestingClinic(t)
	patient := c.enroll(nil)
	body := fmt.Sprintf(`{"patient_id":%q,"weight_kg":80,"measured_at":%q}`, patient, c.now.Format(time.RFC3339))
	nurse := c.tokenOf(authz.Nurse)
	first := answered(t, c.postWithKey(nurse, "/ingestion/weight/", body, "w"), 201, "", false)
	if answered(t, c.postWithKey(nurse, "/ingestion/weight/", body, "w"), 201, "", true) != first {
		t.Error("another answer")
	}
	if _, err := c.app.DB().Delete(collections.IdempotencyKeys, dbx.HashExp{}).Execute(); err != nil { // killed between the reading and its answer
		t.Fatal(err)
	}
	if got := answered(t, c.postWithKey(nurse, "/ingestion/weight/", body, "w"), 200, "", false); !strings.Contains(got, `"duplicate":true`) {
		t.Error(got)
	}
	if n := len(c.queryColumn("SELECT id FROM observations")); n != 1 {
		t.Errorf("%d observations", n)
	}
}

package hooks_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// trail returns the entries of an event, newest first.
func trail(t *testing.T, app core.App, event audit.Event) []audit.StoredEntry {
	t.Helper()
	entries, _, err := audit.List(app, audit.Filter{Event: string(event)}, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

// changed returns an entry's changes as JSON.
func changed(t *testing.T, entry audit.StoredEntry) string {
	t.Helper()
	plain := map[string]map[string]any{}
	for name, change := range entry.Changes {
		plain[name] = map[string]any{"old": change.Old, "new": change.New}
	}
	raw, err := json.Marshal(plain)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// lastChange returns the changes of the last entry about a patient.
func lastChange(t *testing.T, app core.App, patient string) string {
	t.Helper()
	entries, _, err := audit.List(app, audit.Filter{PatientID: patient}, 0, 1)
	if err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
	return changed(t, entries[0])
}

// A dashboard change is audited with old and new values; for secrets only the names.
func TestDashboardChangesAreAudited(t *testing.T) {
	d := newDashboard(t)
	user := vigiltest.User(t, d.app, authz.Nurse)
	path := "/api/collections/users/records/" + user.Id
	patch := func(body string) {
		t.Helper()
		if answer := d.as(d.token, http.MethodPatch, path, body); answer.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", body, answer.Code, answer.Body)
		}
	}
	patch(`{"role":"admin"}`)
	roles := trail(t, d.app, audit.UserRoleChange)
	if len(roles) != 1 || roles[0].ActorType != "superuser" || changed(t, roles[0]) != `{"role":{"new":"admin","old":"nurse"}}` {
		t.Errorf("a role is recorded as %+v", roles)
	}
	if updates := trail(t, d.app, audit.UserUpdate); len(updates) != 0 {
		t.Errorf("and once more as %+v", updates)
	}
	patch(`{"first_name":"Grace","time_zone":"Europe/Berlin","password":"Another-Horse-43!","passwordConfirm":"Another-Horse-43!"}`)
	updates := trail(t, d.app, audit.UserUpdate)
	if len(updates) != 1 {
		t.Fatalf("recorded %+v", updates)
	}
	got := changed(t, updates[0])
	for _, want := range []string{`"first_name":{"new":"Grace","old":`, `"time_zone":{"new":"Europe/Berlin","old":""}`, `"password":{"new":null,"old":null}`, `"tokenKey":{"new":null,"old":null}`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
	if strings.Contains(got, "Horse") || strings.Contains(got, "$2a$") || strings.Contains(got, "updated_at") {
		t.Errorf("recorded %s", got)
	}
	if strings.Contains(updates[0].AuditRow.Changes, "Grace") {
		t.Error("changes are readable on disk")
	}
	patch(`{"is_active":false}`)
	if ended := trail(t, d.app, audit.UserDeactivate); len(ended) != 1 || changed(t, ended[0]) != `{"is_active":{"new":false,"old":true}}` {
		t.Errorf("the end of an account is recorded as %+v", ended)
	}
}

// A creation and a deletion are audited with all values.
func TestDashboardCreateAndDeleteAreAudited(t *testing.T) {
	d := newDashboard(t)
	answer := d.as(d.token, http.MethodPost, "/api/collections/payers/records", `{"name":"Elm Health","payer_code":"ELM1"}`)
	var payer struct{ ID string }
	if err := json.Unmarshal(answer.Body.Bytes(), &payer); err != nil || answer.Code != http.StatusOK {
		t.Fatalf("%d %s", answer.Code, answer.Body)
	}
	if answer := d.as(d.token, http.MethodDelete, "/api/collections/payers/records/"+payer.ID, ""); answer.Code != http.StatusNoContent {
		t.Fatalf("%d %s", answer.Code, answer.Body)
	}
	entries := trail(t, d.app, audit.SettingsUpdate)
	if len(entries) != 2 || !strings.Contains(changed(t, entries[1]), `"name":{"new":"Elm Health","old":""}`) || !strings.Contains(changed(t, entries[0]), `"name":{"new":"","old":"Elm Health"}`) {
		t.Errorf("recorded %+v", entries)
	}
}

// A collection cannot be changed through PocketBase's API, and attempts are audited.
func TestSchemaChangesAreRefused(t *testing.T) {
	for name, test := range map[string]struct{ method, path, body, collection, what string }{
		"public list":     {"PATCH", "patients", `{"listRule":""}`, "patients", "listRule"},
		"public by id":    {"PATCH", "pbc_1820489269", `{"viewRule":"","name":"other"}`, "patients", "viewRule"},
		"sign-in":         {"PATCH", "users", `{"passwordAuth":{"enabled":true}}`, "users", "passwordAuth"},
		"life of a token": {"PATCH", "_superusers", `{"authToken":{"duration":94670777}}`, "_superusers", "authToken"},
		"field shown":     {"PATCH", "users", `{"fields":[{"name":"totp_secret","type":"phi","purpose":"users.totp_secret","hidden":false}]}`, "users", "fields.totp_secret"},
		"a view":          {"POST", "", `{"name":"leak","type":"view","listRule":"","viewQuery":"SELECT id, email FROM users"}`, "leak", "listRule"},
		"a private one":   {"POST", "", `{"name":"notes","type":"base"}`, "notes", "type"},
		"removal":         {"DELETE", "patients", ``, "patients", ""},
		"import":          {"PUT", "import", `{"collections":[{"name":"leak","type":"base","listRule":""}],"deleteMissing":true}`, "", "import"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDashboard(t)
			before, err := d.app.FindAllCollections()
			if err != nil {
				t.Fatal(err)
			}
			answer := d.as(d.token, test.method, strings.TrimSuffix("/api/collections/"+test.path, "/"), test.body)
			if answer.Code != http.StatusForbidden || !strings.Contains(answer.Body.String(), "belong to the program") {
				t.Fatalf("%d %s", answer.Code, answer.Body)
			}
			after, err := d.app.FindAllCollections()
			if err != nil || len(after) != len(before) {
				t.Fatal(len(after), err)
			}
			for i := range after {
				if after[i].String() != before[i].String() {
					t.Errorf("%s was changed", after[i].Name)
				}
			}
			tried := trail(t, d.app, audit.RulesRefused)
			if len(tried) != 1 || tried[0].ActorType != "superuser" || tried[0].Outcome != string(audit.MinorFailure) || tried[0].ResourceID != test.collection {
				t.Fatalf("recorded %+v", tried)
			}
			if _, recorded := tried[0].Changes[test.what]; !recorded && test.what != "" {
				t.Errorf("recorded %s", changed(t, tried[0]))
			}
			if answer := d.as("", http.MethodGet, "/api/collections/patients/records", ""); answer.Code != http.StatusForbidden {
				t.Errorf("patients are shown to a guest: %d", answer.Code)
			}
		})
	}
}

// PocketBase's settings cannot be changed, except the addresses of superusers; changes are audited by name.
func TestSettingsChangesAreRefused(t *testing.T) {
	d := newDashboard(t)
	for _, body := range []string{
		`{"backups":{"cron":"* * * * *","cronMaxKeep":1}}`, `{"batch":{"enabled":true,"maxRequests":50,"timeout":3}}`, `{"rateLimits":{"enabled":true}}`,
		`{"trustedProxy":{"headers":["X-Forwarded-For"],"useLeftmostIP":true}}`, `{"logs":{"maxDays":7,"minLevel":-4,"logIP":true}}`, `{"meta":{"hideControls":true,"appName":"Other"}}`,
		`{"smtp":{"enabled":true,"host":"evil.test","port":25,"username":"u","password":"p"}}`, `{"superuserIPs":[],"batch":{"enabled":true,"maxRequests":1,"timeout":1}}`,
		`{"s3":{"enabled":true,"bucket":"b","region":"r","endpoint":"https://evil.test","accessKey":"a","secret":"hush-hush"}}`,
	} {
		was := len(trail(t, d.app, audit.SettingsRefused))
		answer := d.as(d.token, http.MethodPatch, "/api/settings", body)
		if answer.Code != http.StatusForbidden || !strings.Contains(answer.Body.String(), "service's own settings") {
			t.Errorf("%s: %d %s", body, answer.Code, answer.Body)
		}
		tried := trail(t, d.app, audit.SettingsRefused)
		if len(tried) != was+1 || tried[0].ActorType != "superuser" || strings.Contains(changed(t, tried[0]), "hush") {
			t.Errorf("%s is recorded as %+v", body, tried)
		}
	}
	if answer := d.as(d.token, http.MethodPatch, "/api/settings", `{"superuserIPs":["192.0.2.1","127.0.0.1"]}`); answer.Code != http.StatusOK {
		t.Errorf("addresses of superusers: %d %s", answer.Code, answer.Body)
	}
	if made := trail(t, d.app, audit.SettingsUpdate); len(made) != 1 || changed(t, made[0]) != `{"sections":{"new":["superuserIPs"],"old":null}}` {
		t.Errorf("recorded %+v", made)
	}
}

// PocketBase's own backup and file routes answer 404, and its backup fails in code.
func TestNativeBackupRoutesAreClosed(t *testing.T) {
	d := newDashboard(t)
	for _, request := range []string{
		"GET /api/backups", "POST /api/backups", "POST /api/backups/upload", "GET /api/backups/x.zip", "DELETE /api/backups/x.zip",
		"POST /api/backups/x.zip/restore", "POST /api/files/token", "GET /api/files/users/x/y.png",
	} {
		method, path, _ := strings.Cut(request, " ")
		if answer := d.as(d.token, method, path, "{}"); answer.Code != http.StatusNotFound {
			t.Errorf("%s: %d %s", request, answer.Code, answer.Body)
		}
	}
	if err := d.app.CreateBackup(t.Context(), "x.zip"); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("made by code: %v", err)
	}
}

package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// requestNative requests one of PocketBase's own routes, which the contract does not list.
func (p *practice) requestNative(t *testing.T, request, token string, body object) answer {
	t.Helper()
	method, path, _ := strings.Cut(request, " ")
	asked, err := http.NewRequestWithContext(t.Context(), method, p.URL+path, strings.NewReader(encode(t, body)))
	if err != nil {
		t.Fatal(err)
	}
	asked.Header.Set("Content-Type", "application/json")
	asked.Header.Set("Authorization", token)
	return sendRequest(t, asked)
}

// Changes to PocketBase's collection rules do not last, whether made in the dashboard or by SQL.
func TestRulesDoNotDrift(t *testing.T) {
	p := newPractice(t).serve(t, "")
	root := p.Superuser(t)
	refused := p.requestNative(t, "PATCH /api/collections/patients", root, object{"listRule": ""}).expect(t, 403)
	if !strings.Contains(string(refused.body), "belong to the program") {
		t.Errorf("the refusal for the dashboard is %s", refused.body)
	}
	p.requestNative(t, "PATCH /api/settings", root, object{"backups": object{"cron": "* * * * *", "cronMaxKeep": 1}}).expect(t, 403)
	for _, request := range []string{"GET /api/backups", "POST /api/backups", "GET /api/backups/x.zip", "POST /api/backups/x.zip/restore", "POST /api/files/token"} {
		p.requestNative(t, request, root, object{}).expect(t, 404)
	}
	tried := p.get(t, "/api/v1/audit/events/?event=rules.refused", p.Admin(t)).expect(t, 200)
	wantAt(t, tried, object{"count": 1.0, "results.0.resource_id": "patients", "results.0.actor_type": "superuser", "results.0.actor_email": superuserEmail})
	wantAt(t, p.get(t, "/api/v1/audit/events/?event=settings.refused", p.Admin(t)).expect(t, 200), object{"count": 1.0})
	if err := p.Stop(t); err != nil {
		t.Fatal(err)
	}

	p.tamper(t, `UPDATE _collections SET listRule = '', viewRule = '' WHERE name = 'patients'`,
		`UPDATE _collections SET options = json_set(options, '$.passwordAuth.enabled', json('true'), '$.authRule', '') WHERE name = 'users'`,
		`INSERT INTO _collections (id, type, name, fields, listRule, options) VALUES ('pbc_leak', 'view', 'leak', '[]', '', '{"viewQuery":"SELECT id FROM patients"}')`,
		`CREATE VIEW leak AS SELECT id FROM patients`)
	p.serve(t, "")
	for _, path := range []string{"/api/collections/patients/records", "/api/collections/leak/records"} {
		p.requestNative(t, "GET "+path, "", nil).expect(t, 403)
	}
	for _, want := range []string{
		`"collection":"patients","what":"listRule"`, `"collection":"patients","what":"viewRule"`, `"collection":"users","what":"passwordAuth"`,
		`"collection":"users","what":"authRule"`, `"collection":"leak","what":"listRule"`,
	} {
		if strings.Count(p.Output(), want) != 1 {
			t.Errorf("the log does not contain %s once\n%s", want, p.Output())
		}
	}
	if !strings.Contains(p.Output(), `"level":"ERROR","msg":"startup restored a rule of PocketBase that was changed`) {
		t.Error("the log does not report it as an error")
	}
	restored := p.get(t, "/api/v1/audit/events/?event=rules.restore", p.signIn(t, adminEmail)).expect(t, 200)
	wantAt(t, restored, object{"count": 3.0, "results.0.actor_type": "system"})
	if err := p.Stop(t); err != nil {
		t.Fatal(err)
	}
	p.serve(t, "")
	if strings.Contains(p.Output(), "is restored") {
		t.Errorf("the rules changed again\n%s", p.Output())
	}
}

// Rules and settings stay the same while the service runs: changes through PocketBase's notification file or by a command
// with other settings are reverted.
func TestRunningServiceKeepsItsRules(t *testing.T) {
	t.Parallel()
	p := newPractice(t, "VIGIL_TRUSTED_PROXY_HEADERS=X-Forwarded-For")
	p.serve(t, "")
	p.patient(t, nil)
	db := p.writable(t)
	if _, err := db.NewQuery(`UPDATE _collections SET listRule = '' WHERE name IN ('patients', 'users')`).Execute(); err != nil {
		t.Fatal(err)
	}
	told := filepath.Join(p.Dir, ".notify")
	if err := os.MkdirAll(told, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(told, "collections@elsewhere"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 20 { // each takes as long as PocketBase's reload delay
		p.requestNative(t, "GET /api/collections/patients/records", "", nil).expect(t, 403)
		p.failSignInBehindProxy(t)
	}
	beside := *p
	beside.Env = append(append([]string(nil), p.Env...), "VIGIL_TRUSTED_PROXY_HEADERS=")
	if said, status := beside.superuserCommand(t, "unlock", "nobody@vigil.test"); status != 1 {
		t.Fatalf("exit %d: %s", status, said)
	}
	for range 20 {
		p.failSignInBehindProxy(t)
	}
	wantCount(t, p.database(t), 0, `SELECT COUNT(*) FROM audit_log WHERE event = 'auth.login_failed' AND source_ip != '10.5.5.5'`, nil)
}

// failSignInBehindProxy fails a sign-in from behind a proxy.
func (p *practice) failSignInBehindProxy(t *testing.T) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.URL+"/api/v1/auth/login/", strings.NewReader(`{"email":"ghost@vigil.test","password":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Forwarded-For", "10.5.5.5")
	if a := sendRequest(t, request); a.status != 401 && a.status != 423 {
		t.Errorf("signing in answers %d: %s", a.status, a.body)
	}
}

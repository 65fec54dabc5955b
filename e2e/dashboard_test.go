package e2e

import (
	"context"
	"encoding/json"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pquerna/otp/totp"

	"github.com/vigilhealth/vigil/internal/sandbox"
)

// chromium is a real browser for the scripts of internal/vigiltest/browser.
type chromium struct{ path, scripts string }

// newChromium copies the scripts and installs their one dependency. It skips the test without a browser.
func newChromium(t *testing.T) chromium {
	t.Helper()
	found := map[string]string{}
	for _, name := range []string{"chromium", "node", "npm"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Skipf("%s is not installed: the dashboard is not tested", name)
		}
		found[name] = path
	}
	c := chromium{path: found["chromium"], scripts: t.TempDir()}
	files, err := filepath.Glob("internal/vigiltest/browser/*.*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(filepath.Join(c.scripts, filepath.Base(file)), content, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	install := limited(t, 5*time.Minute, "npm", "ci", "--no-audit", "--no-fund", "--prefer-offline")
	install.Dir = c.scripts
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("npm ci: %v\n%s", err, out)
	}
	return c
}

// run runs a script against a service with the given input, and decodes its output into answer.
func (c chromium) run(t *testing.T, p *practice, script string, input, answer any) {
	t.Helper()
	pictures, err := os.MkdirTemp("", "vigil-pictures-") // kept after a failed test
	if err != nil {
		t.Fatal(err)
	}
	node := limited(t, 10*time.Minute, "node", script)
	node.Dir = c.scripts
	node.Env = append(os.Environ(), "VIGIL_URL="+p.URL, "CHROMIUM="+c.path, "PICTURES="+pictures, "INPUT="+encode(t, input))
	var complaints strings.Builder
	node.Stderr = &complaints
	out, err := node.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, complaints.String())
	}
	if err := os.RemoveAll(pictures); err != nil {
		t.Error(err)
	}
	if err := json.Unmarshal(out, answer); err != nil {
		t.Fatalf("%s answered %q: %v", script, out, err)
	}
}

// limited returns a command that is killed after the limit, with its output closed: a browser that hangs must not use up the time of all tests.
func limited(t *testing.T, limit time.Duration, name string, args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	command := exec.CommandContext(ctx, name, args...)
	command.WaitDelay = 10 * time.Second // its children keep the pipes open
	return command
}

// The dashboard and Vigil's pages in a real browser: PocketBase's JavaScript with Vigil's field types, on the demo's data.
func TestDashboard(t *testing.T) {
	browser := newChromium(t)
	dir := filepath.Join(t.TempDir(), "data")
	demo := launch(t, dir, nil, "demo", "--patients", "5", "--quiet")
	p := &practice{URL: demo.URL, Dir: dir, process: demo}
	t.Run("pages", func(t *testing.T) { setPasswordInBrowser(t, browser, p) })
	t.Run("dashboard", func(t *testing.T) { workInDashboard(t, browser, p) })
	t.Run("second factor", func(t *testing.T) { enterDashboardWithCode(t, browser) })
}

// A superuser's work: grouped collections, search by encrypted names, editing an address line by line, and errors next to
// the lines.
func TestDashboardDaily(t *testing.T) {
	browser := newChromium(t)
	dir := filepath.Join(t.TempDir(), "data")
	demo := launch(t, dir, nil, "demo", "--patients", "5", "--quiet")
	p := &practice{URL: demo.URL, Dir: dir, process: demo}
	nurse := p.signInWith(t, "nurse@vigil.example", sandbox.Password)
	patient := at(t, p.get(t, "/api/v1/patients/", nurse).expect(t, 200), "results.0").(object)
	id := patient["id"].(string)
	db := p.database(t)
	who := dbx.Params{"email": "dashboard@vigil.example", "id": id}

	const street = "4711 Quillfeather Court"
	browser.run(t, p, "dashboard_daily.mjs", object{
		"email": who["email"], "password": sandbox.Password, "patient": patient,
		"address": object{"line1": street, "city": "Tuscola", "zip": "61953"},
	}, &struct{}{})

	var sealed string
	if err := db.NewQuery("SELECT address FROM patients WHERE id = {:id}").Bind(who).Row(&sealed); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(sealed, "v2:") || strings.Contains(sealed, street) {
		t.Errorf("the address is stored as %q", sealed)
	}
	wantAt(t, p.get(t, "/api/v1/patients/"+id+"/", nurse).expect(t, 200), object{"address.line1": street, "address.city": "Tuscola", "address.zip": "61953"})
	wantCount(t, db, 1, `SELECT COUNT(*) FROM audit_log WHERE event = 'patient.update' AND actor_type = 'superuser' AND actor_email = {:email} AND resource_id = {:id}`, who)
	// Five searches for one patient and one for the patient's team; two without a match: users may be portal patients.
	wantCount(t, db, 6, `SELECT COUNT(*) FROM audit_log WHERE event = 'patient.search' AND actor_type = 'superuser' AND actor_email = {:email} AND patient = {:id}`, who)
	wantCount(t, db, 8, `SELECT COUNT(*) FROM audit_log WHERE event = 'patient.search' AND actor_type = 'superuser' AND actor_email = {:email}`, who)
	for _, secret := range []string{patient["last_name"].(string), "nobodyiscalledso", street} {
		if strings.Contains(strings.ToLower(demo.Output()), strings.ToLower(secret)) {
			t.Errorf("the log names %q", secret)
		}
	}
	if err := demo.Stop(t); err != nil { // a backup may be running in another process
		t.Error(err)
	}
}

func enterDashboardWithCode(t *testing.T, browser chromium) {
	p := newPractice(t).serve(t, "")
	said, _ := p.superuserCommand(t, "reset-2fa", superuserEmail)
	secret := authenticatorSecret.FindString(said)
	code, err := totp.GenerateCode(secret, time.Now().Add(30*time.Second)) // valid for at least a minute, the time to start a browser
	if err != nil {
		t.Fatal(err)
	}
	browser.run(t, p, "dashboard_code.mjs", object{"email": superuserEmail, "password": password, "code": code, "secret": secret}, &struct{}{})
}

func (p *practice) signInWith(t *testing.T, email, password string) string {
	t.Helper()
	return text(t, p.post(t, "/api/v1/auth/login/", "", object{"email": email, "password": password}).expect(t, 200), "access")
}

func workInDashboard(t *testing.T, browser chromium, p *practice) {
	const newName = "Quillfeather-Okonkwo"
	nurse := p.signInWith(t, "nurse@vigil.example", sandbox.Password)
	patient := at(t, p.get(t, "/api/v1/patients/", nurse).expect(t, 200), "results.0").(object)
	id, oldName := patient["id"].(string), patient["last_name"].(string)
	db := p.database(t)
	before := lastNameColumn(t, db, id)

	var did struct{ Observation string }
	browser.run(t, p, "dashboard.mjs", object{"email": "dashboard@vigil.example", "password": sandbox.Password, "patient": patient, "new_last_name": newName}, &did)

	after := lastNameColumn(t, db, id)
	if before == after {
		t.Error("the last name's column did not change")
	}
	for _, column := range []string{before, after} {
		if !strings.HasPrefix(column, "v2:") || strings.Contains(column, oldName) || strings.Contains(column, newName) {
			t.Errorf("the last name is stored as %q", column)
		}
	}
	wantAt(t, p.get(t, "/api/v1/patients/"+id+"/", nurse).expect(t, 200), object{"last_name": newName, "first_name": patient["first_name"]})
	wantAt(t, p.get(t, "/api/v1/patients/?search="+url.QueryEscape(newName), nurse).expect(t, 200), object{"count": 1.0, "results.0.id": id})
	wantCount(t, db, 1, `SELECT COUNT(*) FROM audit_log WHERE event = 'patient.update' AND actor_type = 'superuser' AND actor_email = {:email} AND resource_id = {:id}`,
		dbx.Params{"email": "dashboard@vigil.example", "id": id})

	wantCount(t, db, 1, `SELECT COUNT(*) FROM observations WHERE id = {:id} AND systolic = 230 AND pulse IS NULL AND weight_kg IS NULL`, dbx.Params{"id": did.Observation})
	wantCount(t, db, 1, `SELECT COUNT(*) FROM patients WHERE id = {:id}`, dbx.Params{"id": id})
	alerts := p.get(t, "/api/v1/alerts/?level=critical&type=blood_pressure&patient_id="+id, nurse).expect(t, 200)
	if !strings.Contains(string(alerts.body), did.Observation) {
		t.Errorf("no alert for the reading %s\n%s", did.Observation, alerts.body)
	}
}

func lastNameColumn(t *testing.T, db *dbx.DB, patient string) (column string) {
	t.Helper()
	if err := db.NewQuery("SELECT last_name FROM patients WHERE id = {:id}").Bind(dbx.Params{"id": patient}).Row(&column); err != nil {
		t.Fatal(err)
	}
	return column
}

func wantCount(t *testing.T, db *dbx.DB, want int, query string, params dbx.Params) {
	t.Helper()
	var got int
	if err := db.NewQuery(query).Bind(params).Row(&got); err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Errorf("%s is %d with %v, want %d", query, got, params, want)
	}
}

// setPasswordInBrowser follows the link of a new administrator.
func setPasswordInBrowser(t *testing.T, browser chromium, p *practice) {
	const email, chosen = "newcomer@vigil.example", "Lantern-Orchard-77!"
	keys, err := os.ReadFile(filepath.Join(p.Dir, "demo.env"))
	if err != nil {
		t.Fatal(err)
	}
	create := exec.CommandContext(t.Context(), binary(t), "admin", "create", "--email", email, "--dir", p.Dir)
	create.Env = append(environ(strings.Split(strings.TrimSpace(string(keys)), "\n")), "VIGIL_PUBLIC_URL="+p.URL)
	out, err := create.CombinedOutput() // while the service writes
	if err != nil {
		t.Fatalf("admin create: %v\n%s", err, out)
	}
	link := regexp.MustCompile(regexp.QuoteMeta(p.URL) + `\S+`).FindString(string(out))
	if link == "" {
		t.Fatalf("no link in %q", out)
	}
	browser.run(t, p, "pages.mjs", object{"link": link, "password": chosen}, new(object))
	p.signInWith(t, email, chosen)
}

package e2e

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/sandbox"
)

// needsConsole skips a test when the console was not built; `make test` builds it.
func needsConsole(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("pb_public/vendor/preact.js"); err != nil {
		t.Skip("the console is not in this build: run make web")
	}
}

// newConsole returns a demo practice with the console. It skips the test when the console's packages are missing.
func newConsole(t *testing.T, patients int, env ...string) (chromium, *practice) {
	t.Helper()
	needsConsole(t)
	browser := newChromium(t)
	dir := filepath.Join(t.TempDir(), "data")
	env = slices.Concat(env, []string{"VIGIL_WEB_PUSH_ALLOWED_HOSTS=push.vigil.example"}, noRateLimits)
	demo := launch(t, dir, env, "demo", "--patients", strconv.Itoa(patients), "--quiet")
	return browser, &practice{URL: demo.URL, Dir: dir, process: demo}
}

// newLocalConsole returns a demo practice under a host name, which passkeys require.
func newLocalConsole(t *testing.T, patients int, env ...string) (chromium, *practice) {
	t.Helper()
	needsConsole(t)
	browser := newChromium(t)
	addr := freeAddr(t)
	at := "http://localhost:" + addr[strings.LastIndex(addr, ":")+1:]
	dir := filepath.Join(t.TempDir(), "data")
	demo := launchAt(t, addr, dir, slices.Concat([]string{"VIGIL_PUBLIC_URL=" + at}, env, noRateLimits), "demo", "--patients", strconv.Itoa(patients), "--quiet")
	return browser, &practice{URL: at, Dir: dir, process: demo}
}

// noRateLimits lifts the request limits, because a script does a day's requests in a minute.
var noRateLimits = []string{"VIGIL_RATE_LIMIT_USER=0", "VIGIL_RATE_LIMIT_ANON=0", "VIGIL_RATE_LIMIT_AUTH=0", "VIGIL_RATE_LIMIT_REALTIME=0"}

// menus are the console's sections by demo account. Source: docs/decisions/roles.md, "Endpoint permissions".
var menus = map[string][]string{
	"admin":    {"Triage", "Patients", "Enrollment", "Alerts", "Escalations", "On call", "Billing", "Reports", "EMR", "Operations", "Inbox"},
	"manager":  {"Triage", "Patients", "Enrollment", "Alerts", "Escalations", "On call", "Billing", "EMR", "Operations", "Inbox"},
	"provider": {"Triage", "Patients", "Enrollment", "Alerts", "Escalations", "On call", "Billing", "EMR", "Inbox"},
	"nurse":    {"Triage", "Patients", "Enrollment", "Alerts", "Escalations", "On call", "EMR", "Inbox"},
	"ma":       {"Triage", "Patients", "Enrollment", "Alerts", "Escalations", "On call", "EMR", "Operations", "Inbox"},
	"billing":  {"Patients", "Enrollment", "Billing", "Reports", "EMR", "Operations", "Inbox"},
	"patient":  {"Readings", "Messages", "Sharing", "Account"},
}

// The console in a real browser, on the demo's data.
func TestConsole(t *testing.T) {
	browser, p := newConsole(t, 12)
	nobody := map[string]any{}
	t.Run("walk", func(t *testing.T) {
		browser.run(t, p, "console_walk.mjs", object{"password": sandbox.Password}, &nobody)
	})
	t.Run("views", func(t *testing.T) {
		var seen map[string][]string
		browser.run(t, p, "console_views.mjs", object{"password": sandbox.Password, "roles": menus}, &seen)
	})
	t.Run("contract", func(t *testing.T) {
		browser.run(t, p, "api_docs.mjs", object{}, &nobody)
	})
	t.Run("work", func(t *testing.T) { workInConsole(t, browser, p) })
	t.Run("live", func(t *testing.T) {
		nurse := p.signInWith(t, "nurse@vigil.example", sandbox.Password)
		last := at(t, p.get(t, "/api/v1/triage/patients/", nurse).expect(t, 200), "results").([]any)
		patient := last[len(last)-1].(object)["patient_id"]
		ready := filepath.Join(t.TempDir(), "ready")
		restarted := make(chan struct{})
		go func() {
			defer close(restarted)
			eventually(t, 3*time.Minute, "the list is live", func() bool { _, err := os.Stat(ready); return err == nil })
			p.Kill()
			p.process = launchAt(t, strings.TrimPrefix(p.URL, "http://"), p.Dir, noRateLimits, "demo", "--patients", "12", "--quiet")
		}()
		browser.run(t, p, "console_live.mjs", object{
			"password": sandbox.Password, "patient": patient, "device": "CONSOLE-1", "secret": demoSecret(t, p.Dir), "ready": ready,
		}, &nobody)
		<-restarted
	})
}

// Passkeys in a real browser with a virtual authenticator, with the service under a host name.
func TestConsolePasskeys(t *testing.T) {
	browser, p := newLocalConsole(t, 3, "VIGIL_FRESH_SIGN_IN=0s") // every change requires a reauthentication
	nobody := map[string]any{}
	browser.run(t, p, "console_passkeys.mjs", object{"password": sandbox.Password}, &nobody)
}

// workInConsole does a day's work in the browser, and checks what the service stores.
func workInConsole(t *testing.T, browser chromium, p *practice) {
	admin := p.signInWith(t, "admin@vigil.example", sandbox.Password)
	const last = "Zwickau Mutual"
	for i := range 101 {
		p.post(t, "/api/v1/billing/payers/", admin, object{"name": fmt.Sprint("Payer ", i), "payer_id": fmt.Sprint("P", i)}).expect(t, 201)
	}
	payer := at(t, p.post(t, "/api/v1/billing/payers/", admin, object{"name": last, "payer_id": "ZM"}).expect(t, 201), "id")
	for i := range 21 {
		rate := object{"payer_id": payer, "cpt_code": "99454", "rate": 50, "effective_date": fmt.Sprintf("2026-01-%02d", i+1)}
		p.post(t, "/api/v1/billing/payer-rates/", admin, rate).expect(t, 201)
	}
	var did struct{ Escalation, MRN, Claim, Key string }
	browser.run(t, p, "console_work.mjs", object{"password": sandbox.Password, "payer": last}, &did)
	escalations := p.get(t, "/api/v1/escalations/?status=resolved", admin).expect(t, 200)
	wantAt(t, escalations, object{"results.0.reason": did.Escalation, "results.0.priority": "stat", "results.0.resolved_by": "provider@vigil.example"})
	wantAt(t, p.get(t, "/api/v1/threshold-changes/", admin).expect(t, 200), object{
		"results.0.field": "systolic_high", "results.0.new_value": 95.0, "results.0.reason": "Dizzy at lower pressures.", "results.0.changed_by": "provider@vigil.example",
	})
	wantAt(t, p.get(t, "/api/v1/patients/?search="+url.QueryEscape(did.MRN), admin).expect(t, 200), object{"count": 1.0, "results.0.mrn": did.MRN})
	if submitted := p.get(t, "/api/v1/billing/entries/?status=submitted", admin).expect(t, 200); !strings.Contains(string(submitted.body), `"claim_id":"`+did.Claim+`"`) {
		t.Errorf("%s was not submitted: %s", did.Claim, submitted.body)
	}
	wantAt(t, p.get(t, "/api/v1/notifications/vapid-public-key/", admin).expect(t, 200), object{"public_key": did.Key})
	nurse := p.signInWith(t, "nurse@vigil.example", sandbox.Password)
	wantAt(t, p.get(t, "/api/v1/notifications/tokens/", nurse).expect(t, 200), object{"count": 0.0})
}

// demoSecret returns the demo's webhook secret.
func demoSecret(t *testing.T, dir string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, "demo.env"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(content)) {
		if secret, ok := strings.CutPrefix(strings.TrimSpace(line), "VIGIL_GATEWAY_WEBHOOK_SECRET="); ok {
			return secret
		}
	}
	t.Fatal("demo.env has no webhook secret")
	return ""
}

// The console's types hold: its modules are checked against the contract with the tools that `make web` installs.
func TestConsoleTypes(t *testing.T) {
	npm, err := exec.LookPath("npm")
	if err != nil {
		t.Skip("npm is not installed")
	}
	if _, err := os.Stat("tools/console/node_modules/.bin/tsc"); err != nil {
		t.Skip("the console's tools are not installed: run make web")
	}
	command := exec.CommandContext(t.Context(), npm, "run", "--silent", "check")
	command.Dir = "tools/console"
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("npm run check: %v\n%s", err, out)
	}
}

package e2e

import (
	"bytes"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/internal/config"
)

// vigil runs a command to its end.
func vigil(t testing.TB, env []string, in string, args ...string) (status int, out, errOut string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary(t), args...)
	var stdout, stderr bytes.Buffer
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = environ(env), strings.NewReader(in), &stdout, &stderr
	err := cmd.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()
}

// wantComplaint checks that a command failed with one line on standard error that names the problem, and created nothing.
func wantComplaint(t testing.TB, env []string, in string, args []string, dir string, words ...string) {
	t.Helper()
	status, out, errOut := vigil(t, env, in, append(args, "--dir", dir)...)
	if status != 1 || out != "" || strings.Count(errOut, "\n") != 1 {
		t.Errorf("vigil %v ended with %d\nout: %q\nerr: %q\nwant 1 and one line of complaint", args, status, out, errOut)
	}
	for _, word := range words {
		if !strings.Contains(errOut, word) {
			t.Errorf("vigil %v: %q does not contain %q", args, errOut, word)
		}
	}
}

func wantNoFolder(t testing.TB, dir string) {
	t.Helper()
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a data folder was created: %v", err)
	}
}

// strayKey is well-formed but decrypts nothing.
const strayKey = "VIGIL_ENCRYPTION_KEYS=stray:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

func TestServeRefusesToStart(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	serve := []string{"serve", "--http", "127.0.0.1:0"}
	wantComplaint(t, nil, "", serve, dir, "VIGIL_ENCRYPTION_KEYS")
	wantComplaint(t, []string{"VIGIL_ENCRYPTION_KEYS_FILE=" + dir + "-missing"}, "", serve, dir, "VIGIL_ENCRYPTION_KEYS_FILE")
	wantNoFolder(t, dir)

	secret := "k1:not-a-key-but-secret"
	status, out, errOut := vigil(t, []string{
		"VIGIL_ENVIRONMENT=moon", "VIGIL_ENCRYPTION_KEYS=" + secret, "VIGIL_PUBLIC_URL=nowhere", "VIGIL_PRACTICE_TIME_ZONE=Mars/Olympus",
		"VIGIL_EMR_RATE_LIMIT_PER_SECOND=-1", "VIGIL_LOG_LEVEL=chatty", "VIGIL_RATE_LIMIT_USER=often",
	}, "", append(serve, "--dir", dir)...)
	if status != 1 || out != "" {
		t.Errorf("bad settings end with %d, %q", status, out)
	}
	for _, name := range []string{"ENVIRONMENT", "ENCRYPTION_KEYS", "PUBLIC_URL", "PRACTICE_TIME_ZONE", "EMR_RATE_LIMIT_PER_SECOND", "LOG_LEVEL", "RATE_LIMIT_USER"} {
		if !regexp.MustCompile(`(?m)^vigil: .*\bVIGIL_` + name + `\b`).MatchString(errOut) {
			t.Errorf("VIGIL_%s is not reported\n%s", name, errOut)
		}
	}
	if strings.Contains(errOut, "not-a-key-but-secret") {
		t.Errorf("a secret is printed\n%s", errOut)
	}
	wantNoFolder(t, dir)

	p := newPractice(t)
	wantComplaint(t, []string{strayKey, "VIGIL_SETTINGS_KEY=" + valueOf(p.Env, "VIGIL_SETTINGS_KEY")}, "", serve, p.Dir, "VIGIL_ENCRYPTION_KEYS")
	wantComplaint(t, append(p.Env, "VIGIL_SETTINGS_KEY="+strings.Repeat("x", 32)), "", serve, p.Dir, "VIGIL_SETTINGS_KEY")
	p.serve(t, "") // the folder is unchanged
	wantComplaint(t, p.Env, "", serve, p.Dir, "another process serves this data folder")
}

func TestWrongUsage(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	for _, args := range [][]string{
		{"fly"},
		{"serve", "--wings"},
		{"serve", "now"},
		{"admin", "create"},
		{"keys", "generate", "two"},
		{"simulate"},
		{"demo", "--patients", "many"},
		{"demo", "--patients", "-1"},
		{"keys", "melt"},
		{"admin", "fly"},
		{"ingestion", "fly"},
		{"ingestion", "import"},
		{"ingestion", "replay", "all"},
		{"transmissions", "fly"},
		{"transmissions", "retry"},
		{"transmissions", "retry", "--since", ""},
		{"transmissions", "retry", "--since", "yesterday"},
		{"transmissions", "retry", "--since", "-36h"},
		{"transmissions", "retry", "--since", "2999-01-01"},
		{"transmissions", "retry", "--since", "36h", "--code", "broken"},
		{"transmissions", "retry", "--since", "36h", "TXN-2026-000001"},
		{"help", "fly"},
	} {
		status, _, errOut := vigil(t, []string{"VIGIL_GATEWAY_WEBHOOK_SECRET=whsec_0123456789abcdef", strayKey}, "", append(args, "--dir", dir)...)
		if status != 2 || !strings.HasPrefix(errOut, "vigil: ") {
			t.Errorf("vigil %v ended with %d, want 2\n%s", args, status, errOut)
		}
	}
	wantNoFolder(t, dir)
	for _, args := range [][]string{{"help"}, {"--help"}, {"serve", "--help"}, {"help", "keys"}} {
		if status, out, errOut := vigil(t, nil, "", args...); status != 0 || out == "" || errOut != "" {
			t.Errorf("vigil %v ended with %d\nout: %q\nerr: %q", args, status, out, errOut)
		}
	}
}

// Commands for an existing practice do not create one when --dir is mistyped; commands that start one create its schema.
func TestFolderWithoutDatabase(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	for _, args := range [][]string{{"audit", "verify"}, {"keys", "rotate"}, {"backup", "create"}, {"transmissions", "retry", "--since", "36h"}} {
		wantComplaint(t, []string{strayKey}, "", args, dir, "there is no database in "+dir)
	}
	wantNoFolder(t, dir)
	codes := filepath.Join(t.TempDir(), "order.txt")
	line := "00002 A000    1 Cholera                                                      Cholera due to Vibrio cholerae 01, biovar cholerae\n"
	if err := os.WriteFile(codes, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, out, errOut := vigil(t, []string{strayKey}, "", "icd10", "import", codes, "--dir", dir); status != 0 || out != "1 codes\n" {
		t.Errorf("icd10 import ended with %d\nout: %q\nerr: %q", status, out, errOut)
	}
}

// The shipped fee schedule is imported once; a second import has no effect. Errors in a file are reported in one line.
func TestFees(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	for _, want := range []string{"7 rows: 7 new, 0 replaced, 0 as before\n", "7 rows: 0 new, 0 replaced, 7 as before\n"} {
		if status, out, errOut := vigil(t, []string{strayKey}, "", "fees", "import", "2026", "--dir", dir); status != 0 || out != want {
			t.Errorf("fees import ended with %d\nout: %q\nerr: %q", status, out, errOut)
		}
	}
	if status, out, _ := vigil(t, nil, "", "fees", "show", "2026"); status != 0 || !strings.HasPrefix(out, "cpt_code,locality,effective_date,charge,expected,source\n") {
		t.Errorf("fees show ended with %d: %q", status, out)
	}
	wrong := filepath.Join(t.TempDir(), "fees.csv")
	if err := os.WriteFile(wrong, []byte("cpt_code,locality,effective_date,charge,expected,source\n99454,,2026-01-01,x,1,y\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	wantComplaint(t, []string{strayKey}, "", []string{"fees", "import", wrong}, dir, "row 2.charge")
	wantComplaint(t, nil, "", []string{"fees", "show", "1999"}, dir, "1999", "2026")
	wantComplaint(t, nil, "", []string{"rules", "show", "1999"}, dir, "1999", "2026")
	rules, err := filepath.Abs(filepath.Join("internal", "billing", "rules", "2026.json"))
	if err != nil {
		t.Fatal(err)
	}
	if status, out, errOut := vigil(t, nil, "", "rules", "preview", rules); status != 0 || !strings.Contains(out, "99445 min_days: none -> 2\n") {
		t.Errorf("rules preview ended with %d: %q %q", status, out, errOut)
	}
}

// A simulator whose events are not accepted fails.
func TestSimulateWithoutReceiver(t *testing.T) {
	t.Parallel()
	status, out, errOut := vigil(t, []string{"VIGIL_GATEWAY_WEBHOOK_SECRET=whsec_0123456789abcdef"}, "", "simulate", "--url", "http://127.0.0.1:1", "--for", "1s", "--rate", "5")
	if status != 1 || !strings.Contains(out, " 0 of ") || !strings.Contains(errOut, "accepted nothing") {
		t.Errorf("ended with %d\nout: %q\nerr: %q", status, out, errOut)
	}
}

func TestKeysGenerate(t *testing.T) {
	t.Parallel()
	blocks := map[string]bool{}
	for range 2 {
		status, block, errOut := vigil(t, nil, "", "keys", "generate")
		if status != 0 || errOut != "" {
			t.Fatalf("keys generate ended with %d\n%s", status, errOut)
		}
		settings, err := config.Load(strings.Split(strings.TrimSpace(block), "\n"))
		if err != nil {
			t.Fatalf("the block does not load: %v", err)
		}
		if err := settings.RequireEncryption(); err != nil {
			t.Error(err)
		}
		if settings.EMR.PrivateKey == nil || settings.EMR.PrivateKey.N.BitLen() < 2048 || !settings.Gateway.Configured() || !settings.VAPID.Configured() ||
			len(settings.SettingsKey.Reveal()) != 32 {
			t.Errorf("the block lacks something:\n%s", block)
		}
		for _, line := range strings.Split(strings.TrimSpace(block), "\n") {
			if blocks[line] {
				t.Errorf("the same secret twice: %s", line)
			}
			blocks[line] = true
		}
	}
}

// A shell reads the block to the same settings: no value needs quoting.
func TestKeysInShell(t *testing.T) {
	t.Parallel()
	_, block, _ := vigil(t, nil, "", "keys", "generate")
	file := filepath.Join(t.TempDir(), "vigil.env")
	if err := os.WriteFile(file, []byte(block), 0o600); err != nil {
		t.Fatal(err)
	}
	environ, err := exec.CommandContext(t.Context(), "sh", "-c", `set -a; . "$0"; env`, file).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, environ)
	}
	for line := range strings.Lines(block) {
		if !strings.Contains(string(environ), line) {
			name, _, _ := strings.Cut(line, "=")
			t.Errorf("%s does not survive a shell", name)
		}
	}
}

// An administrator created by link sets the password once and is signed in.
func TestAdminByLink(t *testing.T) {
	t.Parallel()
	p := newPractice(t, "VIGIL_PUBLIC_URL=https://rpm.example.test")
	create := []string{"admin", "create", "--dir", p.Dir, "--email"}
	status, out, errOut := vigil(t, p.Env, "", append(create, "Second@Vigil.test", "--first-name", "Sam", "--last-name", "Cond")...)
	if status != 0 || errOut != "" {
		t.Fatalf("admin create ended with %d\n%s", status, errOut)
	}
	link, err := url.Parse(regexp.MustCompile(`https?://\S+`).FindString(out))
	if err != nil || link.Host != "rpm.example.test" || link.Path != "/reset-password" || len(link.Query().Get("token")) < 43 {
		t.Fatalf("no link with a token in %q", out)
	}
	for _, again := range [][]string{append(create, "second@vigil.test"), append(create, "third@vigil.test", "--password-stdin"), append(create, "no-address")} {
		status, out, errOut := vigil(t, p.Env, "short\n", again...)
		if status != 1 || out != "" || strings.Count(errOut, "\n") < 1 || strings.Contains(errOut, "short\n") {
			t.Errorf("vigil %v ended with %d\nout: %q\nerr: %q", again, status, out, errOut)
		}
	}

	p.serve(t, "")
	const confirm = "/api/v1/auth/password-reset/confirm/"
	body := func(password, repeated string) object {
		return object{"token": link.Query().Get("token"), "new_password": password, "new_password_confirm": repeated}
	}
	wantAt(t, p.post(t, confirm, "", body("Wholly-New-42!", "Wholly-New-43!")).expect(t, 400), object{"code": "validation_error", "field_errors.new_password_confirm.1": nil})
	if weak := p.post(t, confirm, "", body("weak", "weak")).expect(t, 400); at(t, weak, "field_errors.new_password.0") == nil {
		t.Errorf("a weak password is not named: %s", weak.body)
	}
	p.post(t, confirm, "", body("Wholly-New-42!", "Wholly-New-42!")).expect(t, 200)
	wantAt(t, p.post(t, confirm, "", body("Wholly-New-44!", "Wholly-New-44!")).expect(t, 400), object{"code": "invalid_reset_token"})
	login := p.post(t, "/api/v1/auth/login/", "", object{"email": "second@vigil.test", "password": "Wholly-New-42!"}).expect(t, 200)
	wantAt(t, login, object{"user.email": "second@vigil.test", "user.role": "admin", "user.first_name": "Sam", "access_expires_in": 900.0, "refresh_expires_in": 86400.0})
	wantAt(t, p.get(t, "/api/v1/auth/profile/", text(t, login, "access")).expect(t, 200), object{"role": "admin", "is_active": true, "must_change_password": false})
	p.post(t, "/api/v1/auth/login/", "", object{"email": "third@vigil.test", "password": "short"}).expect(t, 401)
}

// account matches a line of the demo's introduction: role, address, password.
var account = regexp.MustCompile(`(?m)^\s+(\S.*?)\s{2,}(\S+@\S+)\s+(\S+)$`)

func TestDemo(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	wantComplaint(t, []string{"VIGIL_ENVIRONMENT=production"}, "", []string{"demo", "--http", "127.0.0.1:0"}, dir, "VIGIL_ENVIRONMENT=production")
	wantNoFolder(t, dir)

	env := []string{"VIGIL_RATE_LIMIT_AUTH=0", "VIGIL_RATE_LIMIT_ANON=0"}
	ids, p := demoAccounts(t, launch(t, dir, env, "demo", "--patients", "3", "--quiet"))
	if info, err := os.Stat(filepath.Join(dir, "demo.env")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("demo.env: %v, %v, want mode 0600", info, err)
	}
	wantAt(t, p.get(t, "/api/v1/patients/", p.admin).expect(t, 200), object{"count": 3.0})
	wantAt(t, p.get(t, "/api/v1/triage/patients/", p.admin).expect(t, 200), object{"count": 3.0})
	added := p.patient(t, object{"first_name": "Added", "last_name": "Later"})
	if err := p.Stop(t); err != nil {
		t.Fatalf("the demo ended with %v\n%s", err, p.Output())
	}

	again, p := demoAccounts(t, launch(t, dir, env, "demo", "--patients", "3", "--quiet"))
	for email, id := range ids {
		if again[email] != id {
			t.Errorf("%s had user id %v and now has %v", email, id, again[email])
		}
	}
	wantAt(t, p.get(t, "/api/v1/patients/", p.admin).expect(t, 200), object{"count": 4.0})
	wantAt(t, p.get(t, "/api/v1/patients/"+added+"/", p.admin).expect(t, 200), object{"last_name": "Later"})
	if err := p.Stop(t); err != nil {
		t.Fatalf("the demo ended with %v\n%s", err, p.Output())
	}
}

// demoAccounts reads the introduction and signs in to every account: one for each role, and the dashboard's.
func demoAccounts(t *testing.T, running *process) (ids map[string]any, p *practice) {
	t.Helper()
	p = &practice{URL: running.URL, Dir: running.Dir, process: running}
	var lines [][]string
	eventually(t, within, "the demo introduces itself", func() bool {
		lines = account.FindAllStringSubmatch(running.Output(), -1)
		return len(lines) >= 8
	})
	ids = map[string]any{}
	roles := map[string]bool{}
	for _, line := range lines {
		role, email, password := line[1], line[2], line[3]
		if role == "dashboard account" {
			p.post(t, "/api/collections/_superusers/auth-with-password", "", object{"identity": email, "password": password}).expect(t, 200)
			continue
		}
		login := p.post(t, "/api/v1/auth/login/", "", object{"email": email, "password": password}).expect(t, 200)
		wantAt(t, login, object{"user.role": role, "user.email": email})
		wantAt(t, p.get(t, "/api/v1/auth/profile/", text(t, login, "access")).expect(t, 200), object{"role": role})
		ids[email], roles[role] = at(t, login, "user.id"), true
		if role == "admin" {
			p.admin = text(t, login, "access")
		}
	}
	for _, role := range []string{"admin", "clinical_manager", "provider", "nurse", "ma", "data_monitor", "patient"} {
		if !roles[role] {
			t.Errorf("no account of role %s in\n%s", role, running.Output())
		}
	}
	return ids, p
}

package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/internal/sandbox"
	"github.com/vigilhealth/vigil/internal/sqlite"
)

// verifyAudit runs the command and returns its exit status and output.
func (p *practice) verifyAudit(t *testing.T) (status int, out string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), binary(t), "audit", "verify", "--dir", p.Dir)
	command.Env = environ(p.Env)
	raw, err := command.CombinedOutput()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	return command.ProcessState.ExitCode(), string(raw)
}

// tamper changes the database as an attacker with the file could.
func (p *practice) tamper(t *testing.T, statements ...string) {
	t.Helper()
	db, err := sqlite.Connect(filepath.Join(p.Dir, "data.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	for _, statement := range statements {
		if _, err := db.NewQuery(statement).Execute(); err != nil {
			t.Fatal(err)
		}
	}
}

// The command distinguishes an intact trail from a broken one, with and without a running service.
func TestAuditVerifyCommand(t *testing.T) {
	head := filepath.Join(t.TempDir(), "head")
	p := newPractice(t, "VIGIL_AUDIT_HEAD_PATH="+head).serve(t, "")
	p.get(t, "/api/v1/users/", p.Admin(t)).expect(t, 200)
	status, out := p.verifyAudit(t)
	whole := regexp.MustCompile(`(?m)^([0-9]+) entries, head ([0-9a-f]{64})$`).FindStringSubmatch(out)
	if status != 0 || whole == nil {
		t.Fatalf("exit %d: %s", status, out)
	}
	if got := text(t, p.get(t, "/api/v1/audit/verify/", p.Admin(t)).expect(t, 200), "head_hash"); got != whole[2] {
		t.Errorf("the endpoint returns %s, the command %s", got, whole[2])
	}
	if err := p.Stop(t); err != nil {
		t.Fatal(err)
	}
	status, out = p.verifyAudit(t)
	last := regexp.MustCompile(`([0-9]+) entries, head ([0-9a-f]{64})`).FindStringSubmatch(out)
	if status != 0 || last == nil {
		t.Fatalf("exit %d: %s", status, out)
	}
	if err := os.WriteFile(head, []byte("2026-01-15T13:45:00Z "+last[1]+" "+last[2]+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.tamper(t, "DROP TRIGGER audit_log_no_delete", "DELETE FROM audit_log WHERE id = (SELECT MAX(id) FROM audit_log)")
	if status, out = p.verifyAudit(t); status != 1 || !strings.Contains(out, "entry "+last[1]+" is the first that does not fit") {
		t.Errorf("a truncated trail: exit %d: %s", status, out)
	}
	p.tamper(t, "DROP TRIGGER audit_log_no_update", "UPDATE audit_log SET event = 'auth.logout' WHERE id = '000000000000001'")
	if status, out = p.verifyAudit(t); status != 1 || !strings.Contains(out, "entry 1 is the first that does not fit") {
		t.Errorf("a changed row: exit %d: %s", status, out)
	}
}

// A forgotten password, from the request and the mail to the new password, with the built program and a real mail server.
func TestPasswordReset(t *testing.T) {
	catcher, err := sandbox.NewMailCatcher(now, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = catcher.Close() })
	_, port, _ := strings.Cut(catcher.Addr(), ":")
	p := newPractice(t, "VIGIL_SMTP_HOST=127.0.0.1", "VIGIL_SMTP_PORT="+port, "VIGIL_SMTP_FROM=Practice <vigil@practice.test>").serve(t, "")
	p.post(t, "/api/v1/auth/password-reset/", "", object{"email": strings.ToUpper(adminEmail)}).expect(t, 200)
	mail, err := catcher.WaitFor(t.Context(), func(m sandbox.Message) bool { return m.To[0] == adminEmail })
	if err != nil {
		t.Fatal(err)
	}
	link := regexp.MustCompile(`http://\S+/reset-password\?token=(\S+)`).FindStringSubmatch(mail.Text)
	if mail.From != "vigil@practice.test" || link == nil || !strings.HasPrefix(link[0], p.URL) {
		t.Fatalf("mail from %s: %s", mail.From, mail.Text)
	}
	const next = "Entirely-New-77"
	p.post(t, "/api/v1/auth/password-reset/confirm/", "", object{"token": link[1], "new_password": next, "new_password_confirm": next}).expect(t, 200)
	p.post(t, "/api/v1/auth/login/", "", object{"email": adminEmail, "password": next}).expect(t, 200)
	if _, err := catcher.WaitFor(t.Context(), func(m sandbox.Message) bool { return m.Subject == "Your password was changed" }); err != nil {
		t.Error(err)
	}
	if log := p.Output(); strings.Contains(log, link[1]) || strings.Contains(log, next) {
		t.Error("the log holds a secret")
	}
}

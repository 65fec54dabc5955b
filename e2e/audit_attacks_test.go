package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/json/jsontext"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/sqlite"
)

// Attacks on the audit trail by an attacker with the database file and no key, and how the built program reports them.

// thief is a stolen copy of a practice's folder, which is put back after changes.
type thief struct {
	*practice
	db *dbx.DB
}

// steal copies the folder of a stopped service, lets work change it, and closes it.
func (p *practice) steal(t *testing.T, work func(*thief)) *practice {
	t.Helper()
	taken := &practice{Dir: filepath.Join(t.TempDir(), "data"), Env: p.Env}
	if err := os.CopyFS(taken.Dir, os.DirFS(p.Dir)); err != nil {
		t.Fatal(err)
	}
	db, err := sqlite.Connect(filepath.Join(taken.Dir, "data.db"))
	if err != nil {
		t.Fatal(err)
	}
	work(&thief{taken, db})
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return taken
}

func (f *thief) do(t *testing.T, statements ...string) {
	t.Helper()
	for _, sql := range statements {
		if _, err := f.db.NewQuery(sql).Execute(); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// unguarded runs work without the audit triggers and restores them unchanged.
func (f *thief) unguarded(t *testing.T, work func()) {
	t.Helper()
	var guards []struct {
		Name string `db:"name"`
		SQL  string `db:"sql"`
	}
	if err := f.db.NewQuery(`SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name LIKE 'audit_%'`).All(&guards); err != nil || len(guards) < 3 {
		t.Fatal(guards, err)
	}
	for _, guard := range guards {
		f.do(t, "DROP TRIGGER "+guard.Name)
	}
	work()
	for _, guard := range guards {
		f.do(t, guard.SQL)
	}
}

// rehash gives every row the hash that needs no key, as in docs/decisions/security.md, "Hash chain", so that the chain is
// consistent.
func (f *thief) rehash(t *testing.T) (rows int) {
	t.Helper()
	var all []collections.AuditRow
	if err := f.db.NewQuery("SELECT * FROM audit_log ORDER BY id").All(&all); err != nil {
		t.Fatal(err)
	}
	previous := strings.Repeat("0", 64)
	for _, r := range all {
		hash := openHash(t, previous, r)
		_, err := f.db.Update("audit_log", dbx.Params{"prev_hash": previous, "hash": hash}, dbx.HashExp{"id": r.ID}).Execute()
		if err != nil {
			t.Fatal(err)
		}
		previous = hash
	}
	return len(all)
}

func openHash(t *testing.T, previous string, r collections.AuditRow) string {
	t.Helper()
	object := object{"id": r.Number()}
	for name, text := range map[string]string{
		"recorded_at": r.RecordedAt, "event": r.Event, "action": r.Action, "outcome": r.Outcome, "actor_type": r.ActorType, "actor_id": r.ActorID,
		"actor_email": r.ActorEmail, "actor_role": r.ActorRole, "resource_type": r.ResourceType, "resource_id": r.ResourceID, "patient_id": r.Patient,
		"source_ip": r.SourceIP, "client": r.Client, "request_id": r.RequestID, "reason": r.Reason, "changes": r.Changes,
	} {
		if object[name] = any(text); text == "" {
			object[name] = nil
		}
	}
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	canonical := jsontext.Value(raw)
	if err := canonical.Canonicalize(); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(previous + string(canonical)))
	return hex.EncodeToString(sum[:])
}

// history returns a practice with an audit trail and its service stopped.
func history(t *testing.T, extra ...string) (p *practice, entries int) {
	t.Helper()
	p = newPractice(t, extra...).serve(t, "")
	for range 3 {
		p.signIn(t, adminEmail)
	}
	if err := p.Stop(t); err != nil {
		t.Fatal(err)
	}
	status, out := p.verifyAudit(t)
	found := strings.Fields(out)
	if status != 0 || len(found) == 0 {
		t.Fatalf("exit %d: %s", status, out)
	}
	entries, err := strconv.Atoi(found[len(found)-4])
	if err != nil || entries < 3 {
		t.Fatalf("the audit trail is empty: %s", out)
	}
	return p, entries
}

func TestAuditVerifyDetectsRewrites(t *testing.T) {
	p, entries := history(t)
	for name, test := range map[string]struct {
		attack func(t *testing.T, f *thief)
		first  int
	}{
		"every row rewritten, hashes made anew": {func(t *testing.T, f *thief) {
			f.unguarded(t, func() {
				f.do(t, "UPDATE audit_log SET actor_email = 'somebody@else.test'")
				f.rehash(t)
			})
		}, 1},
		"wiped": {func(t *testing.T, f *thief) {
			f.unguarded(t, func() { f.do(t, "DELETE FROM audit_log") })
		}, 1},
		"wiped with all that is kept about it": {func(t *testing.T, f *thief) {
			f.unguarded(t, func() { f.do(t, "DELETE FROM audit_log", "DELETE FROM audit_state") })
		}, 1},
		"the last entry cut off": {func(t *testing.T, f *thief) {
			f.unguarded(t, func() { f.do(t, "DELETE FROM audit_log WHERE id = (SELECT MAX(id) FROM audit_log)") })
		}, entries},
		"the last entry cut off and counted down": {func(t *testing.T, f *thief) {
			f.unguarded(t, func() {
				f.do(t, "DELETE FROM audit_log WHERE id = (SELECT MAX(id) FROM audit_log)",
					"UPDATE audit_state SET entries = entries - 1, head = (SELECT hash FROM audit_log ORDER BY id DESC LIMIT 1)")
			})
		}, 1},
		"hashes made anew, the state removed": {func(t *testing.T, f *thief) {
			f.unguarded(t, func() {
				f.rehash(t)
				f.do(t, "DELETE FROM audit_state")
			})
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			broken := p.steal(t, func(f *thief) { test.attack(t, f) })
			want := "entry " + strconv.Itoa(test.first) + " is the first that does not fit"
			if status, out := broken.verifyAudit(t); status != 1 || !strings.Contains(out, want) {
				t.Errorf("exit %d: %s", status, out)
			}
			broken.serve(t, "") // a broken trail does not stop the service, and nothing repairs it
			verified := broken.get(t, "/api/v1/audit/verify/", broken.signIn(t, adminEmail)).expect(t, 200)
			wantAt(t, verified, object{"valid": false, "first_invalid_id": float64(test.first)})
			if test.first == 1 && name != "every row rewritten, hashes made anew" && !strings.Contains(broken.Output(), `"level":"ERROR","msg":"audit trail"`) {
				t.Errorf("the start does not report the broken trail\n%s", broken.Output())
			}
			if err := broken.Stop(t); err != nil {
				t.Fatal(err)
			}
		})
	}
	t.Run("the sealed index key taken away", func(t *testing.T) {
		broken := p.steal(t, func(f *thief) {
			f.unguarded(t, func() { f.rehash(t); f.do(t, "DELETE FROM audit_state", "DELETE FROM sealed_keys") })
		})
		if status, out := broken.verifyAudit(t); status != 1 || !strings.Contains(out, "index key is gone") {
			t.Errorf("exit %d: %s", status, out)
		}
		if status, out := broken.refusesToServe(t); status != 1 || !strings.Contains(out, "index key is gone") {
			t.Errorf("exit %d: %s", status, out)
		}
	})
}

// refusesToServe starts a service that must fail to start, and returns its exit status and output.
func (p *practice) refusesToServe(t *testing.T) (status int, out string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), binary(t), "serve", "--dir", p.Dir, "--http", freeAddr(t))
	command.Env = environ(p.Env)
	raw, err := command.CombinedOutput()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	return command.ProcessState.ExitCode(), string(raw)
}

// A guard with the right name that does nothing is detected: the service does not start, and check reports it.
func TestDisabledAuditGuard(t *testing.T) {
	p, _ := history(t)
	for _, statements := range [][]string{
		{"DROP TRIGGER audit_log_no_update", "CREATE TRIGGER audit_log_no_update BEFORE UPDATE ON audit_log BEGIN SELECT 1; END"},
		{"DROP TRIGGER audit_log_no_delete", "CREATE TRIGGER audit_log_no_delete BEFORE DELETE ON audit_log WHEN FALSE BEGIN SELECT RAISE(ABORT,'audit_log is append-only'); END"},
		{"CREATE TRIGGER audit_log_lenient BEFORE UPDATE ON audit_log BEGIN SELECT 1; END"},
		{"DROP TRIGGER audit_log_no_replace"},
	} {
		broken := p.steal(t, func(f *thief) { f.do(t, statements...) })
		if status, out := broken.verifyAudit(t); status != 1 || !strings.Contains(out, "guard_missing") {
			t.Errorf("%s: exit %d: %s", statements[0], status, out)
		}
		if status, out := broken.refusesToServe(t); status != 1 || !strings.Contains(out, "triggers are missing or changed") {
			t.Errorf("%s: exit %d: %s", statements[0], status, out)
		}
	}
}

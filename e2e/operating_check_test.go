package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// closedPractice returns a practice with a database that is accessible to its owner only, as the first start leaves it.
func closedPractice(t *testing.T) *practice {
	t.Helper()
	p := newPractice(t)
	if err := os.Chmod(filepath.Join(p.Dir, "data.db"), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

// check reports a database that its user may not write, with the file, before the service fails on it.
func TestCheckReportsUnwritableFiles(t *testing.T) {
	t.Parallel()
	p := newUnprivilegedPractice(t)
	p.must(t, p.Dir, "backup", "create")
	wantCheck(t, p.Env, p.Dir, 0, map[string]string{"folder": "ok"})
	file := filepath.Join(p.Dir, "data.db")
	if err := os.Chmod(file, 0o400); err != nil {
		t.Fatal(err)
	}
	said := wantCheck(t, p.Env, p.Dir, 1, map[string]string{"folder": "fail"}) // as root, check tests access as the files' owner
	if !strings.Contains(said, "fail folder: "+file+" cannot be written: permission denied\n") {
		t.Errorf("check prints\n%s", said)
	}
}

// check reports what stops a start in the same words: an audit trail without its guards.
func TestCheckReportsMissingGuards(t *testing.T) {
	t.Parallel()
	p := closedPractice(t)
	p.must(t, p.Dir, "backup", "create")
	wantCheck(t, p.Env, p.Dir, 0, nil)
	p.set(t, "DROP TRIGGER audit_log_no_update")
	const complaint = "the audit log's triggers are missing or changed"
	if said := wantCheck(t, p.Env, p.Dir, 1, map[string]string{"folder": "fail"}); !strings.Contains(said, complaint) {
		t.Errorf("check prints\n%s", said)
	}
	wantComplaint(t, p.Env, "", []string{"serve", "--http", freeAddr(t)}, p.Dir, complaint)
}

// A verified older backup does not make check report the newest one as verified.
func TestCheckReportsVerifiedBackup(t *testing.T) {
	t.Parallel()
	p := closedPractice(t)
	p.must(t, p.Dir, "backup", "create")
	began := time.Now()
	p.must(t, p.Dir, "backup", "verify")
	if said := wantCheck(t, p.Env, p.Dir, 0, nil); !verifiedSince(began, `old, verified (\S+) ago\n`, said) {
		t.Errorf("check prints\n%s", said)
	}
	second := time.Now().Unix()
	eventually(t, within, "the next backup has another name, which is to the second", func() bool { return time.Now().Unix() != second })
	newest, _, _ := strings.Cut(p.must(t, p.Dir, "backup", "create"), ":")
	began = time.Now()
	p.must(t, p.Dir, "backup", "verify")
	file := filepath.Join(p.Dir, "snapshots", newest)
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	content[len(content)/2] ^= 1
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	p.mustFail(t, newest, p.Dir, "backup", "verify")
	if said := wantCheck(t, p.Env, p.Dir, 0, nil); !verifiedSince(began, `old, not verified; an older one was, (\S+) ago\n`, said) {
		t.Errorf("check prints\n%s", said)
	}
}

// verifiedSince reports whether check prints an age, in whole minutes, that is possible for a backup verified since then: 0s
// except on a slow machine.
func verifiedSince(began time.Time, line, said string) bool {
	found := regexp.MustCompile(line).FindStringSubmatch(said)
	if found == nil {
		return false
	}
	age, err := time.ParseDuration(found[1])
	return err == nil && age <= time.Since(began).Round(time.Minute)
}

// A backup disk without space for the next backup is reported by check, and in one line by the backup command.
func TestCheckReportsFullBackupDisk(t *testing.T) {
	t.Parallel()
	p := newPractice(t)
	disk := t.TempDir()
	mountDisk(t, disk, "size=64k", 0)
	folder := filepath.Join(disk, "kept")
	env := with(p.Env, "VIGIL_BACKUP_FOLDER="+folder)
	said := wantCheck(t, env, p.Dir, 2, map[string]string{"backup": "warn"})
	if !strings.Contains(said, "0.1 MB free in "+folder) || !strings.Contains(said, "the next will not fit") {
		t.Errorf("check prints\n%s", said)
	}
	wantComplaint(t, env, "", []string{"backup", "create"}, p.Dir, "the folder "+folder+" cannot be written: no space left on device")
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// An unreachable identity provider, or one with another issuer, is reported before the first nurse signs in.
func TestCheckIdentityProvider(t *testing.T) {
	t.Parallel()
	issuer, asked := "", 0
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		if issuer == "" {
			http.Error(w, "Zyxomarka is not here", http.StatusNotFound)
			return
		}
		fmt.Fprintf(w, `{"issuer": %q, "authorization_endpoint": "http://a/", "token_endpoint": "http://t/", "jwks_uri": "http://k/"}`, issuer)
	}))
	t.Cleanup(provider.Close)
	p := closedPractice(t)
	p.must(t, p.Dir, "backup", "create")
	env := with(p.Env, "VIGIL_OIDC_ISSUER="+provider.URL, "VIGIL_OIDC_CLIENT_ID=vigil", "VIGIL_OIDC_ROLE_MAP=nurses=nurse")
	wantCheck(t, p.Env, p.Dir, 0, map[string]string{"OIDC": ""}, "--deep")
	if wantCheck(t, env, p.Dir, 0, map[string]string{"OIDC": "ok"}); asked > 0 {
		t.Error("a request was sent without --deep")
	}
	for says, is := range map[string]string{"does not describe itself at /.well-known": "", "calls itself otherwise": provider.URL + "/"} {
		issuer = is
		if said := wantCheck(t, env, p.Dir, 1, map[string]string{"OIDC": "fail"}, "--deep"); !strings.Contains(said, says) || strings.Contains(said, "Zyxomarka") {
			t.Errorf("check prints\n%s", said)
		}
	}
	issuer = provider.URL
	wantCheck(t, env, p.Dir, 0, map[string]string{"OIDC": "ok"}, "--deep")
	provider.Close()
	if said := wantCheck(t, env, p.Dir, 1, map[string]string{"OIDC": "fail"}, "--deep"); !strings.Contains(said, "cannot be reached") {
		t.Errorf("check prints\n%s", said)
	}
}

// An older program refuses to prepare a replica of a newer program.
func TestAdoptRefusesNewerSchema(t *testing.T) {
	t.Parallel()
	p := newPractice(t)
	p.set(t, "INSERT INTO _migrations (file, applied) VALUES ('9999999999_future.go', 1)")
	wantComplaint(t, p.Env, "", []string{"backup", "adopt"}, p.Dir, "9999999999_future.go")
}

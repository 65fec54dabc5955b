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

// closedPractice is one whose database is its owner's alone, as a start leaves it.
func closedPractice(t *testing.T) *practice {
	t.Helper()
	p := newPractice(t)
	if err := os.Chmod(filepath.Join(p.Dir, "data.db"), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

// A database that its user may not write is named by check, with the file, before the service fails on it.
func TestCheckNamesFilesThatAreClosed(t *testing.T) {
	t.Parallel()
	p := nobodysPractice(t)
	p.must(t, p.Dir, "backup", "create")
	wantCheck(t, p.Env, p.Dir, 0, map[string]string{"folder": "ok"})
	file := filepath.Join(p.Dir, "data.db")
	if err := os.Chmod(file, 0o400); err != nil {
		t.Fatal(err)
	}
	said := wantCheck(t, p.Env, p.Dir, 1, map[string]string{"folder": "fail"}) // root's check works as the files' owner
	if !strings.Contains(said, "fail folder: "+file+" cannot be written: permission denied\n") {
		t.Errorf("check says\n%s", said)
	}
}

// What stops a start is said by check in the same words: an audit trail without its guards.
func TestCheckMissesTheGuards(t *testing.T) {
	t.Parallel()
	p := closedPractice(t)
	p.must(t, p.Dir, "backup", "create")
	wantCheck(t, p.Env, p.Dir, 0, nil)
	p.set(t, "DROP TRIGGER audit_log_no_update")
	const complaint = "the audit log's triggers are missing or changed"
	if said := wantCheck(t, p.Env, p.Dir, 1, map[string]string{"folder": "fail"}); !strings.Contains(said, complaint) {
		t.Errorf("check says\n%s", said)
	}
	wantComplaint(t, p.Env, "", []string{"serve", "--http", freeAddr(t)}, p.Dir, complaint)
}

// That an older backup was proven to be good says nothing of the newest, which check does not claim.
func TestCheckSaysWhichBackupIsGood(t *testing.T) {
	t.Parallel()
	p := closedPractice(t)
	p.must(t, p.Dir, "backup", "create")
	began := time.Now()
	p.must(t, p.Dir, "backup", "verify")
	if said := wantCheck(t, p.Env, p.Dir, 0, nil); !verifiedSince(began, `old, verified (\S+) ago\n`, said) {
		t.Errorf("check says\n%s", said)
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
	p.refused(t, newest, p.Dir, "backup", "verify")
	if said := wantCheck(t, p.Env, p.Dir, 0, nil); !verifiedSince(began, `old, not verified; an older one was, (\S+) ago\n`, said) {
		t.Errorf("check says\n%s", said)
	}
}

// verifiedSince reports whether check names an age, in whole minutes, that a backup verified since then can have: 0s but on a very slow machine.
func verifiedSince(began time.Time, line, said string) bool {
	found := regexp.MustCompile(line).FindStringSubmatch(said)
	if found == nil {
		return false
	}
	age, err := time.ParseDuration(found[1])
	return err == nil && age <= time.Since(began).Round(time.Minute)
}

// A disk for backups that has no room for the next is told by check, and in one line by the backup.
func TestCheckFindsAFullTarget(t *testing.T) {
	t.Parallel()
	p := newPractice(t)
	disk := t.TempDir()
	mountDisk(t, disk, "size=64k", 0)
	folder := filepath.Join(disk, "kept")
	env := with(p.Env, "VIGIL_BACKUP_FOLDER="+folder)
	said := wantCheck(t, env, p.Dir, 2, map[string]string{"backup": "warn"})
	if !strings.Contains(said, "0.1 MB free in "+folder) || !strings.Contains(said, "the next will not fit") {
		t.Errorf("check says\n%s", said)
	}
	wantComplaint(t, env, "", []string{"backup", "create"}, p.Dir, "the folder "+folder+" cannot be written: no space left on device")
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// An identity provider that is away, or is called otherwise, is found before the first nurse wants to sign in.
func TestCheckAsksTheIdentityProvider(t *testing.T) {
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
		t.Error("asked without --deep")
	}
	for says, is := range map[string]string{"does not say at /.well-known": "", "calls itself otherwise": provider.URL + "/"} {
		issuer = is
		if said := wantCheck(t, env, p.Dir, 1, map[string]string{"OIDC": "fail"}, "--deep"); !strings.Contains(said, says) || strings.Contains(said, "Zyxomarka") {
			t.Errorf("check says\n%s", said)
		}
	}
	issuer = provider.URL
	wantCheck(t, env, p.Dir, 0, map[string]string{"OIDC": "ok"}, "--deep")
	provider.Close()
	if said := wantCheck(t, env, p.Dir, 1, map[string]string{"OIDC": "fail"}, "--deep"); !strings.Contains(said, "cannot be reached") {
		t.Errorf("check says\n%s", said)
	}
}

// A replica of a newer program's is not prepared by an older one.
func TestAdoptKnowsNewerFolders(t *testing.T) {
	t.Parallel()
	p := newPractice(t)
	p.set(t, "INSERT INTO _migrations (file, applied) VALUES ('9999999999_future.go', 1)")
	wantComplaint(t, p.Env, "", []string{"backup", "adopt"}, p.Dir, "9999999999_future.go")
}

package e2e

import (
	"path/filepath"
	"strings"
	"testing"
)

// newKeyring returns the settings with a new key before the present ones and with the new one alone, and the id of the present key.
func (p *practice) newKeyring(t *testing.T) (both, alone []string, oldID string) {
	t.Helper()
	old := valueOf(p.Env, "VIGIL_ENCRYPTION_KEYS")
	fresh := valueOf([]string{strings.TrimSpace(valueLine(p.must(t, t.TempDir(), "keys", "generate"), "VIGIL_ENCRYPTION_KEYS"))}, "VIGIL_ENCRYPTION_KEYS")
	fresh = "fresh:" + fresh[strings.IndexByte(fresh, ':')+1:]
	oldID, _, _ = strings.Cut(old, ":")
	return with(p.Env, "VIGIL_ENCRYPTION_KEYS="+fresh+","+old), with(p.Env, "VIGIL_ENCRYPTION_KEYS="+fresh), oldID
}

// check names the key that stored backups need and the ring lacks, for the newest and for older ones. A start does not depend on it.
func TestCheckOpensBackups(t *testing.T) {
	t.Parallel()
	p := newPractice(t)
	p.serve(t, "")
	if err := p.Stop(t); err != nil {
		t.Fatal(err)
	}
	p.must(t, p.Dir, "backup", "create")
	both, alone, oldID := p.newKeyring(t)
	p.Env = both
	p.must(t, p.Dir, "keys", "rotate")
	wantCheck(t, both, p.Dir, 0, map[string]string{"keys": "ok", "backup": "ok"})
	want := func(some string) {
		t.Helper()
		out := wantCheck(t, alone, p.Dir, 2, map[string]string{"keys": "ok", "backup": "warn"})
		if !strings.Contains(out, some+" need the key "+oldID+", which VIGIL_ENCRYPTION_KEYS lacks") {
			t.Errorf("check does not name the key:\n%s", out)
		}
	}
	want("1 of 1")
	p.must(t, p.Dir, "backup", "create") // under the new key
	want("1 of 2")
	wantCheck(t, both, p.Dir, 0, map[string]string{"backup": "ok"})
	p.Env = alone
	p.must(t, p.Dir, "backup", "verify")
	oldest, err := filepath.Glob(filepath.Join(p.Dir, "snapshots", "vigil-*.age"))
	if err != nil || len(oldest) != 2 {
		t.Fatal(oldest, err)
	}
	p.mustFail(t, oldID, p.Dir, "backup", "verify", filepath.Base(oldest[0]))
}

// The restore drill with the default settings, in which backups are in the old data folder: a backup is named by its file.
func TestRestoreDrillWithDefaultSettings(t *testing.T) {
	t.Parallel()
	p := newPractice(t).serve(t, "")
	patient := p.patient(t, object{"last_name": "Drill", "mrn": "DRILL-1"})
	said := p.must(t, p.Dir, "backup", "create")
	name, _, _ := strings.Cut(said, ":")
	file, fresh := filepath.Join(p.Dir, "snapshots", name), filepath.Join(t.TempDir(), "new")
	p.mustFail(t, "name the path of a backup's file", fresh, "backup", "restore", name)
	p.mustFail(t, "there is no file", fresh, "backup", "restore", file+"x")
	p.must(t, filepath.Join(t.TempDir(), "scratch"), "backup", "verify", file)
	p.must(t, fresh, "backup", "restore", file)
	p.must(t, fresh, "audit", "verify")
	if err := p.Stop(t); err != nil {
		t.Fatal(err)
	}
	p.Dir = fresh
	p.serve(t, "")
	p.get(t, "/api/v1/patients/"+patient+"/", p.Admin(t)).expect(t, 200)
}

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Wrong usage is reported, exits with status 2, and changes nothing. Source: docs/operations.md, "Commands".
func TestMistypedCommands(t *testing.T) {
	t.Parallel()
	p := newPractice(t)
	dir := filepath.Join(t.TempDir(), "data")
	for _, line := range []string{
		"superuser frob", "superuser", "backup verify a b", "backup restore a b", "claims export", "claims export --month 2026-1 --out .",
		"claims export --month 2026-01 --out nowhere", "serve --http :99999999", "serve --http banana", "serv",
	} {
		want := 2
		if line == "superuser" { // prints the list of its subcommands
			want = 0
		}
		status, _, said := vigil(t, p.Env, "", append(strings.Fields(line), "--dir", dir)...)
		if status != want || (status != 0) != strings.Contains(said, "see vigil help") || strings.Contains(said, "vigil: \n") {
			t.Errorf("vigil %s ended with %d, want %d, and printed %q", line, status, want, said)
		}
	}
	wantNoFolder(t, dir)
}

// A mistyped --dir does not create an empty practice that looks healthy.
func TestMistypedFolder(t *testing.T) {
	t.Parallel()
	p := newPractice(t)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"ingestion replay", "ingestion import " + file, "superuser unlock a@vigil.test", "superuser reset-2fa a@vigil.test",
		"superuser delete a@vigil.test", "transmissions retry --since 3d", "jobs list", "audit verify", "keys rotate", "backup create",
	} {
		dir := filepath.Join(t.TempDir(), "data")
		wantComplaint(t, p.Env, "", strings.Fields(line), dir, "there is no database in "+dir)
		wantNoFolder(t, dir)
	}
	dir := filepath.Join(t.TempDir(), "data")
	wantComplaint(t, p.Env, "", []string{"backup", "verify"}, dir, "there is no backup in the folder "+filepath.Join(dir, "snapshots"))
}

// check reports everything that prevents a start. Source: docs/decisions/operating.md, "Check".
func TestCheckReportsStartFailures(t *testing.T) {
	t.Parallel()
	p := newPractice(t)
	serve := []string{"serve", "--http", "127.0.0.1:0"}
	log := filepath.Join(t.TempDir(), "nowhere", "vigil.log")
	for name, wrong := range map[string]struct{ setting, subject, says string }{
		"a log that cannot be written": {"VIGIL_LOG_FILE=" + log, "settings", "VIGIL_LOG_FILE"},
		"no settings key":              {"VIGIL_SETTINGS_KEY=", "keys", "VIGIL_SETTINGS_KEY is not set"},
	} {
		t.Run(name, func(t *testing.T) {
			env := with(p.Env, wrong.setting)
			if said := wantCheck(t, env, p.Dir, 1, map[string]string{wrong.subject: "fail"}); !strings.Contains(said, wrong.says) {
				t.Errorf("check prints\n%s", said)
			}
			wantComplaint(t, env, "", serve, p.Dir, wrong.says)
		})
	}
	said := wantCheck(t, with(p.Env, "VIGIL_LOG_FILE="+filepath.Join(t.TempDir(), "new.log")), p.Dir, 2, map[string]string{"settings": "ok"})
	if strings.Contains(said, "VIGIL_LOG_FILE") {
		t.Error(said)
	}
}

// Settings that start but fail later are warnings: a public address that cannot be reached, backups in the wrong place.
func TestCheckWarnings(t *testing.T) {
	t.Parallel()
	p := newPractice(t)
	if err := os.Chmod(filepath.Join(p.Dir, "data.db"), 0o600); err != nil { // as the first start leaves it
		t.Fatal(err)
	}
	p.must(t, p.Dir, "backup", "create")
	for _, address := range []string{"https://localhost:8443", "https://127.0.0.1", "https://[::1]"} {
		env := with(p.Env, "VIGIL_ENVIRONMENT=production", "VIGIL_PUBLIC_URL="+address)
		if said := wantCheck(t, env, p.Dir, 2, map[string]string{"settings": "warn"}); !strings.Contains(said, "VIGIL_PUBLIC_URL is a loopback address") {
			t.Errorf("%s: check prints\n%s", address, said)
		}
	}
	wantCheck(t, with(p.Env, "VIGIL_ENVIRONMENT=production", "VIGIL_PUBLIC_URL=https://rpm.example.org"), p.Dir, 0, map[string]string{"settings": "ok"})
	unmounted := filepath.Join(t.TempDir(), "mnt", "backups")
	if said := wantCheck(t, with(p.Env, "VIGIL_BACKUP_FOLDER="+unmounted), p.Dir, 2, map[string]string{"backup": "warn"}); !strings.Contains(said, "there is none in "+unmounted) {
		t.Errorf("check prints\n%s", said)
	}
	wantCheck(t, p.Env, p.Dir, 0, map[string]string{"folder": "ok"}, "--deep")
	p.damage(t)
	for _, arguments := range [][]string{{"--deep"}, nil} {
		if said := wantCheck(t, p.Env, p.Dir, 1, map[string]string{"folder": "fail"}, arguments...); !strings.Contains(said, "the database is damaged") {
			t.Errorf("%v: %s", arguments, said)
		}
	}
}

// A backup folder that cannot be written is reported in one sentence, before the database is copied.
func TestBackupReportsUnwritableFolder(t *testing.T) {
	t.Parallel()
	p := newPractice(t)
	folder := filepath.Join(t.TempDir(), "backups")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	mountDisk(t, folder, "size=1m", unix.MS_RDONLY)
	wantComplaint(t, with(p.Env, "VIGIL_BACKUP_FOLDER="+folder), "", []string{"backup", "create"}, p.Dir, "the folder "+folder+" cannot be written: read-only file system")
}

// Log lines print durations with units.
func TestLogDurationUnits(t *testing.T) {
	t.Parallel()
	p := newPractice(t).serve(t, "")
	p.runJob(t, "database-upkeep")
	eventually(t, within, "the job has ended", func() bool { return strings.Contains(p.Output(), `"took":`) })
	for line := range strings.Lines(p.Output()) {
		if strings.Contains(line, `"took":`) && !strings.Contains(line, `"took":"`) {
			t.Error(line)
		}
	}
}

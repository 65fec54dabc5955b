package e2e

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vigilhealth/vigil/internal/sqlite"
)

// checkLine matches a line of check.
var checkLine = regexp.MustCompile(`^(ok|warn|fail) ([A-Za-z]+): \S.*$`)

// wantCheck runs check and compares its exit status and the worst level of some subjects. It returns its output.
func wantCheck(t *testing.T, env []string, dir string, status int, want map[string]string, flags ...string) string {
	t.Helper()
	got, out, errOut := vigil(t, env, "", append(append([]string{"check"}, flags...), "--dir", dir)...)
	worst := map[string]string{}
	for line := range strings.Lines(out) {
		parts := checkLine.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if parts == nil {
			t.Fatalf("not a line of check: %q", line)
		}
		if before := worst[parts[2]]; before == "" || before == "ok" || parts[1] == "fail" {
			worst[parts[2]] = parts[1]
		}
	}
	if got != status || errOut != "" {
		t.Errorf("check ended with %d, want %d; %s\n%s", got, status, errOut, out)
	}
	for subject, word := range want {
		if worst[subject] != word {
			t.Errorf("%s: %s, want %s\n%s", subject, worst[subject], word, out)
		}
	}
	return out
}

// with returns an environment with other settings.
func with(env []string, settings ...string) []string {
	return append(append([]string(nil), env...), settings...)
}

// set writes to the practice's database from outside the service.
func (p *practice) set(t *testing.T, statement string) {
	t.Helper()
	db := sqlite.File(filepath.Join(p.Dir, "data.db"), "busy_timeout(10000)")
	if _, err := db.NewQuery(statement).Execute(); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// check reports what would stop the service or a backup in advance. Source: docs/decisions/operating.md, "Check".
func TestCheck(t *testing.T) {
	t.Parallel()
	p := newPractice(t)
	fresh := filepath.Join(t.TempDir(), "data")
	wantCheck(t, p.Env, fresh, 2, map[string]string{
		"settings": "ok", "folder": "warn", "keys": "ok", "disk": "ok", "time": "ok", "SMTP": "ok", "EMR": "ok", "bucket": "ok", "certificate": "ok", "backup": "warn",
	})
	wantNoFolder(t, fresh)
	p.serve(t, "")
	wantCheck(t, p.Env, p.Dir, 2, map[string]string{"folder": "ok", "keys": "ok", "backup": "warn"})
	p.must(t, p.Dir, "backup", "create")
	wantCheck(t, p.Env, p.Dir, 0, map[string]string{"settings": "ok", "folder": "ok", "keys": "ok", "backup": "ok"})

	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	wantCheck(t, with(p.Env, "VIGIL_BACKUP_FOLDER="+file), p.Dir, 1, map[string]string{"backup": "fail"})
	wantCheck(t, with(p.Env, "VIGIL_BACKUP_FOLDER="+filepath.Join(file, "below")), p.Dir, 1, map[string]string{"backup": "fail"})
	wantCheck(t, with(p.Env, "VIGIL_BACKUP_RECIPIENTS=age1wrong"), p.Dir, 1, map[string]string{"settings": "fail"})
	wantCheck(t, with(p.Env, "VIGIL_ENVIRONMENT=production"), p.Dir, 1, map[string]string{"settings": "fail", "folder": "ok"})
	wantCheck(t, with(p.Env, strayKey), p.Dir, 1, map[string]string{"keys": "fail", "settings": "ok"})
	wantCheck(t, p.Env, file, 1, map[string]string{"folder": "fail"})
	p.set(t, "INSERT INTO job_runs (job, scheduled_at, started_at, status) VALUES ('ages', '', '2099-01-01T00:00:00.000000Z', 'succeeded')")
	wantCheck(t, p.Env, p.Dir, 1, map[string]string{"time": "fail"})
}

// Without --deep no system is contacted. With it each is reported in one sentence, without secrets and without its response.
func TestCheckDeep(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	bucket := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `<?xml version="1.0"?><Error><Code>NoSuchBucket</Code><Message>The specified bucket does not exist</Message><BucketName>x</BucketName></Error>`)
	}))
	t.Cleanup(bucket.Close)
	mail, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = mail.Close() })
	go func() {
		for {
			connection, err := mail.Accept()
			if err != nil {
				return
			}
			asked.Add(1)
			_, _ = connection.Write([]byte("554 Zyxomarka is not welcome\r\n"))
			_ = connection.Close()
		}
	}()
	_, port, err := net.SplitHostPort(mail.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	p := newPractice(t, append(emrSettings(bucket.URL), "VIGIL_SMTP_HOST=127.0.0.1", "VIGIL_SMTP_PORT="+port, "VIGIL_SMTP_FROM=vigil@vigil.test",
		"VIGIL_SMTP_USERNAME=vigil", "VIGIL_SMTP_PASSWORD=hush-hush-mail", "VIGIL_BACKUP_S3_BUCKET=elm-street", "VIGIL_BACKUP_S3_ENDPOINT="+bucket.URL,
		"VIGIL_BACKUP_S3_ACCESS_KEY=access", "VIGIL_BACKUP_S3_SECRET=hush-hush-bucket", "VIGIL_BACKUP_S3_FORCE_PATH_STYLE=true")...)
	out := wantCheck(t, p.Env, p.Dir, 2, map[string]string{"SMTP": "ok", "EMR": "ok", "bucket": "ok"})
	if n := asked.Load(); n > 0 {
		t.Errorf("%d systems were contacted", n)
	}
	deep := wantCheck(t, p.Env, p.Dir, 1, map[string]string{"SMTP": "fail", "EMR": "fail", "bucket": "fail"}, "--deep")
	for _, secret := range []string{"hush-hush", "Zyxomarka", "<", valueOf(p.Env, "VIGIL_GATEWAY_WEBHOOK_SECRET"), valueOf(p.Env, "VIGIL_SETTINGS_KEY")} {
		if strings.Contains(out+deep, secret) {
			t.Errorf("check prints %q\n%s", secret, deep)
		}
	}
	if !strings.Contains(deep, "there is no such bucket") {
		t.Error(deep)
	}
	said, err := p.command(t, p.Dir, "backup", "list")
	if err == nil || !strings.Contains(said, "there is no such bucket") || strings.Contains(said, "<") {
		t.Errorf("backup list printed %s", said)
	}
}

// A production service does not start without a public address, with a newer program's database, or with TLS but no
// certificate.
func TestInvalidSettingsPreventStart(t *testing.T) {
	t.Parallel()
	p := newPractice(t)
	serve := []string{"serve", "--http", "127.0.0.1:0"}
	wantComplaint(t, with(p.Env, "VIGIL_ENVIRONMENT=production"), "", serve, p.Dir, "VIGIL_PUBLIC_URL")
	wantComplaint(t, p.Env, "", []string{"serve", "--https", freeAddr(t)}, p.Dir, "VIGIL_TLS_CERT_FILE")
	wantComplaint(t, with(p.Env, "VIGIL_BACKUP_RECIPIENTS=age1wrong"), "", serve, p.Dir, "VIGIL_BACKUP_RECIPIENTS")
	before := contentOf(t, p.Dir)["data.db"]
	p.set(t, "INSERT INTO _migrations (file, applied) VALUES ('1999999999_of_tomorrow.go', 1)")
	for _, args := range [][]string{serve, {"backup", "create"}, {"audit", "verify"}, {"jobs", "list"}} {
		wantComplaint(t, p.Env, "", args, p.Dir, "1999999999_of_tomorrow.go")
	}
	p.set(t, "DELETE FROM _migrations WHERE file = '1999999999_of_tomorrow.go'")
	if len(contentOf(t, p.Dir)["data.db"]) != len(before) {
		t.Error("a refused start changed the database")
	}
	p.serve(t, "")
}

// A full disk is reported as unhealthy by health, metrics and log, and its recovery is reported too.
func TestFullDiskIsUnhealthy(t *testing.T) {
	t.Parallel()
	metrics := freeAddr(t)
	p := newPractice(t, "VIGIL_METRICS_ADDR="+metrics).serve(t, "")
	health := func() (int, string) {
		answer := p.get(t, "/health/", "")
		return answer.status, fmt.Sprint(at(t, answer, "services.database.status"))
	}
	limit := func(bytes uint64) {
		if err := unix.Prlimit(p.cmd.Process.Pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: bytes, Max: unix.RLIM_INFINITY}, nil); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, within, "the database is healthy", func() bool { status, word := health(); return status == 200 && word == "healthy" })
	limit(4096)
	eventually(t, within, "the database is down", func() bool { status, word := health(); return status == 503 && word == "down" })
	if samples, _ := scrape(t, metrics); sum(samples, "vigil_service_health", `"database"`) != 0 || sum(samples, "vigil_disk_free_bytes") <= 0 {
		t.Error("the metrics do not report it")
	}
	limit(unix.RLIM_INFINITY)
	eventually(t, within, "the database is well again", func() bool { status, word := health(); return status == 200 && word != "down" })
	for _, line := range []string{`"msg":"database check failed: the database cannot be written; readings are rejected until it can"`, `"msg":"service down","service":"database"`, `"msg":"service back","service":"database"`} {
		eventually(t, within, line+" is logged", func() bool { return strings.Contains(p.Output(), line) }) // logged shortly after the answer
		if strings.Count(p.Output(), line) != 1 {
			t.Errorf("%s is not logged once\n%s", line, p.Output())
		}
	}
}

// On a full disk readings are refused and health reports it; the service recovers when there is space again.
func TestDiskRunsFull(t *testing.T) {
	t.Parallel()
	p := newPractice(t)
	disk := t.TempDir()
	mountDisk(t, disk, "size=160m", 0)
	dir := filepath.Join(disk, "data")
	if err := os.CopyFS(dir, os.DirFS(p.Dir)); err != nil {
		t.Fatal(err)
	}
	p.Dir = dir
	patient := p.serve(t, "").patient(t, nil)
	ago := time.Duration(0)
	read := func() int {
		ago += time.Second // a different time for each
		return p.post(t, "/api/v1/ingestion/blood-pressure/", p.Admin(t), bloodPressure(patient, 120, 80, time.Now().Add(-ago))).status
	}
	health := func() string { return fmt.Sprint(at(t, p.get(t, "/health/", ""), "services.database.status")) }
	eventually(t, within, "the database is healthy", func() bool { return health() == "healthy" })
	if status := read(); status != 201 {
		t.Fatalf("a reading: %d", status)
	}
	filler := filepath.Join(disk, "filler")
	file, err := os.Create(filler)
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = file.Write(make([]byte, 4096))
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	wantCheck(t, p.Env, p.Dir, 1, map[string]string{"disk": "fail"})
	eventually(t, within, "it is known that the disk is full", func() bool { return health() != "healthy" })
	eventually(t, 2*within, "a reading is refused", func() bool { return read() == 503 })
	for _, path := range []string{"/api/v1/patients/", "/api/v1/triage/patients/", "/api/v1/patients/" + patient + "/"} { // each read is audited
		if a := p.get(t, path, p.Admin(t)); a.status != 503 && a.status != 200 {
			t.Errorf("%s: %d with a full disk", path, a.status)
		}
	}
	looks := func() any { return at(t, p.get(t, "/health/", ""), "timestamp") }
	for range 2 {
		last := looks()
		eventually(t, within, "health is looked at", func() bool { return looks() != last })
	}
	if status, word := p.get(t, "/health/", "").status, health(); (status != 503 || word != "down") && read() == 503 {
		t.Errorf("readings are refused, and health answers %d, %s", status, word)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	eventually(t, within, "all is well again", func() bool { return read() == 201 && health() == "healthy" })
}

// owners returns the files of a folder by owner.
func owners(t *testing.T, dir string) map[uint32][]string {
	t.Helper()
	found := map[uint32][]string{}
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) {
			return nil // a journal that was deleted
		}
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		uid := info.Sys().(*syscall.Stat_t).Uid
		found[uid] = append(found[uid], path)
		if entry.Type().IsRegular() && info.Mode().Perm()&0o007 != 0 {
			t.Errorf("%s is readable by others: %s", path, info.Mode())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// nobodyUID is a user id without other files.
const nobodyUID = 65534

// newUnprivilegedPractice returns a practice with files that belong to that user, as with a service user. It skips the test without
// root.
func newUnprivilegedPractice(t *testing.T) *practice {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("changing the owner of files requires root")
	}
	p := newPractice(t)
	err := filepath.WalkDir(p.Dir, func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Chmod(path, 0o700), os.Chown(path, nobodyUID, nobodyUID))
	})
	if err != nil {
		t.Fatal(err)
	}
	for dir := filepath.Dir(p.Dir); dir != os.TempDir(); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// mountDisk mounts a small disk on a folder. It skips the test without root.
func mountDisk(t *testing.T, folder, options string, flags uintptr) {
	t.Helper()
	if err := unix.Mount("none", folder, "tmpfs", flags, options); err != nil {
		t.Skip("mounting a disk requires root: ", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(folder, unix.MNT_DETACH) })
}

// Commands run by root leave no file that the practice's service cannot open.
func TestRootKeepsOwners(t *testing.T) {
	t.Parallel()
	p := newUnprivilegedPractice(t)
	keys := filepath.Join(t.TempDir(), "keys") // readable by root only
	if err := os.WriteFile(keys, []byte(valueOf(p.Env, "VIGIL_ENCRYPTION_KEYS")), 0o600); err != nil {
		t.Fatal(err)
	}
	p.Env = with(p.Env, "VIGIL_ENCRYPTION_KEYS=", "VIGIL_ENCRYPTION_KEYS_FILE="+keys)
	for _, args := range [][]string{{"backup", "create"}, {"backup", "verify"}, {"audit", "verify"}, {"jobs", "list"}, {"backup", "restore", "--replace"}} {
		p.must(t, p.Dir, args...)
	}
	wantCheck(t, p.Env, p.Dir, 0, nil)
	if found := owners(t, p.Dir); len(found) != 1 || len(found[nobodyUID]) == 0 {
		t.Errorf("files belong to %v", found)
	}
}

// Backups are not readable by others with any umask.
func TestFilePermissionsOfBackups(t *testing.T) {
	t.Parallel()
	p := newPractice(t).serve(t, "")
	p.must(t, p.Dir, "backup", "create")
	owners(t, p.Dir)
	eventually(t, 10*time.Second, "the service answers", func() bool { return p.get(t, "/health/live", "").status == 200 })
}

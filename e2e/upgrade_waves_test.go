package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// VIGIL_TEST_CELLS practices (20 in make drills) are upgraded from the previous version in waves, as in docs/upgrading.md,
// while devices send to each: the canary, a tenth, then thirds. No answered reading is lost or doubled, practices not yet
// upgraded are unaffected, and each reports its version.
func TestWaves(t *testing.T) {
	count, err := strconv.Atoi(os.Getenv("VIGIL_TEST_CELLS"))
	if err != nil || count < 4 {
		t.Skip("VIGIL_TEST_CELLS=20 upgrades so many practices in waves")
	}
	older := olderProgram(t)
	var cells []*cell
	for i := range count {
		cells = append(cells, olderCell(t, older, fmt.Sprintf("practice-%02d", i)))
	}
	loads := map[*cell]*webhookSenders{}
	for _, c := range cells {
		loads[c] = startSenders(http.DefaultClient, c.URL, c.WebhookSecret, "GW-1")
	}
	for done, end := range waves(count) {
		var before []*cell
		if done > 0 {
			before = cells[:waves(count)[done-1]]
		}
		for _, c := range cells[len(before):end] {
			if err := c.Stop(t); err != nil {
				t.Fatal(err)
			}
			c.serve(t, c.addr)
		}
		for i, c := range cells {
			loads[c].await(t, 3)
			want := "older"
			if i < end {
				want = "development"
			}
			wantAt(t, c.get(t, "/health/", ""), object{"version": want}) // the database of a busy machine may be slow, which is 503
		}
	}
	answered := 0
	for _, c := range cells {
		sent := loads[c].stop()
		answered += len(sent)
		if there := c.wantIntact(t); countMissing(sent, there) > 0 || len(there) > len(sent)+1 { // one reading may be stored whose answer was lost
			t.Errorf("%s: of %d readings that were answered %d are not there; %d are", c.name, len(sent), countMissing(sent, there), len(there))
		}
		if err := c.Stop(t); err != nil {
			t.Errorf("%s ends with %v", c.name, err)
		}
	}
	t.Logf("%d practices upgraded in waves of %v, with %d readings answered during the upgrade", count, waves(count), answered)
}

// waves returns the number of upgraded practices after each wave: one, a tenth, then thirds of the rest.
func waves(count int) []int {
	tenth := 1 + max(1, count/10)
	third := (count - tenth + 2) / 3
	return slices.Compact([]int{1, tenth, min(count, tenth+third), min(count, tenth+2*third), count})
}

// olderProgram builds the commit before the last schema change, or this commit if the history is too short.
func olderProgram(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	program, source := filepath.Join(folder, "vigil"), "."
	changed, err := exec.CommandContext(t.Context(), "git", "log", "-1", "--diff-filter=A", "--format=%H", "--", "migrations").Output()
	if commit := strings.TrimSpace(string(changed)); err == nil && commit != "" {
		if packed, err := exec.CommandContext(t.Context(), "git", "archive", commit+"^").Output(); err == nil {
			source = filepath.Join(folder, "source")
			if err := os.Mkdir(source, 0o700); err != nil {
				t.Fatal(err)
			}
			unpack := exec.CommandContext(t.Context(), "tar", "-x", "-C", source)
			unpack.Stdin = bytes.NewReader(packed)
			if out, err := unpack.CombinedOutput(); err != nil {
				t.Fatalf("tar: %v\n%s", err, out)
			}
		}
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-ldflags", "-X main.version=older", "-o", program, ".")
	build.Dir, build.Env = source, append(os.Environ(), "GOEXPERIMENT=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return program
}

// olderCell returns a practice created and served by the older program.
func olderCell(t *testing.T, older, name string) *cell {
	t.Helper()
	c := &cell{practice: &practice{Dir: filepath.Join(t.TempDir(), name)}, name: name, addr: freeAddr(t)}
	c.Env = append(strings.Split(strings.TrimSpace(c.must(t, c.Dir, "keys", "generate")), "\n"),
		"VIGIL_RATE_LIMIT_USER=0", "VIGIL_RATE_LIMIT_ANON=0", "VIGIL_RATE_LIMIT_AUTH=0", "VIGIL_RATE_LIMIT_WEBHOOK=0", "VIGIL_BACKUP_KEEP=0")
	c.WebhookSecret = valueOf(c.Env, "VIGIL_GATEWAY_WEBHOOK_SECRET")
	create := exec.CommandContext(t.Context(), older, "admin", "create", "--email", adminEmail, "--first-name", "Ada", "--last-name", "Minns", "--password-stdin", "--dir", c.Dir)
	create.Env, create.Stdin = environ(c.Env), strings.NewReader(password+"\n")
	if out, err := create.CombinedOutput(); err != nil {
		t.Fatalf("admin create: %v\n%s", err, out)
	}
	c.process = beginProgram(t, older, c.Env, "serve", "--dir", c.Dir, "--http", c.addr)
	c.process.URL, c.process.Dir = "http://"+c.addr, c.Dir
	c.URL = c.process.URL
	c.awaitAnswer(t, "/health/live")
	c.patient = c.practice.patient(t, object{"first_name": "Ann", "last_name": name, "gateway_patient_id": "GW-1"})
	return c
}

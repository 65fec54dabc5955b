package e2e

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The commands of docs/three-practices.md are run with the real Caddy, Dex and Prometheus' own library. Paths point to a
// scratch folder, ports are free ones, and a stand-in for systemd runs the shipped units.
func TestThreePractices(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("three practices, and minutes until an alert fires")
	}
	for _, needed := range []string{"bash", "curl", "openssl", "caddy", "tar"} {
		if _, err := exec.LookPath(needed); err != nil {
			t.Skipf("%s is not installed: the page is not tested", needed)
		}
	}
	page, err := os.ReadFile("docs/three-practices.md")
	if err != nil {
		t.Fatal(err)
	}
	scratch := scratchMachine(t)
	blocks := strings.Split(rewritePage(t, string(page), scratch), "\n## ")[1:]
	script := "set -e -o pipefail\n"
	for _, section := range blocks {
		if shell := shellBlocks(section); len(shell) > 0 {
			name, _, _ := strings.Cut(section, "\n")
			script += "echo '" + between + name + "'\n" + strings.Join(shell, "\n") + "\n"
		}
	}
	wantShown(t, runPage(t, scratch, script))
}

// between separates sections of the output; the page's headings follow it.
const between = "#### "

// runPage runs the blocks and returns their output by heading.
func runPage(t *testing.T, scratch, script string) map[string]string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", script)
	cmd.Dir = filepath.Join(scratch, "root")
	path := []string{filepath.Join(scratch, "tools"), filepath.Join(scratch, "usr/local/bin"), os.Getenv("PATH")}
	cmd.Env = append(environ(nil), "PATH="+strings.Join(path, ":"), "SCRATCH="+scratch, "CURL_HOME="+scratch, "HOME="+cmd.Dir, "XDG_CONFIG_HOME="+cmd.Dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // processes started by the page end with it
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, err := cmd.CombinedOutput()
	eventually(t, within, "what the page started has ended", func() bool {
		return errors.Is(syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL), syscall.ESRCH)
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	said := map[string]string{}
	for _, section := range strings.Split(string(out), between)[1:] {
		heading, text, _ := strings.Cut(section, "\n")
		said[heading] = text
	}
	return said
}

// wantShown compares the output with what the page shows.
func wantShown(t *testing.T, said map[string]string) {
	t.Helper()
	promises := map[string]map[string]int{
		"2. The list":                     {"3 practices, 14 files, 14 of them new or changed, 0 removed": 1},
		"7. Start":                        {"ok settings: production, at https://": 3, "\nfail ": 0, `{"status":"healthy","timestamp"`: 3},
		"8. The first administrator":      {"Administrator admin@elm-street.example created.": 1, "Administrator admin@": 3},
		"9. Sign on":                      {`"email":"nurse@elm-street.example"`: 1, `"role":"nurse"`: 3, `"code":"no_role"`: 1},
		"10. A reading through each door": {`"observation_id"`: 9, " has 3 readings\n": 3, ": 200\n": 3, ": 404\n": 6},
		"11. Backups":                     {"is good: 1 patients, 3 readings": 3},
		"12. Figures and alerts":          {"SUCCESS: ": 2, `"__name__":"vigil_backup_last_verified_timestamp_seconds"`: 3, `"alerts":[]`: 2, `"state":"firing"`: 1},
	}
	for heading, wanted := range promises {
		for text, times := range wanted {
			if got := strings.Count(said[heading], text); got != times {
				t.Errorf("%s: the page shows %q %d times, but the output has it %d times\n%s", heading, text, times, got, said[heading])
			}
		}
	}
	fired := regexp.MustCompile(`"alertname":"(\w+)"[^}]*"practice":"([\w-]+)"`).FindAllStringSubmatch(said["12. Figures and alerts"], -1)
	for _, alert := range fired {
		if alert[1] != "VigilDown" || alert[2] != "lakeside" {
			t.Errorf("%s fires of %s", alert[1], alert[2])
		}
	}
}

// scratchMachine prepares a machine as the page expects it: a release's archive in root's folder, the tools in the path,
// empty system folders.
func scratchMachine(t *testing.T) string {
	t.Helper()
	scratch, release := t.TempDir(), filepath.Join(t.TempDir(), "vigil_1.0.0_linux_amd64")
	for _, folder := range []string{"etc/systemd/system", "var/lib", "var/log", "run", "usr/local/bin", "root"} {
		if err := os.MkdirAll(filepath.Join(scratch, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	tools := filepath.Join(scratch, "tools")
	if err := os.CopyFS(tools, os.DirFS("e2e/testdata/three-practices")); err != nil {
		t.Fatal(err)
	}
	link := func(from, to string) {
		if err := os.Symlink(from, to); err != nil {
			t.Fatal(err)
		}
	}
	link(dexProgram(t), filepath.Join(tools, "dex"))
	prometheus := ownModule(t, "deploy/check", "./prometheus", "Prometheus")
	link(prometheus, filepath.Join(tools, "prometheus"))
	link(prometheus, filepath.Join(tools, "promtool"))
	if err := os.CopyFS(filepath.Join(release, "deploy"), os.DirFS("deploy")); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(release, "deploy", "check")); err != nil {
		t.Fatal(err)
	}
	link(binary(t), filepath.Join(release, "vigil"))
	archive := filepath.Join(scratch, "root", filepath.Base(release)+".tar.gz")
	if out, err := exec.Command("tar", "-czhf", archive, "-C", filepath.Dir(release), filepath.Base(release)).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return scratch
}

// systemPath matches a system path of the page.
var systemPath = regexp.MustCompile(`(^|[\s='"])/(etc|var|run|usr/local)/`)

// rewritePage rewrites the page for a scratch folder and free ports. curl resolves the names, and Caddy's port 443 is another
// one.
func rewritePage(t *testing.T, page, scratch string) string {
	t.Helper()
	page = systemPath.ReplaceAllString(page, "${1}"+scratch+"/$2/")
	port := func() string {
		_, port, _ := net.SplitHostPort(freeAddr(t))
		return port
	}
	for _, known := range []string{"5554", "5556", "9090"} {
		page = strings.ReplaceAll(page, known, port())
	}
	for _, known := range []string{"8101", "8102", "8103"} {
		page = strings.ReplaceAll(page, "port: "+known+"\n", "port: "+port()+"\n    metrics_port: "+port()+"\n")
	}
	secure := port()
	page = strings.ReplaceAll(page, `skip_install_trust/'`, `skip_install_trust\n\thttps_port `+secure+`/'`)
	if !strings.Contains(page, secure) {
		t.Fatal("docs/three-practices.md does not have the expected form")
	}
	if err := os.WriteFile(filepath.Join(scratch, ".curlrc"), []byte("connect-to = "+strconv.Quote(":443:127.0.0.1:"+secure)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return page
}

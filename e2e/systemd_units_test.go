package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// unitMachine is a container whose systemd runs the units of deploy/.
type unitMachine struct {
	init string // process id of systemd on the host
}

// run runs a command in the container as root; in is its standard input.
func (m unitMachine) run(t *testing.T, in string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "nsenter", append([]string{"--target", m.init, "--all"}, args...)...)
	cmd.Stdin = strings.NewReader(in)
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// must runs a command that must succeed.
func (m unitMachine) must(t *testing.T, args ...string) string {
	t.Helper()
	out, err := m.run(t, "", args...)
	if err != nil {
		journal, _ := m.run(t, "", "journalctl", "--no-pager", "--lines=60", "--output=cat") // printed with the failure
		t.Fatalf("%v: %v\n%s\n%s", args, err, out, journal)
	}
	return out
}

// journal returns the log of a unit.
func (m unitMachine) journal(t *testing.T, unit string) string {
	t.Helper()
	return m.must(t, "journalctl", "--no-pager", "--output=cat", "--unit="+unit)
}

// newUnitMachine starts a container with the files. It skips the test where the host does not allow it.
func newUnitMachine(t *testing.T, files, user string) unitMachine {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	said := &strings.Builder{} // read after the process has ended
	cmd := exec.CommandContext(ctx, "unshare", "--fork", "--kill-child", "--pid", "--mount", "--ipc", "--uts", "--cgroup", "e2e/testdata/units/machine.sh", t.TempDir(), files, user)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Log("systemd was told to end:", err)
		}
	})
	var m unitMachine
	eventually(t, time.Minute, "systemd runs", func() bool {
		select {
		case err := <-ended:
			ended <- err
			t.Skipf("the container cannot be started (%v): the units are not tested\n%s", err, said)
		default:
		}
		children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", cmd.Process.Pid, cmd.Process.Pid))
		if m.init = strings.TrimSpace(string(children)); err != nil || m.init == "" {
			return false
		}
		_, err = m.run(t, "", "systemctl", "is-active", "--quiet", "drill.target")
		return err == nil
	})
	return m
}

// The units of deploy/ under a real systemd, installed as their headers describe: started after check by the practice's
// user, restarted after a kill, reloaded, backed up, verified and stopped. They do not start with settings that check
// rejects.
func TestUnits(t *testing.T) {
	t.Parallel()
	if os.Getenv("VIGIL_TEST_UNITS") == "" {
		t.Skip("make drills runs this: VIGIL_TEST_UNITS=1, as root")
	}
	for _, needed := range []string{"unshare", "nsenter", "systemctl", "pivot_root", "useradd"} {
		if _, err := exec.LookPath(needed); err != nil || os.Geteuid() != 0 {
			t.Skipf("%s is missing, or the user is not root: the units are not tested", needed)
		}
	}
	const name = "elm-street"
	addr, files := freeAddr(t), unitFiles(t, name)
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	settings := filepath.Join(files, "etc/vigil", name+".env")
	p := newPractice(t, "PORT="+port, "VIGIL_ENVIRONMENT=production", "VIGIL_PUBLIC_URL=https://elm-street.example", "VIGIL_BACKUP_FOLDER=/var/lib/vigil/"+name+"/backups")
	put(t, settings, strings.Join(p.Env, "\n")+"\n")
	if err := os.Chmod(settings, 0o600); err != nil {
		t.Fatal(err)
	}
	m := newUnitMachine(t, files, "vigil-"+name)
	service, running := "vigil@"+name, &process{URL: "http://" + addr}

	m.must(t, "systemctl", "start", service)
	running.awaitUnit(t)
	if said := m.journal(t, service); !strings.Contains(said, "ok settings: production") || !strings.Contains(said, `"msg":"listening"`) {
		t.Errorf("check and the service print\n%s", said)
	}
	if got := m.must(t, "stat", "--format=%U %a", "/var/lib/vigil/"+name); got != "vigil-"+name+" 700" {
		t.Errorf("the folder is %s", got)
	}
	if files := m.must(t, "find", "/var/lib/vigil/"+name, "-not", "-user", "vigil-"+name, "-o", "-type", "f", "-perm", "/077"); files != "" {
		t.Errorf("files of others, or for others: %s", files)
	}
	main := func() string { return m.must(t, "systemctl", "show", "--value", "--property=MainPID", service) }

	first := main()
	m.must(t, "systemctl", "kill", "--kill-whom=main", "--signal=KILL", service)
	eventually(t, time.Minute, "it is started again", func() bool { now := main(); return now != "0" && now != first })
	running.awaitUnit(t)
	m.must(t, "systemctl", "reload", service)
	eventually(t, time.Minute, "it reloads", func() bool { return strings.Contains(m.journal(t, service), `"msg":"reloaded"`) })

	m.must(t, "systemctl", "start", "vigil-backup@"+name)
	if backups := m.must(t, "find", "/var/lib/vigil/"+name+"/backups", "-type", "f", "-user", "vigil-"+name, "-perm", "600"); backups == "" {
		t.Error("the backup is missing, or readable by others")
	}
	m.must(t, "systemctl", "start", "vigil-verify@"+name)
	if said := m.journal(t, "vigil-verify@"+name); !strings.Contains(said, "is good") {
		t.Errorf("the verification prints\n%s", said)
	}
	m.must(t, "systemctl", "start", "vigil-backup@"+name+".timer", "vigil-verify@"+name+".timer")
	for _, timer := range []string{"vigil-backup@" + name + ".timer", "vigil-verify@" + name + ".timer"} {
		if next := m.must(t, "systemctl", "show", "--value", "--property=NextElapseUSecRealtime", timer); next == "" {
			t.Errorf("%s did not run", timer)
		}
	}

	m.must(t, "systemctl", "stop", service)
	if said := m.journal(t, service); !strings.Contains(said, `"msg":"stopped"`) || main() != "0" {
		t.Errorf("the service did not stop gracefully\n%s", said)
	}
	m.must(t, "sed", "-i", "/^VIGIL_PUBLIC_URL=/d", "/etc/vigil/"+name+".env")
	if out, err := m.run(t, "", "systemctl", "start", service); err == nil {
		t.Errorf("it starts without a public address: %s", out)
	}
	if said := m.journal(t, service); !strings.Contains(said, "fail settings: VIGIL_PUBLIC_URL") {
		t.Errorf("the reason is not logged\n%s", said)
	}
}

// awaitUnit waits until the unit answers.
func (p *process) awaitUnit(t *testing.T) {
	t.Helper()
	eventually(t, time.Minute, "the unit answers", func() bool {
		out, err := exec.Command("curl", "--silent", "--fail", p.URL+"/health/live").CombinedOutput()
		return err == nil && len(out) > 0
	})
}

// unitFiles returns an operator's files: the program, the units, and a practice without Litestream.
func unitFiles(t *testing.T, name string) string {
	t.Helper()
	files := t.TempDir()
	for _, folder := range []string{"etc/vigil", "usr/local/bin", "etc/systemd/system/vigil-verify@" + name + ".service.d"} {
		if err := os.MkdirAll(filepath.Join(files, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	units, err := filepath.Glob("deploy/vigil*@.*")
	if err != nil || len(units) < 5 {
		t.Fatal("the units are not in deploy/", err)
	}
	for _, unit := range units {
		text, err := os.ReadFile(unit)
		if err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(files, "etc/systemd/system", filepath.Base(unit)), string(text))
	}
	put(t, filepath.Join(files, "etc/systemd/system/vigil-verify@"+name+".service.d/no-replica.conf"),
		"[Service]\nExecStart=\nExecStart=/usr/local/bin/vigil backup verify --dir /var/cache/vigil-verify/%i/backup\n")
	if out, err := exec.Command("cp", binary(t), filepath.Join(files, "usr/local/bin/vigil")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return files
}

func put(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

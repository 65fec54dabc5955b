// Package e2e drives the service from outside, as an operator, a device gateway, a client and a thief do: by commands and HTTP, mostly on the
// built binary. What a test cannot see so it reads from the data folder.
package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

var builtOnce = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "vigil-binary-")
	if err != nil {
		return "", err
	}
	if err := fs.WalkDir(os.DirFS("."), "pb_public", func(string, fs.DirEntry, error) error { return nil }); err != nil {
		return "", err // what is embedded is looked at here, or go test would not know that a test has to run again
	}
	path := filepath.Join(dir, "vigil")
	build := exec.Command("go", "build", "-o", path, ".")
	build.Env = append(os.Environ(), "GOEXPERIMENT=") // as it is released, whatever the tests are built with
	out, err := build.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})

// The tests run at the top of the module, where the program is built and the files lie that an operator copies.
func TestMain(m *testing.M) {
	if err := os.Chdir(".."); err != nil {
		panic(err)
	}
	code := m.Run()
	if path, err := builtOnce(); err == nil {
		_ = os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// binary is the path of the built program.
func binary(t testing.TB) string {
	t.Helper()
	path, err := builtOnce()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// process is a running vigil.
type process struct {
	cmd  *exec.Cmd
	URL  string
	Dir  string
	done chan error

	lock sync.Mutex
	out  strings.Builder
}

// Output is all that the process has written so far.
func (p *process) Output() string {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.out.String()
}

func (p *process) collect(r io.Reader) {
	for scanner := bufio.NewScanner(r); scanner.Scan(); {
		p.lock.Lock()
		p.out.WriteString(scanner.Text() + "\n")
		p.lock.Unlock()
	}
}

// launch starts vigil with a command such as "serve" or "demo" on a free port and waits until it answers. env is all of its environment
// beside PATH and HOME.
func launch(t testing.TB, dir string, env []string, command string, args ...string) *process {
	t.Helper()
	return launchAt(t, freeAddr(t), dir, env, command, args...)
}

// launchAt is launch on an address of the caller's choice.
func launchAt(t testing.TB, addr, dir string, env []string, command string, args ...string) *process {
	t.Helper()
	p := begin(t, env, append([]string{command, "--dir", dir, "--http", addr}, args...)...)
	p.URL, p.Dir = "http://"+addr, dir
	p.awaitAnswer(t, "/health/live")
	return p
}

// begin starts vigil and collects what it writes.
func begin(t testing.TB, env []string, args ...string) *process {
	t.Helper()
	return beginProgram(t, binary(t), env, args...)
}

// beginProgram is begin with another program than the one that is tested, such as an older one.
func beginProgram(t testing.TB, program string, env []string, args ...string) *process {
	t.Helper()
	p := &process{done: make(chan error, 1)}
	p.cmd = exec.Command(program, args...)
	p.cmd.Env = environ(env)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var reading sync.WaitGroup
	reading.Go(func() { p.collect(stdout) })
	reading.Go(func() { p.collect(stderr) })
	go func() {
		reading.Wait()
		p.done <- p.cmd.Wait()
	}()
	t.Cleanup(func() { p.Kill() })
	return p
}

// environ is the environment of a process: env, PATH and HOME.
func environ(env []string) []string {
	return append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}, env...)
}

// awaitAnswer waits until the process answers 200 at a path.
func (p *process) awaitAnswer(t testing.TB, path string) {
	t.Helper()
	eventually(t, 60*time.Second, "vigil answers", func() bool {
		select {
		case err := <-p.done:
			p.done <- err
			t.Fatalf("%v ended: %v\n%s", p.cmd.Args, err, p.Output())
		default:
		}
		answer, err := http.Get(p.URL + path)
		if err != nil {
			return false
		}
		_ = answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	})
}

// Kill ends the process as a power cut would; a second call does nothing.
func (p *process) Kill() {
	_ = p.cmd.Process.Kill()
	err := <-p.done
	p.done <- err
}

// Stop asks the process to end and returns how it did.
func (p *process) Stop(t testing.TB) error {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-p.done:
		p.done <- err
		return err
	case <-time.After(60 * time.Second):
		t.Fatalf("vigil did not stop\n%s", p.Output())
		return nil
	}
}

// Ports that tests hand out lie below those that systems give to outgoing connections, or one of these might take the port of a service
// while it is killed and comes back.
const firstPort, lastPort = 20_000, 32_000

var nextPort atomic.Int64

func init() { nextPort.Store(int64(os.Getpid()) * 97) } // elsewhere than a run beside this one

// freeAddr is an address that nobody listens on, another one each time.
func freeAddr(t testing.TB) string {
	t.Helper()
	for range lastPort - firstPort {
		port := firstPort + nextPort.Add(1)%(lastPort-firstPort)
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue // taken
		}
		_ = listener.Close()
		return listener.Addr().String()
	}
	t.Fatal("no port is free")
	return ""
}

// eventually waits for a condition that another process brings about; the limit is only there to end a broken test.
func eventually(t testing.TB, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-ctx.Done():
			t.Fatalf("gave up waiting: %s", what)
		case <-tick.C:
		}
	}
}

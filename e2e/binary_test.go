// Package e2e tests the service through its public interfaces, as an operator, a device gateway, a client or an attacker: by
// commands and HTTP, mostly on the built binary. State that these do not expose is read from the data folder.
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
		return "", err // reads the embedded files, so that go test invalidates its cache when they change
	}
	path := filepath.Join(dir, "vigil")
	build := exec.Command("go", "build", "-o", path, ".")
	build.Env = append(os.Environ(), "GOEXPERIMENT=") // as released, regardless of the settings of the tests
	out, err := build.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})

// The tests run in the module root, where the program is built and the files that operators copy are.
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

// binary returns the path of the built program.
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

// Output returns everything that the process has written so far.
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

// launch starts vigil with a command such as "serve" or "demo" on a free port and waits until it answers. env is its entire
// environment besides PATH and HOME.
func launch(t testing.TB, dir string, env []string, command string, args ...string) *process {
	t.Helper()
	return launchAt(t, freeAddr(t), dir, env, command, args...)
}

// launchAt starts vigil on a given address.
func launchAt(t testing.TB, addr, dir string, env []string, command string, args ...string) *process {
	t.Helper()
	p := begin(t, env, append([]string{command, "--dir", dir, "--http", addr}, args...)...)
	p.URL, p.Dir = "http://"+addr, dir
	p.awaitAnswer(t, "/health/live")
	return p
}

// begin starts vigil and collects its output.
func begin(t testing.TB, env []string, args ...string) *process {
	t.Helper()
	return beginProgram(t, binary(t), env, args...)
}

// beginProgram starts another program than the tested one, such as an older version.
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

// environ returns the environment of a process: env, PATH and HOME.
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

// Kill ends the process without a shutdown, like a power cut. A second call does nothing.
func (p *process) Kill() {
	_ = p.cmd.Process.Kill()
	err := <-p.done
	p.done <- err
}

// Stop sends SIGTERM and returns the exit error.
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

// Test ports are below the range for outgoing connections, which might otherwise take the port of a service while it
// restarts.
const firstPort, lastPort = 20_000, 32_000

var nextPort atomic.Int64

func init() { nextPort.Store(int64(os.Getpid()) * 97) } // different from a concurrent run

// freeAddr returns an unused address, a different one each time.
func freeAddr(t testing.TB) string {
	t.Helper()
	for range lastPort - firstPort {
		port := firstPort + nextPort.Add(1)%(lastPort-firstPort)
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue // in use
		}
		_ = listener.Close()
		return listener.Addr().String()
	}
	t.Fatal("no port is free")
	return ""
}

// eventually waits for a condition that another process causes. The limit only ends a broken test.
func eventually(t testing.TB, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-ctx.Done():
			t.Fatalf("timed out waiting: %s", what)
		case <-tick.C:
		}
	}
}

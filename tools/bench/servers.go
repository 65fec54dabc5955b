package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/vigilhealth/vigil/cmd/slowcommits"
	"github.com/vigilhealth/vigil/internal/sqlite"
)

const (
	adminEmail    = "bench@vigil.example"
	adminPassword = "Bench-Password-2026!"
)

// built holds what a run needs: the Vigil binary, this program as plain PocketBase with the default driver (plainest) and
// with Vigil's (self), and the settings of Vigil.
type built struct {
	scratch, vigil, self, plainBinary string
	env                               []string
	secret                            string // signs webhook events
}

func build(ctx context.Context, scratch string) (built, error) {
	b := built{scratch: scratch, vigil: filepath.Join(scratch, "vigil")}
	var err error
	if b.self, err = os.Executable(); err != nil {
		return b, err
	}
	if err := compile(ctx, b.vigil, "."); err != nil {
		return b, err
	}
	if b.plainBinary = b.self; sqlite.InC {
		b.plainBinary = filepath.Join(scratch, "plain")
		if err := compileWith(ctx, b.plainBinary, "tools/bench", "", "0"); err != nil {
			return b, err
		}
	}
	block, err := exec.CommandContext(ctx, b.vigil, "keys", "generate").Output()
	if err != nil {
		return b, fmt.Errorf("generate keys: %w", err)
	}
	b.env = strings.Split(strings.TrimSpace(string(block)), "\n")
	for _, limit := range []string{"USER", "ANON", "AUTH", "WEBHOOK", "REALTIME"} {
		b.env = append(b.env, "VIGIL_RATE_LIMIT_"+limit+"=0")
	}
	// All clients connect from one address, and plain PocketBase has no such limit.
	b.env = append(b.env, "VIGIL_MAX_CONNECTIONS_PER_ADDRESS=0", "VIGIL_LOG_LEVEL=error", "VIGIL_BACKUP_KEEP=0")
	for _, line := range b.env {
		if secret, ok := strings.CutPrefix(line, "VIGIL_GATEWAY_WEBHOOK_SECRET="); ok {
			b.secret = secret
		}
	}
	return b, nil
}

// compile builds a package with this program's build tags and the given ones, without sqlite_dbstat, which only this program
// needs to read table sizes.
func compile(ctx context.Context, into, what string, tags ...string) error {
	own := slices.DeleteFunc(strings.Split(setting("-tags"), ","), func(tag string) bool { return tag == "sqlite_dbstat" })
	return compileWith(ctx, into, what, strings.Join(append(tags, own...), ","), setting("CGO_ENABLED"))
}

// setting returns a build setting of this program.
func setting(key string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == key {
				return s.Value
			}
		}
	}
	return ""
}

// compileWith builds the module in folder, relative to the top of the tree, into the absolute path into.
func compileWith(ctx context.Context, into, folder, tags, cgo string) error {
	command := exec.CommandContext(ctx, "go", "build", "-C", folder, "-trimpath", "-o", into, "-tags", tags, ".")
	command.Env = append(os.Environ(), "CGO_ENABLED="+cgo)
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}

// slowed returns a build with a delay in every commit, for Vigil and the plain server.
func (b built) slowed(ctx context.Context, delay time.Duration) (built, error) {
	b.vigil = filepath.Join(b.scratch, "vigil-slow")
	b.env = append(slices.Clone(b.env), slowcommits.Setting+"="+delay.String())
	if err := compile(ctx, b.vigil, ".", "slowcommits"); err != nil {
		return b, err
	}
	return b, nil
}

// with returns b with more settings.
func (b built) with(env ...string) built {
	b.env = append(slices.Clone(b.env), env...)
	return b
}

// server is one running process.
type server struct {
	cmd   *exec.Cmd
	addr  string
	token string
	dir   string
	ready time.Duration // from start to the first healthy answer
	people
}

func (s *server) stop() {
	if s == nil || s.cmd.Process == nil {
		return
	}
	s.end()
	_ = os.RemoveAll(s.dir)
}

// end stops the process gracefully and keeps its folder.
func (s *server) end() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // fails when the process has already exited
	_ = s.cmd.Wait()                          // the exit status does not matter
}

// kill ends the process without a shutdown, like a power cut, and keeps its folder.
func (s *server) kill() {
	_ = s.cmd.Process.Kill() // fails when the process has already exited
	_ = s.cmd.Wait()         // killed
}

// candidate starts Vigil on a new, seeded folder and signs in.
func (b built) candidate(ctx context.Context, c content) (*server, error) {
	dir, err := os.MkdirTemp(b.scratch, "vigil-*")
	if err != nil {
		return nil, err
	}
	create := exec.CommandContext(ctx, b.vigil, "admin", "create", "--email", adminEmail, "--password-stdin", "--dir", dir)
	create.Env, create.Stdin = b.environ(), strings.NewReader(adminPassword+"\n")
	if out, err := create.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("create admin: %w\n%s", err, out)
	}
	people, err := seed(ctx, dir, b.env, c)
	if err != nil {
		return nil, err
	}
	s, err := b.start(ctx, dir)
	if err != nil {
		return nil, err
	}
	s.people = people
	s.token, err = s.signIn(ctx)
	return s, err
}

func (b built) environ() []string {
	return append(slices.Clone(b.env), "PATH="+os.Getenv("PATH"), "HOME="+os.Getenv("HOME"), "TMPDIR="+b.scratch)
}

// start runs Vigil on an existing folder.
func (b built) start(ctx context.Context, dir string) (*server, error) {
	s := &server{addr: freeAddr(), dir: dir}
	s.cmd = exec.CommandContext(ctx, b.vigil, "serve", "--http", s.addr, "--dir", dir)
	s.cmd.Env, s.cmd.Stderr = b.environ(), os.Stderr
	began := time.Now()
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	err := s.await(ctx, "/health/live")
	s.ready = time.Since(began)
	return s, err
}

func freeAddr() string {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // closed at once
	if err != nil {
		panic(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

func (s *server) await(ctx context.Context, path string) error {
	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline) && ctx.Err() == nil; time.Sleep(2 * time.Millisecond) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.addr+path, nil)
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			continue
		}
		_ = answer.Body.Close()
		if answer.StatusCode == http.StatusOK {
			return nil
		}
	}
	return fmt.Errorf("%s does not answer: %w", s.addr, context.Cause(ctx))
}

// signIn returns an access token, valid for 15 minutes.
func (s *server) signIn(ctx context.Context) (string, error) {
	body, err := json.Marshal(map[string]string{"email": adminEmail, "password": adminPassword})
	if err != nil {
		return "", err
	}
	status, answer, err := exchange(ctx, s.addr, wire("POST", s.addr, "/api/v1/auth/login/", "", body))
	if err != nil {
		return "", err
	}
	var tokens struct{ Access string }
	if err := json.Unmarshal(answer, &tokens); err != nil || tokens.Access == "" {
		return "", fmt.Errorf("sign-in answered %d: %w", status, err)
	}
	return tokens.Access, nil
}

// memory is the process's peak resident memory in MB.
func (s *server) memory() float64 { return memoryOf(s.cmd.Process.Pid) }

func memoryOf(process int) float64 {
	peak := strings.TrimSuffix(field(fmt.Sprintf("/proc/%d/status", process), "VmHWM"), " kB")
	kB, _ := strconv.ParseFloat(peak, 64) // 0 when unknown
	return kB / 1024
}

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
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

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase"
	"github.com/pocketbase/pocketbase/apis"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/bench/slow"
	"github.com/vigilhealth/vigil/internal/sqlite"
)

const (
	adminEmail    = "bench@vigil.example"
	adminPassword = "Bench-Password-2026!"
)

// built is what the whole run uses: the binary, this program as plain PocketBase, as it comes and with the driver that the binary has, and the
// candidate's secrets.
type built struct {
	scratch, vigil, self, plainest string
	env                            []string
	secret                         string // of webhook signatures
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
	if b.plainest = b.self; sqlite.InC {
		b.plainest = filepath.Join(scratch, "plain")
		if err := compileWith(ctx, b.plainest, "./internal/bench", "", "0"); err != nil {
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
	// All clients of a run come from one address, and plain PocketBase has no such limit.
	b.env = append(b.env, "VIGIL_MAX_CONNECTIONS_PER_ADDRESS=0", "VIGIL_LOG_LEVEL=error", "VIGIL_BACKUP_KEEP=0")
	for _, line := range b.env {
		if secret, ok := strings.CutPrefix(line, "VIGIL_GATEWAY_WEBHOOK_SECRET="); ok {
			b.secret = secret
		}
	}
	return b, nil
}

// compile builds a package with the tags that this program was built with, and more.
func compile(ctx context.Context, into, what string, tags ...string) error {
	return compileWith(ctx, into, what, strings.Join(append(tags, setting("-tags")), ","), setting("CGO_ENABLED"))
}

// setting is how this program was built.
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

func compileWith(ctx context.Context, into, what, tags, cgo string) error {
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", into, "-tags", tags, what)
	command.Env = append(os.Environ(), "CGO_ENABLED="+cgo)
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}

// slowed is the same with a delay in every commit, of the plain server too.
func (b built) slowed(ctx context.Context, delay time.Duration) (built, error) {
	b.vigil = filepath.Join(b.scratch, "vigil-slow")
	b.env = append(slices.Clone(b.env), slow.Setting+"="+delay.String())
	if err := compile(ctx, b.vigil, ".", "slowcommits"); err != nil {
		return b, err
	}
	return b, nil
}

// with is the same with more settings.
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
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // it may be gone already
	_ = s.cmd.Wait()                          // its exit status is of no interest
	_ = os.RemoveAll(s.dir)
}

// kill ends the process as a power cut would; its folder stays.
func (s *server) kill() {
	_ = s.cmd.Process.Kill() // it may be gone already
	_ = s.cmd.Wait()         // killed
}

// candidate starts Vigil on a fresh folder.
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

// start runs Vigil on a folder that is there.
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

// plain starts PocketBase as it comes, or with commits as durable as ours.
func (b built) plain(ctx context.Context, full bool, patients, readings int) (*server, error) {
	dir, err := os.MkdirTemp(b.scratch, "plain-*")
	if err != nil {
		return nil, err
	}
	s := &server{addr: freeAddr(), dir: dir}
	s.cmd = exec.CommandContext(ctx, b.plainest, "plain", "-dir", dir, "-http", s.addr, "-patients", strconv.Itoa(patients),
		"-readings", strconv.Itoa(readings), "-full="+strconv.FormatBool(full))
	s.cmd.Env = b.environ()
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	if lines.Scan() {
		s.token = lines.Text()
	}
	go func() {
		for lines.Scan() { // keeps the pipe empty
		}
	}()
	return s, s.await(ctx, "/api/health")
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

// signIn returns an access token, good for a quarter of an hour.
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

// memory is the most resident memory the process has had, in MB.
func (s *server) memory() float64 {
	peak := strings.TrimSuffix(field(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid), "VmHWM"), " kB")
	kB, _ := strconv.ParseFloat(peak, 64) // 0 says that it is unknown
	return kB / 1024
}

// The two collections of the plain server, and who asks.
const (
	plainReadings = "readings"
	plainPatients = "seeded"
	plainUser     = "bench@vigil.example"
)

// numbers begins a statement that [loader.inChunks] runs.
const numbers = `WITH RECURSIVE n(i) AS (SELECT {:from} UNION ALL SELECT i + 1 FROM n WHERE i < {:until}) `

// servePlain is PocketBase as it comes, with one collection that has the fields and indexes of a reading, and a list to
// compare triage with. It prints a user's token as its first line.
func servePlain(args []string) error {
	flags := flag.NewFlagSet("plain", flag.ExitOnError)
	dir, addr := flags.String("dir", "", "data folder"), flags.String("http", "", "address")
	patients, readings := flags.Int("patients", 1, "rows of the list"), flags.Int("readings", 1, "readings stored before")
	full := flags.Bool("full", false, "wait for the disk on every commit")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if err := seedPlain(*dir, *patients, *readings); err != nil {
		return err
	}
	slow.Commits(os.Getenv(slow.Setting))
	synchronous := "NORMAL"
	if *full {
		synchronous = "FULL"
	}
	settings := pocketbase.Config{DefaultDataDir: *dir, HideStartBanner: true, DBConnect: func(path string) (*dbx.DB, error) { return plainConnect(path, synchronous) }}
	app := pocketbase.NewWithConfig(settings)
	if err := app.Bootstrap(); err != nil {
		return err
	}
	user, err := app.FindAuthRecordByEmail("users", plainUser)
	if err != nil {
		return err
	}
	token, err := user.NewStaticAuthToken(24 * time.Hour)
	if err != nil {
		return err
	}
	fmt.Println(token)
	app.OnServe().BindFunc(func(e *core.ServeEvent) error {
		e.InstallerFunc = nil
		return e.Next()
	})
	return apis.Serve(app, apis.ServeConfig{HttpAddr: *addr})
}

// seedPlain makes the two collections and their user, and fills them; patients have a score and a name in clear, as one
// would without encryption.
func seedPlain(dir string, patients, readings int) error {
	app := core.NewBaseApp(core.BaseAppConfig{DataDir: dir, DBConnect: connectLoading})
	if err := app.Bootstrap(); err != nil {
		return err
	}
	defer func() { _ = app.ClearBootstrap() }() // everything is committed
	log.SetFlags(0)
	if err := app.RunAllMigrations(); err != nil {
		return err
	}
	for _, collection := range plainCollections() {
		if err := app.Save(collection); err != nil {
			return err
		}
	}
	l := loader{context.Background(), app}
	err := l.bare(plainPatients, func() error {
		return l.inChunks(max(patients, 1), "plain patients", numbers+`INSERT INTO seeded (id, name, mrn, score, open)
			SELECT printf('p%014d', i + 1), 'Given' || (i % 997) || ' Family' || (i * 7919 % 100003), printf('MRN-%08d', i), i * 7919 % 101, i % 5 FROM n`, dbx.Params{})
	})
	if err != nil {
		return err
	}
	err = l.bare(plainReadings, func() error {
		return l.inChunks(max(readings, 1), "plain readings", numbers+`INSERT INTO readings (id, patient, kind, measured_at, device, systolic, diastolic, pulse, status)
			SELECT printf('o%014d', i), printf('p%014d', i % {:patients} + 1), 'blood_pressure',
				strftime('%Y-%m-%d %H:%M:%fZ', 1700000000 + i * 7, 'unixepoch'), '', 120, 80, 70, 'final' FROM n`, dbx.Params{"patients": max(patients, 1)})
	})
	if err != nil {
		return err
	}
	users, err := app.FindCollectionByNameOrId("users")
	if err != nil {
		return err
	}
	user := core.NewRecord(users)
	user.SetEmail(plainUser)
	user.SetPassword("bench-password-1234")
	return app.Save(user)
}

// plainCollections are readings with the fields and indexes of ours, and the list of patients.
func plainCollections() []*core.Collection {
	signedIn := "@request.auth.id != ''"
	readings := core.NewBaseCollection(plainReadings)
	readings.CreateRule, readings.ListRule = &signedIn, &signedIn
	readings.Fields.Add(
		&core.TextField{Name: "patient", Required: true}, &core.TextField{Name: "kind", Required: true}, &core.TextField{Name: "measured_at", Required: true},
		&core.TextField{Name: "device"}, &core.NumberField{Name: "systolic"}, &core.NumberField{Name: "diastolic"}, &core.NumberField{Name: "pulse"},
		&core.TextField{Name: "status"},
	)
	readings.AddIndex("idx_readings_patient", false, "patient, kind, measured_at", "")
	readings.AddIndex("idx_readings_measured", false, "measured_at", "")
	readings.AddIndex("idx_readings_key", true, "device, measured_at", "device != ''")
	list := core.NewBaseCollection(plainPatients)
	list.ListRule = &signedIn
	list.Fields.Add(&core.TextField{Name: "name"}, &core.TextField{Name: "mrn"}, &core.NumberField{Name: "score"}, &core.NumberField{Name: "open"})
	list.AddIndex("idx_seeded_score", false, "score, open", "")
	return []*core.Collection{readings, list}
}

package e2e

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// replica is Litestream beside a practice, by deploy/litestream.yml, with a folder as the place it copies to.
type replica struct {
	program, config string
	env             []string
	cmd             *exec.Cmd
	done            chan error
}

// replicate starts it, or skips the test where there is no Litestream.
func replicate(t *testing.T, p *practice) *replica {
	t.Helper()
	program, err := exec.LookPath("litestream")
	if err != nil {
		t.Skip("no litestream here: make drills fetches it")
	}
	config, err := filepath.Abs("deploy/litestream.yml")
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "replica")
	r := &replica{program: program, config: config, env: []string{"VIGIL_DATA=" + p.Dir, "REPLICA_URL=file://" + folder}, done: make(chan error, 1)}
	r.cmd = exec.Command(program, "replicate", "-config", config)
	r.cmd.Env, r.cmd.SysProcAttr = environ(r.env), &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { r.done <- r.cmd.Wait() }()
	t.Cleanup(func() { r.end(syscall.SIGKILL) })
	eventually(t, within, "the replica begins", func() bool {
		copies, err := filepath.Glob(filepath.Join(folder, "ltx", "0", "*.ltx"))
		return err == nil && len(copies) > 0
	})
	return r
}

// end stops Litestream with a signal; a second call does nothing.
func (r *replica) end(signal os.Signal) {
	_ = r.cmd.Process.Signal(signal)
	err := <-r.done
	r.done <- err
}

// restore puts what the replica has into a new folder, with the database as if it were that of the practice.
func (r *replica) restore(t *testing.T, p *practice) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "restored")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(r.program, "restore", "-integrity-check", "full", "-config", r.config, "-o", filepath.Join(dir, "data.db"), filepath.Join(p.Dir, "data.db"))
	cmd.Env = environ(r.env)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("litestream restore: %v\n%s", err, out)
	}
	p.Dir = dir
	p.must(t, p.Dir, "backup", "adopt")
}

// The service is stopped under load, then Litestream, as when a practice moves: nothing that was answered is missing at the new place, and what
// was not delivered is looked for before it is sent.
func TestReplicaOfStoppedService(t *testing.T) {
	t.Parallel()
	p := newPractice(t).serve(t, "")
	r := replicate(t, p)
	load := press(http.DefaultClient, p.URL, p.WebhookSecret, p.household(t, 4)...)
	load.await(t, 200)
	if err := p.Stop(t); err != nil {
		t.Fatal(err)
	}
	r.end(syscall.SIGTERM) // copies the rest first
	answered := load.stop()
	r.restore(t, p)
	if there := p.wantWhole(t); lacking(answered, there) > 0 {
		t.Errorf("%d of %d answered readings are lost", lacking(answered, there), len(answered))
	}
	var trusted int
	if err := p.database(t).NewQuery("SELECT COUNT(*) FROM transmissions WHERE status != 'transmitted' AND NOT ambiguous").Row(&trusted); err != nil || trusted > 0 {
		t.Errorf("%d deliveries would be sent without a look at the EMR: %v", trusted, err)
	}
	p.serve(t, "")
	p.get(t, "/api/v1/triage/patients/", p.signIn(t, adminEmail)).expect(t, 200)
}

// The whole machine dies under load: all that was answered more than syncTime before is in the replica, and nothing is there by halves. The time
// is generous, for this machine may be busy; how little was lost is in the test's log.
func TestReplicaOfLostMachine(t *testing.T) {
	t.Parallel()
	const syncTime = 10 * time.Second
	p := newPractice(t).serve(t, "")
	r := replicate(t, p)
	load := press(http.DefaultClient, p.URL, p.WebhookSecret, p.household(t, 4)...)
	load.await(t, 200)
	first := load.soFar()
	time.Sleep(syncTime) // what is measured
	r.end(syscall.SIGKILL)
	p.Kill()
	died := time.Now()
	answered := load.stop()
	r.restore(t, p)
	there := p.wantWhole(t)
	if n := lacking(first, there); n > 0 {
		t.Errorf("%d of %d readings answered %v before are lost", n, len(first), syncTime)
	}
	var oldest time.Duration
	for id, at := range answered {
		if !there[id] {
			oldest = max(oldest, died.Sub(at))
		}
	}
	t.Logf("of %d answered readings the last %d are lost, the oldest of them answered %v before the machine died", len(answered), lacking(answered, there), oldest.Round(time.Millisecond))
	p.serve(t, "")
}

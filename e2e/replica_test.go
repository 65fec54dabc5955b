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

// replica is Litestream with deploy/litestream.yml, replicating a practice to a folder.
type replica struct {
	program, config string
	env             []string
	cmd             *exec.Cmd
	done            chan error
}

// replicate starts Litestream, or skips the test without it.
func replicate(t *testing.T, p *practice) *replica {
	t.Helper()
	program, err := exec.LookPath("litestream")
	if err != nil {
		t.Skip("litestream is not installed; make drills fetches it")
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

// restore restores the replica into a new folder and uses it as the practice's database.
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

// The service is stopped under load, then Litestream, as when a practice moves: no answered reading is missing in the
// restored copy, and undelivered readings are reconciled with the EMR before they are sent.
func TestReplicaOfStoppedService(t *testing.T) {
	t.Parallel()
	p := newPractice(t).serve(t, "")
	r := replicate(t, p)
	load := startSenders(http.DefaultClient, p.URL, p.WebhookSecret, p.enrollPatients(t, 4)...)
	load.await(t, 200)
	if err := p.Stop(t); err != nil {
		t.Fatal(err)
	}
	r.end(syscall.SIGTERM) // replicates the rest first
	answered := load.stop()
	r.restore(t, p)
	if there := p.wantIntact(t); countMissing(answered, there) > 0 {
		t.Errorf("%d of %d answered readings are lost", countMissing(answered, there), len(answered))
	}
	var trusted int
	if err := p.database(t).NewQuery("SELECT COUNT(*) FROM transmissions WHERE status != 'transmitted' AND NOT ambiguous").Row(&trusted); err != nil || trusted > 0 {
		t.Errorf("%d deliveries would be sent without reconciling with the EMR: %v", trusted, err)
	}
	p.serve(t, "")
	p.get(t, "/api/v1/triage/patients/", p.signIn(t, adminEmail)).expect(t, 200)
}

// The machine fails under load: everything answered more than syncTime before is in the replica, and no reading is
// incomplete. syncTime is generous for a busy machine; the test's log has the actual loss.
func TestReplicaOfLostMachine(t *testing.T) {
	t.Parallel()
	const syncTime = 10 * time.Second
	p := newPractice(t).serve(t, "")
	r := replicate(t, p)
	load := startSenders(http.DefaultClient, p.URL, p.WebhookSecret, p.enrollPatients(t, 4)...)
	load.await(t, 200)
	first := load.soFar()
	time.Sleep(syncTime) // the measured time
	r.end(syscall.SIGKILL)
	p.Kill()
	died := time.Now()
	answered := load.stop()
	r.restore(t, p)
	there := p.wantIntact(t)
	if n := countMissing(first, there); n > 0 {
		t.Errorf("%d of %d readings answered %v before are lost", n, len(first), syncTime)
	}
	var oldest time.Duration
	for id, at := range answered {
		if !there[id] {
			oldest = max(oldest, died.Sub(at))
		}
	}
	t.Logf("of %d answered readings the last %d are lost, the oldest of them answered %v before the machine died", len(answered), countMissing(answered, there), oldest.Round(time.Millisecond))
	p.serve(t, "")
}

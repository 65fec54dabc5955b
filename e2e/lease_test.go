package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/vigilhealth/vigil/internal/vigiltest/natsserver"
)

// leased makes a practice that needs a lease, and the NATS server that keeps it.
func leased(t *testing.T, extra ...string) (*practice, *natsserver.Servers) {
	t.Helper()
	servers, err := natsserver.Start(natsserver.Options{Dir: t.TempDir(), Size: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(servers.Stop)
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return newPractice(t, append([]string{
		"VIGIL_LEASE=nats", "VIGIL_PRACTICE=elm-street", "VIGIL_NODE=node-a", "VIGIL_EVENTS_URL=" + servers.URLs(), "VIGIL_EVENTS_REPLICAS=1",
		"VIGIL_EVENTS_DIRECTORY_KEY=0123456789abcdef0123456789abcdef", "VIGIL_EVENTS_IDENTITIES=" + identity.String(),
	}, extra...)...), servers
}

// awaitListening waits until the process has the lease and serves.
func (p *practice) awaitListening(t *testing.T) {
	t.Helper()
	eventually(t, time.Minute, "the lease is taken", func() bool { return strings.Contains(p.Output(), `"msg":"listening"`) })
}

// weigh stores a reading and returns the status.
func (p *practice) weigh(t *testing.T, patient string) int {
	t.Helper()
	return p.post(t, "/api/v1/ingestion/weight/", p.Admin(t), object{"patient_id": patient, "weight_kg": 80, "measured_at": time.Now().UTC().Format(time.RFC3339Nano)}).status
}

// A process writes only with the lease: it waits for it, refuses writes when it cannot renew it, marks reads, restarts when it can, keeps its
// epoch then, and refuses a database that another process has left behind.
func TestLease(t *testing.T) {
	t.Parallel()
	metrics := freeAddr(t)
	p, servers := leased(t, "VIGIL_METRICS_ADDR="+metrics)
	copied := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(copied, os.DirFS(p.Dir)); err != nil {
		t.Fatal(err)
	}
	p.serve(t, "") // answers that it lives
	if health := p.get(t, "/health/", ""); health.status != 503 || at(t, health, "services.database.detail") != "waiting for the lease" {
		t.Errorf("before the lease: %d %s", health.status, health.body)
	}
	p.awaitListening(t)
	patient := p.patient(t, object{"mrn": "LEASE-1"})
	if status := p.weigh(t, patient); status != 201 {
		t.Fatalf("with the lease: %d", status)
	}
	held := func() string {
		samples, _ := scrape(t, metrics)
		return fmt.Sprint(samples["vigil_lease_held"])
	}
	if held() != "1" {
		t.Errorf("vigil_lease_held is %s", held())
	}

	servers.StopOne(0)
	eventually(t, within, "writes are refused", func() bool { return p.weigh(t, patient) == 503 })
	read := p.get(t, "/api/v1/patients/"+patient+"/", p.Admin(t)).expect(t, 200)
	if read.header.Get("X-Vigil-Stale") != "true" || held() != "0" {
		t.Errorf("after the lease: stale %q, vigil_lease_held %s", read.header.Get("X-Vigil-Stale"), held())
	}
	p.get(t, "/health/live", "").expect(t, 200)
	eventually(t, within, "health says why", func() bool {
		health := p.get(t, "/health/", "")
		return health.status == 503 && at(t, health, "services.database.detail") == "another process may hold the lease"
	})
	if lines, err := os.ReadFile(filepath.Join(p.Dir, "stale-reads.jsonl")); err != nil || !strings.Contains(string(lines), patient) {
		t.Errorf("recorded reads: %s: %v", lines, err)
	}

	if err := servers.Run(0); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-p.done:
		p.done <- err
		if err == nil || !strings.Contains(p.Output(), "the service restarts") {
			t.Errorf("ended with %v\n%s", err, p.Output())
		}
	case <-time.After(within):
		t.Fatalf("the process did not restart\n%s", p.Output())
	}
	p.serve(t, "").awaitListening(t)
	if status := p.weigh(t, patient); status != 201 {
		t.Errorf("after a restart in time: %d", status)
	}
	wantEpochs(t, p, 1)

	p.Kill()
	stale := &practice{Dir: copied, Env: append(p.Env, "VIGIL_NODE=node-b")}
	stale.process = begin(t, stale.Env, "serve", "--dir", copied, "--http", freeAddr(t))
	eventually(t, time.Minute, "a database that is behind is refused", func() bool { return strings.Contains(stale.Output(), "wrote this practice's database after this copy") })
	p.serve(t, "").awaitListening(t)
	if status := p.weigh(t, patient); status != 201 {
		t.Errorf("the newest database after another process tried: %d", status)
	}
	wantEpochs(t, p, 2)
}

func wantEpochs(t *testing.T, p *practice, want int) {
	t.Helper()
	if n := p.count(t, "epochs WHERE node = 'node-a'"); n != want {
		t.Errorf("%d epochs, want %d", n, want)
	}
}

func (p *practice) count(t *testing.T, rows string) (n int) {
	t.Helper()
	if err := p.database(t).NewQuery("SELECT COUNT(*) FROM " + rows).Row(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// A process that is paused past its lease confirms nothing when it continues.
func TestLeasePaused(t *testing.T) {
	t.Parallel()
	p, _ := leased(t)
	p.serve(t, "")
	p.awaitListening(t)
	patient := p.patient(t, object{"mrn": "LEASE-2"})
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	answers := make(chan int, 8)
	p.Admin(t)
	for range cap(answers) {
		go func() { answers <- p.weigh(t, patient) }()
	}
	paused := time.Now()
	eventually(t, time.Minute, "the lease has ended", func() bool { return time.Since(paused) > 12*time.Second })
	if err := p.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	confirmed := 0
	for range cap(answers) {
		if <-answers == 201 {
			confirmed++
		}
	}
	if stored := p.count(t, "observations"); stored != confirmed {
		t.Errorf("%d answered with 201, %d stored", confirmed, stored)
	}
}

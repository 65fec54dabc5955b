package e2e

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vigilhealth/vigil/internal/sandbox"
)

// brokenDisk is a data folder on a disk that can be made to fail, and repaired.
type brokenDisk struct {
	dir          string
	fail, repair func(t *testing.T, p *practice)
}

// On a full disk every reading is answered 503 and not stored, from every source. When there is space again the service
// continues without a restart, and stores exactly the acknowledged readings.
func TestDiskFails(t *testing.T) {
	t.Parallel()
	for name, disk := range map[string]func(*testing.T) brokenDisk{"writes past a limit": limitedFiles, "file system full": smallFileSystem} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := disk(t)
			p := newPractice(t)
			p.moveTo(t, d.dir)
			p.serve(t, "")
			c := newAllClients(t, p)
			c.send(t, 0, 40)
			stored := number(t, p.database(t), `SELECT COUNT(*) FROM observations`)
			d.fail(t, p)
			refused := c.sendRefused(t, 40)
			p.get(t, "/health/live", "").expect(t, http.StatusOK)
			d.repair(t, p)
			if now := number(t, p.database(t), `SELECT COUNT(*) FROM observations`); now != stored || refused == 0 {
				t.Errorf("%d readings are stored, of which %d were acknowledged; %d were refused", now, stored, refused)
			}
			c.send(t, 40, 80) // refused readings are sent again
			p.Kill()
			p.serve(t, strings.TrimPrefix(p.URL, "http://"))
			if err := p.Stop(t); err != nil {
				t.Errorf("the service ended with: %v", err)
			}
			wantEachReadingOnce(t, p.database(t), c.readings)
			wantSums(t, p.database(t))
			wantTrail(t, p)
		})
	}
}

// limitedFiles limits the size of the files that the service writes, so that writes fail as on a broken disk. It requires no
// privileges.
func limitedFiles(t *testing.T) brokenDisk {
	limit := func(t *testing.T, p *practice, bytes uint64) {
		t.Helper()
		if err := unix.Prlimit(p.cmd.Process.Pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: bytes, Max: unix.RLIM_INFINITY}, nil); err != nil {
			t.Fatal(err)
		}
	}
	return brokenDisk{
		dir:    filepath.Join(t.TempDir(), "data"),
		fail:   func(t *testing.T, p *practice) { limit(t, p, 4096) },
		repair: func(t *testing.T, p *practice) { limit(t, p, unix.RLIM_INFINITY) },
	}
}

// smallFileSystem mounts a 40 MB file system in memory and fills it with another file.
func smallFileSystem(t *testing.T) brokenDisk {
	mount := t.TempDir()
	if err := syscall.Mount("tmpfs", mount, "tmpfs", 0, "size=40m"); err != nil {
		t.Skipf("mounting a file system requires root: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(mount, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	other := filepath.Join(mount, "other")
	return brokenDisk{
		dir: filepath.Join(mount, "data"),
		fail: func(t *testing.T, _ *practice) {
			f, err := os.Create(other)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = f.Close() }() // full
			for size := 1 << 20; size >= 512; size /= 2 {
				for err = nil; err == nil; _, err = f.Write(make([]byte, size)) {
				}
			}
		},
		repair: func(t *testing.T, _ *practice) {
			if err := os.Remove(other); err != nil {
				t.Fatal(err)
			}
		},
	}
}

// moveTo moves the practice's folder while the service is stopped.
func (p *practice) moveTo(t *testing.T, dir string) {
	t.Helper()
	if err := os.CopyFS(dir, os.DirFS(p.Dir)); err != nil {
		t.Fatal(err)
	}
	p.Dir = dir
}

// send posts readings through the API and the gateway concurrently until each is acknowledged.
func (c *allClients) send(t *testing.T, from, until int) {
	t.Helper()
	var group sync.WaitGroup
	for n := from; n < until; n++ {
		group.Go(func() {
			c.post(fmt.Sprint("program ", n), "id", bloodPressure(c.patients[n%len(c.patients)], 150, 80, tortureTime(2*n)))
		})
		group.Go(func() {
			who := n % len(c.patients)
			c.post(fmt.Sprint("gateway ", n), "observation_id", measurement(fmt.Sprint("GW-", who), fmt.Sprint("TORTURE-", who, "-", n), 120, 80, tortureTime(2*n+1)))
		})
	}
	group.Wait()
	for _, complaint := range c.complaints {
		t.Error(complaint)
	}
}

// sendRefused posts further readings once while the disk fails. Those that still fit into the write-ahead log may be
// acknowledged; the rest must be refused.
func (c *allClients) sendRefused(t *testing.T, from int) (refused int) {
	t.Helper()
	for n := from; n < from+20; n++ {
		who := n % len(c.patients)
		for path, body := range map[string]object{
			"/api/v1/ingestion/blood-pressure/": bloodPressure(c.patients[who], 150, 80, tortureTime(2*n)),
			webhook:                             measurement(fmt.Sprint("GW-", who), fmt.Sprint("TORTURE-", who, "-", n), 120, 80, tortureTime(2*n+1)),
		} {
			status, answer := c.try(http.MethodPost, path, encode(t, body))
			if status != http.StatusServiceUnavailable || answer["code"] != "service_unavailable" {
				t.Errorf("%s was answered %d while the disk fails: %v", path, status, answer)
			} else {
				refused++
			}
		}
	}
	return refused
}

// An EMR and a push service that never answer do not keep the service from storing readings.
func TestHangingReceivers(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	push := newPushCatcher(t, now)
	push.url = "http://" + silent.Addr().String()
	settings := append([]string(nil), push.settings...)
	settings = append(settings, "VIGIL_WEB_PUSH_DEV_ALLOWED_HOSTS="+silent.Addr().String())
	p, emr, _ := deliveringPractice(t, sandbox.Fault{DelayMS: 600_000}, settings...)
	push.subscribe(t, p, p.user(t, "clinical_manager", nil), "/browser")
	c := newAllClients(t, p)
	c.post("critical", "id", bloodPressure(c.patients[0], 190, 125, time.Now()))
	c.send(t, 0, 100)
	eventually(t, within, "the EMR and the push service are being asked", func() bool {
		return emr.stats(t).Faulted > 0 && number(t, p.database(t), `SELECT COUNT(*) FROM push_deliveries`) > 0
	})
	c.send(t, 100, 200)
	if stored := number(t, p.database(t), `SELECT COUNT(*) FROM observations`); stored != 401 || len(c.readings) != 401 {
		t.Errorf("%d readings are stored, %d acknowledged, want 401", stored, len(c.readings))
	}
	if emr.stats(t).Observations != 0 {
		t.Error("the EMR did not hang")
	}
	p.get(t, "/api/v1/triage/patients/", p.Admin(t)).expect(t, http.StatusOK)
	if err := p.Stop(t); err != nil {
		t.Errorf("the service ended with: %v", err)
	}
	wantEachReadingOnce(t, p.database(t), c.readings)
	wantSums(t, p.database(t))
}

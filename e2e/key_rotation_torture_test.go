package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestRotationTorture kills a key rotation at random times while readings arrive and patients are changed. After each kill
// it starts the service with the new ring only, the old one only, and both: a start is refused, or everything is readable.
// No acknowledged write is lost. ROTATIONS sets the number of kills, three by default.
func TestRotationTorture(t *testing.T) {
	t.Parallel()
	kills, _ := strconv.Atoi(os.Getenv("ROTATIONS")) // 0 if unset or invalid
	kills = max(kills, 3)
	p := newPractice(t)
	old, _ := p.ownKey()
	l := &rotationLoad{p: p, url: "http://" + freeAddr(t), ackedReadings: map[string]bool{}}
	p.serve(t, strings.TrimPrefix(l.url, "http://"))
	for i := range 40 {
		gateway := fmt.Sprintf("GW-%d", i)
		id := p.patient(t, object{"gateway_patient_id": gateway, "last_name": fmt.Sprintf("Name-%d-0", i), "address": object{"line1": strings.Repeat("Long Street ", 8), "city": "Elm"}})
		p.giveDevice(t, "CUFF-"+gateway, id)
		l.ids = append(l.ids, id)
		l.sent, l.acked = append(l.sent, 0), append(l.acked, 0)
	}
	if err := p.Stop(t); err != nil {
		t.Fatal(err)
	}
	tally := map[string]int{}
	for n := range kills {
		fresh := ringKey(fmt.Sprintf("k%d", n))
		p.useRing(fresh, old)
		p.serve(t, strings.TrimPrefix(l.url, "http://"))
		stop := l.work(t)
		// Some rotations finish before the kill; then the new key alone must be enough.
		cut := time.Duration(rand.Int64N(int64(1200 * time.Millisecond)))
		finished := killedRotation(t, p, cut)
		if rand.IntN(2) == 0 {
			p.Kill()
		}
		stop()
		p.Kill()
		if finished {
			tally["finished"]++
		}
		for name, ring := range map[string][]string{"new": {fresh}, "old": {old}, "both": {fresh, old}} {
			tally[name+" "+l.start(t, ring)]++
		}
		p.useRing(fresh, old)
		if status, out, errOut := vigil(t, p.Env, "", "keys", "rotate", "--dir", p.Dir); status != 0 || strings.Contains(out, "has to stay") {
			t.Fatalf("the rotation did not finish: %d\n%s%s", status, out, errOut)
		}
		if got := l.start(t, []string{fresh}); got != "reads" {
			t.Fatalf("after kill %d and a whole rotation the new key alone is %s", n, got)
		}
		old = fresh
	}
	for _, complaint := range l.complaints {
		t.Error(complaint)
	}
	t.Logf("%d kills: %v; %d readings acknowledged", kills, tally, len(l.ackedReadings))
	if kills >= 10 && tally["new refused"] == 0 {
		t.Error("no kill came before the end of a rotation")
	}
}

// killedRotation starts a rotation and kills it after a time; finished reports that it had completed.
func killedRotation(t *testing.T, p *practice, after time.Duration) (finished bool) {
	t.Helper()
	cmd := exec.Command(binary(t), "keys", "rotate", "--dir", p.Dir)
	cmd.Env, cmd.SysProcAttr = environ(p.Env), &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case err := <-done:
		return err == nil
	case <-time.After(after):
		_ = cmd.Process.Kill()
		return <-done == nil
	}
}

// rotationLoad is the load on the practice during the rotation.
type rotationLoad struct {
	p   *practice
	url string
	ids []string

	lock          sync.Mutex
	sent, acked   []int // rounds of each patient's last name
	readings      int
	ackedReadings map[string]bool // ids of acknowledged readings
	complaints    []string
}

// work changes patients and sends readings until stop is called and all requests are answered, or the service is down.
func (l *rotationLoad) work(t *testing.T) (stop func()) {
	c := &allClients{p: l.p, url: l.url}
	ended := make(chan struct{})
	var group sync.WaitGroup
	each := func(do func(n int) bool) {
		group.Go(func() {
			for n := rand.IntN(len(l.ids)); ; n++ {
				select {
				case <-ended:
					return
				default:
					if !do(n % len(l.ids)) {
						return
					}
				}
			}
		})
	}
	l.p.Admin(t)
	c.token, c.tokenAt = l.p.admin, time.Now()
	each(func(i int) bool {
		l.lock.Lock()
		l.sent[i]++
		round := l.sent[i]
		l.lock.Unlock()
		status, answer := c.try(http.MethodPut, "/api/v1/patients/"+l.ids[i]+"/", encode(t, object{
			"first_name": "Ann", "last_name": fmt.Sprintf("Name-%d-%d", i, round), "date_of_birth": "1950-01-02", "gender": "female", "gateway_patient_id": fmt.Sprintf("GW-%d", i),
		}))
		l.recordAnswer(status, answer, func() { l.acked[i] = round })
		return status != 0
	})
	for range 2 {
		each(func(i int) bool {
			l.lock.Lock()
			l.readings++
			at := tortureTime(l.readings)
			l.lock.Unlock()
			gateway := fmt.Sprintf("GW-%d", i)
			status, answer := c.try(http.MethodPost, webhook, encode(t, measurement(gateway, "CUFF-"+gateway, 230, 140, at)))
			l.recordAnswer(status, answer, func() { l.ackedReadings[fmt.Sprint(answer["observation_id"])] = true })
			return status != 0
		})
	}
	return func() { close(ended); group.Wait() }
}

func (l *rotationLoad) recordAnswer(status int, answer map[string]any, acknowledged func()) {
	l.lock.Lock()
	defer l.lock.Unlock()
	switch {
	case status == 200 || status == 201:
		acknowledged()
	case status != 0 && len(l.complaints) < 20:
		l.complaints = append(l.complaints, fmt.Sprintf("answered %d: %v", status, answer))
	}
}

// start tries a key ring and returns "refused", or "reads" when everything is readable and nothing is lost.
func (l *rotationLoad) start(t *testing.T, ring []string) string {
	t.Helper()
	p := l.p
	env := p.withRing(ring...)
	probe := begin(t, env, "serve", "--dir", p.Dir, "--http", strings.TrimPrefix(l.url, "http://"))
	probe.URL, probe.Dir = l.url, p.Dir
	up := false
	eventually(t, 60*time.Second, "vigil answers or ends", func() bool {
		select {
		case err := <-probe.done:
			probe.done <- err
			return true
		default:
		}
		a, err := http.Get(l.url + "/health/live")
		if err != nil {
			return false
		}
		_ = a.Body.Close()
		up = a.StatusCode == http.StatusOK
		return up
	})
	if !up {
		if said := strings.TrimSpace(probe.Output()); strings.Contains(said, "\n") || !strings.Contains(said, "lacks or has with other bytes: ") {
			t.Fatalf("a start was refused with\n%s", said)
		}
		return "refused"
	}
	p.process, p.admin = probe, ""
	for i, id := range l.ids {
		a := p.get(t, "/api/v1/patients/"+id+"/", p.Admin(t)).expect(t, 200)
		var round int
		if _, err := fmt.Sscanf(text(t, a, "last_name"), fmt.Sprintf("Name-%d-%%d", i), &round); err != nil || round < l.acked[i] || round > l.sent[i] {
			t.Fatalf("patient %d is called %v, want a name from round %d to %d", i, at(t, a, "last_name"), l.acked[i], l.sent[i])
		}
	}
	for _, path := range []string{"/api/v1/patients/?page_size=100", "/api/v1/alerts/?page_size=100", "/api/v1/triage/patients/?page_size=100", "/api/v1/escalations/", "/api/v1/notifications/"} {
		if a := p.get(t, path, p.Admin(t)).expect(t, 200); strings.Contains(string(a.body), `unreadable`) || strings.Contains(string(a.body), `"last_name":null`) ||
			strings.Contains(string(a.body), `"message":null`) {
			t.Fatalf("%s shows what cannot be read\n%.500s", path, a.body)
		}
	}
	stored := map[string]bool{}
	var ids []string
	if err := p.database(t).NewQuery("SELECT id FROM observations").Column(&ids); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		stored[id] = true
	}
	for id := range l.ackedReadings {
		if !stored[id] {
			t.Fatalf("reading %s is lost", id)
		}
	}
	probe.Kill()
	return "reads"
}

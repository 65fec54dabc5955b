package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/vigilhealth/vigil/internal/sqlite"
)

// ingestPatients is the number of patients that receive readings while ingestion is measured.
const ingestPatients = 1000

// ingestServers holds the running servers: Vigil, plain PocketBase with its defaults, and plain PocketBase with Vigil's
// durability.
type ingestServers struct {
	candidate, normal, full *server
	same                    *server   // defaults, but with Vigil's SQLite build; nil when the default build is the same
	began                   time.Time // time of the first reading; each later reading is a second after the previous one
}

func startIngestServers(ctx context.Context, b built) (c ingestServers, err error) {
	c.began = time.Now().Add(-25 * 24 * time.Hour)
	if c.candidate, err = b.candidate(ctx, content{patients: ingestPatients}); err != nil {
		return c, err
	}
	if c.normal, err = b.plain(ctx, false, 1, 1); err == nil {
		c.full, err = b.plain(ctx, true, 1, 1)
	}
	if err == nil && sqlite.InC {
		b.plainBinary = b.self
		c.same, err = b.plain(ctx, false, 1, 1)
	}
	return c, err
}

func (c ingestServers) stop() {
	c.candidate.stop()
	c.normal.stop()
	c.full.stop()
	c.same.stop()
}

// targets returns the servers under load: Vigil, both plain servers, and the one with Vigil's SQLite when it exists.
func (c ingestServers) targets(ours *target) []*target {
	targets := []*target{ours, plainCreate(c.normal, c.began), plainCreate(c.full, c.began)}
	if c.same != nil {
		targets = append(targets, plainCreate(c.same, c.began))
	}
	return targets
}

// ingest compares the whole pipeline, with audit and access checks, with one plain insert.
func ingest(ctx context.Context, b built, p plan, t *table) error {
	c, err := startIngestServers(ctx, b)
	defer c.stop()
	if err != nil {
		return err
	}
	empty := c.candidate.size()
	ours := readings(c.candidate, c.began)
	targets := c.targets(ours)
	for _, stretch := range []struct {
		clients int
		aim
	}{{1, aim{.8, 1.2}}, {8, aim{1.3, 2}}, {64, aim{2, 3}}, {256, aim{2.5, 4}}} {
		l := load{stretch.clients, p.warmUp, p.length}
		rounds, err := alternate(ctx, p, l, targets...)
		if err != nil {
			return err
		}
		t.add(compare("ingest", l, rounds, 1, "plain NORMAL", byThroughput, stretch.aim))
		t.add(compare("ingest", l, rounds, 2, "plain FULL", byThroughput, aim{}))
		if c.same != nil {
			t.add(compare("ingest", l, rounds, 3, sameSQLite, byThroughput, aim{}))
		}
	}
	t.add(row{path: "memory after ingest", value: c.candidate.memory(), unit: "MB", note: fmt.Sprintf("resident at most; plain %.0f MB", c.normal.memory())})
	if err := c.candidate.checkStored(ours.accepted.Load()); err != nil {
		return err
	}
	grown := float64(c.candidate.size()-empty) / float64(max(ours.accepted.Load(), 1))
	t.add(row{path: "disk per reading", value: grown, unit: "B", note: "with alerts, days, counts, transmissions and audit trail, write-ahead log included"})
	return nil
}

// ingestSlowDisk measures ingest with a delay added to each commit.
func ingestSlowDisk(ctx context.Context, b built, p plan, t *table) error {
	b, err := b.slowed(ctx, p.delay)
	if err != nil {
		return err
	}
	c, err := startIngestServers(ctx, b)
	defer c.stop()
	if err != nil {
		return err
	}
	ours, l := readings(c.candidate, c.began), load{64, p.warmUp, p.length}
	const full = 2 // plain FULL: its commits are as slow as plain NORMAL's here
	rounds, err := alternate(ctx, p, l, slices.Delete(c.targets(ours), full, full+1)...)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("ingest, commits %s longer", p.delay)
	t.add(compare(name, l, rounds, 1, "plain NORMAL", byThroughput, aim{6, 10}))
	if c.same != nil {
		t.add(compare(name, l, rounds, 2, sameSQLite, byThroughput, aim{}))
	}
	return c.candidate.checkStored(ours.accepted.Load())
}

// webhook measures a burst of signed gateway events.
func webhook(ctx context.Context, b built, p plan, t *table) error {
	c, err := startIngestServers(ctx, b)
	defer c.stop()
	if err != nil {
		return err
	}
	ours, l := events(c.candidate, b.secret, c.began), load{256, p.warmUp, p.length}
	rounds, err := alternate(ctx, p, l, c.targets(ours)...)
	if err != nil {
		return err
	}
	t.add(compare("webhook", l, rounds, 2, "plain FULL", byThroughput, aim{2.5, 4.5}))
	t.add(compare("webhook", l, rounds, 1, "plain NORMAL", byThroughput, aim{}))
	if c.same != nil {
		t.add(compare("webhook", l, rounds, 3, sameSQLite, byThroughput, aim{}))
	}
	return c.candidate.checkStored(ours.accepted.Load())
}

// readings posts blood pressures as a staff client: patients in rotation, one second apart.
func readings(s *server, began time.Time) *target {
	return &target{addr: s.addr, want: 201, cpuTime: s.cpuTime, next: func(n int64) []byte {
		body := fmt.Appendf(nil, `{"patient_id":"%s","systolic":%d,"diastolic":80,"pulse":70,"measured_at":"%s"}`,
			s.patients[n%int64(len(s.patients))], systolic(n), began.Add(time.Duration(n)*time.Second).UTC().Format(time.RFC3339))
		return wire("POST", s.addr, "/api/v1/ingestion/blood-pressure/", s.token, body)
	}}
}

// events sends the same readings as signed gateway events.
func events(s *server, secret string, began time.Time) *target {
	return &target{addr: s.addr, want: 200, next: func(n int64) []byte {
		i := n % int64(len(s.patients))
		body := fmt.Appendf(nil, `{"event_type":"measurement.created","device_id":"%s","patient_id":"%s","measurement_type":"blood_pressure","values":{"systolic":%d,"diastolic":80,"pulse":70},"unit":"mmHg","timestamp":"%s"}`,
			s.devices[i], s.patients[i], systolic(n), began.Add(time.Duration(n)*time.Second).UTC().Format(time.RFC3339))
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write(body)
		return wire("POST", s.addr, "/api/v1/gateway/webhook/", "", body,
			"X-Gateway-Signature", "sha256="+hex.EncodeToString(mac.Sum(nil)), "X-Gateway-Timestamp", fmt.Sprint(time.Now().Unix()))
	}}
}

// plainCreate creates records with the same content through PocketBase's own API.
func plainCreate(s *server, began time.Time) *target {
	return &target{addr: s.addr, want: 200, next: func(n int64) []byte {
		body := fmt.Appendf(nil, `{"patient":"p%d","kind":"blood_pressure","measured_at":"%s","device":"D%d","systolic":%d,"diastolic":80,"pulse":70,"status":"final"}`,
			n%ingestPatients, began.Add(time.Duration(n)*time.Second).UTC().Format(time.RFC3339), n%ingestPatients, systolic(n))
		return wire("POST", s.addr, "/api/collections/"+plainReadings+"/records", s.token, body)
	}}
}

// systolic is high for every tenth reading.
func systolic(n int64) int {
	if n%10 == 0 {
		return 150
	}
	return 110 + int(n%20)
}

// count runs a query on the database file from outside the service.
func (s *server) count(query string) (n int64, err error) {
	db := sqlite.File(filepath.Join(s.dir, "data.db"), "busy_timeout(10000)", "query_only(ON)")
	defer func() { _ = db.Close() }() // opened read-only
	err = db.NewQuery(query).Row(&n)
	return n, err
}

// checkStored compares the stored readings and their daily totals with the number acknowledged.
func (s *server) checkStored(acknowledged int64) error {
	for what, query := range map[string]string{
		"readings": `SELECT COUNT(*) FROM observations`,
		"counted":  `SELECT COALESCE(SUM(readings), 0) FROM daily_counts`,
		"days":     `SELECT COALESCE(SUM(readings), 0) FROM reading_days`,
	} {
		stored, err := s.count(query)
		if err != nil {
			return err
		}
		if stored != acknowledged {
			return fmt.Errorf("%d readings were acknowledged, but the number of %s is %d", acknowledged, what, stored)
		}
	}
	return nil
}

// size is the database's size on disk, including its write-ahead log.
func (s *server) size() (bytes int64) {
	for _, name := range []string{"data.db", "data.db-wal"} {
		if info, err := os.Stat(filepath.Join(s.dir, name)); err == nil {
			bytes += info.Size()
		}
	}
	return bytes
}

// emrLatency is the EMR's response time for each resource.
const emrLatency = 50 * time.Millisecond

// slowEMR accepts every resource after a delay and records it.
type slowEMR struct {
	*httptest.Server
	lock    sync.Mutex
	creates map[string]int // creates, by identifier of the conditional create
}

func newSlowEMR() *slowEMR {
	e := &slowEMR{creates: map[string]int{}}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/oauth/token" {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"access_token":"bench","token_type":"bearer","expires_in":3600}`) // the caller fails on a short answer
			return
		}
		_, _ = io.Copy(io.Discard, r.Body) // so that the connection is reused
		time.Sleep(emrLatency)
		if r.Method == http.MethodPost {
			e.lock.Lock()
			e.creates[r.Header.Get("If-None-Exist")]++
			e.lock.Unlock()
			w.Header().Set("Location", "/fhir/bench/Observation/o-1/_history/1")
			w.WriteHeader(http.StatusCreated)
		}
	}))
	return e
}

func (e *slowEMR) counts() (distinct, times int) {
	e.lock.Lock()
	defer e.lock.Unlock()
	for _, n := range e.creates {
		times = max(times, n)
	}
	return len(e.creates), times
}

// delivery drains a queue to a slow EMR without pacing, and compares it with a client that sends one resource at a time to
// the same EMR and stores nothing.
func delivery(ctx context.Context, b built, p plan, t *table) error {
	emr := newSlowEMR()
	defer emr.Close()
	l := load{1, p.warmUp, p.length}
	alone := &target{addr: emr.Listener.Addr().String(), want: 201, next: func(int64) []byte {
		return wire("POST", "emr", "/fhir/bench/Observation", "", []byte(`{"resourceType":"Observation"}`))
	}}
	single, err := closedLoop(ctx, alone, l)
	if err != nil {
		return err
	}
	delete(emr.creates, "")
	waiting := 400 * int(max(p.length.Seconds(), 5))
	b = b.with("VIGIL_EMR_FHIR_BASE_URL="+emr.URL+"/fhir/{practice_code}", "VIGIL_EMR_TOKEN_URL="+emr.URL+"/oauth/token", "VIGIL_EMR_CLIENT_ID=bench",
		"VIGIL_EMR_PRACTICE_CODE=bench", "VIGIL_EMR_ENVIRONMENT=staging", "VIGIL_EMR_RATE_LIMIT_PER_SECOND=0")
	candidate, err := b.candidate(ctx, content{patients: ingestPatients, pending: waiting})
	if err != nil {
		return err
	}
	defer candidate.stop()
	began, sent := time.Now(), int64(0)
	first, _ := emr.counts()
	for sent < int64(waiting) && time.Since(began) < time.Minute && ctx.Err() == nil {
		time.Sleep(20 * time.Millisecond)
		if sent, err = candidate.count(`SELECT COUNT(*) FROM transmissions WHERE status = 'transmitted'`); err != nil {
			return err
		}
	}
	took := time.Since(began)
	distinct, times := emr.counts()
	if sent != int64(waiting) || distinct != waiting || times != 1 {
		return fmt.Errorf("of %d readings %d are transmitted; the EMR was sent %d, one of them %d times", waiting, sent, distinct, times)
	}
	f := figures{perSecond: float64(waiting-first) / took.Seconds()}
	t.add(row{
		path: "EMR delivery", figures: f, against: "one by one", other: single, value: byThroughput(f, single), unit: "×", aim: aim{30, 100},
		note: fmt.Sprintf("%d queued deliveries, an EMR that takes %s", waiting, emrLatency),
	})
	return nil
}

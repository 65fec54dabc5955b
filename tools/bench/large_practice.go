package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	of "github.com/vigilhealth/vigil/internal/billing/reports"
	"github.com/vigilhealth/vigil/internal/sqlite"
)

// practice measures a large practice: its lists, reports and billing, and ingestion under interference.
func practice(ctx context.Context, b built, p plan, t *table) (failed error) {
	began := time.Now()
	candidate, plain, err := startLargePractice(ctx, b, p)
	defer candidate.stop()
	defer plain.stop()
	if err != nil {
		return err
	}
	same, err := b.plainOnFolder(ctx, plain)
	defer same.stop() // before the other, which owns the folder
	if err != nil {
		return err
	}
	fmt.Printf("  seeded %d patients, %d readings, %d entries in %s\n", p.patients, p.readings, p.entries, time.Since(began).Round(time.Second))
	if err := candidate.warm(ctx); err != nil {
		return err
	}
	for _, part := range []func() error{
		func() error { return lists(ctx, p, t, candidate, plain, same) },
		func() error { return addDiskPerObservation(t, candidate, p) },
		func() error { return bill(ctx, p, t, candidate) },
		func() error { return reports(ctx, p, t, candidate) },
		func() error { return ingestUnderInterference(ctx, b, p, t, candidate) },
	} {
		candidate.token, err = candidate.signIn(ctx) // valid for 15 minutes
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		failed = errors.Join(failed, part())
	}
	return failed
}

// startLargePractice seeds and starts the practice and a plain server of the same size, in parallel.
func startLargePractice(ctx context.Context, b built, p plan) (candidate, plain *server, err error) {
	var beside sync.WaitGroup
	var failed error
	beside.Go(func() { plain, failed = b.plain(ctx, false, p.patients, p.readings) })
	candidate, err = b.candidate(ctx, content{patients: p.patients, readings: p.readings, billable: true, entries: p.entries})
	beside.Wait()
	return candidate, plain, errors.Join(err, failed)
}

// warm waits until the patient name search is ready.
func (s *server) warm(ctx context.Context) error {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		_, status, _, err := s.request(ctx, "GET", "/api/v1/patients/?search=kowal", "")
		if err != nil || status == http.StatusOK {
			return err
		}
	}
	return errors.New("the patient name search is not ready after a minute")
}

// getTarget returns a target that requests one path.
func getTarget(s *server, path string) *target {
	return &target{addr: s.addr, want: 200, cpuTime: s.cpuTime, next: func(int64) []byte { return wire("GET", s.addr, path, s.token, nil) }}
}

// lists compares the lists that users wait for, over the whole practice.
func lists(ctx context.Context, p plan, t *table, candidate, plain, same *server) error {
	list := "/api/collections/" + plainPatients + "/records?perPage=20&"
	observations := "/api/collections/" + plainReadings + "/records?perPage=20&sort=-measured_at"
	for _, l := range []struct {
		name, ours, theirs string
		aim
	}{
		{"triage page", "/api/v1/triage/patients/", list + "sort=-score", aim{5, 30}},
		{"triage stats", "/api/v1/triage/patients/stats/", list + "sort=-score", aim{}},
		{"patient search", "/api/v1/patients/?search=kowal", list + "filter=name~'Family77'", aim{}},
		{"observations, newest first", "/api/v1/ingestion/observations/", observations, aim{100, 1000}},
		{
			"observations of one patient", "/api/v1/ingestion/observations/?patient_id=" + candidate.patients[0],
			observations + "&filter=patient='p00000000000001'",
			aim{},
		},
	} {
		for _, clients := range []int{1, 8} {
			how := load{clients, p.warmUp / 2, p.length / 2}
			targets := []*target{getTarget(candidate, l.ours), getTarget(plain, l.theirs)}
			if same != nil {
				targets = append(targets, getTarget(same, l.theirs))
			}
			rounds, err := alternate(ctx, p, how, targets...)
			if err != nil {
				return err
			}
			r := compare(l.name, how, rounds, 1, "plain NORMAL", byLatency, l.aim)
			if clients > 1 {
				r.aim = aim{}
			}
			t.add(r)
			if same != nil {
				t.add(compare(l.name, how, rounds, 2, sameSQLite, byLatency, aim{}))
			}
			if l.name == "patient search" && clients == 1 {
				t.add(row{path: l.name + ", p50", value: float64(r.p50.Microseconds()) / 1000, unit: "ms", aim: aim{5, 1.5}})
			}
		}
	}
	f, err := closedLoop(ctx, getTarget(candidate, "/api/v1/ingestion/observations/"), load{64, p.warmUp, p.length})
	if err == nil {
		t.add(row{
			path: "memory, lists", clients: 64, figures: f, value: candidate.memory(), unit: "MB", aim: aim{400, 250},
			note: fmt.Sprintf("resident at most with %d readings; plain %.0f MB", p.readings, plain.memory()),
		})
	}
	return err
}

// reports requests each report once, without dates, after billing has run; no report is cached.
func reports(ctx context.Context, p plan, t *table, s *server) error {
	for _, name := range of.Names() {
		took, status, answer, err := s.request(ctx, "GET", fmt.Sprintf("/api/v1/billing/reports/%s/", name), "")
		if err != nil || status != http.StatusOK {
			return fmt.Errorf("report %s answered %d: %.200s (%w)", name, status, answer, err)
		}
		t.add(row{
			path: "report " + string(name), figures: figures{p50: took}, value: float64(took.Microseconds()) / 1000, unit: "ms", aim: aim{2000, 50},
			note: fmt.Sprintf("first request, over %d entries", p.entries),
		})
	}
	return nil
}

// request sends one request over its own connection.
func (s *server) request(ctx context.Context, method, path, body string) (took time.Duration, status int, answer []byte, err error) {
	var raw []byte
	if body != "" {
		raw = []byte(body)
	}
	began := time.Now()
	status, answer, err = exchange(ctx, s.addr, wire(method, s.addr, path, s.token, raw))
	return time.Since(began), status, answer, err
}

// addDiskPerObservation measures the disk used by one observation with its indexes.
func addDiskPerObservation(t *table, s *server, p plan) error {
	bytes, err := s.count(`SELECT SUM(pgsize) FROM dbstat WHERE name = 'observations' OR name LIKE 'idx_observations%' OR name LIKE 'sqlite_autoindex_observations%'`)
	if err != nil && strings.Contains(err.Error(), "no such table: dbstat") {
		fmt.Println("  disk per observation: not measured, because this SQLite has no dbstat; use make bench")
		return nil
	}
	if err != nil {
		return fmt.Errorf("size of the observations: %w", err)
	}
	t.add(row{path: "disk per observation", value: float64(bytes) / float64(max(p.readings, 1)), unit: "B", note: "the row and its indexes"})
	return nil
}

// bill runs device billing for all patients, then again with nothing left to bill.
func bill(ctx context.Context, p plan, t *table, s *server) error {
	for _, run := range []struct {
		name string
		aim
	}{{"device billing", aim{30, 3}}, {"device billing, again", aim{}}} {
		took, created, requests, err := s.bill(ctx)
		if err != nil {
			return err
		}
		t.add(row{
			path: run.name, figures: figures{p50: took}, value: took.Seconds(), unit: "s", aim: run.aim,
			note: fmt.Sprintf("%d entries for %d patients, by %d requests of at most half a minute", created, p.patients, requests),
		})
	}
	return nil
}

// bill repeats device billing until a run is not cut short by its time limit.
func (s *server) bill(ctx context.Context) (took time.Duration, created int64, requests int, err error) {
	for {
		before, err := s.count(`SELECT COUNT(*) FROM billing_entries`)
		if err != nil {
			return 0, 0, 0, err
		}
		one, status, answer, err := s.request(ctx, "POST", "/api/v1/billing/run/", `{"job":"device"}`)
		if err != nil {
			return 0, 0, 0, err
		}
		after, err := s.count(`SELECT COUNT(*) FROM billing_entries`)
		if err != nil {
			return 0, 0, 0, err
		}
		took, created, requests = took+one, created+after-before, requests+1
		switch {
		case status == http.StatusOK:
			return took, created, requests, nil
		case status != http.StatusServiceUnavailable || after == before:
			return 0, 0, 0, fmt.Errorf("billing answered %d: %.300s", status, answer)
		}
	}
}

// ingestUnderInterference measures the worst latency of a reading at half of the maximum rate, while a backup, billing, a claims export
// and checkpoints run.
func ingestUnderInterference(ctx context.Context, b built, p plan, t *table, s *server) error {
	before, err := s.count(`SELECT COUNT(*) FROM observations`)
	if err != nil {
		return err
	}
	to := readings(s, time.Now().Add(-25*24*time.Hour))
	most, err := closedLoop(ctx, to, load{64, p.warmUp, p.length})
	if err != nil {
		return err
	}
	quiet, err := openLoop(ctx, to, most.perSecond/2, load{clients: 256, length: 2 * p.length})
	if err != nil {
		return err
	}
	var beside sync.WaitGroup
	done, length := make(chan error, 4), 10*p.length
	during, over := context.WithTimeout(ctx, length)
	defer over()
	for _, work := range []func() error{
		func() error { return s.runBackup(during, b) },
		func() error { return s.repeat(ctx, length, "POST", "/api/v1/billing/run/", `{}`) },
		func() error { return s.repeat(ctx, length, "GET", "/api/v1/billing/claims-exports/?format=csv", "") },
		func() error { return s.checkpoints(ctx, length) },
	} {
		beside.Go(func() { done <- work() })
	}
	busy, err := openLoop(ctx, to, most.perSecond/2, load{clients: 256, length: length})
	beside.Wait()
	close(done)
	for failed := range done {
		err = errors.Join(err, failed)
	}
	for _, r := range []row{
		{path: "ingest at half speed, nothing else", figures: quiet},
		{path: "ingest during backup, billing, export, checkpoint", figures: busy, aim: aim{2, .5}},
	} {
		r.clients, r.value, r.unit, r.note = 256, r.max.Seconds(), "s", fmt.Sprintf("the worst answer, at %.0f readings a second", most.perSecond/2)
		t.add(r)
	}
	after, counted := s.count(`SELECT COUNT(*) FROM observations`)
	if counted == nil && after-before != to.accepted.Load() {
		counted = fmt.Errorf("%d readings were acknowledged, %d stored", to.accepted.Load(), after-before)
	}
	return errors.Join(err, counted)
}

// runBackup runs the operator's backup command. A large backup is cut short when the context ends.
func (s *server) runBackup(ctx context.Context, b built) error {
	command := exec.CommandContext(ctx, b.vigil, "backup", "create", "--dir", s.dir)
	command.Env = b.environ()
	if out, err := command.CombinedOutput(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("backup: %w\n%s", err, out)
	}
	return nil
}

// repeat repeats a request for a time, and pauses as long as it took, at least a second. A 503 for a request that exceeds its
// time limit is accepted.
func (s *server) repeat(ctx context.Context, length time.Duration, method, path, body string) error {
	for ends := time.Now().Add(length); time.Now().Before(ends) && ctx.Err() == nil; {
		took, status, answer, err := s.request(ctx, method, path, body)
		if err != nil || status != http.StatusOK && status != http.StatusServiceUnavailable {
			return fmt.Errorf("%s answered %d: %.200s (%w)", path, status, answer, err)
		}
		time.Sleep(max(took, time.Second))
	}
	return nil
}

// checkpoints writes the write-ahead log back every second, as a replication process would.
func (s *server) checkpoints(ctx context.Context, length time.Duration) error {
	db := sqlite.File(filepath.Join(s.dir, "data.db"), "busy_timeout(1000)")
	defer func() { _ = db.Close() }() // only checkpoints
	for ends := time.Now().Add(length); time.Now().Before(ends) && ctx.Err() == nil; time.Sleep(time.Second) {
		if _, err := db.NewQuery(`PRAGMA wal_checkpoint(PASSIVE)`).Execute(); err != nil {
			return fmt.Errorf("checkpoint: %w", err)
		}
	}
	return nil
}

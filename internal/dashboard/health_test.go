package dashboard_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/dashboard"
)

var start = time.Date(2026, time.January, 15, 13, 45, 0, 0, time.UTC)

// services are the response times and failures of each service, and the state of the workers.
type services struct {
	database, emr, fhir          time.Duration
	databaseErr, emrErr, fhirErr error
	noEMR                        bool
	running, queued              int
	workersErr                   error
}

// monitor checks services under a clock that only they advance.
func monitor(s *services, log *slog.Logger) *dashboard.Monitor {
	at := start
	probes := dashboard.Probes{
		Database: func(context.Context, core.App) error { at = at.Add(s.database); return s.databaseErr },
		EMR:      func(context.Context) error { at = at.Add(s.emr); return s.emrErr },
		FHIR:     func() error { at = at.Add(s.fhir); return s.fhirErr },
		Workers:  func(core.App) (int, int, error) { return s.running, s.queued, s.workersErr },
	}
	if s.noEMR {
		probes.EMR = nil
	}
	return dashboard.NewMonitor(probes, func() time.Time { return at }, log)
}

// Source: docs/decisions/dashboard.md, "Health body".
func TestHealth(t *testing.T) {
	const healthy, degraded, down = dashboard.Healthy, dashboard.Degraded, dashboard.Down
	broken := errors.New("secret.host:5432 refused")
	tests := []struct {
		name                             string
		change                           func(*services)
		database, emr, fhir, work, total dashboard.Health
	}{
		{"all is well", func(*services) {}, healthy, healthy, healthy, healthy, healthy},
		{"database at its threshold", func(s *services) { s.database = 100 * time.Millisecond }, healthy, healthy, healthy, healthy, healthy},
		{"database over it", func(s *services) { s.database = 101 * time.Millisecond }, degraded, healthy, healthy, healthy, degraded},
		{"database at five times", func(s *services) { s.database = 500 * time.Millisecond }, degraded, healthy, healthy, healthy, degraded},
		{"database beyond", func(s *services) { s.database = 501 * time.Millisecond }, down, healthy, healthy, healthy, down},
		{"database fails", func(s *services) { s.databaseErr = broken }, down, healthy, healthy, healthy, down},
		{"EMR at its threshold", func(s *services) { s.emr = 2 * time.Second }, healthy, healthy, healthy, healthy, healthy},
		{"EMR over it", func(s *services) { s.emr = 2001 * time.Millisecond }, healthy, degraded, healthy, healthy, degraded},
		{"EMR beyond five times", func(s *services) { s.emr = 10*time.Second + 1 }, healthy, down, healthy, healthy, degraded},
		{"EMR fails", func(s *services) { s.emrErr = broken }, healthy, down, healthy, healthy, degraded},
		{"no EMR does not count", func(s *services) { s.noEMR = true }, healthy, down, healthy, healthy, healthy},
		{"FHIR over its threshold", func(s *services) { s.fhir = 501 * time.Millisecond }, healthy, healthy, degraded, healthy, degraded},
		{"FHIR beyond five times", func(s *services) { s.fhir = 2501 * time.Millisecond }, healthy, healthy, down, healthy, degraded},
		{"FHIR fails", func(s *services) { s.fhirErr = broken }, healthy, healthy, down, healthy, degraded},
		{"99 wait", func(s *services) { s.queued = 99 }, healthy, healthy, healthy, healthy, healthy},
		{"100 wait", func(s *services) { s.queued = 100 }, healthy, healthy, healthy, degraded, degraded},
		{"no worker", func(s *services) { s.running = 0 }, healthy, healthy, healthy, down, degraded},
		{"workers unknown", func(s *services) { s.workersErr = broken }, healthy, healthy, healthy, down, degraded},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := &services{running: 2, database: time.Millisecond}
			test.change(s)
			m := monitor(s, slog.New(slog.DiscardHandler))
			m.Check(t.Context(), nil)
			report := m.Latest()
			got := []dashboard.Health{
				report.Services.Database.Status, report.Services.EMR.Status, report.Services.FHIREngine.Status,
				report.Services.BackgroundWorker.Status, report.Status,
			}
			if diff := cmp.Diff([]dashboard.Health{test.database, test.emr, test.fhir, test.work, test.total}, got); diff != "" {
				t.Error(diff)
			}
			shown, err := json.Marshal(report)
			if err != nil || strings.Contains(string(shown), "secret") {
				t.Errorf("%s (%v)", shown, err)
			}
		})
	}
}

func TestHealthBody(t *testing.T) {
	s := &services{running: 2, queued: 7, database: 1500 * time.Microsecond, noEMR: true}
	m := monitor(s, slog.New(slog.DiscardHandler))
	m.Check(t.Context(), nil)
	shown, err := json.Marshal(m.Latest().Services)
	want := `{"database":{"status":"healthy","response_time_ms":1.5},"emr":{"status":"down","response_time_ms":null,"detail":"not configured"},` +
		`"background_worker":{"status":"healthy","workers":2,"queue_depth":7},"fhir_engine":{"status":"healthy","response_time_ms":0}}`
	if diff := cmp.Diff(want, string(shown)); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if at := m.Latest().At; !at.Equal(start) {
		t.Errorf("at %s", at)
	}
}

// Before the first check everything is degraded.
func TestHealthBeforeFirstCheck(t *testing.T) {
	report := monitor(&services{}, slog.New(slog.DiscardHandler)).Latest()
	if report.Status != dashboard.Degraded || report.Services.Database.Status != dashboard.Degraded || !report.At.Equal(start) {
		t.Errorf("%+v", report)
	}
}

func TestRunChecksEveryTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		var log bytes.Buffer
		probes := dashboard.Probes{
			FHIR: func() error { return nil }, EMR: func(context.Context) error { return nil },
			Database: func(context.Context, core.App) error {
				looks++
				if looks == 2 {
					return errors.New("gone")
				}
				return nil
			},
			Workers: func(core.App) (int, int, error) { return 1, 0, nil },
		}
		m := dashboard.NewMonitor(probes, time.Now, slog.New(slog.NewTextHandler(&log, nil)))
		ctx, cancel := context.WithCancel(t.Context())
		go m.Run(ctx, nil)
		var seen []dashboard.Health
		for range 3 {
			synctest.Wait()
			seen = append(seen, m.Latest().Status)
			time.Sleep(10 * time.Second)
		}
		synctest.Wait()
		cancel()
		synctest.Wait()
		if diff := cmp.Diff([]dashboard.Health{dashboard.Healthy, dashboard.Down, dashboard.Healthy}, seen); diff != "" || looks != 4 {
			t.Errorf("%d looks; %s", looks, diff)
		}
		for _, change := range []string{"from=healthy to=down", "from=down to=healthy"} {
			if strings.Count(log.String(), change) != 1 {
				t.Errorf("%s is not logged once: %s", change, log.String())
			}
		}
	})
}

// A hanging probe is canceled before the next check.
func TestHangingProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		probes := dashboard.Probes{
			FHIR: func() error { return nil }, Database: func(context.Context, core.App) error { return nil },
			EMR:     func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
			Workers: func(core.App) (int, int, error) { return 1, 0, nil },
		}
		m := dashboard.NewMonitor(probes, time.Now, slog.New(slog.DiscardHandler))
		m.Check(t.Context(), nil)
		if report := m.Latest(); report.Services.EMR.Status != dashboard.Down || report.Status != dashboard.Degraded {
			t.Errorf("%+v", report)
		}
	})
}

// A database that answers but rejects writes is down; one that makes writers wait is slow. Source: docs/decisions/dashboard.md, "Health
// body".
func TestDatabaseThatCannotBeWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var write error
		hangs, room := false, true
		probes := dashboard.Probes{
			FHIR: func() error { return nil }, Database: func(context.Context, core.App) error { return nil },
			Workers:      func(core.App) (int, int, error) { return 1, 0, nil },
			HasDiskSpace: func() bool { return room },
			Writes: func(ctx context.Context, _ core.App) error {
				if hangs {
					<-ctx.Done()
					return errors.New("interrupted")
				}
				return write
			},
		}
		var log bytes.Buffer
		m := dashboard.NewMonitor(probes, time.Now, slog.New(slog.NewTextHandler(&log, nil)))
		look := func(status dashboard.Health, detail string) {
			t.Helper()
			m.Check(t.Context(), nil)
			if got := m.Latest().Services.Database; got.Status != status || got.Detail != detail || got.ResponseTimeMS == nil || *got.ResponseTimeMS != 0 {
				t.Errorf("%+v, want %s %q", got, status, detail)
			}
		}
		look(dashboard.Healthy, "")
		room = false
		look(dashboard.Degraded, "disk almost full")
		write = errors.New("disk full: secret")
		look(dashboard.Down, "cannot be written")
		if m.Latest().Status != dashboard.Down {
			t.Error(m.Latest().Status)
		}
		look(dashboard.Down, "cannot be written")
		write, hangs = nil, true
		look(dashboard.Degraded, "writing takes long")
		hangs, room = false, true
		look(dashboard.Healthy, "")
		for line, times := range map[string]int{"the database cannot be written": 1, `msg="service down" service=database`: 1, `msg="service back" service=database`: 1} {
			if strings.Count(log.String(), line) != times {
				t.Errorf("%s is not logged once\n%s", line, log.String())
			}
		}
	})
}

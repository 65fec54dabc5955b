// Package dashboard computes the practice's figures, series and event feed, and monitors the health of the four services. Figures come from
// counters that the engines maintain, never from a scan of the observations; the feed is a view of the audit trail. The package only writes
// its own health samples. The rules are in docs/decisions/dashboard.md.
package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
)

// Health is the state of a service.
type Health string

// The health states of the contract.
const (
	Healthy  Health = "healthy"
	Degraded Health = "degraded"
	Down     Health = "down"
)

// A service is healthy up to its threshold, and degraded up to degradedFactor times that.
// Source: specification, health thresholds; docs/decisions/dashboard.md, "Health body".
const (
	databaseThreshold = 100 * time.Millisecond
	emrThreshold      = 2000 * time.Millisecond
	fhirThreshold     = 500 * time.Millisecond
	degradedFactor    = 5
	queueThreshold    = 100
	checkEvery        = 10 * time.Second
)

// Check is the state of one service and how long it took to answer.
type Check struct {
	Status         Health   `json:"status"`
	ResponseTimeMS *float64 `json:"response_time_ms"`
	Detail         string   `json:"detail,omitempty"`
}

// WorkerCheck is the state of the background workers.
type WorkerCheck struct {
	Status     Health `json:"status"`
	Workers    int    `json:"workers"`
	QueueDepth int    `json:"queue_depth"`
}

// Services are the four services of the contract.
type Services struct {
	Database         Check       `json:"database"`
	EMR              Check       `json:"emr"`
	BackgroundWorker WorkerCheck `json:"background_worker"`
	FHIREngine       Check       `json:"fhir_engine"`
}

// Report is one check of all services.
type Report struct {
	Status   Health
	At       time.Time
	Services Services
	// EMRDownSince is when the EMR went down; zero if it is up or none is configured.
	EMRDownSince time.Time
}

// ErrNoLease is the error of [Probes.Writes] while this process may not write.
var ErrNoLease = errors.New("the lease is not held")

// Probes are the monitor's checks of each service; their errors are never shown.
type Probes struct {
	Database func(ctx context.Context, app core.App) error
	// Writes proves that the database accepts writes; nil skips the check.
	Writes func(ctx context.Context, app core.App) error
	// Damaged reports whether damage of the database was found; nil means no.
	Damaged func() bool
	// HasDiskSpace reports whether the disk has space left; nil means yes.
	HasDiskSpace func() bool
	// EMR is nil if none is configured.
	EMR  func(ctx context.Context) error
	FHIR func() error
	// DeadLetters counts dead-lettered deliveries; nil if nothing is delivered.
	DeadLetters func(app core.App) (int, error)
	// Workers returns the running workers and their queue depth.
	Workers func(app core.App) (running, queued int, err error)
	// Store persists checks; nil stores nothing.
	Store func(app core.App, lasting HealthRecord) error
}

// Monitor checks the services every ten seconds; [Monitor.Latest] returns the last result.
type Monitor struct {
	probes Probes
	clock  func() time.Time
	log    *slog.Logger
	latest atomic.Pointer[Report]
	state  monitorState // used by Run's goroutine only
}

// NewMonitor returns a monitor; Run starts it.
func NewMonitor(probes Probes, clock func() time.Time, log *slog.Logger) *Monitor {
	return &Monitor{probes: probes, clock: clock, log: log}
}

// Latest returns the newest report. Before the first check everything is degraded: alive, but not known.
func (m *Monitor) Latest() Report {
	if report := m.latest.Load(); report != nil {
		return *report
	}
	unknown := Check{Status: Degraded}
	return Report{Status: Degraded, At: m.clock(), Services: Services{
		Database: unknown, EMR: unknown, FHIREngine: unknown,
		BackgroundWorker: WorkerCheck{Status: Degraded},
	}}
}

// Run checks until ctx ends.
func (m *Monitor) Run(ctx context.Context, app core.App) {
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	for {
		m.Check(ctx, app)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Check checks every service once.
func (m *Monitor) Check(ctx context.Context, app core.App) {
	ctx, cancel := context.WithTimeout(ctx, checkEvery)
	defer cancel()
	report := &Report{At: m.clock()}
	s := &report.Services
	s.Database = m.database(ctx, app)
	s.FHIREngine = m.fhirEngine(app)
	s.BackgroundWorker = m.workers(app)
	if m.probes.EMR == nil {
		s.EMR = Check{Status: Down, Detail: "not configured"}
	} else {
		s.EMR = m.measure(emrThreshold, func() error { return m.probes.EMR(ctx) })
	}
	report.Status = overall(*s, m.probes.EMR != nil)
	earlier := m.latest.Load() // only Run's goroutine stores
	if m.probes.EMR != nil && s.EMR.Status == Down {
		report.EMRDownSince = report.At
		if earlier != nil && !earlier.EMRDownSince.IsZero() {
			report.EMRDownSince = earlier.EMRDownSince
		}
	}
	if m.latest.Store(report); earlier != nil && earlier.Status != report.Status {
		m.log.Info("health changed", slog.String("from", string(earlier.Status)), slog.String("to", string(report.Status)))
	}
	if earlier != nil {
		m.logChanges(earlier.Services, *s)
	}
	m.store(app, *report)
}

func (m *Monitor) measure(threshold time.Duration, probe func() error) Check {
	start := m.clock()
	err := probe()
	took := m.clock().Sub(start)
	ms := float64(took.Microseconds()) / 1000
	check := Check{Status: Healthy, ResponseTimeMS: &ms}
	switch {
	case err != nil || took > degradedFactor*threshold:
		check.Status = Down
	case took > threshold:
		check.Status = Degraded
	}
	return check
}

// fhirEngine is degraded while there are dead letters: a user must act.
func (m *Monitor) fhirEngine(app core.App) Check {
	check := m.measure(fhirThreshold, m.probes.FHIR)
	if m.probes.DeadLetters == nil || check.Status != Healthy {
		return check
	}
	if deadLetters, err := m.probes.DeadLetters(app); err == nil && deadLetters > 0 { // a failing database is reported on its own
		check.Status, check.Detail = Degraded, "deliveries given up"
	}
	return check
}

func (m *Monitor) workers(app core.App) WorkerCheck {
	running, queued, err := m.probes.Workers(app)
	check := WorkerCheck{Status: Healthy, Workers: running, QueueDepth: queued}
	switch {
	case err != nil || running == 0:
		check.Status = Down
	case queued >= queueThreshold:
		check.Status = Degraded
	}
	return check
}

// overall is down with the database, and degraded with any other service; an unconfigured EMR does not count.
func overall(s Services, emrConfigured bool) Health {
	if s.Database.Status == Down {
		return Down
	}
	rest := []Health{s.Database.Status, s.BackgroundWorker.Status, s.FHIREngine.Status}
	if emrConfigured {
		rest = append(rest, s.EMR.Status)
	}
	if slices.ContainsFunc(rest, func(status Health) bool { return status != Healthy }) {
		return Degraded
	}
	return Healthy
}

const (
	// sampleEvery is the interval of uptime samples.
	sampleEvery = time.Minute
	// steadyChecks is how many equal checks in a row make a state change: a flickering service must not fill the audit trail.
	steadyChecks = 3
	// maxPending limits the samples that wait while the database is down: a day of them.
	maxPending = 24 * 60
)

// monitorState is the monitor's state between two checks.
type monitorState struct {
	sampledAt time.Time
	pending   []Report
	recorded  Health // the state in the audit trail
	last      Health
	inARow    int
}

// HealthRecord is what is stored about the checks since the last record: the samples, and any
// lasting change of state.
type HealthRecord struct {
	At       time.Time
	Samples  []Report
	From, To Health // equal if nothing changed
}

// store records a sample every minute, and a steady change of state. Records that a failing database rejects are stored later.
func (m *Monitor) store(app core.App, report Report) {
	if m.probes.Store == nil {
		return
	}
	r := &m.state
	if r.last != report.Status {
		r.last, r.inARow = report.Status, 0
	}
	r.inARow++
	if r.sampledAt.IsZero() || report.At.Sub(r.sampledAt) >= sampleEvery {
		r.sampledAt = report.At
		r.pending = append(r.pending, report)
		r.pending = r.pending[max(0, len(r.pending)-maxPending):]
	}
	lasting := HealthRecord{At: report.At, Samples: r.pending, From: r.recorded, To: r.recorded}
	if r.inARow >= steadyChecks {
		lasting.To = report.Status
		if lasting.From == "" {
			lasting.From, r.recorded = lasting.To, lasting.To // the first state is not a change
		}
	}
	if len(lasting.Samples) == 0 && lasting.From == lasting.To {
		return
	}
	if err := m.probes.Store(app, lasting); err != nil {
		m.log.Warn("dashboard could not store health samples; the next check retries", slog.Any("error", err))
		return
	}
	r.pending, r.recorded = nil, lasting.To
}

// StoreHealth stores health samples for the uptime, and a change of state in the audit trail.
func StoreHealth(app core.App, lasting HealthRecord) error {
	return app.RunInTransaction(func(tx core.App) error {
		for _, sample := range lasting.Samples {
			services, err := json.Marshal(sample.Services)
			if err != nil {
				return fmt.Errorf("encode health: %w", err)
			}
			if err := collections.StoreHealthSample(tx, string(sample.Status), string(services), sample.At); err != nil {
				return err
			}
		}
		if lasting.From == lasting.To {
			return nil
		}
		return audit.Append(tx, audit.Entry{
			Event: audit.HealthChange, Actor: audit.System(), ResourceType: audit.ResourceService, ResourceID: string(lasting.To),
			Changes: audit.Changes{"status": {Old: string(lasting.From), New: string(lasting.To)}},
		}, lasting.At)
	})
}

// uptimeWindow is the span of the uptime. Source: docs/decisions/transmissions.md, "FHIR status".
const uptimeWindow = 30 * 24 * time.Hour

// Uptime returns the percentage, in tenths, of the health samples of the last 30 days in which deliveries were possible; 100 without
// samples. The current state counts as a sample, so that a service that is down never shows 100. Source: docs/decisions/transmissions.md,
// "FHIR status".
func Uptime(app core.App, downNow bool, now time.Time) (float64, error) {
	samples, down, err := collections.HealthSamplesSince(app, now.Add(-uptimeWindow))
	if err != nil {
		return 0, err
	}
	if downNow {
		samples, down = samples+1, down+1
	}
	if samples == 0 {
		return 100, nil
	}
	return float64((samples-down)*1000/samples) / 10, nil // truncated: 100 % means never down
}

// writeTimeout is how long the write check waits for other writers.
const writeTimeout = 4 * time.Second

// database is also down if the file is damaged, because answers may be wrong or missing, and if it
// answers but cannot store, as on a full disk: every reading is then rejected. Waiting for other
// writers is not a failure and not part of the response time. A write that fits into the journal
// proves little, so a nearly full disk is degraded. Source: docs/decisions/dashboard.md, "Health
// body".
func (m *Monitor) database(ctx context.Context, app core.App) Check {
	check := m.measure(databaseThreshold, func() error { return m.probes.Database(ctx, app) })
	if m.probes.Damaged != nil && m.probes.Damaged() {
		check.Status, check.Detail = Down, "data.db is damaged"
	}
	if m.probes.Writes == nil || check.Status == Down {
		return check
	}
	waiting, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	err := m.probes.Writes(waiting, app)
	switch {
	case err == nil && m.probes.HasDiskSpace != nil && !m.probes.HasDiskSpace() && check.Status == Healthy:
		check.Status, check.Detail = Degraded, "disk almost full"
	case err == nil:
	case waiting.Err() != nil:
		check.Status, check.Detail = Degraded, "writing takes long"
	case errors.Is(err, ErrNoLease): // its keeper logs it
		check.Status, check.Detail = Down, "another process may hold the lease"
	default:
		check.Status, check.Detail = Down, "cannot be written"
		if earlier := m.latest.Load(); earlier == nil || earlier.Services.Database.Status != Down {
			m.log.Error("database check failed: the database cannot be written; readings are rejected until it can", slog.Any("error", err))
		}
	}
	return check
}

// logChanges logs each service that goes down or recovers; slow responses are not logged.
func (m *Monitor) logChanges(before, after Services) {
	for _, service := range []struct {
		name     string
		from, to Health
	}{
		{"database", before.Database.Status, after.Database.Status},
		{"emr", before.EMR.Status, after.EMR.Status},
		{"background_worker", before.BackgroundWorker.Status, after.BackgroundWorker.Status},
		{"fhir_engine", before.FHIREngine.Status, after.FHIREngine.Status},
	} {
		switch {
		case service.to == Down && service.from != Down:
			m.log.Warn("service down", slog.String("service", service.name))
		case service.from == Down && service.to != Down:
			m.log.Info("service back", slog.String("service", service.name))
		}
	}
}

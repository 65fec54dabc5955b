// Package dashboard knows how the practice and the service are doing: the figures, series and events that people look at, and the health of
// the four services. Figures come from what the engines keep up to date anyway, never from a walk over the observations, and the feed is the
// audit trail in other words. The package decides nothing and changes nothing of the practice; all it writes is how the service itself did.
package dashboard

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
)

// Health is how a service does.
type Health string

// The health states of the contract.
const (
	Healthy  Health = "healthy"
	Degraded Health = "degraded"
	Down     Health = "down"
)

// Thresholds within which a service is healthy; up to degradedFactor times that it is degraded.
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

// Report is one look at all services.
type Report struct {
	Status   Health
	At       time.Time
	Services Services
	// EMRAwaySince is since when the EMR has been down in every look; zero while it is not, or none is configured.
	EMRAwaySince time.Time
}

// Probes are how the monitor looks at each service; an error is never shown.
type Probes struct {
	Database func(ctx context.Context, app core.App) error
	// Writes proves that the database can be written; nil proves nothing.
	Writes func(ctx context.Context, app core.App) error
	// Room reports whether the disk has room for what is to come; nil is always.
	Room func() bool
	// EMR is nil when none is configured.
	EMR  func(ctx context.Context) error
	FHIR func() error
	// GivenUp counts deliveries that are not tried again by themselves; nil where nothing is delivered.
	GivenUp func(app core.App) (int, error)
	// Workers says how many run and how much waits for them.
	Workers func(app core.App) (running, queued int, err error)
	// Store stores a look for good; nil stores nothing.
	Store func(app core.App, lasting Lasting) error
}

// Monitor looks at the services every ten seconds and answers from memory.
type Monitor struct {
	probes Probes
	clock  func() time.Time
	log    *slog.Logger
	latest atomic.Pointer[Report]
	memory memory // of Run's goroutine alone
}

// NewMonitor returns a monitor; Run starts it.
func NewMonitor(probes Probes, clock func() time.Time, log *slog.Logger) *Monitor {
	return &Monitor{probes: probes, clock: clock, log: log}
}

// Latest is the newest report. Before the first check everything is degraded: alive, but not yet known to be well.
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

// Check looks at every service once.
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
	earlier := m.latest.Load() // Run's goroutine alone stores
	if m.probes.EMR != nil && s.EMR.Status == Down {
		report.EMRAwaySince = report.At
		if earlier != nil && !earlier.EMRAwaySince.IsZero() {
			report.EMRAwaySince = earlier.EMRAwaySince
		}
	}
	if m.latest.Store(report); earlier != nil && earlier.Status != report.Status {
		m.log.Info("health changed", slog.String("from", string(earlier.Status)), slog.String("to", string(report.Status)))
	}
	if earlier != nil {
		m.tellChanges(earlier.Services, *s)
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

// fhirEngine is not well either while deliveries have been given up: a person has to look.
func (m *Monitor) fhirEngine(app core.App) Check {
	check := m.measure(fhirThreshold, m.probes.FHIR)
	if m.probes.GivenUp == nil || check.Status != Healthy {
		return check
	}
	if givenUp, err := m.probes.GivenUp(app); err == nil && givenUp > 0 { // a database that cannot count shows as such
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

// overall is down with the database, degraded with anything else; an EMR that nobody configured does not count.
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
	// sampleEvery is how often a look is kept as a sample of the uptime.
	sampleEvery = time.Minute
	// steady is how many looks in a row make a state one that people hear of: a service that flickers must not fill the trail.
	steady = 3
	// mostUnsaved bounds the samples that wait for a database that is down: a day of them.
	mostUnsaved = 24 * 60
)

// memory is what the monitor remembers between two looks.
type memory struct {
	sampledAt time.Time
	unsaved   []Report
	told      Health // the state that the trail has
	last      Health
	inARow    int
}

// Lasting is what is stored of the looks since the last time: samples, and the change of state that has lasted, if any.
type Lasting struct {
	At       time.Time
	Samples  []Report
	From, To Health // equal when nothing changed
}

// store has a sample stored every minute, and a change of state that lasts. What a broken database refuses is stored when it is back.
func (m *Monitor) store(app core.App, report Report) {
	if m.probes.Store == nil {
		return
	}
	r := &m.memory
	if r.last != report.Status {
		r.last, r.inARow = report.Status, 0
	}
	r.inARow++
	if r.sampledAt.IsZero() || report.At.Sub(r.sampledAt) >= sampleEvery {
		r.sampledAt = report.At
		r.unsaved = append(r.unsaved, report)
		r.unsaved = r.unsaved[max(0, len(r.unsaved)-mostUnsaved):]
	}
	lasting := Lasting{At: report.At, Samples: r.unsaved, From: r.told, To: r.told}
	if r.inARow >= steady {
		lasting.To = report.Status
		if lasting.From == "" {
			lasting.From, r.told = lasting.To, lasting.To // the first state is no change
		}
	}
	if len(lasting.Samples) == 0 && lasting.From == lasting.To {
		return
	}
	if err := m.probes.Store(app, lasting); err != nil {
		m.log.Warn("health not kept", slog.Any("error", err))
		return
	}
	r.unsaved, r.told = nil, lasting.To
}

// StoreHealth stores samples of the health for the uptime, and a change of state in the audit trail.
func StoreHealth(app core.App, lasting Lasting) error {
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

// uptimeWindow is how far back the uptime looks. Source: docs/decisions/transmissions.md, "FHIR status".
const uptimeWindow = 30 * 24 * time.Hour

// Uptime is the percentage of the health samples of the last 30 days in which deliveries were possible, in tenths; 100 without samples. What is
// so now counts as a sample, too, so that it never says "always" of what is down: an outage that began since the last sample, or whose start nobody
// saw, is one up to now. Source: docs/decisions/transmissions.md, "FHIR status".
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
	return float64((samples-down)*1000/samples) / 10, nil // cut off: 100 % means never down
}

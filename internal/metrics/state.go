package metrics

import (
	"database/sql"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/dashboard"
	"github.com/vigilhealth/vigil/internal/sockets"
)

// Sources is what is asked at each scrape.
type Sources struct {
	App   core.App
	Clock func() time.Time
	// Waiting is how many readings wait for the writer.
	Waiting func() int
	Health  func() dashboard.Report
	// Connections are the service's; it may be nil.
	Connections func() sockets.Counts
	Log         *slog.Logger
}

// state reads what the database and the engines know anyway, when somebody asks.
type state struct{ Sources }

var (
	depth  = describe("vigil_queue_depth", "What waits, by queue.", "queue")
	oldest = describe("vigil_queue_oldest_age_seconds", "Age of what waits longest, by queue; 0 when nothing does.", "queue")
	health = describe("vigil_service_health", "1 healthy, 0.5 degraded, 0 down, as the health endpoint says.", "service")
	unseen = describe("vigil_alerts_unacknowledged", "Alerts that nobody has acknowledged, by level.", "level")
	open   = describe("vigil_connections_open", "Open connections.")
	silent = describe("vigil_connections_waiting", "Open connections that wait for their clients.")
	turned = describe("vigil_connections_refused_total", "Connections, and requests over HTTP/2, refused because too many were open.")
	cut    = describe("vigil_connections_cut_total", "Connections cut to make room for others.")
	waits  = describe("vigil_database_writer_waits_total", "Times that somebody waited for the database's one writer.")
	waited = describe("vigil_database_writer_wait_seconds_total", "Time spent waiting for the database's one writer.")
)

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// Watch adds what is read at each scrape, and what is known of earlier job runs.
func (m *Metrics) Watch(s Sources) error {
	runs, err := collections.LastSuccesses(s.App)
	if err != nil {
		return err
	}
	for job, started := range runs {
		m.jobSuccess.WithLabelValues(job).Set(seconds(collections.ParseInstant(started)))
	}
	if err := m.registry.Register(state{s}); err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	return nil
}

// Describe implements [prometheus.Collector].
func (s state) Describe(out chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{depth, oldest, health, unseen, open, silent, turned, cut, waits, waited} {
		out <- desc
	}
}

// Collect implements [prometheus.Collector]. What cannot be read is left out, and logged.
func (s state) Collect(out chan<- prometheus.Metric) {
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	gauge(depth, float64(s.Waiting()), "readings")
	for _, q := range collections.Queues {
		waiting, since, err := q.Waiting(s.App)
		if err != nil {
			s.Log.Warn("queue not measured", slog.String("queue", q.Name), slog.Any("error", err))
			continue
		}
		gauge(depth, float64(waiting), q.Name)
		age := 0.0
		if !since.IsZero() {
			age = max(0, s.Clock().Sub(since).Seconds())
		}
		gauge(oldest, age, q.Name)
	}
	s.collectAlerts(gauge)
	report := s.Health()
	for service, status := range map[string]dashboard.Health{
		"overall": report.Status, "database": report.Services.Database.Status, "emr": report.Services.EMR.Status,
		"background_worker": report.Services.BackgroundWorker.Status, "fhir_engine": report.Services.FHIREngine.Status,
	} {
		gauge(health, map[dashboard.Health]float64{dashboard.Healthy: 1, dashboard.Degraded: 0.5}[status], service)
	}
	if s.Connections != nil {
		counts := s.Connections()
		gauge(open, float64(counts.Open))
		gauge(silent, float64(counts.Waiting))
		out <- prometheus.MustNewConstMetric(turned, prometheus.CounterValue, float64(counts.Refused))
		out <- prometheus.MustNewConstMetric(cut, prometheus.CounterValue, float64(counts.Cut))
	}
	if stats, ok := writerStats(s.App); ok {
		out <- prometheus.MustNewConstMetric(waits, prometheus.CounterValue, float64(stats.WaitCount))
		out <- prometheus.MustNewConstMetric(waited, prometheus.CounterValue, stats.WaitDuration.Seconds())
	}
}

func (s state) collectAlerts(gauge func(*prometheus.Desc, float64, ...string)) {
	found, err := collections.UnacknowledgedAlerts(s.App)
	if err != nil {
		s.Log.Warn("alerts not counted", slog.Any("error", err))
		return
	}
	counts := map[string]int{"critical": 0, "warning": 0, "no_data": 0}
	maps.Copy(counts, found)
	for level, count := range counts {
		gauge(unseen, float64(count), level)
	}
}

// writerStats are those of the connection through which everything is written: whoever waits for it waits for the writer.
func writerStats(app core.App) (sql.DBStats, bool) {
	db, ok := app.NonconcurrentDB().(*dbx.DB)
	if !ok || db.DB() == nil {
		return sql.DBStats{}, false
	}
	return db.DB().Stats(), true
}

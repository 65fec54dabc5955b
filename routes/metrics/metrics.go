// Package metrics counts for those who run the service: how long a reading takes to be stored, to raise its alert and to reach the EMR, what
// waits, what was refused, how jobs, pushes and requests end. The engines do not know it; they tell what happened through plain functions, and
// what is in the database anyway is read when somebody asks. No label holds anything about a patient: routes are templates, reasons and states
// are words of ours.
package metrics

import (
	"cmp"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"strconv"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/dashboard"
	"github.com/vigilhealth/vigil/internal/emr"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/ratelimit"
)

// Metrics are the service's own, in a registry of their own.
type Metrics struct {
	registry *prometheus.Registry

	storage   *prometheus.HistogramVec
	readings  *prometheus.CounterVec
	raising   prometheus.Histogram
	alerts    *prometheus.CounterVec
	delivery  prometheus.Histogram
	delivered *prometheus.CounterVec
	rejected  *prometheus.CounterVec
	pushes    *prometheus.CounterVec
	webhooks  *prometheus.CounterVec

	jobRuns    *prometheus.CounterVec
	jobTime    *prometheus.HistogramVec
	jobSuccess *prometheus.GaugeVec

	requests    *prometheus.CounterVec
	requestTime *prometheus.HistogramVec
}

// The buckets, in seconds: what happens inside the process, and what waits for others.
var (
	quick = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
	slow  = []float64{.1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 6 * 3600, 24 * 3600}
)

// New returns metrics that count from nothing.
func New(version string) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	m.storage = histograms(m, "vigil_reading_storage_seconds", "Time from receipt of a reading to its storage.", quick, "source")
	m.readings = counters(m, "vigil_readings_stored_total", "Readings stored.", "type", "source")
	m.raising = histogram(m, "vigil_alert_raising_seconds", "Time from storage of a reading until its alert is durable.", quick)
	m.alerts = counters(m, "vigil_alerts_raised_total", "Alerts that readings raised.", "level", "type")
	m.delivery = histogram(m, "vigil_delivery_seconds", "Time from storage of a reading until the EMR had it.", slow)
	m.delivered = counters(m, "vigil_deliveries_total", "Deliveries to the EMR that ended: transmitted or failed.", "outcome")
	m.rejected = counters(m, "vigil_rejections_total", "Readings and gateway events refused or put into quarantine.", "reason")
	m.pushes = counters(m, "vigil_pushes_total", "Pushes whose attempt ended, by state.", "status")
	m.webhooks = counters(m, "vigil_webhook_attempts_total", "Requests to the receivers of webhooks that ended: delivered, retried or failed.", "outcome")
	// The label is not "job": that one is Prometheus' own, for what is scraped.
	m.jobRuns = counters(m, "vigil_job_runs_total", "Runs of scheduled jobs: succeeded or failed.", "name", "status")
	m.jobTime = histograms(m, "vigil_job_duration_seconds", "Duration of runs of scheduled jobs.", slow, "name")
	m.jobSuccess = register(m, prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "vigil_job_last_success_timestamp_seconds", Help: "When the last run of a job that succeeded began; kept over restarts.",
	}, []string{"name"}))
	m.requests = counters(m, "vigil_http_requests_total", "Requests answered.", "method", "route", "status")
	m.requestTime = histograms(m, "vigil_http_request_duration_seconds", "Time to answer a request.", quick, "route")
	register(m, prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "vigil_unreadable_values_total", Help: "Openings of stored values that failed: with none of the keys, or because the value was changed.",
	}, func() float64 { return float64(collections.UnreadableValues()) }))
	build := register(m, prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "vigil_build_info", Help: "Always 1; the label says what runs."}, []string{"version"}))
	build.WithLabelValues(version).Set(1)
	m.beginWithNothing()
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func register[C prometheus.Collector](m *Metrics, c C) C {
	m.registry.MustRegister(c)
	return c
}

func counters(m *Metrics, name, help string, labels ...string) *prometheus.CounterVec {
	return register(m, prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels))
}

func histogram(m *Metrics, name, help string, buckets []float64) prometheus.Histogram {
	return register(m, prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}))
}

func histograms(m *Metrics, name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return register(m, prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels))
}

// Handler serves the metrics; what cannot be read is logged and left out.
func (m *Metrics) Handler(log *slog.Logger) http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	})
}

// Gather reads everything at once, as a scrape does.
func (m *Metrics) Gather() prometheus.Gatherer { return m.registry }

// Stored counts what a commit stored anew.
func (m *Metrics) Stored(outcomes []ingest.Outcome, now time.Time) {
	for _, outcome := range outcomes {
		o := outcome.Observation
		if !outcome.Merged { // it was counted when it came
			m.storage.WithLabelValues(string(o.Source)).Observe(o.ProcessingMS / 1000)
			m.readings.WithLabelValues(string(o.Reading.Kind), string(o.Source)).Inc()
		}
		for _, alert := range outcome.Alerts {
			m.raising.Observe(max(0, now.Sub(o.CreatedAt).Seconds()))
			m.alerts.WithLabelValues(alert.Level, alert.Type).Inc()
		}
	}
}

// Delivered counts a delivery that ended.
func (m *Metrics) Delivered(s emr.Result, now time.Time) {
	if s.Failed() {
		m.delivered.WithLabelValues("failed").Inc()
		return
	}
	m.delivered.WithLabelValues("transmitted").Inc()
	if !s.StoredAt.IsZero() {
		m.delivery.Observe(max(0, now.Sub(s.StoredAt).Seconds()))
	}
}

// Rejected counts a reading or gateway event that was refused or put into quarantine, by error code or reason.
func (m *Metrics) Rejected(reason string) { m.rejected.WithLabelValues(reason).Inc() }

// Pushed counts an attempt at a push that ended, by its state.
func (m *Metrics) Pushed(status string) { m.pushes.WithLabelValues(status).Inc() }

// Told counts a request to the receiver of a webhook that ended, by what came of it.
func (m *Metrics) Told(outcome string) { m.webhooks.WithLabelValues(outcome).Inc() }

// Ran counts a run of a job.
func (m *Metrics) Ran(job string, succeeded bool, began time.Time, took time.Duration) {
	status := "failed"
	if succeeded {
		status = "succeeded"
		m.jobSuccess.WithLabelValues(job).Set(seconds(began))
	}
	m.jobRuns.WithLabelValues(job, status).Inc()
	m.jobTime.WithLabelValues(job).Observe(took.Seconds())
}

// Answered counts a request by the template of its route.
func (m *Metrics) Answered(method, route string, status int, took time.Duration) {
	route = cmp.Or(route, "none")
	m.requests.WithLabelValues(method, route, strconv.Itoa(status)).Inc()
	m.requestTime.WithLabelValues(route).Observe(took.Seconds())
}

func seconds(at time.Time) float64 { return float64(at.UnixMicro()) / 1e6 }

// Sources is what is asked at each scrape.
type Sources struct {
	App   core.App
	Clock func() time.Time
	// Waiting is how many readings wait for the writer.
	Waiting func() int
	Health  func() dashboard.Report
	// Outage says since when the EMR is down; it may be nil.
	Outage func() (since time.Time, down bool)
	// Connections are the service's; it may be nil.
	Connections func() ratelimit.ConnCounts
	// DiskFree is what the data folder's disk can still take, in bytes; ok is false where nobody says. It may be nil.
	DiskFree func() (bytes uint64, ok bool)
	// CertificateEnds is until when the certificate that is served is valid; zero without one. It may be nil.
	CertificateEnds func() time.Time
	// Exported says when everything last left for a warehouse, zero for never; known is false where nothing is to leave. It may be nil.
	Exported func() (at time.Time, known bool, err error)
	Log      *slog.Logger
}

// state reads what the database and the engines know anyway, when somebody asks.
type state struct{ Sources }

var (
	depth  = describe("vigil_queue_depth", "What waits, by queue.", "queue")
	oldest = describe("vigil_queue_oldest_age_seconds", "Age of what waits longest, by queue; 0 when nothing does.", "queue")
	health = describe("vigil_service_health", "1 healthy, 0.5 degraded, 0 down, as the health endpoint says.", "service")
	outage = describe("vigil_emr_outage_seconds", "Age of the outage of the EMR; 0 while it takes deliveries.")
	unseen = describe("vigil_alerts_unacknowledged", "Alerts that nobody has acknowledged, by level.", "level")
	gaveUp = describe("vigil_transmissions_given_up", "Deliveries to the EMR that are not tried again by themselves, of all days.")
	untold = describe("vigil_webhook_deliveries_failed", "Events that a webhook's receiver did not take and that are not tried again by themselves, as long as they are kept.")
	muted  = describe("vigil_webhooks_switched_off", "Webhooks that the service has switched off.")
	deaf   = describe("vigil_webhooks_failing", "Webhooks in use whose receiver took nothing the last time.")
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
	for _, desc := range []*prometheus.Desc{
		depth, oldest, health, outage, unseen, gaveUp, untold, muted, deaf, open, silent, turned, cut, waits, waited, diskFree, logSize, takenAt, provenAt, shippedAt, certEnds,
	} {
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
		waiting, since, err := q.Depth(s.App)
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
	if givenUp, err := collections.CountDeadLetters(s.App); err != nil {
		s.Log.Warn("deliveries given up not counted", slog.Any("error", err))
	} else {
		gauge(gaveUp, float64(givenUp))
	}
	s.collectWebhooks(gauge)
	s.collectUpkeep(gauge)
	report := s.Health()
	for service, status := range map[string]dashboard.Health{
		"overall": report.Status, "database": report.Services.Database.Status, "emr": report.Services.EMR.Status,
		"background_worker": report.Services.BackgroundWorker.Status, "fhir_engine": report.Services.FHIREngine.Status,
	} {
		gauge(health, map[dashboard.Health]float64{dashboard.Healthy: 1, dashboard.Degraded: 0.5}[status], service)
	}
	if s.Outage != nil {
		age := 0.0
		if since, down := s.Outage(); down {
			age = max(0, s.Clock().Sub(since).Seconds())
		}
		gauge(outage, age)
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

func (s state) collectWebhooks(gauge func(*prometheus.Desc, float64, ...string)) {
	failed, err := collections.CountFailedWebhookDeliveries(s.App)
	off, failing, also := collections.CountDisabledWebhooks(s.App)
	if err := errors.Join(err, also); err != nil {
		s.Log.Warn("webhooks not counted", slog.Any("error", err))
		return
	}
	gauge(untold, float64(failed))
	gauge(muted, float64(off))
	gauge(deaf, float64(failing))
}

func (s state) collectAlerts(gauge func(*prometheus.Desc, float64, ...string)) {
	found, err := collections.CountUnacknowledgedAlerts(s.App)
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

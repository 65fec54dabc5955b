// Package metrics exports Prometheus metrics for operators: the latencies of storing a reading, raising its alert and delivering it to the EMR;
// queue depths; rejections; and the outcomes of jobs, pushes and requests.
// The engines do not depend on it: they report events through plain functions, and the database is read at each scrape. No label holds patient data:
// routes are templates, and reasons and states are constants.
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

// Metrics are the service's metrics, in a registry of their own.
type Metrics struct {
	registry *prometheus.Registry

	storageTime  *prometheus.HistogramVec
	readings     *prometheus.CounterVec
	alertLatency prometheus.Histogram
	alerts       *prometheus.CounterVec
	deliveryTime prometheus.Histogram
	delivered    *prometheus.CounterVec
	rejected     *prometheus.CounterVec
	leftOut      *prometheus.CounterVec
	withoutZone  *prometheus.CounterVec
	pushes       *prometheus.CounterVec
	webhooks     *prometheus.CounterVec

	jobRuns    *prometheus.CounterVec
	jobTime    *prometheus.HistogramVec
	jobSuccess *prometheus.GaugeVec

	requests    *prometheus.CounterVec
	requestTime *prometheus.HistogramVec
}

// Histogram buckets in seconds, for work inside the process and for work that depends on other systems.
var (
	fastBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
	slowBuckets = []float64{.1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 6 * 3600, 24 * 3600}
)

// New returns metrics with all counters at zero.
func New(version string) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	m.storageTime = histograms(m, "vigil_reading_storage_seconds", "Time from receipt of a reading to its storage.", fastBuckets, "source")
	m.readings = counters(m, "vigil_readings_stored_total", "Readings stored.", "type", "source")
	m.alertLatency = histogram(m, "vigil_alert_raising_seconds", "Time from storage of a reading until its alert is durable.", fastBuckets)
	m.alerts = counters(m, "vigil_alerts_raised_total", "Alerts that readings raised.", "level", "type")
	m.deliveryTime = histogram(m, "vigil_delivery_seconds", "Time from storage of a reading until the EMR had it.", slowBuckets)
	m.delivered = counters(m, "vigil_deliveries_total", "Finished deliveries to the EMR: transmitted or failed.", "outcome")
	m.rejected = counters(m, "vigil_rejections_total", "Readings and gateway events rejected or quarantined.", "reason")
	m.leftOut = counters(m, "vigil_reading_fields_left_out_total", "Fields of stored readings' events that could not be read.", "field")
	m.withoutZone = counters(m, "vigil_reading_times_without_zone_total", "Readings stored with a time that was sent without a zone and read as UTC.", "source")
	m.pushes = counters(m, "vigil_pushes_total", "Finished push attempts, by state.", "status")
	m.webhooks = counters(m, "vigil_webhook_attempts_total", "Finished requests to webhook receivers: delivered, retried or failed.", "outcome")
	// The label is not "job", which Prometheus sets to the scrape job.
	m.jobRuns = counters(m, "vigil_job_runs_total", "Runs of scheduled jobs: succeeded or failed.", "name", "status")
	m.jobTime = histograms(m, "vigil_job_duration_seconds", "Duration of runs of scheduled jobs.", slowBuckets, "name")
	m.jobSuccess = register(m, prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "vigil_job_last_success_timestamp_seconds", Help: "Start of the last successful run of a job; survives restarts.",
	}, []string{"name"}))
	m.requests = counters(m, "vigil_http_requests_total", "Requests answered.", "method", "route", "status")
	m.requestTime = histograms(m, "vigil_http_request_duration_seconds", "Time to answer a request.", fastBuckets, "route")
	register(m, prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "vigil_unreadable_values_total", Help: "Stored values that could not be decrypted: no key fits, or the value was changed.",
	}, func() float64 { return float64(collections.UnreadableValues()) }))
	build := register(m, prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "vigil_build_info", Help: "Always 1; the label is the running version."}, []string{"version"}))
	build.WithLabelValues(version).Set(1)
	m.initCounters()
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

// Handler serves the metrics. Metrics that cannot be read are logged and omitted.
func (m *Metrics) Handler(log *slog.Logger) http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	})
}

// Gather returns all metrics, as a scrape does.
func (m *Metrics) Gather() prometheus.Gatherer { return m.registry }

// CountStored counts the readings and alerts that a commit stored.
func (m *Metrics) CountStored(outcomes []ingest.Outcome, now time.Time) {
	for _, outcome := range outcomes {
		o := outcome.Observation
		if !outcome.Merged { // a merged reading was counted with its first part
			m.storageTime.WithLabelValues(string(o.Source)).Observe(o.ProcessingMS / 1000)
			m.readings.WithLabelValues(string(o.Reading.Kind), string(o.Source)).Inc()
		}
		for _, field := range o.LeftOut {
			m.leftOut.WithLabelValues(field).Inc()
		}
		if o.Reading.WithoutZone {
			m.withoutZone.WithLabelValues(string(o.Source)).Inc()
		}
		for _, alert := range outcome.Alerts {
			m.alertLatency.Observe(max(0, now.Sub(o.CreatedAt).Seconds()))
			m.alerts.WithLabelValues(alert.Level, alert.Type).Inc()
		}
	}
}

// CountDelivery counts a finished delivery to the EMR.
func (m *Metrics) CountDelivery(s emr.Result, now time.Time) {
	if s.Failed() {
		m.delivered.WithLabelValues("failed").Inc()
		return
	}
	m.delivered.WithLabelValues("transmitted").Inc()
	if !s.StoredAt.IsZero() {
		m.deliveryTime.Observe(max(0, now.Sub(s.StoredAt).Seconds()))
	}
}

// CountRejection counts a reading or gateway event that was rejected or quarantined, by error code or reason.
func (m *Metrics) CountRejection(reason string) { m.rejected.WithLabelValues(reason).Inc() }

// CountPush counts a finished push attempt by its state.
func (m *Metrics) CountPush(status string) { m.pushes.WithLabelValues(status).Inc() }

// CountWebhookAttempt counts a finished request to a webhook receiver by its outcome.
func (m *Metrics) CountWebhookAttempt(outcome string) { m.webhooks.WithLabelValues(outcome).Inc() }

// CountJobRun counts a run of a job.
func (m *Metrics) CountJobRun(job string, succeeded bool, began time.Time, took time.Duration) {
	status := "failed"
	if succeeded {
		status = "succeeded"
		m.jobSuccess.WithLabelValues(job).Set(unixSeconds(began))
	}
	m.jobRuns.WithLabelValues(job, status).Inc()
	m.jobTime.WithLabelValues(job).Observe(took.Seconds())
}

// CountRequest counts a request by its route template.
func (m *Metrics) CountRequest(method, route string, status int, took time.Duration) {
	route = cmp.Or(route, "none")
	m.requests.WithLabelValues(method, route, strconv.Itoa(status)).Inc()
	m.requestTime.WithLabelValues(route).Observe(took.Seconds())
}

func unixSeconds(at time.Time) float64 { return float64(at.UnixMicro()) / 1e6 }

// Sources are read at each scrape.
type Sources struct {
	App   core.App
	Clock func() time.Time
	// Waiting returns how many readings wait for the writer.
	Waiting func() int
	Health  func() dashboard.Report
	// Outage returns whether the EMR is down, and since when; it may be nil.
	Outage func() (since time.Time, down bool)
	// Connections returns the counts of the service's connections; it may be nil.
	Connections func() ratelimit.ConnCounts
	// Zone is the practice's time zone.
	Zone *time.Location
	// ReplicaAge returns the time since the last upload to the replica; configured is false without one. It may be nil.
	ReplicaAge func() (age time.Duration, configured bool)
	// Damaged reports whether damage of the database was found; it may be nil.
	Damaged func() bool
	// LeaseHeld reports whether this process holds the practice's lease; nil if it needs none.
	LeaseHeld func() bool
	// DiskFree returns the free bytes on the disk of the data folder; ok is false if they are unknown. It may be nil.
	DiskFree func() (bytes uint64, ok bool)
	// CertificateEnds returns the expiry of the TLS certificate; zero without one. It may be nil.
	CertificateEnds func() time.Time
	// LastExport returns the last successful warehouse export, zero for never; known is false if no export is configured. It may be nil.
	LastExport func() (at time.Time, known bool, err error)
	Log        *slog.Logger
}

// sourceCollector reads the state of the database and the engines at each scrape.
type sourceCollector struct{ Sources }

var (
	queueDepth           = newDesc("vigil_queue_depth", "Queued items, by queue.", "queue")
	queueOldestAge       = newDesc("vigil_queue_oldest_age_seconds", "Age of the oldest queued item, by queue; 0 if the queue is empty.", "queue")
	serviceHealth        = newDesc("vigil_service_health", "1 healthy, 0.5 degraded, 0 down, as the health endpoint reports.", "service")
	emrOutage            = newDesc("vigil_emr_outage_seconds", "Age of the outage of the EMR; 0 while it accepts deliveries.")
	gatewayMissing       = newDesc("vigil_gateway_readings_missing", "Gateway readings expected since the practice's last one, by the same hours of past weeks.")
	unacknowledgedAlerts = newDesc("vigil_alerts_unacknowledged", "Unacknowledged alerts, by level.", "level")
	deadLetters          = newDesc("vigil_transmissions_given_up", "Dead letters: deliveries to the EMR without an automatic retry, of all days.")
	webhookDeadLetters   = newDesc("vigil_webhook_deliveries_failed", "Dead letters of webhooks: stored events that a receiver did not accept, without an automatic retry.")
	webhooksDisabled     = newDesc("vigil_webhooks_switched_off", "Webhooks that the service has disabled.")
	webhooksFailing      = newDesc("vigil_webhooks_failing", "Active webhooks with a failed last attempt.")
	connectionsOpen      = newDesc("vigil_connections_open", "Open connections.")
	connectionsWaiting   = newDesc("vigil_connections_waiting", "Open connections that wait for their clients.")
	connectionsRefused   = newDesc("vigil_connections_refused_total", "Connections, and requests over HTTP/2, refused because too many were open.")
	connectionsClosed    = newDesc("vigil_connections_cut_total", "Connections closed to make room for others.")
	writerWaits          = newDesc("vigil_database_writer_waits_total", "Waits for the database's single writer connection.")
	writerWaitTime       = newDesc("vigil_database_writer_wait_seconds_total", "Time spent waiting for the database's single writer connection.")
)

func newDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// Watch registers the sources, and restores the last successful run of each job.
func (m *Metrics) Watch(s Sources) error {
	runs, err := collections.LastSuccesses(s.App)
	if err != nil {
		return err
	}
	for job, started := range runs {
		m.jobSuccess.WithLabelValues(job).Set(unixSeconds(collections.ParseInstant(started)))
	}
	if err := m.registry.Register(sourceCollector{s}); err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	return nil
}

// Describe implements [prometheus.Collector].
func (s sourceCollector) Describe(out chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{
		queueDepth, queueOldestAge, serviceHealth, emrOutage, unacknowledgedAlerts, deadLetters, webhookDeadLetters, webhooksDisabled, webhooksFailing, connectionsOpen, connectionsWaiting, connectionsRefused, connectionsClosed, writerWaits, writerWaitTime, diskFree, walSize, databaseDamaged, leaseHeld, replicaAge, gatewayMissing, backupTakenAt, backupVerifiedAt, warehouseExportedAt, certificateExpiry,
	} {
		out <- desc
	}
}

// Collect implements [prometheus.Collector]. Values that cannot be read are logged and omitted.
func (s sourceCollector) Collect(out chan<- prometheus.Metric) {
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	gauge(queueDepth, float64(s.Waiting()), "readings")
	for _, q := range collections.Queues {
		waiting, since, err := q.Depth(s.App)
		if err != nil {
			s.Log.Warn("metrics could not read a queue and leave out its gauges", slog.String("queue", q.Name), slog.Any("error", err))
			continue
		}
		gauge(queueDepth, float64(waiting), q.Name)
		age := 0.0
		if !since.IsZero() {
			age = max(0, s.Clock().Sub(since).Seconds())
		}
		gauge(queueOldestAge, age, q.Name)
	}
	s.collectAlerts(gauge)
	if deadLettered, err := collections.CountDeadLetters(s.App); err != nil {
		s.Log.Warn("metrics could not count dead letters and leave out the gauge", slog.Any("error", err))
	} else {
		gauge(deadLetters, float64(deadLettered))
	}
	s.collectWebhooks(gauge)
	if missing, err := ingest.EstimateMissingReadings(s.App, s.Clock(), s.Zone); err != nil {
		s.Log.Warn("metrics could not count missing readings and leave out the gauge", slog.Any("error", err))
	} else {
		gauge(gatewayMissing, float64(missing))
	}
	s.collectMaintenance(gauge)
	report := s.Health()
	for service, status := range map[string]dashboard.Health{
		"overall": report.Status, "database": report.Services.Database.Status, "emr": report.Services.EMR.Status,
		"background_worker": report.Services.BackgroundWorker.Status, "fhir_engine": report.Services.FHIREngine.Status,
	} {
		gauge(serviceHealth, map[dashboard.Health]float64{dashboard.Healthy: 1, dashboard.Degraded: 0.5}[status], service)
	}
	if s.Outage != nil {
		age := 0.0
		if since, down := s.Outage(); down {
			age = max(0, s.Clock().Sub(since).Seconds())
		}
		gauge(emrOutage, age)
	}
	if s.Connections != nil {
		counts := s.Connections()
		gauge(connectionsOpen, float64(counts.Open))
		gauge(connectionsWaiting, float64(counts.Waiting))
		out <- prometheus.MustNewConstMetric(connectionsRefused, prometheus.CounterValue, float64(counts.Refused))
		out <- prometheus.MustNewConstMetric(connectionsClosed, prometheus.CounterValue, float64(counts.Evicted))
	}
	if stats, ok := writerStats(s.App); ok {
		out <- prometheus.MustNewConstMetric(writerWaits, prometheus.CounterValue, float64(stats.WaitCount))
		out <- prometheus.MustNewConstMetric(writerWaitTime, prometheus.CounterValue, stats.WaitDuration.Seconds())
	}
}

func (s sourceCollector) collectWebhooks(gauge func(*prometheus.Desc, float64, ...string)) {
	failed, err := collections.CountFailedWebhookDeliveries(s.App)
	off, failing, also := collections.CountDisabledWebhooks(s.App)
	if err := errors.Join(err, also); err != nil {
		s.Log.Warn("metrics could not count webhooks and leave out their gauges", slog.Any("error", err))
		return
	}
	gauge(webhookDeadLetters, float64(failed))
	gauge(webhooksDisabled, float64(off))
	gauge(webhooksFailing, float64(failing))
}

func (s sourceCollector) collectAlerts(gauge func(*prometheus.Desc, float64, ...string)) {
	found, err := collections.CountUnacknowledgedAlerts(s.App)
	if err != nil {
		s.Log.Warn("metrics could not count alerts and leave out the gauge", slog.Any("error", err))
		return
	}
	counts := map[string]int{"critical": 0, "warning": 0, "no_data": 0}
	maps.Copy(counts, found)
	for level, count := range counts {
		gauge(unacknowledgedAlerts, float64(count), level)
	}
}

// writerStats returns the statistics of the single connection that writes; a wait for it is a wait for the writer.
func writerStats(app core.App) (sql.DBStats, bool) {
	db, ok := app.NonconcurrentDB().(*dbx.DB)
	if !ok || db.DB() == nil {
		return sql.DBStats{}, false
	}
	return db.DB().Stats(), true
}

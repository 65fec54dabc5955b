// Package metrics counts for those who run the service: how long a reading takes to be stored, to raise its alert and to reach the EMR, what
// waits, what was refused, how jobs, pushes and requests end. The engines do not know it; they tell what happened through plain functions, and
// what is in the database anyway is read when somebody asks. No label holds anything about a patient: routes are templates, reasons and states
// are words of ours.
package metrics

import (
	"cmp"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/observations"
	"github.com/vigilhealth/vigil/internal/transmissions"
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
func (m *Metrics) Stored(outcomes []observations.Outcome, now time.Time) {
	for _, outcome := range outcomes {
		o := outcome.Observation
		if !outcome.Completed { // it was counted when it came
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
func (m *Metrics) Delivered(s transmissions.Result, now time.Time) {
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

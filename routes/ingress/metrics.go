package ingress

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/vigilhealth/vigil/internal/events"
	"github.com/vigilhealth/vigil/internal/fault"
)

// Metrics are the ingress's metrics. No label names a device or a patient.
type Metrics struct {
	published *prometheus.CounterVec
	answered  *prometheus.CounterVec
	duration  prometheus.Histogram
}

// NewMetrics registers the metrics.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		published: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vigil_ingress_events_total", Help: "Device events that the stream acknowledged, by owner: a practice or none.",
		}, []string{"owner"}),
		answered: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vigil_ingress_requests_total", Help: "Vendors' requests, by result: accepted or the code of the error.",
		}, []string{"result"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "vigil_ingress_seconds", Help: "Time from a vendor's request to its answer.", Buckets: []float64{.005, .01, .025, .05, .1, .2, .5, 1, 2.5, 5},
		}),
	}
	registry.MustRegister(m.published, m.answered, m.duration)
	for _, owner := range []string{"practice", "none"} {
		m.published.WithLabelValues(owner)
	}
	return m
}

func (m *Metrics) count(subject string) {
	owner := "practice"
	if subject == events.Unassigned {
		owner = "none"
	}
	m.published.WithLabelValues(owner).Inc()
}

func (m *Metrics) observe(refused *fault.Error, took time.Duration) {
	result := "accepted"
	if refused != nil {
		result = refused.Code
	}
	m.answered.WithLabelValues(result).Inc()
	m.duration.Observe(took.Seconds())
}

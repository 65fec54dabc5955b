package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/vigilhealth/vigil/internal/events"
	"github.com/vigilhealth/vigil/internal/events/dispatcher"
)

// EventCollector exports the state of the events of several practices, as the dispatcher last saw it.
type EventCollector struct {
	State func() dispatcher.State
	Clock func() time.Time
}

var (
	unassignedEvents   = newDesc("vigil_unassigned_events", "Events without one owner, by reason.", "reason")
	unassignedCritical = newDesc("vigil_unassigned_critical", "Those with a value beyond a default critical bound, or that cannot be opened.")
	unassignedOldest   = newDesc("vigil_unassigned_oldest_seconds", "Age of the oldest event without one owner; 0 for none.")
	deadEvents         = newDesc("vigil_dead_events", "Events that a practice could not store.", "practice")
	unconsumedOldest   = newDesc("vigil_unconsumed_oldest_seconds", "Age of the oldest event that a practice has not stored; 0 for none.", "practice")
	dispatcherScan     = newDesc("vigil_dispatcher_scan_timestamp_seconds", "When the dispatcher last looked through the events; 0 for never.")
)

// Describe implements prometheus.Collector.
func (c EventCollector) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{unassignedEvents, unassignedCritical, unassignedOldest, deadEvents, unconsumedOldest, dispatcherScan} {
		descs <- desc
	}
}

// Collect implements prometheus.Collector.
func (c EventCollector) Collect(metrics chan<- prometheus.Metric) {
	state, now := c.State(), c.Clock()
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	age := func(at time.Time) float64 {
		if at.IsZero() {
			return 0
		}
		return max(0, now.Sub(at).Seconds())
	}
	gauge(dispatcherScan, secondsOrZero(state.At))
	if state.At.IsZero() {
		return // nothing is known yet
	}
	reasons := map[string]int{events.ReasonUnknown: 0, events.ReasonOverlap: 0, events.ReasonNoIdentity: 0}
	critical, oldest := 0, time.Time{}
	for n, event := range state.Unassigned {
		reasons[event.Reason]++
		if event.Critical {
			critical++
		}
		if n == 0 {
			oldest = event.At
		}
	}
	for reason, count := range reasons {
		gauge(unassignedEvents, float64(count), reason)
	}
	gauge(unassignedCritical, float64(critical))
	gauge(unassignedOldest, age(oldest))
	for practice, count := range state.Dead {
		gauge(deadEvents, float64(count), practice)
	}
	for practice, at := range state.Unconsumed {
		gauge(unconsumedOldest, age(at), practice)
	}
}

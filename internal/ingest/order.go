package ingest

import (
	"cmp"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// What comes together is taken in order of measurement, whatever its order on the way, and a late reading is told what follows it: it is
// no news when something newer came along.
// Source: docs/decisions/alerts.md, "Readings out of order" and "Late readings".

// sortByMeasurement are the places of a list in the order in which to take them. What has no reading keeps its place.
func deliveryOrder[T any](list []T, event func(T) (e gateway.Event, measured bool)) []int {
	order, measured := make([]int, len(list)), []int(nil)
	for i, item := range list {
		if order[i] = i; hasReading(event(item)) {
			measured = append(measured, i)
		}
	}
	sorted := slices.Clone(measured)
	slices.SortStableFunc(sorted, func(a, b int) int {
		first, _ := event(list[a])
		second, _ := event(list[b])
		return cmp.Or(first.Reading.MeasuredAt.Compare(second.Reading.MeasuredAt), cmp.Compare(a, b))
	})
	for n, index := range measured {
		order[index] = sorted[n]
	}
	return order
}

func hasReading(e gateway.Event, measured bool) bool { return measured && e.Reading != nil }

// senderOf is what readings of one patient that come together have in common: the patient's identifier, or the device.
func senderOf(e gateway.Event) string { return cmp.Or(e.PatientID, "device "+e.DeviceID) }

// newestReadings are the newest readings of each kind, by sender, of what comes together.
type newestReadings map[string][]vitals.Reading

func (n newestReadings) add(e gateway.Event) {
	list := n[senderOf(e)]
	at := slices.IndexFunc(list, func(r vitals.Reading) bool { return r.Kind == e.Reading.Kind })
	switch {
	case at < 0:
		n[senderOf(e)] = append(list, *e.Reading)
	case list[at].MeasuredAt.Before(e.Reading.MeasuredAt):
		list[at] = *e.Reading
	}
}

// newerThan are those of the sender of a late event that were measured after it.
func (n newestReadings) newerThan(e gateway.Event) (following []vitals.Reading) {
	for _, r := range n[senderOf(e)] {
		if r.MeasuredAt.After(e.Reading.MeasuredAt) {
			following = append(following, r)
		}
	}
	return following
}

// redeliveryWindow is how long ago a delivery may have been begun that is taken again.
const redeliveryWindow = 24 * time.Hour

// deliveryBatch is a delivery of several events on its way in.
type deliveryBatch struct {
	pipeline *Pipeline
	newest   newestReadings
	at       time.Time
	// told are the patients of late readings that were judged by what was to follow; missing: some of that was not stored.
	latePatients []string
	incomplete   bool
}

// newDeliveryBatch looks at what comes together; of one event alone there is nothing to know.
func (e *Pipeline) newDeliveryBatch(parts []deliveryEvent, at time.Time) *deliveryBatch {
	t := &deliveryBatch{pipeline: e, newest: newestReadings{}, at: at}
	for _, p := range parts {
		if len(parts) > 1 && hasReading(p.measurement()) {
			t.newest.add(p.event)
		}
	}
	return t
}

// measurement is the event of a part, and whether there is a reading in it to take.
func (p deliveryEvent) measurement() (gateway.Event, bool) {
	return p.event, p.rejection == nil && p.event.Reading != nil
}

// newerThan is what follows a late event.
func (t *deliveryBatch) newerThan(e gateway.Event) []vitals.Reading {
	if e.Reading == nil || !t.pipeline.Evaluator.IsLate(e.Reading.MeasuredAt, t.at) {
		return nil
	}
	return t.newest.newerThan(e)
}

// recordResult remembers what became of an event.
func (t *deliveryBatch) recordResult(e gateway.Event, status Status, patient string) {
	if e.Reading == nil {
		return
	}
	stored := status == Stored || status == Duplicate
	t.incomplete = t.incomplete || !stored
	if stored && len(t.newerThan(e)) > 0 && !slices.Contains(t.latePatients, patient) {
		t.latePatients = append(t.latePatients, patient)
	}
}

// reopenSuperseded has late readings told after all, where what was to follow them was not stored.
func (t *deliveryBatch) reopenSuperseded(app core.App, now time.Time) error {
	if !t.incomplete {
		return nil
	}
	for _, patient := range t.latePatients {
		if err := t.pipeline.Evaluator.ReopenSuperseded(app, patient, t.at.Add(-redeliveryWindow), now); err != nil {
			return err
		}
	}
	return nil
}

package ingest

import (
	"cmp"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// measurementOrder returns the indexes of a list in order of measurement. Items without a reading keep their place. Source:
// docs/decisions/alerts.md, "Readings out of order" and "Late readings".
func measurementOrder[T any](list []T, event func(T) (e gateway.Event, measured bool)) []int {
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

// senderOf identifies the patient of readings that arrive together: by patient identifier, or by device.
func senderOf(e gateway.Event) string { return cmp.Or(e.PatientID, "device "+e.DeviceID) }

// newestReadings are the newest readings of each kind that arrived together, by sender.
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

// newerThan returns the sender's readings that were measured after the event.
func (n newestReadings) newerThan(e gateway.Event) (following []vitals.Reading) {
	for _, r := range n[senderOf(e)] {
		if r.MeasuredAt.After(e.Reading.MeasuredAt) {
			following = append(following, r)
		}
	}
	return following
}

// resendWindow is the age up to which a sender may repeat a request.
const resendWindow = 24 * time.Hour

// readingBatch is the readings that arrived together: of one request, file block or replay. A late one that a newer one of them supersedes raises no open alert.
type readingBatch struct {
	pipeline *Pipeline
	newest   newestReadings
	at       time.Time
	// latePatients have late readings that were evaluated against newer ones of the batch; incomplete: some of the newer ones were not
	// stored.
	latePatients []string
	incomplete   bool
}

// newRequestBatch collects the newest readings of a request of several events.
func (e *Pipeline) newRequestBatch(parts []requestEvent, at time.Time) *readingBatch {
	t := &readingBatch{pipeline: e, newest: newestReadings{}, at: at}
	for _, p := range parts {
		if len(parts) > 1 && hasReading(p.measurement()) {
			t.newest.add(p.event)
		}
	}
	return t
}

// measurement returns the event, and whether it has a reading to store.
func (p requestEvent) measurement() (gateway.Event, bool) {
	return p.event, p.rejection == nil && p.event.Reading != nil
}

// newerThan returns the newer readings of the batch if the event is late.
func (t *readingBatch) newerThan(e gateway.Event) []vitals.Reading {
	if e.Reading == nil || !t.pipeline.Readings.IsLate(e.Reading.MeasuredAt, t.at) {
		return nil
	}
	return t.newest.newerThan(e)
}

// recordResult records the status of an event.
func (t *readingBatch) recordResult(e gateway.Event, status Status, patient string) {
	if e.Reading == nil {
		return
	}
	stored := status == Stored || status == Duplicate
	t.incomplete = t.incomplete || !stored
	if stored && len(t.newerThan(e)) > 0 && !slices.Contains(t.latePatients, patient) {
		t.latePatients = append(t.latePatients, patient)
	}
}

// reopenSuperseded reopens the alerts that late readings raised if the readings that superseded them were not stored.
func (t *readingBatch) reopenSuperseded(app core.App, now time.Time) error {
	if !t.incomplete {
		return nil
	}
	for _, patient := range t.latePatients {
		if err := t.pipeline.Readings.ReopenSuperseded(app, patient, t.at.Add(-resendWindow), now); err != nil {
			return err
		}
	}
	return nil
}

// sortByMeasurement sorts a group by time of measurement, so that the order in which a device sends its memory does not matter. Equal times
// keep their order of arrival. Source: docs/decisions/alerts.md, "Readings out of order".
func sortByMeasurement(group []*groupItem) []*groupItem {
	byTime := func(a, b *groupItem) int { return a.In.Reading.MeasuredAt.Compare(b.In.Reading.MeasuredAt) }
	if slices.IsSortedFunc(group, byTime) {
		return group
	}
	group = slices.Clone(group)
	slices.SortStableFunc(group, byTime)
	return group
}

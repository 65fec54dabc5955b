package ingest

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// senderOf identifies the patient of readings that arrive together: by patient identifier, or by device.
func senderOf(e gateway.Event) string { return cmp.Or(e.PatientID, "device "+e.DeviceID) }

// newestReadings are the newest readings of each kind and device that arrived together, by sender.
type newestReadings map[string][]vitals.Reading

func (n newestReadings) add(e gateway.Event) {
	list := n[senderOf(e)]
	at := slices.IndexFunc(list, func(r vitals.Reading) bool { return r.Kind == e.Reading.Kind && r.DeviceID == e.Reading.DeviceID })
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

// readingBatch is the readings that arrived together: of one request, file block or replay. A late one that a newer one of them supersedes
// raises no open alert.
type readingBatch struct {
	pipeline *Pipeline
	newest   newestReadings
	at       time.Time
	// order are the indexes of the events in order of measurement. Events without a reading keep their place.
	order []int
	// latePatients have late readings that were evaluated against newer ones of the batch; incomplete: some of the newer ones were not
	// stored.
	latePatients []string
	incomplete   bool
}

// newBatch returns the batch of events that arrived together. Source: docs/decisions/alerts.md, "Readings out of order" and "Late readings".
func (e *Pipeline) newBatch(events []gateway.Event, at time.Time) *readingBatch {
	t := &readingBatch{pipeline: e, newest: newestReadings{}, at: at, order: make([]int, len(events))}
	var measured []int
	for i, event := range events {
		if t.order[i] = i; event.Reading != nil {
			measured = append(measured, i)
		}
	}
	sorted := slices.Clone(measured)
	slices.SortStableFunc(sorted, func(a, b int) int { return events[a].Reading.MeasuredAt.Compare(events[b].Reading.MeasuredAt) })
	for n, index := range measured {
		if t.order[index] = sorted[n]; len(events) > 1 {
			t.newest.add(events[sorted[n]])
		}
	}
	return t
}

// newerThan returns the newer readings of the batch if the event is of the past.
func (b *readingBatch) newerThan(e gateway.Event) []vitals.Reading {
	if e.Reading == nil || !b.pipeline.Readings.mayBeSuperseded(e.Reading.MeasuredAt, b.at) {
		return nil
	}
	return b.newest.newerThan(e)
}

// recordResult records the status of an event.
func (b *readingBatch) recordResult(e gateway.Event, status Status, patient string) {
	if e.Reading == nil {
		return
	}
	stored := status == Stored || status == Duplicate
	b.incomplete = b.incomplete || !stored
	if stored && len(b.newerThan(e)) > 0 && !slices.Contains(b.latePatients, patient) {
		b.latePatients = append(b.latePatients, patient)
	}
}

// finish reopens the alerts that late readings raised if the readings that superseded them were not stored, because they or the whole batch
// failed, and returns the batch's error.
func (b *readingBatch) finish(app core.App, err error, now time.Time) error {
	if !b.incomplete && err == nil {
		return nil
	}
	for _, patient := range b.latePatients {
		if failure := b.pipeline.Readings.ReopenSuperseded(app, patient, b.at.Add(-resendWindow), now); failure != nil {
			return errors.Join(err, failure)
		}
	}
	return err
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

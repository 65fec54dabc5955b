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
		if order[i] = i; measuredReading(event(item)) {
			measured = append(measured, i)
		}
	}
	sorted := slices.Clone(measured)
	slices.SortStableFunc(sorted, func(a, b int) int {
		first, _ := event(list[a])
		second, _ := event(list[b])
		return cmp.Or(first.Reading.MeasuredAt.Compare(second.Reading.MeasuredAt), cmp.Compare(a, b))
	})
	for n, place := range measured {
		order[place] = sorted[n]
	}
	return order
}

func measuredReading(e gateway.Event, measured bool) bool { return measured && e.Reading != nil }

// senderOf is what readings of one patient that come together have in common: the patient's identifier, or the device.
func senderOf(e gateway.Event) string { return cmp.Or(e.PatientID, "device "+e.DeviceID) }

// newest are the newest readings of each kind, by sender, of what comes together.
type newest map[string][]vitals.Reading

func (n newest) add(e gateway.Event) {
	list := n[senderOf(e)]
	at := slices.IndexFunc(list, func(r vitals.Reading) bool { return r.Kind == e.Reading.Kind })
	switch {
	case at < 0:
		n[senderOf(e)] = append(list, *e.Reading)
	case list[at].MeasuredAt.Before(e.Reading.MeasuredAt):
		list[at] = *e.Reading
	}
}

// after are those of the sender of a late event that were measured after it.
func (n newest) after(e gateway.Event) (following []vitals.Reading) {
	for _, r := range n[senderOf(e)] {
		if r.MeasuredAt.After(e.Reading.MeasuredAt) {
			following = append(following, r)
		}
	}
	return following
}

// lookBack is how long ago a delivery may have been begun that is taken again.
const lookBack = 24 * time.Hour

// together is a delivery of several events on its way in.
type together struct {
	engine *Pipeline
	newest newest
	at     time.Time
	// told are the patients of late readings that were judged by what was to follow; missing: some of that was not stored.
	told    []string
	missing bool
}

// gather looks at what comes together; of one event alone there is nothing to know.
func (e *Pipeline) gather(parts []part, at time.Time) *together {
	t := &together{engine: e, newest: newest{}, at: at}
	for _, p := range parts {
		if len(parts) > 1 && measuredReading(p.measured()) {
			t.newest.add(p.event)
		}
	}
	return t
}

// measured is the event of a part, and whether there is a reading in it to take.
func (p part) measured() (gateway.Event, bool) {
	return p.event, p.refusal == nil && p.event.Reading != nil
}

// following is what follows a late event.
func (t *together) following(e gateway.Event) []vitals.Reading {
	if e.Reading == nil || !t.engine.Readings.Late(e.Reading.MeasuredAt, t.at) {
		return nil
	}
	return t.newest.after(e)
}

// note remembers what became of an event.
func (t *together) note(e gateway.Event, status Status, patient string) {
	if e.Reading == nil {
		return
	}
	stored := status == Stored || status == Known
	t.missing = t.missing || !stored
	if stored && len(t.following(e)) > 0 && !slices.Contains(t.told, patient) {
		t.told = append(t.told, patient)
	}
}

// reconsider has late readings told after all, where what was to follow them was not stored.
func (t *together) reconsider(app core.App, now time.Time) error {
	if !t.missing {
		return nil
	}
	for _, patient := range t.told {
		if err := t.engine.Readings.Reconsider(app, patient, t.at.Add(-lookBack), now); err != nil {
			return err
		}
	}
	return nil
}

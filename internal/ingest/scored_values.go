package ingest

import (
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/devices"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// readScoredValues reads a patient's scored values since a time, in order. Values with a doubtful
// time or an unproven clock are dated by receipt; coming readings replace the latter. Source:
// docs/decisions/alerts.md, "Early warning score".
func readScoredValues(
	tx core.App, patientID string, rules alerts.EarlyWarningRules, since, now time.Time, coming []vitals.Reading,
) (history []alerts.ScoredValue, err error) {
	known, err := collections.ObservationsAfter(tx, patientID, scoredKinds, since)
	if err != nil {
		return nil, err
	}
	doubtful, err := collections.SuspectsStoredAfter(tx, patientID, scoredKinds, ReasonDeviceClock, since)
	if err != nil {
		return nil, err
	}
	records, err := collections.UnprovenReadings(tx, patientID, scoredKinds, since)
	if err != nil {
		return nil, err
	}
	isUnproven, unproven := map[string]bool{}, []Observation{}
	for _, record := range records {
		if o := ObservationFromRecord(record); !devices.ProvesClock(o.Reading.MeasuredAt, o.Received()) {
			isUnproven[o.ID] = true
			unproven = append(unproven, o)
		}
	}
	add := func(o Observation, v alerts.ScoredValue) {
		for _, p := range alerts.EarlyWarningParameters {
			if value := o.Reading.Value(p); value != nil && rules.IsScored(p) {
				v.Parameter, v.Value, v.Typed, v.ObservationID = p, *value, o.Origin == vitals.OriginPatient, o.ID
				history = append(history, v)
			}
		}
	}
	proven := []Observation{}
	for _, record := range known {
		if o := ObservationFromRecord(record); !isUnproven[o.ID] {
			proven = append(proven, o)
		}
	}
	weak := weighWeakSignals(proven, rules, now)
	for _, o := range proven {
		v := alerts.ScoredValue{At: o.Reading.MeasuredAt}
		if w, isWeak := weak[o.ID]; isWeak {
			o.Reading, v.WaitsUntil, v.HidesNone = w.Reading, w.waitsUntil, w.hidesNone
		}
		add(o, v)
	}
	for _, record := range doubtful {
		if o := ObservationFromRecord(record); !o.Received().Before(since) {
			add(o, alerts.ScoredValue{At: o.Received(), Doubtful: true})
		}
	}
	for _, r := range newestOfDeliveries(unproven) {
		if !isReplaced(r.Reading, coming) {
			clock := &alerts.DeviceTime{Device: r.Reading.DeviceID, At: r.Reading.MeasuredAt}
			add(r.Observation, alerts.ScoredValue{At: r.received, Doubtful: true, Clock: clock})
		}
	}
	slices.SortStableFunc(history, func(a, b alerts.ScoredValue) int { return a.At.Compare(b.At) })
	return history, nil
}

// receivedReading is a reading with the first receipt of its delivery.
type receivedReading struct {
	Observation
	received time.Time
}

// newestOfDeliveries returns the newest reading of each kind, device and delivery, by receipt. It
// has the delivery's first receipt, so a repeat within a minute does not move the start of a run.
func newestOfDeliveries(readings []Observation) (newest []receivedReading) {
	slices.SortStableFunc(readings, func(a, b Observation) int { return a.Received().Compare(b.Received()) })
	type source struct {
		device string
		kind   vitals.Kind
	}
	last := map[source]int{}
	for _, o := range readings {
		of := source{o.Reading.DeviceID, o.Reading.Kind}
		i, found := last[of]
		switch {
		case !found || o.Received().Sub(newest[i].received) >= alerts.OneDelivery:
			last[of] = len(newest)
			newest = append(newest, receivedReading{o, o.Received()})
		case !o.Reading.MeasuredAt.Before(newest[i].Reading.MeasuredAt):
			newest[i].Observation = o
		}
	}
	return newest
}

// isReplaced reports whether one of several readings is a newer one of the same kind and device.
func isReplaced(r vitals.Reading, newer []vitals.Reading) bool {
	return slices.ContainsFunc(newer, func(other vitals.Reading) bool {
		return other.Kind == r.Kind && other.DeviceID == r.DeviceID && other.MeasuredAt.After(r.MeasuredAt)
	})
}

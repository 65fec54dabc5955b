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

// readScoredValues reads a patient's scored values since a time, in order. One of a doubtful time, or late from a device with an unproven
// clock, is dated by receipt. Source: docs/decisions/alerts.md, "Early warning score".
func readScoredValues(tx core.App, patientID string, rules alerts.EarlyWarningRules, since time.Time) (history []alerts.ScoredValue, err error) {
	known, err := collections.ObservationsAfter(tx, patientID, scoredKinds, since)
	if err != nil {
		return nil, err
	}
	doubtful, err := collections.SuspectsStoredAfter(tx, patientID, scoredKinds, ReasonDeviceClock, since)
	if err != nil {
		return nil, err
	}
	unproven, err := collections.UnprovenReadings(tx, patientID, scoredKinds, since)
	if err != nil {
		return nil, err
	}
	unproven = slices.DeleteFunc(unproven, func(r *core.Record) bool {
		o := ObservationFromRecord(r)
		return devices.ProvesClock(o.Reading.MeasuredAt, o.Received())
	})
	add := func(o Observation, at time.Time, isDoubtful bool) {
		for _, p := range alerts.EarlyWarningParameters {
			if value := o.Reading.Value(p); value != nil && rules.IsScored(p) {
				history = append(history, alerts.ScoredValue{
					Of: p, Value: *value, At: at, Typed: o.Origin == vitals.OriginPatient, Doubtful: isDoubtful, ObservationID: o.ID,
				})
			}
		}
	}
	for _, record := range known {
		if !slices.ContainsFunc(unproven, func(r *core.Record) bool { return r.Id == record.Id }) {
			o := ObservationFromRecord(record)
			add(o, o.Reading.MeasuredAt, false)
		}
	}
	for _, record := range slices.Concat(doubtful, newestByDevice(unproven)) {
		if o := ObservationFromRecord(record); !o.Received().Before(since) {
			add(o, o.Received(), true)
		}
	}
	slices.SortStableFunc(history, func(a, b alerts.ScoredValue) int { return a.At.Compare(b.At) })
	return history, nil
}

// newestByDevice returns the newest reading of each kind and device by the device's own clock: of a hub's memory only the last counts. The
// readings are in that order.
func newestByDevice(readings []*core.Record) (newest []*core.Record) {
	for i, record := range readings {
		o := ObservationFromRecord(record)
		isOld := slices.ContainsFunc(readings[i+1:], func(r *core.Record) bool {
			later := ObservationFromRecord(r)
			return later.Reading.DeviceID == o.Reading.DeviceID && later.Reading.Kind == o.Reading.Kind
		})
		if !isOld {
			newest = append(newest, record)
		}
	}
	return newest
}

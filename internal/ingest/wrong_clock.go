package ingest

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/devices"
	"github.com/vigilhealth/vigil/internal/gateway"
)

// ReasonDeviceClock is the reason of a suspect reading from a device with a wrong clock.
const ReasonDeviceClock = "device_clock"

// skipsEvaluation reports whether the reading has no effects, because its time of measurement is unknown, even to the person who confirms
// its values.
func (s Submission) skipsEvaluation() bool { return s.WrongClock }

// setConfirmation sets who confirmed the values.
func (o *Observation) setConfirmation(s Submission, now time.Time) {
	if s.ConfirmedBy != "" {
		o.Review, o.ConfirmedBy, o.ConfirmedAt = Confirmed, s.ConfirmedBy, now
		if s.UsesReceiptTime {
			o.SuspectReason = ReasonDeviceClock // it is evaluated, and its time is not the device's
		}
	}
}

// auditMerged records a merged part that has no effects.
func auditMerged(b *writeBatch, o Observation, by audit.Actor, now time.Time) (Outcome, error) {
	a := effectsWriter{batch: b, effects: Effects{Observation: o}, by: by, now: now}
	return Outcome{Observation: o, Merged: true}, a.auditObservation()
}

// storeWrongClock stores a reading with an unknown time of measurement. It shows that a measurement was made, but nothing about today: it
// raises no alert, is no latest value, counts for no day and is not delivered. The clock alert follows after the commit. Source:
// docs/decisions/devices.md, "Wrong clock".
func (e *ReadingStore) storeWrongClock(tx core.App, b *writeBatch, o Observation, s Submission, now time.Time) (outcome Outcome, err error) {
	a := effectsWriter{tx: tx, batch: b, effects: Effects{Observation: o}, by: s.By, now: now}
	if err := a.auditObservation(); err != nil {
		return Outcome{}, err
	}
	outcome = b.countUnevaluated(o, e.rules.PracticeZone)
	if _, err := recordSighting(tx, o, s.Device, now); err != nil {
		return Outcome{}, err
	}
	return outcome, collections.RecordWrongClock(tx, o.Reading.DeviceID, string(o.Reading.Kind), o.PatientID, o.ID, now)
}

// recentWindow is the age up to which a device's clock is not checked: most readings arrive at once.
const recentWindow = 24 * time.Hour

// isWrongClock reports whether the device's clock is wrong, so that the time of measurement is unknown. Source: docs/decisions/devices.md,
// "Wrong clock".
func isWrongClock(app core.App, event gateway.Event, patientID string) (bool, error) {
	if event.ReceivedAt.Sub(event.At) <= recentWindow {
		return false, nil
	}
	return devices.IsWrongClock(app, event.DeviceID, patientID, event.At)
}

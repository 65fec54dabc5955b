package ingest

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
)

// ReasonDeviceClock is why a reading is suspect whose device's clock is wrong.
const ReasonDeviceClock = "device_clock"

// skipsEvaluation: nothing follows from the reading, because nobody knows when it was taken. Who vouches for its values does not know either.
func (s Submission) skipsEvaluation() bool { return s.WrongClock }

// setConfirmation notes who vouches for the values.
func (o *Observation) setConfirmation(s Submission, now time.Time) {
	if s.ConfirmedBy != "" {
		o.Review, o.ConfirmedBy, o.ConfirmedAt = Confirmed, s.ConfirmedBy, now
		if s.UsesReceiptTime {
			o.SuspectReason = ReasonDeviceClock // it is judged, and says of its time that it is not the device's
		}
	}
}

// auditMerged notes what was added to a reading, from which nothing follows.
func auditMerged(b *writeBatch, o Observation, by audit.Actor, now time.Time) (Outcome, error) {
	a := effectsWriter{batch: b, effects: Effects{Observation: o}, by: by, now: now}
	return Outcome{Observation: o, Merged: true}, a.auditObservation()
}

// storeWrongClock notes a stored reading of which nobody knows when it was taken. It is evidence that somebody measured, and of nothing about
// today: it raises nothing, is nobody's latest and no day's, and is not sent on. That its device's clock is wrong is told once the reading is
// committed. Source: docs/decisions/devices.md, "Wrong clock".
func (e *Evaluator) storeWrongClock(tx core.App, b *writeBatch, o Observation, s Submission, now time.Time) (outcome Outcome, err error) {
	a := effectsWriter{tx: tx, batch: b, effects: Effects{Observation: o}, by: s.By, now: now}
	if err := a.auditObservation(); err != nil {
		return Outcome{}, err
	}
	b.totals[dayTotal{o.Reading.MeasuredAt.In(e.rules.PracticeZone).Format(time.DateOnly), string(o.Reading.Kind), o.status()}]++
	outcome = Outcome{Observation: o, CheckDevice: true}
	b.processing = append(b.processing, outcome)
	if _, err := recordSighting(tx, o, s.Device, now); err != nil {
		return Outcome{}, err
	}
	return outcome, collections.NoteWrongClock(tx, o.Reading.DeviceID, string(o.Reading.Kind), o.PatientID, o.ID, now)
}

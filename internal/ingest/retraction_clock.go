package ingest

import (
	"slices"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
)

// clockQuestionOf names the question about the clock of a reading's device.
func clockQuestionOf(o Observation) collections.ClockQuestion {
	return collections.ClockQuestion{
		DeviceID: o.Reading.DeviceID, PatientID: o.PatientID, AlertType: alerts.TypeDeviceClock, Reason: ReasonDeviceClock,
	}
}

// updateClockQuestion resolves the question about the clock of the retracted reading's device if no other reading waits for its time. If the
// question was about the retracted reading, and was retracted with it, one about the last that waits replaces it, without a notification: the
// care team has noticed that the clock is wrong. Source: docs/decisions/devices.md, "Doubtful time".
func (r *retraction) updateClockQuestion() error {
	if r.observation.SuspectReason != ReasonDeviceClock {
		return nil
	}
	b, err := newWriteBatch(r.tx)
	if err != nil {
		return err
	}
	if err := endClockQuestion(r.tx, b, r.observation, r.by, r.now); err != nil {
		return err
	}
	if err := b.trail.Store(); err != nil || !r.hadClockQuestion {
		return err
	}
	waiting, err := collections.LatestWaitingReading(r.tx, clockQuestionOf(r.observation))
	if err != nil || waiting == "" {
		return err
	}
	open, err := collections.OpenClockAlerts(r.tx, r.observation.Reading.DeviceID, r.observation.PatientID, alerts.TypeDeviceClock)
	if err != nil || slices.ContainsFunc(open, isAboutDoubtfulTime) {
		return err
	}
	o, err := FindObservation(r.tx, waiting)
	if err != nil {
		return err
	}
	_, err = alerts.Raise(r.tx, clockAlertDraft(o, o.Origin, o.Received(), textDatedByReceipt), r.now)
	return err
}

// isAboutDoubtfulTime reports whether an alert is the question about a doubtful time.
func isAboutDoubtfulTime(alert *collections.Alert) bool {
	return alert.Type() == alerts.TypeDeviceClock && alert.QuarantineID() == ""
}

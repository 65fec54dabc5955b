package ingest

import (
	"slices"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
)

// doubtfulTimeAlertKey names the question about the clock of a reading's device.
func doubtfulTimeAlertKey(o Observation) collections.ClockAlertKey {
	return collections.ClockAlertKey{
		DeviceID: o.Reading.DeviceID, PatientID: o.PatientID, AlertType: alerts.TypeDeviceClock, Reason: ReasonDeviceClock,
	}
}

// updateDoubtfulTimeAlert resolves the device's clock alert if no other reading awaits a time. If the
// alert was retracted with the reading, it raises one about the latest waiting reading, silently.
// Source: docs/decisions/devices.md, "Doubtful time".
func (r *retraction) updateDoubtfulTimeAlert() error {
	if r.observation.SuspectReason != ReasonDeviceClock {
		return nil
	}
	b, err := newWriteBatch(r.tx)
	if err != nil {
		return err
	}
	if err := resolveDoubtfulTimeAlerts(r.tx, b, r.observation, r.by, r.now); err != nil {
		return err
	}
	if err := b.trail.Store(); err != nil || !r.hadDoubtfulTimeAlert {
		return err
	}
	waiting, err := collections.LatestWaitingReading(r.tx, doubtfulTimeAlertKey(r.observation))
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
	_, err = alerts.Raise(r.tx, doubtfulTimeDraft(o, o.Origin, o.Received(), textDatedByReceipt), r.now)
	return err
}

// isAboutDoubtfulTime reports whether an alert is the question about a doubtful time.
func isAboutDoubtfulTime(alert *collections.Alert) bool {
	return alert.Type() == alerts.TypeDeviceClock && alert.QuarantineID() == ""
}

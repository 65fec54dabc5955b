package ingest

import (
	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// loadEarlierAlerts reads the alerts about earlier values, and those that only the reading had ended.
func (w *retraction) loadEarlierAlerts(h *alertHistory, groups [][]*vitals.Parameter) error {
	types := []string{alerts.TypeImplausibleReading}
	h.devices = map[string]*string{}
	for _, group := range groups {
		types = append(types, group[0].Group)
	}
	earlier, err := collections.AlertsToReevaluate(w.tx, w.observation.PatientID, types, w.observation.Reading.MeasuredAt, w.observation.CreatedAt)
	if err != nil {
		return err
	}
	for _, alert := range earlier {
		if alert.ResolutionReason() != alerts.ReasonSuperseded {
			h.counted = append(h.counted, alert)
			if device, err := alert.UnprovenDevice(w.tx); err != nil {
				return err
			} else if device != nil {
				h.devices[alert.Id] = device
			}
			continue
		}
		if superseded, err := isStillSuperseded(w.tx, alert, w.now); err != nil {
			return err
		} else if !superseded {
			h.reopened = append(h.reopened, alert)
		}
	}
	return w.loadReopenedMissedReadings(h)
}

// loadReopenedMissedReadings reads the missed-reading alerts that only the retracted reading had ended, which are reopened, unless a patient
// hold is in force: then no reading is expected.
func (w *retraction) loadReopenedMissedReadings(h *alertHistory) error {
	patient, err := collections.FindPatient(w.tx, w.observation.PatientID)
	if err != nil || patient.Hold().InForce(w.now) {
		return err
	}
	missed, err := collections.AlertsResolvedAt(w.tx, w.observation.PatientID, alerts.TypeMissedReading, w.observation.CreatedAt)
	if err != nil {
		return err
	}
	for _, alert := range missed {
		if arrived, err := collections.HasReadingStoredAfter(w.tx, w.observation.PatientID, alert.CreatedAt()); err != nil {
			return err
		} else if !arrived {
			h.reopened = append(h.reopened, alert)
		}
	}
	return nil
}

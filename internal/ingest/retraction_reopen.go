package ingest

import (
	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// loadEarlierAlerts reads the alerts about earlier values, and those that only the reading had ended.
func (r *retraction) loadEarlierAlerts(h *alertHistory, groups [][]*vitals.Parameter) error {
	types := []string{alerts.TypeImplausibleReading}
	h.devices = map[string]*string{}
	for _, group := range groups {
		types = append(types, group[0].Group)
	}
	earlier, err := collections.AlertsToReevaluate(r.tx, r.observation.PatientID, types, r.observation.Reading.MeasuredAt, r.observation.CreatedAt)
	if err != nil {
		return err
	}
	for _, alert := range earlier {
		if alert.ResolutionReason() != alerts.ReasonSuperseded {
			h.counted = append(h.counted, alert)
			if device, err := alert.UnprovenDevice(r.tx); err != nil {
				return err
			} else if device != nil {
				h.devices[alert.Id] = device
			}
			continue
		}
		if superseded, err := isStillSuperseded(r.tx, alert, r.now); err != nil {
			return err
		} else if !superseded {
			h.reopened = append(h.reopened, alert)
		}
	}
	return r.loadReopenedMissedReadings(h)
}

// loadReopenedMissedReadings reads the missed-reading alerts that only the retracted reading had ended, which are reopened, unless a patient
// hold is in force: then no reading is expected.
func (r *retraction) loadReopenedMissedReadings(h *alertHistory) error {
	patient, err := collections.FindPatient(r.tx, r.observation.PatientID)
	if err != nil || patient.Hold().InForce(r.now) {
		return err
	}
	missed, err := collections.AlertsResolvedAt(r.tx, r.observation.PatientID, alerts.TypeMissedReading, r.observation.CreatedAt)
	if err != nil {
		return err
	}
	for _, alert := range missed {
		if arrived, err := collections.HasReadingStoredAfter(r.tx, r.observation.PatientID, alert.CreatedAt()); err != nil {
			return err
		} else if !arrived {
			h.reopened = append(h.reopened, alert)
		}
	}
	return nil
}

package ingest

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// AlertByNewBounds raises the critical alerts of a patient's newest values of the last day under bounds that were set after them, in the
// caller's transaction. Values with an alert as severe raise none. Source: docs/decisions/alerts.md, "Bounds set after a reading".
func (rs *ReadingStore) AlertByNewBounds(tx core.App, patientID string, by audit.Actor, now time.Time) error {
	snapshot, err := triage.ReadSnapshot(tx, patientID, nil, now)
	if err != nil {
		return err
	}
	var noCache *patientCache
	patient, err := noCache.patient(tx, patientID)
	if err != nil || !patient.row.Active || patient.row.DeletedAt != "" {
		return err
	}
	b, err := newWriteBatch(tx)
	if err != nil {
		return err
	}
	for _, alertType := range alerts.ReadingTypes {
		finding, at, found := snapshot.CurrentFinding(alertType)
		if !found || finding.Level != alerts.Critical || now.Sub(at) > recentWindow {
			continue
		}
		o, err := newestOf(tx, patientID, alertType, at)
		if err != nil {
			return err
		}
		if o == nil {
			continue
		}
		if err := rs.reevaluate(tx, b, *o, alertType, readingToEvaluate{*o, readingPatient{cachedPatient: patient}, by}, o.Received(), now); err != nil {
			return err
		}
	}
	return b.store(tx)
}

// newestOf returns the patient's newest reading with values of an alert type, if it was measured at a time; otherwise the newest that the patient
// did not type. It is nil if neither was.
func newestOf(tx core.App, patientID, alertType string, at time.Time) (*Observation, error) {
	for _, p := range vitals.ThresholdParameters {
		if p.Group != alertType {
			continue
		}
		for _, typedToo := range []bool{true, false} {
			record, err := collections.LatestObservation(tx, patientID, p.Column, p.Kinds, typedToo)
			if err != nil {
				return nil, err
			}
			if record == nil {
				continue
			}
			if o := ObservationFromRecord(record); o.Reading.MeasuredAt.Equal(at) {
				return &o, nil
			}
		}
	}
	return nil, nil
}

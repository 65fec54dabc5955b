package ingest

import (
	"cmp"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/emr"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// Retract marks an observation as entered in error and reverses all its effects in one transaction. Nothing is deleted; repeating it
// changes nothing. Fault: not_found. Source: docs/decisions/observations.md, "Retracting a reading".
func (e *ReadingStore) Retract(app core.App, id string, reason phi.Text, by audit.Actor, now time.Time) (o Observation, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		if o, err = FindObservation(tx, id); err != nil || o.EnteredInError {
			return err
		}
		w := &retraction{readings: e, tx: tx, observation: o, reason: reason, by: by, now: now}
		for _, step := range []func() error{
			w.mark, w.correctAlerts, w.recheckIrregularHeartbeats, w.recallDelivery, w.recountDay, w.moveDailyTotal, w.promptRestOfRun, w.rerank,
		} {
			if err := step(); err != nil {
				return err
			}
		}
		o, err = FindObservation(tx, id)
		return err
	})
	return o, err
}

// retraction is the retraction of one observation.
type retraction struct {
	readings    *ReadingStore
	tx          core.App
	observation Observation
	reason      phi.Text
	by          audit.Actor
	now         time.Time
	// retracted are the alerts of the reading, and those of others that were compared with it.
	retracted []*collections.Alert
}

// mark stores the new status and increments the version of the FHIR form.
func (w *retraction) mark() error {
	version := 0
	if w.observation.FHIRStatus != "" {
		version = w.observation.FHIRVersion + 1
	}
	if err := collections.SetEnteredInError(w.tx, w.observation.ID, w.by.Email, w.reason, version, w.now); err != nil {
		return err
	}
	return audit.Append(w.tx, audit.Entry{
		Event: audit.ObservationEnteredInError, Actor: w.by, ResourceType: audit.ResourceObservation, ResourceID: w.observation.ID,
		PatientID: w.observation.PatientID, Reason: w.reason,
	}, w.now)
}

// recallDelivery cancels the delivery, or queues an update of the EMR's copy.
func (w *retraction) recallDelivery() error {
	zone, err := collections.ZoneOfPatient(w.tx, w.observation.PatientID, w.readings.rules.PracticeZone)
	if err != nil {
		return err
	}
	return emr.Retract(w.tx, w.observation.ID, w.observation.PatientID, w.observation.Reading.MeasuredAt.In(zone), w.now)
}

// recountDay recounts the patient's day from its other readings.
func (w *retraction) recountDay() error {
	patient, reading := w.observation.PatientID, w.observation.Reading
	zone, err := collections.ZoneOfPatient(w.tx, patient, w.readings.rules.PracticeZone)
	if err != nil {
		return err
	}
	at := reading.MeasuredAt.In(zone)
	day := collections.DayFilter{
		PatientID: patient, Kind: string(reading.Kind), From: collections.StartOfDay(at), To: collections.StartOfNextDay(at),
	}
	counted, err := countDays(w.tx, zone, day)
	if err != nil {
		return err
	}
	return replaceDays(w.tx, day, counted)
}

// moveDailyTotal moves the reading between the day's totals by status. If the day has no such total, because the practice's time zone
// changed, nothing moves: the sum over all days must stay right.
func (w *retraction) moveDailyTotal() error {
	reading := w.observation.Reading
	return collections.MoveTotalToError(w.tx, reading.MeasuredAt.In(w.readings.rules.PracticeZone).Format(time.DateOnly), string(reading.Kind),
		w.observation.status())
}

// rerank computes the patient's latest readings and snooze baselines again and ranks the patient.
func (w *retraction) rerank() error {
	var remaining []Observation
	add := func(column string, typedToo bool, kinds ...vitals.Kind) (typed bool, err error) {
		record, err := collections.LatestObservation(w.tx, w.observation.PatientID, column, kinds, typedToo)
		if err != nil || record == nil {
			return false, err
		}
		o := ObservationFromRecord(record)
		remaining = append(remaining, o)
		return o.Origin == vitals.OriginPatient, nil
	}
	for _, kind := range vitals.Kinds {
		if _, err := add("", true, kind); err != nil {
			return err
		}
	}
	for _, p := range vitals.Parameters {
		if p.Group == "" {
			continue
		}
		typed, err := add(p.Column, true, p.Kinds...)
		if err == nil && typed { // an earlier device reading may be shown next to it
			_, err = add(p.Column, false, p.Kinds...)
		}
		if err != nil {
			return err
		}
	}
	slices.SortStableFunc(remaining, func(a, b Observation) int {
		return cmp.Or(a.Reading.MeasuredAt.Compare(b.Reading.MeasuredAt), a.CreatedAt.Compare(b.CreatedAt))
	})
	var latest triage.Latest
	for _, o := range remaining {
		latest = latest.With(o.Reading, o.Origin)
	}
	return triage.UpdateAndRescore(w.tx, w.now, func(tx core.App) (string, error) {
		if err := triage.ReplaceLatest(tx, w.observation.PatientID, latest); err != nil {
			return "", err
		}
		return w.observation.PatientID, triage.RetractFromSnoozes(tx, w.observation.PatientID, w.retracted, w.by, w.now)
	})
}

// promptRestOfRun raises the question about the rest of the run if the retracted reading was suspect.
func (w *retraction) promptRestOfRun() error {
	if w.observation.Review != Suspect {
		return nil
	}
	patient, err := loadPatientRow(w.tx, w.observation.PatientID)
	if err != nil {
		return err
	}
	b, err := newWriteBatch(w.tx)
	if err != nil {
		return err
	}
	if _, err := w.readings.promptRestOfRun(w.tx, b, w.observation, patient, w.by, w.now); err != nil {
		return err
	}
	return b.trail.Store()
}

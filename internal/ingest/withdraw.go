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

// Retract marks an observation as entered in error: from then on it counts for nothing, everything that was made of it
// is put right in the same transaction, and nothing is deleted. Once withdrawn it stays so; asking again changes nothing.
// Fault: not_found. Source: docs/decisions/observations.md, "Retracting a reading".
func (e *Evaluator) Retract(app core.App, id string, reason phi.Text, by audit.Actor, now time.Time) (o Observation, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		if o, err = FindObservation(tx, id); err != nil || o.EnteredInError {
			return err
		}
		w := &retraction{evaluator: e, tx: tx, observation: o, reason: reason, by: by, now: now}
		for _, step := range []func() error{w.mark, w.resolveAlerts, w.correctComparisons, w.cancelEscalations, w.recomputeAutoResolve, w.recheckIrregularHeartbeats, w.recallDelivery, w.recountDay, w.moveDailyTotal, w.promptRestOfRun, w.rerank} {
			if err := step(); err != nil {
				return err
			}
		}
		o, err = FindObservation(tx, id)
		return err
	})
	return o, err
}

// retraction is one observation on its way out of all counts.
type retraction struct {
	evaluator   *Evaluator
	tx          core.App
	observation Observation
	reason      phi.Text
	by          audit.Actor
	now         time.Time
	// raised are the alerts that the reading raised, and those that others raised only beside it.
	raised []*collections.Alert
}

// mark stores the withdrawal; a FHIR form reads otherwise from now on, so it is a new version.
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

// recallDelivery stops the delivery, or has the EMR's copy follow.
func (w *retraction) recallDelivery() error {
	zone, err := collections.ZoneOfPatient(w.tx, w.observation.PatientID, w.evaluator.rules.PracticeZone)
	if err != nil {
		return err
	}
	return emr.Withdraw(w.tx, w.observation.ID, w.observation.PatientID, w.observation.Reading.MeasuredAt.In(zone), w.now)
}

// recountDay counts the patient's day anew, from the readings that are left of it.
func (w *retraction) recountDay() error {
	patient, reading := w.observation.PatientID, w.observation.Reading
	zone, err := collections.ZoneOfPatient(w.tx, patient, w.evaluator.rules.PracticeZone)
	if err != nil {
		return err
	}
	at := reading.MeasuredAt.In(zone)
	day := collections.Days{
		PatientID: patient, Kind: string(reading.Kind), From: collections.StartOfDay(at), To: collections.StartOfNextDay(at),
	}
	counted, err := countDays(w.tx, zone, day)
	if err != nil {
		return err
	}
	return replaceDays(w.tx, day, counted)
}

// moveDailyTotal moves the reading from one total of its day to the other. Where the day has no such total, because the practice was in another time
// zone when it was counted, it stays where it is: totals of all days must hold.
func (w *retraction) moveDailyTotal() error {
	reading := w.observation.Reading
	return collections.MoveTotal(w.tx, reading.MeasuredAt.In(w.evaluator.rules.PracticeZone).Format(time.DateOnly), string(reading.Kind),
		w.observation.status())
}

// rerank works out anew what the patient's latest readings are, what snoozes know, and where the patient ranks.
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
		if err == nil && typed { // what a device measured before it may stand beside it
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
	return triage.Change(w.tx, w.now, func(tx core.App) (string, error) {
		if err := triage.ReplaceLatest(tx, w.observation.PatientID, latest); err != nil {
			return "", err
		}
		return w.observation.PatientID, triage.Forget(tx, w.observation.PatientID, w.raised, w.by, w.now)
	})
}

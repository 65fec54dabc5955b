package observations

import (
	"fmt"
	"slices"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/ranking"
	"github.com/vigilhealth/vigil/internal/transmissions"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// Withdraw marks an observation as entered in error: from then on it counts for nothing, everything that was made of it
// is put right in the same transaction, and nothing is deleted. Once withdrawn it stays so; asking again changes nothing.
// Fault: not_found. Source: docs/decisions/observations.md, "Wrongly entered reading".
func (e *Engine) Withdraw(app core.App, id string, reason phi.Text, by audit.Actor, now time.Time) (o Observation, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		if o, err = Find(tx, id); err != nil || o.EnteredInError {
			return err
		}
		w := withdrawal{engine: e, tx: tx, observation: o, reason: reason, by: by, now: now}
		for _, step := range []func() error{w.mark, w.resolve, w.recall, w.recountDay, w.recount, w.rank} {
			if err := step(); err != nil {
				return err
			}
		}
		o, err = Find(tx, id)
		return err
	})
	return o, err
}

// withdrawal is one observation on its way out of all counts.
type withdrawal struct {
	engine      *Engine
	tx          core.App
	observation Observation
	reason      phi.Text
	by          audit.Actor
	now         time.Time
}

// mark stores the withdrawal; a FHIR form reads otherwise from now on, so it is a new version.
func (w withdrawal) mark() error {
	reason, err := collections.Seal(w.reason.Reveal(), "observations.entered_in_error_reason", w.observation.ID)
	if err != nil {
		return fmt.Errorf("seal reason: %w", err)
	}
	at := collections.Instant(w.now)
	changes := dbx.Params{
		"status": collections.StatusEnteredInError, "entered_in_error_at": at, "entered_in_error_by": w.by.Email,
		"entered_in_error_reason": reason, "updated_at": at,
	}
	if w.observation.FHIRStatus != "" {
		changes["fhir_version"], changes["transformed_at"] = w.observation.FHIRVersion+1, at
	}
	if _, err := w.tx.DB().Update(collections.Observations, changes, dbx.HashExp{"id": w.observation.ID}).Execute(); err != nil {
		return fmt.Errorf("mark observation: %w", err)
	}
	return audit.Append(w.tx, audit.Entry{
		Event: audit.ObservationEnteredInError, Actor: w.by, ResourceType: audit.ResourceObservation, ResourceID: w.observation.ID,
		PatientID: w.observation.PatientID, Reason: w.reason,
	}, w.now)
}

// resolve ends the alerts of the reading that are not over.
func (w withdrawal) resolve() error {
	raised, err := collections.AlertsOfObservations(w.tx, w.observation.ID)
	if err != nil {
		return err
	}
	for _, alert := range raised[w.observation.ID] {
		action := alerts.Action{Move: alerts.Resolve, Outcome: collections.StatusEnteredInError}
		if _, err := alerts.Next(alerts.Status(alert.Status()), action.Move); err != nil {
			continue // over already
		}
		if err := alerts.Act(w.tx, alert, action, w.by, w.now); err != nil {
			return err
		}
	}
	return nil
}

// recall stops the delivery. The EMR's own copy can only be corrected there, by a person: no scope to update is granted.
func (w withdrawal) recall() error {
	reached, err := transmissions.Withdraw(w.tx, w.observation.ID, w.now)
	if err != nil || !reached {
		return err
	}
	return notifications.Announce(w.tx, notifications.Announcement{
		Kind: notifications.EMRCopyWrong, Severity: "critical", PatientID: w.observation.PatientID,
		Body: "A reading was entered in error after it had been sent to the EMR. Correct the EMR's copy.",
		Key:  "emr_copy_wrong " + w.observation.ID,
	}, w.now)
}

// recountDay counts the patient's day anew, from the readings that are left of it.
func (w withdrawal) recountDay() error {
	patient, reading := w.observation.PatientID, w.observation.Reading
	zone, err := zoneOf(w.tx, patient, w.engine.rules.PracticeZone)
	if err != nil {
		return err
	}
	at := reading.MeasuredAt.In(zone)
	days, err := countDays(w.tx, patient, zone, dbx.And(
		dbx.HashExp{"observation_type": string(reading.Kind)},
		dbx.NewExp("measured_at >= {:from} AND measured_at < {:to}", dbx.Params{
			"from": collections.Instant(collections.StartOfDay(at)), "to": collections.Instant(collections.StartOfNextDay(at)),
		})))
	if err != nil {
		return err
	}
	day := dbx.HashExp{"patient": patient, "observation_type": string(reading.Kind), "day": at.Format(time.DateOnly)}
	return replaceDays(w.tx, day, days)
}

// recount moves the reading from one total of its day to the other. Where the day has no such total, because the practice was in another time
// zone when it was counted, it stays where it is: totals of all days must hold.
func (w withdrawal) recount() error {
	row := dbx.Params{
		"day":  w.observation.Reading.MeasuredAt.In(w.engine.rules.PracticeZone).Format(time.DateOnly),
		"kind": string(w.observation.Reading.Kind), "final": collections.StatusFinal, "withdrawn": collections.StatusEnteredInError,
	}
	for _, statement := range []string{
		`INSERT INTO daily_counts (day, observation_type, status, readings)
			SELECT day, observation_type, {:withdrawn}, 1 FROM daily_counts WHERE day = {:day} AND observation_type = {:kind} AND status = {:final}
			ON CONFLICT (day, observation_type, status) DO UPDATE SET readings = readings + 1`,
		`UPDATE daily_counts SET readings = readings - 1 WHERE day = {:day} AND observation_type = {:kind} AND status = {:final}`,
		`DELETE FROM daily_counts WHERE day = {:day} AND observation_type = {:kind} AND status = {:final} AND readings <= 0`,
	} {
		if _, err := w.tx.NonconcurrentDB().NewQuery(statement).Bind(row).Execute(); err != nil {
			return fmt.Errorf("correct daily count: %w", err)
		}
	}
	return nil
}

// rank works out anew what the patient's latest readings are, and where the patient ranks.
func (w withdrawal) rank() error {
	var latestOf []dbx.Expression
	for _, p := range vitals.Parameters {
		if p.Shared() && p.Group != "" {
			var kinds []any
			for _, kind := range p.Kinds {
				kinds = append(kinds, string(kind))
			}
			latestOf = append(latestOf, dbx.And(dbx.In("observation_type", kinds...), dbx.NewExp(p.Column+" IS NOT NULL")))
		}
	}
	for _, kind := range vitals.Kinds {
		latestOf = append(latestOf, dbx.HashExp{"observation_type": string(kind)})
	}
	var readings []vitals.Reading
	for _, which := range latestOf {
		record := &core.Record{}
		err := w.tx.RecordQuery(collections.Observations).
			AndWhere(dbx.HashExp{"patient": w.observation.PatientID, "status": collections.StatusFinal}).AndWhere(which).
			OrderBy("measured_at DESC", "created_at DESC").Limit(1).One(record)
		if collections.Missing(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("find latest reading: %w", err)
		}
		readings = append(readings, readingFromRecord(record))
	}
	slices.SortStableFunc(readings, func(a, b vitals.Reading) int { return a.MeasuredAt.Compare(b.MeasuredAt) })
	var latest triage.Latest
	for _, r := range readings {
		latest = latest.With(r)
	}
	return ranking.Change(w.tx, w.now, func(tx core.App) (string, error) {
		return w.observation.PatientID, triage.ReplaceLatest(tx, w.observation.PatientID, latest)
	})
}

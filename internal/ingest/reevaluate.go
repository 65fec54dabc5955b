package ingest

import (
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// reevaluateNewest evaluates the newest value of a parameter that is watched for changes again, after an older reading arrived, and raises
// alerts that are new. It queries nothing for readings in order. Source: docs/decisions/alerts.md, "Readings out of order".
func (e *ReadingStore) reevaluateNewest(tx core.App, b *writeBatch, r confirmedReading, p triage.PatientSnapshot, now time.Time) error {
	o := r.observation
	if o.addition != nil || o.Review == Suspect {
		return nil
	}
	for _, parameter := range vitals.ChangeWatched {
		if o.Reading.Value(parameter) == nil {
			continue
		}
		newest, at := p.Latest.Value(parameter)
		rule := p.Thresholds.Change(parameter)
		if newest == nil || !at.After(o.Reading.MeasuredAt) || o.Reading.MeasuredAt.Before(rule.Since(at, rule.WindowDays)) {
			continue
		}
		record, err := collections.LatestObservation(tx, o.PatientID, parameter.Column, parameter.Kinds, true)
		if err != nil || record == nil {
			return err
		}
		if err := e.reevaluate(tx, b, ObservationFromRecord(record), parameter.Group, r, now); err != nil {
			return err
		}
	}
	return nil
}

// reevaluateNewestAfter runs reevaluateNewest once after the last of several confirmed readings, when all of them count.
func (e *ReadingStore) reevaluateNewestAfter(tx core.App, b *writeBatch, readings []confirmedReading, now time.Time) error {
	last := readings[len(readings)-1]
	snapshot, err := triage.ReadSnapshot(tx, last.observation.PatientID, &last.observation.Reading, now)
	if err != nil {
		return err
	}
	return e.reevaluateNewest(tx, b, last, snapshot, now)
}

// reevaluate evaluates a stored reading again and raises an alert if the finding is worse than its existing alerts.
func (e *ReadingStore) reevaluate(tx core.App, b *writeBatch, o Observation, alertType string, cause confirmedReading, now time.Time) error {
	snapshot, err := triage.ReadSnapshot(tx, o.PatientID, &o.Reading, now)
	if err != nil {
		return err
	}
	findings := alerts.Evaluate(o.Reading, snapshot.Thresholds, snapshot.Baseline)
	i := slices.IndexFunc(findings, func(f alerts.Finding) bool { return f.Type == alertType && f.Breached() })
	if i < 0 {
		return nil
	}
	existing, err := collections.AlertsOfObservations(tx, o.ID)
	if err != nil || slices.ContainsFunc(existing[o.ID], func(a *collections.Alert) bool {
		if a.ResolutionReason() == alerts.ReasonRetracted { // announced, and retracted
			return false
		}
		return a.Type() == alertType && (a.Level() == string(alerts.Critical) || findings[i].Level != alerts.Critical)
	}) {
		return err
	}
	late := e.rules.isLate(o.Reading.MeasuredAt, now)
	if late {
		findings[i].AddMeasuredAt(o.Reading.MeasuredAt)
	}
	raised := alertDraft(o, findings[i], false)
	raised.Late = late
	raised.Snoozed, raised.WorseThanNotified = alerts.SuppressedBy(snapshot.Snoozes, findings[i], o.Reading, snapshot.Thresholds, now)
	effects := Effects{Observation: o, Alerts: []alerts.Draft{raised}, PatientLabel: cause.patient.row.label(o.PatientID)}
	effects.decideEscalation(snapshot, cause.patient.row.PrimaryProvider, now)
	a := effectsWriter{tx: tx, batch: b, effects: effects, by: cause.by, now: now}
	if err := a.storeAlerts(); err != nil {
		return err
	}
	cause.patient.snapshot = nil // an alert was added
	_, err = triage.Rescore(tx, o.PatientID, now)
	return err
}

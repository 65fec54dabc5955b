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

// reevaluateNewest judges the newest value of what is watched for changes anew, when an older one comes after it: what it means beside that, and
// nobody was told, is told now. For what comes in its order it asks nothing.
// Source: docs/decisions/alerts.md, "Readings out of order".
func (e *Evaluator) reevaluateNewest(tx core.App, b *writeBatch, r confirmedReading, p triage.Picture, now time.Time) error {
	o := r.observation
	if o.addition != nil || o.Review == Suspect {
		return nil
	}
	for _, parameter := range vitals.Changing {
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

// reevaluateNewestAfter is reevaluateNewest of readings that were in doubt, in the order in which they were measured: once, after the last of them, since
// what the newest means is not known before all of them count.
func (e *Evaluator) reevaluateNewestAfter(tx core.App, b *writeBatch, readings []confirmedReading, now time.Time) error {
	last := readings[len(readings)-1]
	snapshot, err := triage.ReadPicture(tx, last.observation.PatientID, &last.observation.Reading, now)
	if err != nil {
		return err
	}
	return e.reevaluateNewest(tx, b, last, snapshot, now)
}

// reevaluate tells what a stored reading means by now, where that is more than what was told of it.
func (e *Evaluator) reevaluate(tx core.App, b *writeBatch, o Observation, alertType string, cause confirmedReading, now time.Time) error {
	snapshot, err := triage.ReadPicture(tx, o.PatientID, &o.Reading, now)
	if err != nil {
		return err
	}
	findings := alerts.Evaluate(o.Reading, snapshot.Thresholds, snapshot.Weighings)
	i := slices.IndexFunc(findings, func(f alerts.Finding) bool { return f.Type == alertType && f.Breached() })
	if i < 0 {
		return nil
	}
	existing, err := collections.AlertsOfObservations(tx, o.ID)
	if err != nil || slices.ContainsFunc(existing[o.ID], func(a *collections.Alert) bool {
		if a.ResolutionReason() == alerts.ReasonWithdrawn { // it was told, and taken back
			return false
		}
		return a.Type() == alertType && (a.Level() == string(alerts.Critical) || findings[i].Level != alerts.Critical)
	}) {
		return err
	}
	late := e.rules.isLate(o.Reading.MeasuredAt, now)
	if late {
		findings[i].Date(o.Reading.MeasuredAt)
	}
	raised := alertDraft(o, findings[i], false)
	raised.Late = late
	raised.Snoozed, raised.Worse = alerts.Quiet(snapshot.Snoozes, findings[i], o.Reading, snapshot.Thresholds, now)
	effects := Effects{Observation: o, Alerts: []alerts.Draft{raised}, PatientLabel: cause.patient.row.label(o.PatientID)}
	effects.escalate(snapshot, cause.patient.row.PrimaryProvider, now)
	a := effectsWriter{tx: tx, batch: b, effects: effects, by: cause.by, now: now}
	if err := a.storeAlerts(); err != nil {
		return err
	}
	cause.patient.snapshot = nil // there is one more alert
	_, err = triage.Rescore(tx, o.PatientID, now)
	return err
}

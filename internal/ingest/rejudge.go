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

// judgeNewest judges the newest value of what is watched for changes anew, when an older one comes after it: what it means beside that, and
// nobody was told, is told now. For what comes in its order it asks nothing.
// Source: docs/decisions/alerts.md, "Readings out of order".
func (e *Evaluator) judgeNewest(tx core.App, b *batch, r confirmed, p triage.Picture, now time.Time) error {
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
		if err := e.judgeAgain(tx, b, FromRecord(record), parameter.Group, r, now); err != nil {
			return err
		}
	}
	return nil
}

// judgeNewestAfter is judgeNewest of readings that were in doubt, in the order in which they were measured: once, after the last of them, since
// what the newest means is not known before all of them count.
func (e *Evaluator) judgeNewestAfter(tx core.App, b *batch, readings []confirmed, now time.Time) error {
	last := readings[len(readings)-1]
	picture, err := triage.ReadPicture(tx, last.observation.PatientID, &last.observation.Reading, now)
	if err != nil {
		return err
	}
	return e.judgeNewest(tx, b, last, picture, now)
}

// judgeAgain tells what a stored reading means by now, where that is more than what was told of it.
func (e *Evaluator) judgeAgain(tx core.App, b *batch, o Observation, alertType string, cause confirmed, now time.Time) error {
	picture, err := triage.ReadPicture(tx, o.PatientID, &o.Reading, now)
	if err != nil {
		return err
	}
	findings := alerts.Evaluate(o.Reading, picture.Thresholds, picture.Weighings)
	i := slices.IndexFunc(findings, func(f alerts.Finding) bool { return f.Type == alertType && f.Breached() })
	if i < 0 {
		return nil
	}
	known, err := collections.AlertsOfObservations(tx, o.ID)
	if err != nil || slices.ContainsFunc(known[o.ID], func(a *collections.Alert) bool {
		if a.ResolutionReason() == alerts.ReasonWithdrawn { // it was told, and taken back
			return false
		}
		return a.Type() == alertType && (a.Level() == string(alerts.Critical) || findings[i].Level != alerts.Critical)
	}) {
		return err
	}
	late := e.rules.late(o.Reading.MeasuredAt, now)
	if late {
		findings[i].Date(o.Reading.MeasuredAt)
	}
	raised := draft(o, findings[i], false)
	raised.Late = late
	raised.Snoozed, raised.Worse = alerts.Quiet(picture.Snoozes, findings[i], o.Reading, picture.Thresholds, now)
	effects := Effects{Observation: o, Alerts: []alerts.Draft{raised}, PatientLabel: cause.patient.holder.label(o.PatientID)}
	effects.escalate(picture, cause.patient.holder.PrimaryProvider, now)
	a := application{tx: tx, batch: b, effects: effects, by: cause.by, now: now}
	if err := a.alert(); err != nil {
		return err
	}
	cause.patient.picture = nil // there is one more alert
	_, err = triage.Rescore(tx, o.PatientID, now)
	return err
}

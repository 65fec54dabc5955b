package ingest

import (
	"slices"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/escalations"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// watchSlowChanges raises the alerts about changes over weeks after a reading was stored, and adds them to its outcome. Suspect and retracted
// values do not count.
func (rs *ReadingStore) watchSlowChanges(
	tx core.App, b *writeBatch, o Observation, patient readingPatient, t alerts.Thresholds, outcome *Outcome, by audit.Actor, now time.Time,
) error {
	for _, p := range vitals.ChangeParameters {
		if o.mergedPart != nil || o.Review == Suspect || o.Reading.Value(p) == nil {
			continue
		}
		ended, err := rs.endSlowChanges(tx, b, p, o, patient.row, t, by, now)
		if err != nil {
			return err
		}
		raised, escalation, err := rs.raiseSlowChanges(tx, b, p, o.PatientID, o.Reading.MeasuredAt, patient.row, t, by, now)
		if err != nil || len(raised)+ended == 0 {
			return err
		}
		outcome.Alerts = append(outcome.Alerts, raised...)
		if outcome.EscalationID == "" {
			outcome.EscalationID = escalation
		}
		if patient.cachedPatient != nil {
			patient.snapshot = nil // an alert was added
		}
	}
	return nil
}

// raiseSlowChanges raises one alert per episode and level, for the newest value or all that an
// out-of-order reading changed. Source: docs/decisions/alerts.md, "Weight over weeks".
func (rs *ReadingStore) raiseSlowChanges(
	tx core.App, b *writeBatch, p *vitals.Parameter, patientID string, from time.Time, row patientRow, t alerts.Thresholds, by audit.Actor, now time.Time,
) (raised []RaisedAlert, escalation string, err error) {
	rule := t.In(collections.Zone(row.TimeZone, rs.rules.PracticeZone)).Change(p)
	if rule.SlowDays() == 0 {
		return nil, "", nil
	}
	changes, newest, err := readSlowChanges(tx, patientID, p, rule, rule.SlowDays(), now)
	if err != nil || !from.Before(newest) && len(changes.Findings(newest)) == 0 {
		return nil, "", err
	}
	values, _, err := readSlowValues(tx, patientID, p, rule, alerts.SlowEpisodeDays, now)
	if err != nil {
		return nil, "", err
	}
	changes = alerts.NewSlowChanges(p, rule, values)
	effects := Effects{PatientLabel: row.label(patientID)}
	var snapshot triage.PatientSnapshot
	days, err := findDays(tx, patientID, p, rule, changes, values, from)
	for _, o := range days {
		for _, finding := range changes.Findings(o.Reading.MeasuredAt) {
			if snapshot, err = triage.ReadSnapshot(tx, patientID, &o.Reading, now); err != nil {
				return nil, "", err
			}
			draft, isNew, err := rs.slowChangeDraft(tx, o, finding, changes, snapshot, effects.Alerts, now)
			if err != nil {
				return nil, "", err
			}
			if isNew {
				effects.Observation, effects.Alerts = o, append(effects.Alerts, draft)
			}
		}
	}
	if err != nil || len(effects.Alerts) == 0 {
		return nil, "", err
	}
	effects.decideEscalation(snapshot, row.PrimaryProvider, now)
	a := effectsWriter{tx: tx, batch: b, effects: effects, by: by, now: now}
	if err := a.storeAlerts(); err != nil {
		return nil, "", err
	}
	_, err = triage.Rescore(tx, patientID, now)
	return a.outcome.Alerts, a.outcome.EscalationID, err
}

// findDays returns the first reading of each day with a finding that a value measured at a time may change, or the newest reading. values are newest
// first.
func findDays(
	tx core.App, patientID string, p *vitals.Parameter, rule alerts.ChangeRule, changes *alerts.SlowChanges, values []alerts.BaselineValue, from time.Time,
) (days []Observation, err error) {
	start, end := rule.Since(from, 0), from.AddDate(0, 0, rule.SlowDays())
	for i, v := range values {
		isNewest := i == 0 && !from.Before(v.MeasuredAt)
		isInside := !v.MeasuredAt.Before(start) && !v.MeasuredAt.After(end)
		isFirst := i == len(values)-1 || !rule.Since(values[i+1].MeasuredAt, 0).Equal(rule.Since(v.MeasuredAt, 0))
		if !isNewest && (!isInside || !isFirst || !from.Before(values[0].MeasuredAt)) || len(changes.Findings(v.MeasuredAt)) == 0 {
			continue
		}
		for _, kind := range p.Kinds {
			records, err := collections.ObservationsBetween(tx, patientID, kind, v.MeasuredAt, v.MeasuredAt)
			if err != nil {
				return nil, err
			}
			if len(records) > 0 {
				days = append(days, ObservationFromRecord(records[0]))
			}
		}
	}
	slices.Reverse(days)
	return days, nil
}

// slowChangeDraft returns the alert about a finding, and whether its episode has none of that level yet, stored or among pending.
func (rs *ReadingStore) slowChangeDraft(
	tx core.App, o Observation, finding alerts.Finding, changes *alerts.SlowChanges, snapshot triage.PatientSnapshot, pending []alerts.Draft, now time.Time,
) (draft alerts.Draft, isNew bool, err error) {
	draft = alertDraft(o, finding, false)
	draft.Snoozed, draft.WorseThanNotified = alerts.SuppressedBy(snapshot.Snoozes, finding, o.Reading, snapshot.Thresholds, now)
	start, end := changes.Episode(finding, o.Reading.MeasuredAt)
	known, err := collections.EpisodeAlerts(tx, o.PatientID, finding.Type, finding.Parameter, start, end)
	if err != nil {
		return draft, false, err
	}
	for _, a := range pending {
		if a.Finding.Parameter == finding.Parameter && !a.MeasuredAt.Before(start) && a.MeasuredAt.Before(end) {
			known = append(known, collections.EpisodeAlert{Level: string(a.Finding.Level), Snoozed: a.Snoozed})
		}
	}
	if slices.ContainsFunc(known, func(a collections.EpisodeAlert) bool {
		// One that a snooze suppressed was never notified.
		return (a.Level == string(alerts.Critical) || finding.Level != alerts.Critical) && (!a.Snoozed || draft.Snoozed)
	}) {
		return draft, false, nil
	}
	if draft.Late = rs.rules.isLate(draft.MeasuredAt, now); draft.Late {
		if draft.ClockUnproven, err = isClockUnproven(tx, o); err != nil {
			return draft, false, err
		}
	}
	addTimes(&draft, o.Received())
	draft.Push, err = rs.decidePush(tx, draft, o.Reading, snapshot.Thresholds)
	return draft, true, err
}

// endSlowChanges retracts active alerts that hold without the reading and not with it, such as a
// weight in between. Changed bounds, another zone and the passing of time retract none.
func (rs *ReadingStore) endSlowChanges(
	tx core.App, b *writeBatch, p *vitals.Parameter, o Observation, row patientRow, t alerts.Thresholds, by audit.Actor, now time.Time,
) (ended int, err error) {
	rule := t.In(collections.Zone(row.TimeZone, rs.rules.PracticeZone)).Change(p)
	if rule.SlowDays() == 0 {
		return 0, nil
	}
	open, err := openSlowChanges(tx, o.PatientID, p)
	open = slices.DeleteFunc(open, func(a *collections.Alert) bool { return alerts.Status(a.Status()) != alerts.StatusActive })
	if err != nil || len(open) == 0 {
		return 0, err
	}
	values, _, err := readSlowValues(tx, o.PatientID, p, rule, alerts.SlowEpisodeDays, now)
	if err != nil {
		return 0, err
	}
	others := slices.DeleteFunc(slices.Clone(values), func(v alerts.BaselineValue) bool {
		return v.MeasuredAt.Equal(o.Reading.MeasuredAt) && v.Value == *o.Reading.Value(p)
	})
	with, without := alerts.NewSlowChanges(p, rule, values), alerts.NewSlowChanges(p, rule, others)
	shows := func(changes *alerts.SlowChanges, a *collections.Alert) bool {
		return slices.ContainsFunc(changes.Findings(a.MeasuredAt()), func(f alerts.Finding) bool { return f.Parameter == a.Parameter() })
	}
	wrong := slices.DeleteFunc(open, func(a *collections.Alert) bool { return shows(with, a) || !shows(without, a) })
	if len(wrong) == 0 {
		return 0, nil
	}
	if err := endReplaced(tx, b, wrong, by, now); err != nil {
		return 0, err
	}
	_, err = triage.Rescore(tx, o.PatientID, now)
	return len(wrong), err
}

// openSlowChanges returns the open alerts about changes of a parameter over weeks.
func openSlowChanges(tx core.App, patientID string, p *vitals.Parameter) ([]*collections.Alert, error) {
	open, err := collections.OpenAlertsOf(tx, patientID, p.Group)
	return slices.DeleteFunc(open, func(a *collections.Alert) bool { return !alerts.IsSlowChange(a.Parameter()) }), err
}

// readSlowChanges reads the changes of the last days, and returns when the newest value was measured.
func readSlowChanges(
	tx core.App, patientID string, p *vitals.Parameter, rule alerts.ChangeRule, days int, now time.Time,
) (changes *alerts.SlowChanges, newest time.Time, err error) {
	values, newest, err := readSlowValues(tx, patientID, p, rule, days, now)
	return alerts.NewSlowChanges(p, rule, values), newest, err
}

func readSlowValues(
	tx core.App, patientID string, p *vitals.Parameter, rule alerts.ChangeRule, days int, now time.Time,
) (values []alerts.BaselineValue, newest time.Time, err error) {
	for _, kind := range p.Kinds {
		err := collections.EachReadingNewestFirst(tx, patientID, string(kind), rule.Since(now, days), p.Column, func(rows *dbx.Rows) error {
			var at, device string
			var value *float64
			if err := rows.Scan(&at, &device, &value); err != nil || value == nil {
				return err
			}
			v := alerts.BaselineValue{Parameter: p, Value: *value, MeasuredAt: collections.ParseInstant(at)}
			values = append(values, v)
			if v.MeasuredAt.After(newest) {
				newest = v.MeasuredAt
			}
			return nil
		})
		if err != nil {
			return nil, newest, err
		}
	}
	return values, newest, nil
}

// recheckSlowChanges retracts the open alerts about changes over weeks that do not hold without the retracted reading, and raises those of the
// newest value that have no alert any more.
func (r *retraction) recheckSlowChanges() error {
	if there, err := triage.IsMonitored(r.tx, r.observation.PatientID); err != nil || !there {
		return err
	}
	for _, p := range vitals.ChangeParameters {
		if r.observation.Reading.Value(p) == nil {
			continue
		}
		patientID := r.observation.PatientID
		row, err := loadPatientRow(r.tx, patientID)
		if err != nil {
			return err
		}
		snapshot, err := triage.ReadSnapshot(r.tx, patientID, nil, r.now)
		if err != nil {
			return err
		}
		if err := r.retractSlowChanges(p, row, snapshot.Thresholds); err != nil {
			return err
		}
		b, err := newWriteBatch(r.tx)
		if err != nil {
			return err
		}
		if _, _, err := r.readings.raiseSlowChanges(r.tx, b, p, patientID, r.now, row, snapshot.Thresholds, r.by, r.now); err != nil {
			return err
		}
		if err := b.trail.Store(); err != nil {
			return err
		}
	}
	return nil
}

func (r *retraction) retractSlowChanges(p *vitals.Parameter, row patientRow, t alerts.Thresholds) error {
	rule := t.In(collections.Zone(row.TimeZone, r.readings.rules.PracticeZone)).Change(p)
	changes, _, err := readSlowChanges(r.tx, r.observation.PatientID, p, rule, alerts.SlowEpisodeDays, r.now)
	if err != nil {
		return err
	}
	open, err := openSlowChanges(r.tx, r.observation.PatientID, p)
	if err != nil {
		return err
	}
	var wrong []*collections.Alert
	for _, alert := range open {
		if slices.ContainsFunc(changes.Findings(alert.MeasuredAt()), func(f alerts.Finding) bool {
			return f.Parameter == alert.Parameter() && (f.Level == alerts.Critical || alert.Level() != string(alerts.Critical))
		}) {
			continue
		}
		if err := retractionOf(alert).apply(r.tx, r.readings, r.by, r.now); err != nil {
			return err
		}
		wrong = append(wrong, alert)
	}
	r.retracted = append(r.retracted, wrong...)
	return escalations.RetractAlerts(r.tx, wrong, "reading was entered in error", r.by, r.now)
}

package ingest

import (
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// Order of arrival changes no alert. Source: docs/decisions/alerts.md, "Readings out of order".

// correctForOrder corrects other readings' alerts after an out-of-order one: resolved alerts that
// it reopens, and changes compared with it. p is the snapshot before it was evaluated.
func (rs *ReadingStore) correctForOrder(tx core.App, b *writeBatch, r readingToEvaluate, p triage.PatientSnapshot, now time.Time) error {
	o := r.observation
	if o.Review == Suspect || !hasNewerLatest(p.Latest, o.Reading) {
		return nil
	}
	if err := rs.recountEnded(tx, b, r, p, now); err != nil || o.mergedPart != nil {
		return err
	}
	return rs.reevaluateLater(tx, b, r, p, now)
}

// correctForOrderAfter runs correctForOrder for each of several confirmed readings, when all of them count.
func (rs *ReadingStore) correctForOrderAfter(tx core.App, b *writeBatch, readings []readingToEvaluate, now time.Time) error {
	for _, r := range readings {
		snapshot, err := triage.ReadSnapshot(tx, r.observation.PatientID, &r.observation.Reading, now)
		if err != nil {
			return err
		}
		if err := rs.correctForOrder(tx, b, r, snapshot, now); err != nil {
			return err
		}
	}
	return nil
}

// recountEnded recounts the normal readings after earlier alerts, and reopens one that the others
// alone had resolved if this is a breach between them. A late reading changes no earlier alert.
func (rs *ReadingStore) recountEnded(tx core.App, b *writeBatch, r readingToEvaluate, p triage.PatientSnapshot, now time.Time) error {
	o, values := r.observation, r.observation.valuesToEvaluate()
	if rs.rules.isLate(values.MeasuredAt, now) {
		return nil
	}
	findings, before := alerts.Evaluate(values, p.Thresholds, p.Baseline), values.MeasuredAt
	var types []string
	var groups [][]*vitals.Parameter
	for _, group := range groupsPresent(values) {
		finding, _ := alerts.FindingByType(findings, group[0].Group)
		if isChangeGroup(group) {
			before = now.Add(rs.rules.MaxFuture) // later values are compared with this one
		} else if !finding.Breached() {
			continue
		}
		types, groups = append(types, group[0].Group), append(groups, group)
	}
	if len(types) == 0 {
		return nil
	}
	list, err := collections.AlertsToReevaluate(tx, o.PatientID, types, before, values.MeasuredAt.Add(-rs.rules.MaxFuture))
	if err != nil || len(list) == 0 {
		return err
	}
	with, without, err := rs.sequencesAround(tx, o, groups, list[0].MeasuredAt(), now)
	if err != nil {
		return err
	}
	for _, alert := range list {
		if err := rs.recountEndedAlert(tx, b, r, alert, p.Schedule, with, without, now); err != nil {
			return err
		}
	}
	return nil
}

// sequencesAround returns the readings of some groups since a time in order of measurement, with and without one of them.
func (rs *ReadingStore) sequencesAround(
	tx core.App, o Observation, groups [][]*vitals.Parameter, from, now time.Time,
) (with, without []alerts.EvaluatedReading, err error) {
	first := o.Reading // the baseline of changes begins before the first of them
	if from.Before(first.MeasuredAt) {
		first.MeasuredAt = from
	}
	all, err := measuredSince(tx, o.PatientID, groups, first.MeasuredAt, "")
	if err != nil {
		return nil, nil, err
	}
	snapshot, err := triage.ReadSnapshot(tx, o.PatientID, &first, now)
	if err != nil {
		return nil, nil, err
	}
	others := slices.DeleteFunc(slices.Clone(all), func(other Observation) bool { return other.ID == o.ID })
	evaluate := func(list []Observation) []alerts.EvaluatedReading {
		baseline := slices.DeleteFunc(slices.Clone(snapshot.Baseline), func(v alerts.BaselineValue) bool { return !v.MeasuredAt.Before(first.MeasuredAt) })
		return evaluateAll(list, list, snapshot.Thresholds, append(baseline, baselineValues(readingsOf(list)...)...))
	}
	return evaluate(all), evaluate(others), nil
}

// recountEndedAlert reopens a resolved alert, or counts again for an active one, if the reading makes a difference.
func (rs *ReadingStore) recountEndedAlert(
	tx core.App, b *writeBatch, r readingToEvaluate, alert *collections.Alert, schedule collections.Schedule, with, without []alerts.EvaluatedReading, now time.Time,
) error {
	device, err := alert.UnprovenDevice(tx)
	if err != nil || alert.ResolutionReason() != "" || alert.TimeInDoubt() || alerts.IsSlowChange(alert.Parameter()) {
		return err
	}
	open := openAlert(alert, schedule, device)
	normal, isResolved := open.ResolvedBy(with, rs.rules.NormalReadingsNeeded)
	before, wasResolved := open.ResolvedBy(without, rs.rules.NormalReadingsNeeded)
	switch {
	case isResolved || normal == before && isResolved == wasResolved:
		return nil
	case alerts.Status(alert.Status()) == alerts.StatusActive:
		return alerts.SaveProgress(tx, alerts.Progress{Alert: open, NormalReadings: normal}, now)
	case !wasResolved:
		return nil // something else ended it
	}
	if err := b.appendDirectly(tx, func() error { return rs.reopenAlert(tx, alert, normal, now) }); err != nil {
		return err
	}
	r.patient.snapshot = nil // an alert was added
	_, err = triage.Rescore(tx, alert.PatientID(), now)
	return err
}

// reevaluateLater evaluates later values with a change rule again. A new or different finding
// raises an alert that replaces the one of its reading.
func (rs *ReadingStore) reevaluateLater(tx core.App, b *writeBatch, r readingToEvaluate, p triage.PatientSnapshot, now time.Time) error {
	at := r.observation.Reading.MeasuredAt
	for _, parameter := range vitals.ChangeParameters {
		newest, newestAt := p.Latest.Value(parameter)
		if r.observation.Reading.Value(parameter) == nil || newest == nil || !newestAt.After(at) {
			continue
		}
		rule := p.Thresholds.Change(parameter)
		var later []Observation
		for _, kind := range parameter.Kinds {
			records, err := collections.ObservationsBetween(tx, r.observation.PatientID, kind, at, at.AddDate(0, 0, rule.WindowDays+1))
			if err != nil {
				return err
			}
			for _, record := range records {
				o := ObservationFromRecord(record)
				isCompared := o.Reading.MeasuredAt.After(at) && !at.Before(rule.Since(o.Reading.MeasuredAt, rule.WindowDays))
				if isCompared && o.Reading.Value(parameter) != nil {
					later = append(later, o)
				}
			}
		}
		baseline := slices.Concat(p.Baseline, baselineValues(r.observation.Reading), baselineValues(readingsOf(later)...))
		for i, evaluated := range evaluateAll(later, nil, p.Thresholds, baseline) {
			if finding, _ := alerts.FindingByType(evaluated.Findings, parameter.Group); !finding.Breached() {
				continue
			}
			if err := rs.reevaluate(tx, b, later[i], parameter.Group, r, now, now); err != nil {
				return err
			}
		}
	}
	return nil
}

// isRaised reports whether a finding was announced by an alert of its reading, at least as severe.
func isRaised(list []*collections.Alert, f alerts.Finding) bool {
	return slices.ContainsFunc(list, func(a *collections.Alert) bool {
		if a.ResolutionReason() == alerts.ReasonRetracted || alerts.IsSlowChange(a.Parameter()) != alerts.IsSlowChange(f.Parameter) {
			return false // announced, and retracted
		}
		return a.Type() == f.Type && (a.Level() == string(alerts.Critical) || f.Level != alerts.Critical)
	})
}

// replacedBy returns a reading's active alerts about a change that the older reading altered.
func replacedBy(list []*collections.Alert, f alerts.Finding) (replaced []*collections.Alert) {
	for _, a := range list {
		isLess := a.Level() != string(alerts.Critical) || f.Level == alerts.Critical
		isOther := a.Value() == nil || *a.Value() != f.Value || a.Parameter() != f.Parameter || a.Level() != string(f.Level)
		if a.Type() == f.Type && !alerts.IsSlowChange(a.Parameter()) && alerts.Status(a.Status()) == alerts.StatusActive && isLess && isOther {
			replaced = append(replaced, a)
		}
	}
	return replaced
}

// endReplaced retracts replaced alerts: in order of measurement they would not exist.
func endReplaced(tx core.App, b *writeBatch, list []*collections.Alert, by audit.Actor, now time.Time) error {
	for _, alert := range list {
		progress := alerts.Progress{Alert: alerts.OpenAlert{ID: alert.Id}, NormalReadings: alert.NormalReadings(), Resolved: true}
		if err := alerts.SaveProgress(tx, progress, now); err != nil {
			return err
		}
		if err := alert.Retract(tx, alerts.ReasonRetracted, now); err != nil {
			return err
		}
		if err := b.auditAlert(audit.AlertAutoResolve, systemActor(by), alert.Id, alert.PatientID(), now); err != nil {
			return err
		}
	}
	return nil
}

// keepAnnouncement copies the push decision of a replaced alert of at least the same level, so that
// older readings arriving one by one do not notify again.
func keepAnnouncement(raised *alerts.Draft, replaced []*collections.Alert) {
	for _, alert := range replaced {
		if alert.Snoozed() || alert.Level() != string(raised.Finding.Level) && alert.Level() != string(alerts.Critical) {
			continue
		}
		raised.Announced = true
		raised.Push = alerts.PushDecision{Rule: alerts.PushRule(alert.PushRule()), Reason: string(alert.PushReason())}
	}
}

// reevaluate evaluates a stored reading again and raises an alert for a worse finding, or a
// different one after another reading. asOf decides lateness; a superseded late one raises none.
func (rs *ReadingStore) reevaluate(
	tx core.App, b *writeBatch, o Observation, alertType string, cause readingToEvaluate, asOf, now time.Time,
) error {
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
	if err != nil {
		return err
	}
	var replaced []*collections.Alert
	if cause.observation.ID != o.ID {
		replaced = replacedBy(existing[o.ID], findings[i])
	}
	if isRaised(existing[o.ID], findings[i]) && len(replaced) == 0 {
		return nil
	}
	raised := alertDraft(o, findings[i], false)
	if isOver, err := rs.setOrder(tx, &raised, o, snapshot, asOf, now); err != nil || isOver {
		return err
	}
	raised.Snoozed, raised.WorseThanNotified = alerts.SuppressedBy(snapshot.Snoozes, findings[i], o.Reading, snapshot.Thresholds, now)
	if raised.Push, err = rs.decidePush(tx, raised, o.Reading, snapshot.Thresholds); err != nil {
		return err
	}
	keepAnnouncement(&raised, replaced)
	effects := Effects{Observation: o, Alerts: []alerts.Draft{raised}, PatientLabel: cause.patient.row.label(o.PatientID)}
	effects.decideEscalation(snapshot, cause.patient.row.PrimaryProvider, now)
	a := effectsWriter{tx: tx, batch: b, effects: effects, by: cause.by, now: now}
	if err := a.storeAlerts(); err != nil {
		return err
	}
	if err := endReplaced(tx, b, replaced, cause.by, now); err != nil {
		return err
	}
	cause.patient.snapshot = nil // an alert was added
	_, err = triage.Rescore(tx, o.PatientID, now)
	return err
}

// setOrder marks an alert about a stored reading as late, or as ended by the normal readings after it. isOver: it is late and newer readings
// superseded it.
func (rs *ReadingStore) setOrder(
	tx core.App, raised *alerts.Draft, o Observation, snapshot triage.PatientSnapshot, asOf, now time.Time,
) (isOver bool, err error) {
	groups := slices.DeleteFunc(groupsPresent(o.Reading), func(group []*vitals.Parameter) bool { return group[0].Group != raised.Finding.Type })
	if raised.ClockUnproven, err = isClockUnproven(tx, o); err != nil {
		return false, err
	}
	device := unprovenDevice(o.Reading.DeviceID, raised.ClockUnproven)
	if raised.Late = rs.rules.isLate(o.Reading.MeasuredAt, asOf); raised.Late {
		addTimes(raised, o.Received())
		return lateReading{o.PatientID, o.Reading.MeasuredAt, o.Origin, device, o.Received()}.hasNewer(tx, groups)
	}
	if !hasNewerLatest(snapshot.Latest, o.Reading) {
		return false, nil
	}
	sequence, _, err := rs.sequencesAround(tx, o, groups, o.Reading.MeasuredAt, now)
	alert := alerts.OpenAlert{
		Type: raised.Finding.Type, Level: raised.Finding.Level, MeasuredAt: raised.MeasuredAt, CreatedAt: now, Origin: raised.Origin, UnprovenDevice: device,
	}
	raised.NormalReadings, raised.ResolvedByLater = alert.ResolvedBy(sequence, rs.rules.NormalReadingsNeeded)
	return false, err
}

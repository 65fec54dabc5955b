package ingest

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// alertHistory is what remains of a patient's history after a reading was retracted: the stored alerts that it may have changed, and the
// other readings, evaluated again by the bounds in force.
type alertHistory struct {
	isSuspension bool
	// own are the alerts that the reading raised.
	own []*collections.Alert
	// compared are the open alerts about changes that later readings raised.
	compared []comparedAlert
	// counted are alerts about earlier values: the reading may have resolved them or kept them open. sequence are the other readings after
	// the first of them, in order of measurement.
	counted []*collections.Alert
	// devices are those of the counted alerts of an unproven clock, by alert.
	devices  map[string]*string
	sequence []alerts.EvaluatedReading
	// schedule is the patient's, nil for none.
	schedule collections.Schedule
	// reopened are the alerts that only the reading had ended: superseded ones, and missed readings.
	reopened []*collections.Alert
}

// comparedAlert is an alert about a change, with the reading that raised it and the finding without the retracted reading.
type comparedAlert struct {
	alert   *collections.Alert
	reading Observation
	finding alerts.Finding
}

// correction is the difference between a stored alert and its history.
type correction struct {
	kind  correctionKind
	alert *collections.Alert // nil for raiseCorrected
	// action resolves a retracted alert if it is open; normal is the number of normal readings after the alert.
	action alerts.Action
	normal int
	// draft is the alert to raise.
	draft alerts.Draft
}

type correctionKind int

// The kinds of correction. A count changes only the number of normal readings.
const (
	correctCount correctionKind = iota
	correctToResolved
	correctToActive
	correctToRetracted
	correctToReplaced // the service withdraws it
	raiseCorrected
)

// corrections compares the stored alerts with the history. It is pure. Source: docs/decisions/observations.md, "Retracting a reading".
func (h alertHistory) corrections(rules Rules, now time.Time) (list []correction) {
	for _, alert := range h.own {
		if alerts.Status(alert.Status()) != alerts.StatusResolved { // a person's resolution stays as it is
			list = append(list, retractionOf(alert))
		}
	}
	for _, c := range h.compared {
		list = append(list, c.corrections(rules, now)...)
	}
	for i := range list {
		if h.isSuspension && list[i].kind == correctToRetracted {
			list[i].kind = correctToReplaced
		}
	}
	for _, alert := range h.counted {
		if c, differs := h.recount(alert, rules, now); differs {
			list = append(list, c)
		}
	}
	for _, alert := range h.reopened {
		list = append(list, correction{kind: correctToActive, alert: alert})
	}
	return list
}

// retractionOf returns the correction of an alert when its own reading was entered in error.
func retractionOf(alert *collections.Alert) correction {
	return correction{kind: correctToRetracted, alert: alert, action: alerts.Action{Move: alerts.Resolve, Outcome: collections.StatusEnteredInError}}
}

// corrections retracts the alert if its change no longer holds, and raises the change that holds. An acknowledged alert stays while any
// breach remains.
func (c comparedAlert) corrections(rules Rules, now time.Time) []correction {
	breached, value := c.finding.Breached(), c.alert.Value()
	if breached && (c.alert.Acknowledged() || value != nil && *value == c.finding.Value) {
		return nil
	}
	list := []correction{{kind: correctToRetracted, alert: c.alert, action: alerts.Action{
		Move: alerts.Resolve, Notes: "The reading it was compared with was entered in error.",
	}}}
	if !breached {
		return list
	}
	draft := alertDraft(c.reading, c.finding, false)
	draft.Late, draft.ClockUnproven, draft.Snoozed = c.alert.Late(), c.alert.ClockUnproven(), c.alert.Snoozed()
	draft.Late = draft.Late || rules.isLate(draft.MeasuredAt, now)
	addTimes(&draft, c.reading.Received())
	draft.Late = c.alert.Late()
	if c.finding.Level == alerts.Critical {
		draft.EscalationID = c.alert.EscalationID()
	}
	return append(list, correction{kind: raiseCorrected, draft: draft})
}

// recount counts the normal readings after an alert again. A resolved one reopens unless the other readings are enough.
func (h alertHistory) recount(alert *collections.Alert, rules Rules, now time.Time) (c correction, differs bool) {
	open, active := openAlert(alert, h.schedule, h.devices[alert.Id]), alerts.Status(alert.Status()) == alerts.StatusActive
	normal, resolved := open.ResolvedBy(h.sequence, rules.NormalReadingsNeeded)
	c = correction{kind: correctToActive, alert: alert, normal: normal}
	switch {
	case !active:
		return c, !resolved
	case resolved:
		c.kind = correctToResolved
	default:
		c.kind = correctCount
	}
	return c, open.CanAutoResolve(now) && (resolved || normal != open.NormalReadings)
}

func openAlert(alert *collections.Alert, schedule collections.Schedule, unprovenDevice *string) alerts.OpenAlert {
	return alerts.OpenAlert{
		ID: alert.Id, Type: alert.Type(), Level: alerts.Level(alert.Level()), MeasuredAt: alert.MeasuredAt(), CreatedAt: alert.CreatedAt(),
		NormalReadings: alert.NormalReadings(), Parameter: alert.Parameter(), Origin: vitals.Origin(alert.Origin()), Late: alert.Late(), TimeInDoubt: alert.TimeInDoubt(),
		ResolvesWithin: alerts.ResolveWindow(schedule, alert.Type()), UnprovenDevice: unprovenDevice,
	}
}

// apply stores the correction in the caller's transaction.
func (c correction) apply(tx core.App, e *ReadingStore, by audit.Actor, now time.Time) error {
	switch c.kind {
	case correctToActive:
		return e.reopenAlert(tx, c.alert, c.normal, now)
	case correctToReplaced:
		if alerts.Status(c.alert.Status()) == alerts.StatusAutoResolved {
			return c.alert.Retract(tx, alerts.ReasonRetracted, now)
		}
	case raiseCorrected:
		return e.raiseAndAnnounce(tx, c.draft, vitals.Reading{}, alerts.Thresholds{}, now)
	case correctToRetracted:
		if _, err := alerts.NextStatus(alerts.Status(c.alert.Status()), c.action.Move); err == nil {
			if err := alerts.Act(tx, c.alert, c.action, by, now); err != nil {
				return err
			}
		}
		return c.alert.Retract(tx, alerts.ReasonRetracted, now)
	}
	progress := alerts.Progress{Alert: alerts.OpenAlert{ID: c.alert.Id}, NormalReadings: c.normal, Resolved: c.kind == correctToResolved || c.kind == correctToReplaced}
	if err := alerts.SaveProgress(tx, progress, now); err != nil || !progress.Resolved {
		return err
	}
	if c.kind == correctToReplaced {
		if err := c.alert.Retract(tx, alerts.ReasonRetracted, now); err != nil {
			return err
		}
	}
	return alerts.AuditAutoResolved(tx, collections.ResolvedAlert{ID: c.alert.Id, PatientID: c.alert.PatientID()}, now)
}

// raiseAndAnnounce stores an alert and announces it, unless its kind is snoozed. r are the values that bounds raised it for, if they did.
func (rs *ReadingStore) raiseAndAnnounce(tx core.App, draft alerts.Draft, r vitals.Reading, t alerts.Thresholds, now time.Time) (err error) {
	if draft.Push, err = rs.decidePush(tx, draft, r, t); err != nil {
		return err
	}
	id, err := alerts.Raise(tx, draft, now)
	if err != nil || draft.Snoozed {
		return err
	}
	label, err := collections.PatientLabel(tx, draft.PatientID)
	if err != nil {
		return err
	}
	return notifications.Announce(tx, draft.Announcement(id, label), now)
}

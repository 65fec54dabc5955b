package ingest

import (
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/escalations"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// resolveAlerts ends the alerts of the reading that are not over, and says of those that readings had resolved why they hold no longer. What a
// person resolved stays as the person left it.
func (w *retraction) resolveAlerts() error {
	raised, err := collections.AlertsOfObservations(w.tx, w.observation.ID)
	if err != nil {
		return err
	}
	w.raised = raised[w.observation.ID]
	for _, alert := range w.raised {
		status := alerts.Status(alert.Status())
		if status == alerts.StatusResolved {
			continue
		}
		action := alerts.Action{Move: alerts.Resolve, Outcome: collections.StatusEnteredInError}
		if _, err := alerts.Next(status, action.Move); err == nil {
			if err := alerts.Act(w.tx, alert, action, w.by, w.now); err != nil {
				return err
			}
		}
		if err := alert.Withdraw(w.tx, alerts.ReasonWithdrawn, w.now); err != nil {
			return err
		}
	}
	return nil
}

// cancelEscalations takes back the escalations that came of the reading alone. One that other readings joined stays, for what is left of it.
// Source: docs/decisions/observations.md, "Retracting a reading".
func (w *retraction) cancelEscalations() error {
	return escalations.TakeBack(w.tx, w.raised, "reading was entered in error", w.by, w.now)
}

// recomputeAutoResolve decides anew what the reading had settled, or kept from being settled: alerts that it helped to resolve wait again unless
// the other readings are enough, and runs that it broke go on.
func (w *retraction) recomputeAutoResolve() error {
	r := w.observation.Reading
	groups := groupsPresent(r)
	if len(groups) == 0 {
		return nil
	}
	types := []string{alerts.TypeImplausibleReading}
	for _, group := range groups {
		types = append(types, group[0].Group)
	}
	candidates, err := collections.SettledAlerts(w.tx, w.observation.PatientID, types, r.MeasuredAt, w.observation.CreatedAt)
	if err != nil {
		return err
	}
	var counted []*collections.Alert
	for _, alert := range candidates {
		if alert.ResolutionReason() != alerts.ReasonSuperseded {
			counted = append(counted, alert)
			continue
		}
		if err := reopenUnlessNewer(w.tx, alert, w.now); err != nil {
			return err
		}
	}
	if len(counted) > 0 {
		sequence, err := w.sequence(groups, counted[0].MeasuredAt())
		if err != nil {
			return err
		}
		for _, alert := range counted {
			if err := w.recountNormalReadings(alert, sequence); err != nil {
				return err
			}
		}
	}
	return w.reopenMissedReading()
}

// sequence is what is left of what was measured after a time, with what each reading means by the bounds in force.
func (w *retraction) sequence(groups [][]*vitals.Parameter, after time.Time) ([]alerts.Judged, error) {
	others, err := measuredAfter(w.tx, w.observation.PatientID, groups, after, w.observation.ID)
	if err != nil {
		return nil, err
	}
	first := w.observation.Reading // what changes are measured against begins before the first of them
	first.MeasuredAt = after
	snapshot, err := triage.ReadPicture(w.tx, w.observation.PatientID, &first, w.now)
	if err != nil {
		return nil, err
	}
	return evaluateAll(others, snapshot.Thresholds, slices.Concat(snapshot.Weighings, baselineValues(readingsOf(others)...))), nil
}

// recountNormalReadings brings one alert in step with the readings that are left.
func (w *retraction) recountNormalReadings(alert *collections.Alert, sequence []alerts.Judged) error {
	open := openAlert(alert)
	normal, resolved := open.SettledBy(sequence, w.evaluator.rules.NormalReadingsNeeded)
	switch active := alerts.Status(alert.Status()) == alerts.StatusActive; {
	case active && (!open.Settleable(w.now) || !resolved && normal == open.NormalReadings), !active && resolved:
		return nil
	case active && resolved:
		if err := alerts.SaveProgress(w.tx, alerts.Progress{Alert: open, NormalReadings: normal, Resolved: true}, w.now); err != nil {
			return err
		}
		return alerts.NoteAutoResolved(w.tx, collections.EndedAlert{ID: alert.Id, PatientID: alert.PatientID()}, w.now)
	case active:
		return alerts.SaveProgress(w.tx, alerts.Progress{Alert: open, NormalReadings: normal}, w.now)
	}
	return reopenAlert(w.tx, alert, normal, w.now)
}

func openAlert(alert *collections.Alert) alerts.Open {
	return alerts.Open{
		ID: alert.Id, Type: alert.Type(), Level: alerts.Level(alert.Level()), MeasuredAt: alert.MeasuredAt(), CreatedAt: alert.CreatedAt(),
		NormalReadings: alert.NormalReadings(), Parameter: alert.Parameter(), Origin: vitals.Origin(alert.Origin()),
	}
}

// reopenMissedReading: where the reading was all that came after a missed one, that one was missed after all.
func (w *retraction) reopenMissedReading() error {
	missed, err := collections.AlertsEndedAt(w.tx, w.observation.PatientID, alerts.TypeMissedReading, w.observation.CreatedAt)
	if err != nil {
		return err
	}
	for _, alert := range missed {
		came, err := collections.StoredAfter(w.tx, w.observation.PatientID, alert.CreatedAt())
		if err != nil {
			return err
		}
		if came {
			continue
		}
		if err := reopenAlert(w.tx, alert, 0, w.now); err != nil {
			return err
		}
	}
	return nil
}

// reopenUnlessNewer has an alert that something newer superseded wait after all, when there is nothing of the kind.
func reopenUnlessNewer(tx core.App, alert *collections.Alert, now time.Time) error {
	groups, err := alertGroups(tx, alert, now)
	if err != nil || len(groups) == 0 {
		return err
	}
	newer, err := HasNewerReadings(tx, alert.PatientID(), groups, alert.MeasuredAt(), vitals.Origin(alert.Origin()))
	if err != nil || newer {
		return err
	}
	return reopenAlert(tx, alert, 0, now)
}

// alertGroups are the groups that an alert of a reading is about: that of its type, or those of which implausible values alarm.
func alertGroups(tx core.App, alert *collections.Alert, now time.Time) (groups [][]*vitals.Parameter, err error) {
	types := []string{alert.Type()}
	if alert.Type() == alerts.TypeImplausibleReading {
		snapshot, err := triage.ReadPicture(tx, alert.PatientID(), nil, now)
		if err != nil {
			return nil, err
		}
		if types, err = snapshot.Thresholds.Alarming(alert.ReportedValues().Reveal(), alert.Parameter()); err != nil {
			return nil, err
		}
	}
	for _, alertType := range types {
		for _, definition := range vitals.Definitions {
			i := slices.IndexFunc(definition.Groups, func(group []*vitals.Parameter) bool { return group[0].Group == alertType })
			if i >= 0 {
				groups = append(groups, definition.Groups[i])
				break
			}
		}
	}
	return groups, nil
}

// reopenAlert has an alert wait again, and people hear of it: what they were told, that it was over, does not hold.
func reopenAlert(tx core.App, alert *collections.Alert, normal int, now time.Time) error {
	if err := alerts.Reopen(tx, alert, normal, now); err != nil || alert.Snoozed() {
		return err
	}
	label, err := collections.PatientLabel(tx, alert.PatientID())
	if err != nil {
		return err
	}
	kind := notifications.AlertRaised
	if alert.Type() == alerts.TypeMissedReading {
		kind = notifications.ReadingMissed
	}
	return notifications.Announce(tx, notifications.Announcement{
		Kind: kind, Severity: alert.Level(), PatientID: alert.PatientID(), AlertID: alert.Id,
		Body: label + ": " + alert.MessageShown(), Key: alerts.AnnouncementKey(alert.Id) + " reopened " + collections.Instant(now),
	}, now)
}

// ReopenSuperseded looks again at the late readings of a patient that were stored since a time and judged by others that were to follow:
// those that nothing followed are told after all.
func (e *Evaluator) ReopenSuperseded(app core.App, patientID string, since, now time.Time) error {
	return triage.Change(app, now, func(tx core.App) (string, error) {
		ended, err := collections.SupersededAlerts(tx, patientID, since)
		if err != nil {
			return "", err
		}
		for _, alert := range ended {
			if err := reopenUnlessNewer(tx, alert, now); err != nil {
				return "", err
			}
		}
		return patientID, nil
	})
}

// recheckIrregularHeartbeats decides anew whether irregular heartbeats recur, when the reading had the flag.
func (w *retraction) recheckIrregularHeartbeats() error {
	enough := w.evaluator.rules.IrregularHeartbeats
	if enough == 0 || w.observation.Reading.Says(vitals.IrregularHeartbeat) != vitals.Yes {
		return nil
	}
	open, err := collections.OpenAlertsOf(w.tx, w.observation.PatientID, alerts.TypeIrregularHeartbeat)
	if err != nil {
		return err
	}
	flags := HeartbeatFlags{}
	for _, alert := range open {
		at := alert.MeasuredAt()
		if flags, err = findHeartbeatFlags(w.tx, w.observation.PatientID, at, w.now); err != nil {
			return err
		}
		if flags.hasRunAfter(at, enough) {
			return nil // the warning holds without the reading
		}
		action := alerts.Action{Move: alerts.Resolve, Outcome: collections.StatusEnteredInError}
		if err := alerts.Act(w.tx, alert, action, w.by, w.now); err != nil {
			return err
		}
		if err := alert.Withdraw(w.tx, alerts.ReasonWithdrawn, w.now); err != nil {
			return err
		}
	}
	return w.warnWithoutReading(enough)
}

// warnWithoutReading warns of a run that is one without the reading, when the warning was that of the reading.
func (w *retraction) warnWithoutReading(enough int) error {
	mine := slices.ContainsFunc(w.raised, func(a *collections.Alert) bool { return a.Type() == alerts.TypeIrregularHeartbeat })
	flags, err := findHeartbeatFlags(w.tx, w.observation.PatientID, w.observation.Reading.MeasuredAt, w.now)
	if err != nil || !mine {
		return err
	}
	at, begun := flags.newRun(w.observation.Reading.MeasuredAt, enough)
	if !begun {
		return nil
	}
	found, err := collections.ObservationsAfter(w.tx, w.observation.PatientID, flaggedKinds(), at.Add(-time.Microsecond))
	if err != nil || len(found) == 0 {
		return err
	}
	o := ObservationFromRecord(found[0])
	warning := alertDraft(o, recurringFinding(flags.countWithin(at)), false)
	warning.Unmeasured = true
	return w.raiseAlert(warning)
}

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

// resolveAlerts resolves the reading's open alerts and marks all but those that a person resolved as retracted.
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
		if err := alert.Retract(w.tx, alerts.ReasonRetracted, w.now); err != nil {
			return err
		}
	}
	return nil
}

// cancelEscalations cancels the escalations that the reading alone caused. One that other readings joined stays open for them. Source:
// docs/decisions/observations.md, "Retracting a reading".
func (w *retraction) cancelEscalations() error {
	return escalations.RetractAlerts(w.tx, w.raised, "reading was entered in error", w.by, w.now)
}

// recomputeAutoResolve recomputes the alerts that the reading resolved or kept open: resolved ones reopen unless the other readings are
// enough, and interrupted runs of normal readings continue.
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
	candidates, err := collections.AlertsToReevaluate(w.tx, w.observation.PatientID, types, r.MeasuredAt, w.observation.CreatedAt)
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

// sequence returns the other readings measured after a time, with their findings by the current bounds.
func (w *retraction) sequence(groups [][]*vitals.Parameter, after time.Time) ([]alerts.Evaluated, error) {
	others, err := measuredAfter(w.tx, w.observation.PatientID, groups, after, w.observation.ID)
	if err != nil {
		return nil, err
	}
	first := w.observation.Reading // the baseline of changes begins before the first of them
	first.MeasuredAt = after
	snapshot, err := triage.ReadSnapshot(w.tx, w.observation.PatientID, &first, w.now)
	if err != nil {
		return nil, err
	}
	return evaluateAll(others, snapshot.Thresholds, slices.Concat(snapshot.Baseline, baselineValues(readingsOf(others)...))), nil
}

// recountNormalReadings updates one alert by the remaining readings.
func (w *retraction) recountNormalReadings(alert *collections.Alert, sequence []alerts.Evaluated) error {
	open := openAlert(alert)
	normal, resolved := open.ResolvedBy(sequence, w.readings.rules.NormalReadingsNeeded)
	switch active := alerts.Status(alert.Status()) == alerts.StatusActive; {
	case active && (!open.CanAutoResolve(w.now) || !resolved && normal == open.NormalReadings), !active && resolved:
		return nil
	case active && resolved:
		if err := alerts.SaveProgress(w.tx, alerts.Progress{Alert: open, NormalReadings: normal, Resolved: true}, w.now); err != nil {
			return err
		}
		return alerts.AuditAutoResolved(w.tx, collections.ResolvedAlert{ID: alert.Id, PatientID: alert.PatientID()}, w.now)
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

// raiseAndAnnounce stores an alert and announces it, unless its kind is snoozed.
func raiseAndAnnounce(tx core.App, draft alerts.Draft, now time.Time) error {
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

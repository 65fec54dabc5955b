package ingest

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// severeWindow is for how long a critical blood pressure makes the next one no surprise: that escalates at once. What was measured longer
// ago than that is not confirmed by measuring now.
const severeWindow = 24 * time.Hour

// mayHold reports whether the escalation of a reading may wait for another one: of a severe blood pressure, where the practice wants that
// and none was critical within a day. Only what is severe costs a query. Source: docs/decisions/alerts.md, "Confirming a severe reading".
func (e *Evaluator) mayHold(tx core.App, o Observation, t alerts.Thresholds, now time.Time) (bool, error) {
	if e.rules.ConfirmReadings <= 0 || o.addition != nil || now.Sub(o.Reading.MeasuredAt) > severeWindow || !isSevere(o.Reading, t) {
		return false, nil
	}
	alreadyCritical, err := collections.CriticalWithin(tx, o.PatientID, string(vitals.BloodPressure), o.Reading.MeasuredAt, severeWindow)
	return !alreadyCritical, err
}

// isSevere reports whether a blood pressure is critically high, and nothing of it critically low: who measures again because of a low one
// loses time.
func isSevere(r vitals.Reading, t alerts.Thresholds) (high bool) {
	if r.Kind != vitals.BloodPressure {
		return false
	}
	for _, p := range []*vitals.Parameter{vitals.Systolic, vitals.Diastolic} {
		value, limits := r.Value(p), t.Of(p)
		if value == nil {
			continue
		}
		if limits.CriticalLow != nil && *value <= *limits.CriticalLow {
			return false
		}
		high = high || limits.Critical != nil && *value >= *limits.Critical
	}
	return high
}

// holdEscalation has the escalation of a first severe blood pressure wait, unless anything else of the reading is critical, or there is an escalation
// already: then it has nothing to wait for.
func (e *Effects) holdEscalation(snapshot triage.Picture, wait time.Duration, now time.Time) (held bool) {
	if _, open := snapshot.OpenBySystem(); open {
		return false
	}
	first := -1
	for i, alert := range e.Alerts {
		if !escalates(alert) {
			continue
		}
		if first >= 0 || alert.Over() || alert.Finding.Type != string(vitals.BloodPressure) || alert.Snoozed || alert.Worse {
			return false
		}
		first = i
	}
	if first < 0 {
		return false
	}
	e.Alerts[first].HeldUntil = now.Add(wait)
	return true
}

// promptRemeasure asks the patient to measure again, where an escalation waits for that.
func (a *effectsWriter) promptRemeasure(draft alerts.Draft, id string) error {
	if draft.HeldUntil.IsZero() {
		return nil
	}
	return notifications.Announce(a.tx, notifications.Announcement{
		Kind: notifications.MeasureAgain, Severity: "info", PatientID: draft.PatientID, Key: alerts.AnnouncementKey(id) + " measure again",
	}, a.now)
}

// releaseHolds does what a reading does to escalations of the patient that wait: they join the one it opened or joined; and where it is the
// last of the readings that settle a severe one, they are due at once, see [Engine.ResolveHolds].
func (e *Evaluator) releaseHolds(tx core.App, effects Effects, outcome Outcome, before triage.Picture, now time.Time) error {
	if e.rules.ConfirmReadings <= 0 {
		return nil
	}
	patient := effects.Observation.PatientID
	if outcome.EscalationID != "" {
		return collections.ReleaseHeld(tx, patient, outcome.EscalationID, now)
	}
	kind := string(vitals.BloodPressure)
	if effects.Observation.Reading.Kind != vitals.BloodPressure {
		return nil
	}
	for _, open := range before.Open {
		if open.Type == kind && open.Level == alerts.Critical && now.Sub(open.CreatedAt) <= e.rules.ConfirmReadings {
			return collections.HastenHeld(tx, patient, kind, max(e.rules.NormalReadingsNeeded.Critical, 1), now)
		}
	}
	return nil
}

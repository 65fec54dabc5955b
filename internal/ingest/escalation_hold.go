package ingest

import (
	"context"
	"fmt"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/async"
	"github.com/vigilhealth/vigil/internal/escalations"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// severeWindow is the time after a critical blood pressure in which the next one escalates without a hold, and the age beyond which
// measuring again confirms nothing.
const severeWindow = 24 * time.Hour

// mayHold reports whether the escalation of a severe blood pressure may be held: the practice enables it and no reading was critical within
// a day. It queries only for severe readings. Source: docs/decisions/alerts.md, "Confirming a severe reading".
func (e *ReadingStore) mayHold(tx core.App, o Observation, t alerts.Thresholds, now time.Time) (bool, error) {
	if e.rules.ConfirmReadings <= 0 || o.addition != nil || now.Sub(o.Reading.MeasuredAt) > severeWindow || !isSevere(o.Reading, t) {
		return false, nil
	}
	alreadyCritical, err := collections.HasCriticalWithin(tx, o.PatientID, string(vitals.BloodPressure), o.Reading.MeasuredAt, severeWindow)
	return !alreadyCritical, err
}

// isSevere reports whether a blood pressure is critically high with no value critically low: for a low one, measuring again loses time.
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

// holdEscalation holds the escalation of a first severe blood pressure, unless another value of the reading is critical or an escalation is
// open.
func (e *Effects) holdEscalation(snapshot triage.PatientSnapshot, wait time.Duration, now time.Time) (held bool) {
	if _, open := snapshot.SystemEscalation(); open {
		return false
	}
	first := -1
	for i, alert := range e.Alerts {
		if !escalates(alert) {
			continue
		}
		if first >= 0 || alert.Closed() || alert.Finding.Type != string(vitals.BloodPressure) || alert.Snoozed || alert.WorseThanNotified {
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

// promptRemeasure notifies the patient to measure again while the escalation is held.
func (a *effectsWriter) promptRemeasure(draft alerts.Draft, id string) error {
	if draft.HeldUntil.IsZero() {
		return nil
	}
	return notifications.Announce(a.tx, notifications.Announcement{
		Kind: notifications.MeasureAgain, Severity: "info", PatientID: draft.PatientID, Key: alerts.AnnouncementKey(id) + " measure again",
	}, a.now)
}

// releaseHolds ends holds after a reading: held alerts join the escalation that it opened or joined, and are due at once if it is the last
// reading needed to confirm or resolve them, see [ReadingStore.ResolveHolds].
func (e *ReadingStore) releaseHolds(tx core.App, effects Effects, outcome Outcome, before triage.PatientSnapshot, now time.Time) error {
	if e.rules.ConfirmReadings <= 0 {
		return nil
	}
	patient := effects.Observation.PatientID
	if outcome.EscalationID != "" {
		return collections.ReleaseHolds(tx, patient, outcome.EscalationID, now)
	}
	kind := string(vitals.BloodPressure)
	if effects.Observation.Reading.Kind != vitals.BloodPressure {
		return nil
	}
	for _, open := range before.Open {
		if open.Type == kind && open.Level == alerts.Critical && now.Sub(open.CreatedAt) <= e.rules.ConfirmReadings {
			return collections.ExpediteHolds(tx, patient, kind, max(e.rules.NormalReadingsNeeded.Critical, 1), now)
		}
	}
	return nil
}

const (
	// maxHoldsPerRound bounds the alerts of one round; the next minute continues.
	maxHoldsPerRound = 500
	// maxRepeatReadings bounds the repeat readings that are read for one alert.
	maxRepeatReadings = 50
)

// ResolveHolds ends every hold that is due, each in a transaction of its own. If a repeat reading is severe or none came, the escalation
// opens; otherwise the alert is resolved and a warning reports the average of the repeat readings. The deadline is stored with the alert
// and survives a restart. A failure does not stop the others. Source: docs/decisions/alerts.md, "Confirming a severe reading".
func (e *ReadingStore) ResolveHolds(ctx context.Context, app core.App, now time.Time) (decided int, err error) {
	due, err := collections.DueHolds(app, now.Add(escalations.SweepSlack), maxHoldsPerRound)
	if err != nil {
		return 0, err
	}
	return async.ForEach(ctx, due, func(id string) (bool, error) {
		err := triage.UpdateAndRescore(app, now, func(tx core.App) (string, error) { return e.resolveHold(tx, id, now) })
		if err != nil {
			return false, fmt.Errorf("resolve the hold of alert %s: %w", id, err)
		}
		return true, nil
	})
}

// resolveHold ends one hold; the caller ranks the patient again.
func (e *ReadingStore) resolveHold(tx core.App, id string, now time.Time) (patientID string, err error) {
	alert, err := collections.FindAlert(tx, id)
	if err != nil || alert.HeldUntil().IsZero() || alert.HeldUntil().After(now.Add(escalations.SweepSlack)) { // ended by a reading
		return "", err
	}
	if err := alert.EndHold(tx); err != nil {
		return "", err
	}
	patientID = alert.PatientID()
	if alerts.Status(alert.Status()) == alerts.StatusResolved { // resolved by a person, or retracted
		return patientID, nil
	}
	if there, err := triage.IsMonitored(tx, patientID); err != nil || !there {
		return "", err
	}
	snapshot, err := triage.ReadSnapshot(tx, patientID, nil, now)
	if err != nil {
		return "", err
	}
	repeated, err := repeatReadings(tx, alert)
	if err != nil {
		return "", err
	}
	confirmed := len(repeated) == 0
	for _, r := range repeated {
		confirmed = confirmed || isSevere(r, snapshot.Thresholds)
	}
	switch {
	case alert.Late(): // a late reading notifies no one
		return patientID, nil
	case confirmed && alerts.Status(alert.Status()) == alerts.StatusAutoResolved: // later severe readings have alerts of their own
		return patientID, nil
	case !confirmed:
		return patientID, e.resolveUnconfirmed(tx, alert, repeated, snapshot, now)
	case snapshot.IsSnoozed(alert.Type(), alerts.Critical, now): // reported when the snooze ends
		return patientID, nil
	}
	_, _, err = escalations.JoinOrOpen(tx, snapshot.StatTrigger(alert.Id, phi.Text(alert.DisplayMessage())), now)
	return patientID, err
}

// repeatReadings returns the readings after the one of an alert. Manual readings by the patient do not confirm or resolve a device's
// reading, nor do those that look like another person's.
func repeatReadings(tx core.App, alert *collections.Alert) (readings []vitals.Reading, err error) {
	records, err := collections.RepeatedReadings(tx, collections.RepeatQuery{
		Patient: alert.PatientID(), Kind: string(vitals.BloodPressure), After: alert.MeasuredAt(),
		ByPatient: alert.Origin() == string(vitals.OriginPatient),
	}, maxRepeatReadings)
	if err != nil || len(records) == 0 {
		return nil, err
	}
	first, err := FindObservation(tx, alert.ObservationID())
	if err != nil {
		return nil, err
	}
	for _, record := range records {
		if o := ObservationFromRecord(record); len(o.apartFrom([]Observation{first})) == 0 {
			readings = append(readings, o.Reading)
		}
	}
	return readings, nil
}

// resolveUnconfirmed resolves the alert of a severe blood pressure that the next readings do not confirm, and raises a warning with their
// average.
func (e *ReadingStore) resolveUnconfirmed(tx core.App, alert *collections.Alert, repeated []vitals.Reading, snapshot triage.PatientSnapshot, now time.Time) error {
	if alerts.Status(alert.Status()) == alerts.StatusActive {
		progress := alerts.Progress{Alert: alerts.Open{ID: alert.Id}, NormalReadings: len(repeated), Resolved: true}
		if err := alerts.SaveProgress(tx, progress, now); err != nil {
			return err
		}
		if err := alerts.AuditAutoResolved(tx, collections.ResolvedAlert{ID: alert.Id, PatientID: alert.PatientID()}, now); err != nil {
			return err
		}
	}
	average := map[string]float64{}
	for _, p := range []*vitals.Parameter{vitals.Systolic, vitals.Diastolic} {
		average[p.Name] = mean(repeated, p)
	}
	finding := alerts.Finding{
		Type: alert.Type(), Level: alerts.Warning, Parameter: alert.Parameter(), Value: average[alert.Parameter()],
		Message: fmt.Sprintf("Not confirmed: %s Repeated readings: %d, their average is %s/%s %s.", alert.DisplayMessage(), len(repeated),
			vitals.FormatNumber(average[vitals.Systolic.Name]), vitals.FormatNumber(average[vitals.Diastolic.Name]), vitals.Systolic.Range.Unit),
	}
	if bound := alert.Threshold(); bound != nil {
		finding.Threshold = *bound
	}
	warning := alerts.Draft{
		PatientID: alert.PatientID(), ObservationID: alert.ObservationID(), Finding: finding, Origin: vitals.Origin(alert.Origin()),
		MeasuredAt: repeated[len(repeated)-1].MeasuredAt, Snoozed: snapshot.IsSnoozed(alert.Type(), alerts.Warning, now),
	}
	return e.raiseAndAnnounce(tx, warning, shownAverages(average), snapshot.Thresholds, now)
}

// mean returns the mean of a parameter to one decimal.
func mean(readings []vitals.Reading, p *vitals.Parameter) float64 {
	sum, n := 0.0, 0
	for _, r := range readings {
		if value := r.Value(p); value != nil {
			sum, n = sum+*value, n+1
		}
	}
	if n == 0 {
		return 0
	}
	return vitals.RoundHalfUp(sum/float64(n), 1)
}

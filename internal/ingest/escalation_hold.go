package ingest

import (
	"context"
	"fmt"
	"slices"
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

// weakSignalWait is how long the escalation of an oximeter's reading with a weak signal waits for one repeat reading. Source:
// docs/decisions/alerts.md, "Weak signal".
const weakSignalWait = 10 * time.Minute

// holdFor returns how long to hold the escalation; 0 for no hold. A first severe blood pressure is
// held if the practice enables it; a weak oximeter signal, unless a hold awaits a repeat already.
// Source: docs/decisions/alerts.md, "Confirming a severe reading" and "Weak signal".
func (rs *ReadingStore) holdFor(tx core.App, o Observation, t alerts.Thresholds, now time.Time) (time.Duration, error) {
	if o.mergedPart != nil || now.Sub(o.Reading.MeasuredAt) > severeWindow {
		return 0, nil
	}
	if o.Reading.HasWeakSignal() {
		waiting, err := collections.HasHold(tx, o.PatientID)
		if waiting || err != nil {
			return 0, err
		}
		return weakSignalWait, nil
	}
	if rs.rules.ConfirmReadings <= 0 || !isSeverelyHigh(o.Reading, t) {
		return 0, nil
	}
	alreadyCritical, err := collections.HasCriticalWithin(tx, o.PatientID, string(vitals.BloodPressure), o.Reading.MeasuredAt, severeWindow)
	if alreadyCritical || err != nil {
		return 0, err
	}
	return rs.rules.ConfirmReadings, nil
}

// hasDangerousValue reports whether a value of a reading is at or beyond a critical bound.
func hasDangerousValue(r vitals.Reading, t alerts.Thresholds) bool {
	for _, p := range r.Kind.Definition().All {
		if value := r.Value(p); value != nil && p.Group != "" && t.IsDangerous(p, *value) {
			return true
		}
	}
	return false
}

// isSeverelyHigh reports whether a blood pressure is critically high with no value critically low: for a low one, measuring again loses time.
func isSeverelyHigh(r vitals.Reading, t alerts.Thresholds) (high bool) {
	if r.Kind != vitals.BloodPressure {
		return false
	}
	for _, p := range []*vitals.Parameter{vitals.Systolic, vitals.Diastolic} {
		value, limits := r.Value(p), t.Limits(p)
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

// holdEscalation holds the escalation of a severe blood pressure that is the reading's only
// critical value and not worse than the last notified, or of all values with a weak signal. It
// holds nothing while an escalation is open or a value is snoozed.
func (e *Effects) holdEscalation(snapshot triage.PatientSnapshot, wait time.Duration, now time.Time) (held bool) {
	if _, open := snapshot.SystemEscalation(); open {
		return false
	}
	var escalating []int
	for i, alert := range e.Alerts {
		if !escalates(alert) {
			continue
		}
		isPressure := alert.Finding.Type == string(vitals.BloodPressure) && !alert.IsClosed() && !alert.WorseThanNotified
		if alert.Snoozed || !e.Observation.Reading.HasWeakSignal() && (!isPressure || len(escalating) > 0) {
			return false
		}
		escalating = append(escalating, i)
	}
	for _, i := range escalating {
		e.Alerts[i].HeldUntil = now.Add(wait)
	}
	return len(escalating) > 0
}

// promptRemeasure notifies the patient to measure again while the escalation is held.
func (w *effectsWriter) promptRemeasure(draft alerts.Draft) error {
	if draft.HeldUntil.IsZero() {
		return nil
	}
	return notifications.Announce(w.tx, notifications.Announcement{
		Kind: notifications.MeasureAgain, Severity: "info", PatientID: draft.PatientID, Key: "observation " + draft.ObservationID + " measure again",
	}, w.now)
}

// releaseHolds ends holds after a reading: held alerts join the escalation that it opened or joined, and are due at once if it is the last
// reading needed to confirm or resolve them, see [ReadingStore.ResolveHolds].
func (rs *ReadingStore) releaseHolds(tx core.App, effects Effects, outcome Outcome, before triage.PatientSnapshot, now time.Time) error {
	patient, reading := effects.Observation.PatientID, effects.Observation.Reading
	if outcome.EscalationID != "" {
		return collections.ReleaseHolds(tx, patient, outcome.EscalationID, now)
	}
	for _, open := range before.Open {
		if open.Level != alerts.Critical {
			continue
		}
		age := now.Sub(open.CreatedAt)
		switch {
		case reading.Kind == vitals.BloodPressure && open.Type == string(vitals.BloodPressure) && age <= rs.rules.ConfirmReadings:
			return collections.ExpediteHolds(tx, patient, open.Type, max(rs.rules.NormalReadingsNeeded.Critical, 1), now)
		case slices.Contains(oximetryTypes, open.Type) && age <= weakSignalWait && decidesWeakSignal(reading, before.Thresholds):
			typed := effects.Observation.Origin == vitals.OriginPatient
			return collections.ExpediteWeakSignal(tx, patient, oximetryTypes, reading.MeasuredAt, typed, now)
		}
	}
	return nil
}

// oximetryTypes are the types of the alerts of an oximeter.
var oximetryTypes = func() (types []string) {
	for _, group := range vitals.PulseOximetry.Definition().Groups {
		types = append(types, group[0].Group)
	}
	return types
}()

// decidesWeakSignal reports whether a reading decides about an earlier one with a weak signal: an oximeter's, with a good signal or critical
// again. A value in range measured with a weak signal proves nothing.
func decidesWeakSignal(r vitals.Reading, t alerts.Thresholds) bool {
	return r.Kind == vitals.PulseOximetry && (!r.HasWeakSignal() || hasDangerousValue(r, t))
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
func (rs *ReadingStore) ResolveHolds(ctx context.Context, app core.App, now time.Time) (decided int, err error) {
	due, err := collections.DueHolds(app, now.Add(escalations.SweepSlack), maxHoldsPerRound)
	if err != nil {
		return 0, err
	}
	return async.ForEach(ctx, due, func(id string) (bool, error) {
		err := triage.UpdateAndRescore(app, now, func(tx core.App) (string, error) { return rs.resolveHold(tx, id, now) })
		if err != nil {
			return false, fmt.Errorf("resolve the hold of alert %s: %w", id, err)
		}
		return true, nil
	})
}

// resolveHold ends one hold; the caller ranks the patient again.
func (rs *ReadingStore) resolveHold(tx core.App, id string, now time.Time) (patientID string, err error) {
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
	if alert.Type() == alerts.TypeEarlyWarning {
		return patientID, endEarlyWarningHold(tx, alert, snapshot, now)
	}
	repeated, err := repeatReadings(tx, alert, snapshot.Thresholds)
	if err != nil {
		return "", err
	}
	confirmed := len(repeated) == 0
	for _, r := range repeated {
		confirmed = confirmed || isSeverelyHigh(r, snapshot.Thresholds) || r.Kind == vitals.PulseOximetry && hasDangerousValue(r, snapshot.Thresholds)
	}
	switch {
	case confirmed && len(repeated) > 0 && alerts.Status(alert.Status()) == alerts.StatusAutoResolved: // later severe readings have alerts of their own
		return patientID, nil
	case !confirmed:
		return patientID, rs.resolveUnconfirmed(tx, alert, repeated, snapshot, now)
	case snapshot.IsSnoozed(alert.Type(), alerts.Critical, now): // reported when the snooze ends
		return patientID, nil
	}
	_, _, err = escalations.JoinOrOpen(tx, snapshot.StatTrigger(alert.Id, phi.Text(alert.DisplayMessage())), now)
	return patientID, err
}

// repeatReadings returns the readings after the one of an alert that decide about it. Manual readings by the patient do not confirm or
// resolve a device's reading, nor do those that look like another person's.
func repeatReadings(tx core.App, alert *collections.Alert, t alerts.Thresholds) (readings []vitals.Reading, err error) {
	kind := vitals.BloodPressure
	if alert.Type() != string(kind) { // only a blood pressure and an oximeter's values are held
		kind = vitals.PulseOximetry
	}
	records, err := collections.RepeatedReadings(tx, collections.RepeatQuery{
		Patient: alert.PatientID(), Kind: string(kind), After: alert.MeasuredAt(),
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
		o := ObservationFromRecord(record)
		decides := kind == vitals.BloodPressure || decidesWeakSignal(o.Reading, t)
		if decides && len(o.otherPersonTimes([]Observation{first})) == 0 {
			readings = append(readings, o.Reading)
		}
	}
	return readings, nil
}

// resolveUnconfirmed resolves a held alert that the next readings do not confirm. For a severe blood pressure it raises a warning with their
// average; a value measured with a weak signal is replaced by the repeat, which has an alert of its own if it needs one.
func (rs *ReadingStore) resolveUnconfirmed(tx core.App, alert *collections.Alert, repeated []vitals.Reading, snapshot triage.PatientSnapshot, now time.Time) error {
	if alerts.Status(alert.Status()) == alerts.StatusActive {
		progress := alerts.Progress{Alert: alerts.OpenAlert{ID: alert.Id}, NormalReadings: len(repeated), Resolved: true}
		if err := alerts.SaveProgress(tx, progress, now); err != nil {
			return err
		}
		if err := alerts.AuditAutoResolved(tx, collections.ResolvedAlert{ID: alert.Id, PatientID: alert.PatientID()}, now); err != nil {
			return err
		}
	}
	if alert.Type() != string(vitals.BloodPressure) {
		return nil
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
	return rs.raiseAndAnnounce(tx, warning, shownAverages(average), snapshot.Thresholds, now)
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

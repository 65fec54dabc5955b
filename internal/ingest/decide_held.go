package ingest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/escalations"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vitals"
)

const (
	// maxHoldsPerRound bounds about how many alerts one round decides; the next minute goes on.
	maxHoldsPerRound = 500
	// maxRepeatReadings bounds how many repeated readings of one alert are looked at.
	maxRepeatReadings = 50
)

// ResolveHolds decides about every escalation that has waited long enough for a severe blood pressure to be confirmed, each in a transaction
// of its own: severe again, or nothing came: it is opened; otherwise the alert is resolved, and a warning says what the repeated readings
// come to. The wait is stored with the alert, so that none is lost with the process. One that fails does not hold up the others.
// Source: docs/decisions/alerts.md, "Confirming a severe reading".
func (e *Evaluator) ResolveHolds(ctx context.Context, app core.App, now time.Time) (decided int, err error) {
	due, err := collections.HeldAlerts(app, now.Add(escalations.Slack), maxHoldsPerRound)
	if err != nil {
		return 0, err
	}
	var failures []error
	for _, id := range due {
		if err := ctx.Err(); err != nil {
			return decided, errors.Join(append(failures, err)...)
		}
		err := triage.Change(app, now, func(tx core.App) (string, error) { return resolveHold(tx, id, now) })
		if err != nil {
			failures = append(failures, fmt.Errorf("held alert %s: %w", id, err))
			continue
		}
		decided++
	}
	return decided, errors.Join(failures...)
}

// resolveHold decides about one alert; the patient is ranked anew.
func resolveHold(tx core.App, id string, now time.Time) (patientID string, err error) {
	alert, err := collections.FindAlert(tx, id)
	if err != nil || alert.HeldUntil().IsZero() || alert.HeldUntil().After(now.Add(escalations.Slack)) { // a reading was quicker
		return "", err
	}
	if err := alert.EndHold(tx); err != nil {
		return "", err
	}
	patientID = alert.PatientID()
	if alerts.Status(alert.Status()) == alerts.StatusResolved { // somebody's word: it is over, or was never measured
		return patientID, nil
	}
	if there, err := triage.Watched(tx, patientID); err != nil || !there {
		return "", err
	}
	snapshot, err := triage.ReadPicture(tx, patientID, nil, now)
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
	case alert.Late(): // nobody is woken for what was measured long ago
		return patientID, nil
	case confirmed && alerts.Status(alert.Status()) == alerts.StatusAutoResolved: // over; what was severe since speaks for itself
		return patientID, nil
	case !confirmed:
		return patientID, resolveUnconfirmed(tx, alert, repeated, snapshot, now)
	case snapshot.Snoozed(alert.Type(), alerts.Critical, now): // known: the end of the snooze tells what still stands
		return patientID, nil
	}
	return patientID, triage.EscalateCritical(tx, snapshot, alert, false, now)
}

// repeatReadings are the readings that repeat the one behind an alert. What a patient types does not settle what a device measured.
func repeatReadings(tx core.App, alert *collections.Alert) (readings []vitals.Reading, err error) {
	records, err := collections.RepeatedReadings(tx, collections.Repetition{
		Patient: alert.PatientID(), Kind: string(vitals.BloodPressure), After: alert.MeasuredAt(),
		ByPatient: alert.Origin() == string(vitals.OriginPatient),
	}, maxRepeatReadings)
	for _, record := range records {
		readings = append(readings, readingFromRecord(record))
	}
	return readings, err
}

// resolveUnconfirmed resolves the alert of a severe blood pressure that the next readings do not bear out, and says in a warning what they come to.
func resolveUnconfirmed(tx core.App, alert *collections.Alert, repeated []vitals.Reading, snapshot triage.Picture, now time.Time) error {
	if alerts.Status(alert.Status()) == alerts.StatusActive {
		over := alerts.Progress{Alert: alerts.Open{ID: alert.Id}, NormalReadings: len(repeated), Resolved: true}
		if err := alerts.SaveProgress(tx, over, now); err != nil {
			return err
		}
		if err := alerts.NoteAutoResolved(tx, collections.EndedAlert{ID: alert.Id, PatientID: alert.PatientID()}, now); err != nil {
			return err
		}
	}
	average := map[string]float64{}
	for _, p := range []*vitals.Parameter{vitals.Systolic, vitals.Diastolic} {
		average[p.Name] = mean(repeated, p)
	}
	finding := alerts.Finding{
		Type: alert.Type(), Level: alerts.Warning, Parameter: alert.Parameter(), Value: average[alert.Parameter()],
		Message: fmt.Sprintf("Not confirmed: %s Repeated readings: %d, their average is %s/%s %s.", alert.MessageShown(), len(repeated),
			decimal(average[vitals.Systolic.Name]), decimal(average[vitals.Diastolic.Name]), vitals.Systolic.Range.Unit),
	}
	if bound := alert.Threshold(); bound != nil {
		finding.Threshold = *bound
	}
	warning := alerts.Draft{
		PatientID: alert.PatientID(), ObservationID: alert.ObservationID(), Finding: finding, Origin: vitals.Origin(alert.Origin()),
		MeasuredAt: repeated[len(repeated)-1].MeasuredAt, Snoozed: snapshot.Snoozed(alert.Type(), alerts.Warning, now),
	}
	id, err := alerts.Raise(tx, warning, now)
	if err != nil || warning.Snoozed {
		return err
	}
	label, err := collections.PatientLabel(tx, alert.PatientID())
	if err != nil {
		return err
	}
	return notifications.Announce(tx, notifications.Announcement{
		Kind: notifications.AlertRaised, Severity: string(alerts.Warning), PatientID: alert.PatientID(), AlertID: id,
		Body: label + ": " + finding.Message, Key: alerts.AnnouncementKey(id),
	}, now)
}

// mean of a parameter, to one decimal.
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

func decimal(value float64) string { return strconv.FormatFloat(value, 'f', -1, 64) }

package ingest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/devices"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// A clock that is behind must not silence a danger: a reading with a time that cannot be trusted is evaluated as if it was measured
// when it was received, and kept as suspect until a person confirms a time. Source: docs/decisions/devices.md, "Doubtful time".

// ReasonDeviceClock is the reason of a suspect reading with a time that cannot be trusted.
const ReasonDeviceClock = "device_clock"

// recentWindow is the age up to which only the device's own readings put a time in doubt: most readings arrive at once.
const recentWindow = 24 * time.Hour

// judgeTime decides whether the time of a device's reading is in doubt, and whether nothing proves the clock of the device yet. It
// queries only for readings that did not arrive at once.
func (rs *ReadingStore) judgeTime(tx core.App, m *patientCache, s Submission, now time.Time) (Submission, error) {
	received, at := s.Arrival.At, s.Reading.MeasuredAt
	if received.IsZero() || s.TimeInDoubt || s.UsesReceiptTime {
		return s, nil
	}
	holder, err := m.deviceHolder(tx, s.Reading)
	if err != nil {
		return s, err
	}
	isForeign := holder != "" && holder != s.PatientID // the event was matched to the present holder, because its time cannot be trusted
	if received.Sub(at) <= time.Hour && !isForeign && (!s.Arrival.IsUnnamed || holder == s.PatientID) {
		return s, nil
	}
	facts, err := collections.FindClockFacts(tx, s.PatientID, s.Reading.DeviceID, at)
	if err != nil {
		return s, err
	}
	late := rs.isOld(at, received)
	if s.isClockUnproven, err = isUnproven(tx, facts, s.PatientID, s.Reading, received); err != nil {
		return s, err
	}
	s.endsClockProof = facts.IsProven && s.isClockUnproven && !s.Arrival.IsDeferred
	s.TimeInDoubt, err = devices.IsTimeDoubtful(facts, devices.TimedReading{
		MeasuredAt: at, IsLate: late, IsDeferred: s.Arrival.IsDeferred || s.IsPart, IsUnnamed: s.Arrival.IsUnnamed || isForeign,
		IsDangerous: func() (bool, error) { return isDangerous(tx, m, s, now) },
	})
	return s, err
}

// isUnproven reports whether nothing proves the device's clock, or this reading refutes the proof.
// A reading that is stored later is compared with what arrived before it.
func isUnproven(tx core.App, facts collections.ClockFacts, patientID string, r vitals.Reading, received time.Time) (unproven bool, err error) {
	if !facts.IsProven {
		return true, nil
	}
	last, err := collections.LastArrival(tx, patientID, r.DeviceID, received.Add(-devices.DeliveryGap))
	if err != nil || devices.ContradictsClock(last, r.MeasuredAt, received) {
		return err == nil, err
	}
	last, err = collections.LastArrival(tx, patientID, r.DeviceID, received.Add(-devices.RemeasureGap))
	return err == nil && devices.IsLateButLive(last, r.MeasuredAt, received), err
}

// draftEndedProofAlert drafts the day's clock alert after a reading ended the proof, unless raised.
func draftEndedProofAlert(tx core.App, o Observation, s Submission, zone *time.Location, now time.Time) (*alerts.Draft, error) {
	if !s.endsClockProof {
		return nil, nil
	}
	asked, err := collections.ClockAlertSince(tx, o.Reading.DeviceID, o.PatientID, alerts.TypeDeviceClock, collections.StartOfDay(now.In(zone)))
	if err != nil {
		return nil, err
	}
	if err := collections.RecordClockFault(tx, o.Reading.DeviceID, string(o.Reading.Kind), o.PatientID, now); err != nil || asked != nil {
		return nil, err
	}
	question := doubtfulTimeDraft(o, o.Origin, now, textUnproven)
	return &question, nil
}

// isClockUnproven reports whether nothing proves the clock of the device of a stored reading.
func isClockUnproven(tx core.App, o Observation) (bool, error) {
	if o.Source != vitals.SourceGateway || devices.ProvesClock(o.Reading.MeasuredAt, o.Received()) {
		return false, nil
	}
	facts, err := collections.FindClockFacts(tx, o.PatientID, o.Reading.DeviceID, o.Reading.MeasuredAt)
	return !facts.IsProven, err
}

// isOld reports whether a reading arrived late enough for facts of other sources to doubt its time.
func (rs *ReadingStore) isOld(measuredAt, received time.Time) bool {
	return rs.rules.isLate(measuredAt, received) || received.Sub(measuredAt) > recentWindow
}

// isDangerous reports whether a value of a submission is at or beyond a critical bound in force.
func isDangerous(tx core.App, m *patientCache, s Submission, now time.Time) (bool, error) {
	patient, err := m.patient(tx, s.PatientID)
	if err != nil {
		return false, err
	}
	snapshot, err := patient.snapshotFor(tx, s.PatientID, s.Reading, now)
	return slices.ContainsFunc(vitals.ThresholdParameters, func(p *vitals.Parameter) bool {
		value := s.Reading.Value(p)
		return value != nil && snapshot.Thresholds.IsDangerous(p, *value)
	}), err
}

// evaluateDoubtful decides and writes the effects of a reading with a doubtful time, or of a part that was merged into it: alerts as of
// receipt, the escalation, and the question about the clock. It is no latest value, counts for no day and is not delivered.
func (rs *ReadingStore) evaluateDoubtful(
	tx core.App, b *writeBatch, o Observation, patient readingPatient, s Submission, now time.Time,
) (outcome Outcome, err error) {
	received := s.Arrival.At
	if received.IsZero() {
		received = now
	}
	values := o.valuesToEvaluate()
	values.MeasuredAt = received
	snapshot, err := patient.snapshotFor(tx, o.PatientID, values, now)
	if err != nil {
		return Outcome{}, err
	}
	zone := collections.Zone(patient.row.TimeZone, rs.rules.PracticeZone)
	snapshot.Thresholds = snapshot.Thresholds.In(zone)
	input := AssessInput{Snapshot: snapshot, PrimaryProvider: patient.row.PrimaryProvider}
	if input.LastNotified, err = loadLastNotified(tx, values, snapshot, now); err != nil {
		return Outcome{}, err
	}
	if err := rs.loadPushes(tx, &input, o); err != nil {
		return Outcome{}, err
	}
	asked, err := collections.ClockAlertSince(tx, o.Reading.DeviceID, o.PatientID, alerts.TypeDeviceClock, collections.StartOfDay(now.In(zone)))
	if err != nil {
		return Outcome{}, err
	}
	effects := rs.doubtfulEffects(o, values, input, now)
	if asked == nil && o.Reading.DeviceID != "" {
		effects.Alerts = append(effects.Alerts, doubtfulTimeDraft(o, o.Origin, received, textDatedByReceipt))
	}
	effects.finish(input, now)
	effects.CountDay = o.Reading.MeasuredAt.In(rs.rules.PracticeZone).Format(time.DateOnly)
	effects.PatientLabel = patient.row.label(o.PatientID)
	if outcome, err = applyEffects(tx, b, effects, s.By, now); err != nil {
		return outcome, err
	}
	patient.snapshot = nil
	after := effects.SnapshotAfter
	after.Latest = after.Latest.With(values, o.Origin)
	trigger := scoreTrigger{readingToEvaluate: readingToEvaluate{o, patient, s.By}, after: after, coming: s.NewerInBatch}
	if err := rs.updateEarlyWarning(tx, b, trigger, now); err != nil {
		return outcome, err
	}
	if o.Reading.DeviceID == "" {
		return outcome, nil
	}
	if err := collections.RecordClockFault(tx, o.Reading.DeviceID, string(o.Reading.Kind), o.PatientID, now); err != nil {
		return outcome, err
	}
	return outcome, rs.reopenClockAlert(tx, b, asked, s, now)
}

// doubtfulEffects decides the alerts of a reading as of receipt. A value that may be another person's raises none. It is pure.
func (rs *ReadingStore) doubtfulEffects(o Observation, values vitals.Reading, s AssessInput, now time.Time) Effects {
	effects := Effects{Observation: o, Progress: endSilence(s.Snapshot.Open, o.Reading.DeviceID)}
	if rs.IsSuspect(values, o.Origin, s.Snapshot) {
		return effects
	}
	for _, finding := range alerts.Evaluate(values, s.Snapshot.Thresholds, s.Snapshot.Baseline) {
		if !finding.Breached() {
			continue
		}
		finding.Message += " " + doubtText(o.Reading.MeasuredAt, values.MeasuredAt)
		raised := alertDraft(o, finding, false)
		raised.MeasuredAt, raised.TimeInDoubt, raised.Late = values.MeasuredAt, true, rs.rules.isLate(values.MeasuredAt, now)
		raised.Snoozed, raised.WorseThanNotified = alerts.SuppressedBy(s.Snapshot.Snoozes, finding, values, s.Snapshot.Thresholds, now)
		raised.WorseThanNotified = raised.WorseThanNotified || s.isWorse(raised, values)
		raised.Push = rs.rules.WarningPush.DecidePush(raised, values, s.Snapshot.Thresholds, s.Pushes[finding.Type])
		effects.Alerts = append(effects.Alerts, raised)
	}
	return effects
}

// finish decides the escalation of the effects, and the patient snapshot after them, in which the reading is no latest value.
func (e *Effects) finish(s AssessInput, now time.Time) {
	e.decideEscalation(s.Snapshot, s.PrimaryProvider, now)
	e.SnapshotAfter = e.snapshotAfter(s.Snapshot, storedInstant(now))
	e.SnapshotAfter.Latest = s.Snapshot.Latest
	e.TriageRow = e.SnapshotAfter.ComputeRow(now)
}

// endSilence resolves the alert about a silent device.
func endSilence(open []alerts.OpenAlert, deviceID string) (progress []alerts.Progress) {
	for _, alert := range open {
		if alert.Type == alerts.TypeNoReading24h && alert.DeviceID == deviceID { // the patient's own reading is still missing
			progress = append(progress, alerts.Progress{Alert: alert, NormalReadings: alert.NormalReadings, Resolved: true})
		}
	}
	return progress
}

// doubtText states both times of a reading.
func doubtText(measured, received time.Time) string {
	return fmt.Sprintf("Measured %s, received %s: the time is in doubt.", validate.FormatInstant(measured), validate.FormatInstant(received))
}

// What a clock in doubt means for the readings of its device.
const (
	textDatedByReceipt = "Its readings are judged by the time of receipt; confirm each, or correct its time."
	textUnproven       = "Its late critical readings escalate until one arrives within an hour of its time."
)

// doubtfulTimeDraft returns the warning about a device's clock, with the values of the reading.
func doubtfulTimeDraft(o Observation, origin vitals.Origin, received time.Time, consequence string) alerts.Draft {
	var values []string
	for _, p := range vitals.Parameters {
		if value := o.Reading.Value(p); value != nil {
			values = append(values, p.Text(*value))
		}
	}
	finding := alerts.Finding{Type: alerts.TypeDeviceClock, Level: alerts.Warning, Parameter: "measured_at", Message: fmt.Sprintf(
		"The clock of device %s cannot be trusted: set it. It reported %s. %s %s",
		o.Reading.DeviceID, strings.Join(values, ", "), doubtText(o.Reading.MeasuredAt, received), consequence)}
	return alerts.Draft{
		PatientID: o.PatientID, ObservationID: o.ID, DeviceID: o.Reading.DeviceID, MeasuredAt: received, Origin: origin, OmitsValue: true, Finding: finding,
	}
}

// reopenClockAlert makes the day's alert about a clock active again if a right time had ended it. It sends no second notification.
func (rs *ReadingStore) reopenClockAlert(tx core.App, b *writeBatch, alert *collections.Alert, s Submission, now time.Time) error {
	if alert == nil || alert.Status() != string(alerts.StatusAutoResolved) {
		return nil
	}
	if err := alert.Reopen(tx, 0, now); err != nil {
		return err
	}
	if err := b.auditAlert(audit.AlertReopen, systemActor(s.By), alert.Id, alert.PatientID(), now); err != nil {
		return err
	}
	_, err := triage.Rescore(tx, alert.PatientID(), now)
	return err
}

// dateConfirmed stores the time that a person gives for a suspect reading. Without one, a reading in doubt takes the time of receipt, as its
// alerts do, and any other keeps its own.
func (rs *ReadingStore) dateConfirmed(tx core.App, b *writeBatch, o *Observation, patient *cachedPatient, at, now time.Time) error {
	inDoubt := o.SuspectReason == ReasonDeviceClock
	switch {
	case at.IsZero() && !inDoubt:
		return nil
	case at.IsZero():
		at = o.Received()
	case at.After(now):
		return fault.Field("measured_at", "Must not be in the future.")
	case at.After(o.Received()):
		return fault.Field("measured_at", "Must not be after the reading was received.")
	case patient.isBeforeBirth(o.PatientID, at.In(collections.Zone(patient.row.TimeZone, rs.rules.PracticeZone))):
		return fault.Field("measured_at", "Measurement time is before the patient's date of birth.")
	}
	reported := o.Reading.MeasuredAt
	o.Reading.MeasuredAt, o.reportedAt = storedInstant(at), reported
	if _, err := checkDeviceHolder(tx, nil, o.PatientID, o.Reading); err != nil {
		return err
	}
	counted := func(at time.Time) dayTotal {
		return dayTotal{at.In(rs.rules.PracticeZone).Format(time.DateOnly), string(o.Reading.Kind), collections.StatusSuspect}
	}
	b.totals[counted(reported)]--
	b.totals[counted(o.Reading.MeasuredAt)]++ // from where it is counted as confirmed
	if err := collections.SetMeasuredAt(tx, o.ID, o.Reading.MeasuredAt, now); err != nil {
		return err
	}
	if err := collections.EndTimeDoubt(tx, o.ID, o.Reading.MeasuredAt, now); err != nil || !inDoubt {
		return err
	}
	return collections.ExtendNewestTime(tx, o.Reading.DeviceID, o.Reading.MeasuredAt)
}

// resolveDoubtfulTimeAlerts resolves a device's clock alerts once none of its readings awaits a time.
func resolveDoubtfulTimeAlerts(tx core.App, b *writeBatch, o Observation, by audit.Actor, now time.Time) error {
	if o.SuspectReason != ReasonDeviceClock {
		return nil
	}
	ended, err := collections.ResolveAnsweredClockAlerts(tx, doubtfulTimeAlertKey(o), string(alerts.StatusResolved), alerts.ActorName(by), now)
	if err != nil {
		return err
	}
	for _, alert := range ended {
		if err := b.auditAlert(audit.AlertResolve, by, alert.ID, alert.PatientID, now); err != nil {
			return err
		}
	}
	if len(ended) > 0 {
		_, err = triage.Rescore(tx, o.PatientID, now)
	}
	return err
}

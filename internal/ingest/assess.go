package ingest

import (
	"cmp"
	"slices"
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/escalations"
	"github.com/vigilhealth/vigil/internal/fhir"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// AssessInput is everything that the effects of a reading depend on.
type AssessInput struct {
	Snapshot triage.PatientSnapshot
	// PrimaryProvider is the e-mail address of the patient's primary provider, or "".
	PrimaryProvider string
	// PatientZone is the time zone of the patient's days.
	PatientZone *time.Location
	// DeviceAssigned: the device was assigned to the patient at the time of measurement.
	DeviceAssigned bool
	// Surrounding is set only for a reading that is late or not the newest of its kind.
	Surrounding SurroundingReadings
	// LastNotified is nil if no critical values were announced.
	LastNotified *LastNotified
	// Heartbeats is set only for a reading with an irregular heartbeat, if the practice counts them.
	Heartbeats HeartbeatFlags
	// Pushes is set, by alert type, for a reading with warnings that are pushed by their trend.
	Pushes map[string]alerts.PushHistory
	// IsClockUnproven: no earlier reading shows that the device's clock is right.
	IsClockUnproven bool
	// DoubtfulTimeAlert is the question about the device's clock, because the reading ends its proof; nil for none.
	DoubtfulTimeAlert *alerts.Draft
	// Raised are the alerts that the reading raised while its time was in doubt.
	Raised []*collections.Alert
	// Hold is how long the escalation of this reading may wait for another reading, see [Effects.holdEscalation]; 0 for not at all.
	Hold time.Duration
}

// Rules are the practice's settings for evaluating readings.
type Rules struct {
	PracticeZone         *time.Location
	NormalReadingsNeeded alerts.NormalReadingsRequired
	AutoTransform        bool
	MaxFuture            time.Duration
	// LateAfter is the age at which a reading is late; 0 for never.
	LateAfter time.Duration
	// IrregularHeartbeats is the number of flags within seven days that raise a warning; 0 for never.
	IrregularHeartbeats int
	// EarlyWarning: values that together mean danger raise an alert.
	EarlyWarning bool
	// Suspect is the distance from the patient's usual values at which a value is suspect.
	Suspect vitals.Tolerance
	// ConfirmReadings is how long the escalation of a first severe blood pressure is held; 0 for no hold.
	ConfirmReadings time.Duration
	// WarningPush is the practice's choice of the warnings that are pushed.
	WarningPush alerts.WarningPush
	// SendHeartRate sends a pulse to the EMR as an observation of its own as well; SendDevice adds the device's data, and SendInterpretation
	// whether a value is in its reference range.
	SendHeartRate, SendDevice, SendInterpretation bool
}

// Effects are the decided, not yet written consequences of one stored reading.
type Effects struct {
	Observation Observation
	Alerts      []alerts.Draft
	// Progress is the change to each open alert.
	Progress []alerts.Progress
	// Replaced are the alerts that another one of these replaces.
	Replaced []*collections.Alert
	// Escalation is the stat escalation that the critical alerts join or open; nil for none.
	Escalation *escalations.Decision
	// PatientLabel names the patient in announcements; "" if there are none.
	PatientLabel string
	// SnapshotAfter is the patient snapshot after these effects, and TriageRow what the triage list shows of it.
	SnapshotAfter triage.PatientSnapshot
	TriageRow     triage.ComputedRow
	// Transmit: the observation has a FHIR form and is to be delivered.
	Transmit bool
	// TransmitHeartRate: its pulse is also delivered as an observation of its own.
	TransmitHeartRate bool
	// PatientDay is the date in the patient's time zone, CountDay in the practice's.
	PatientDay, CountDay string
	// DeviceReading: the day counts as a day of transmission for billing.
	DeviceReading bool
}

// Assess decides all effects of a stored reading. It is pure.
func Assess(o Observation, s AssessInput, rules Rules, now time.Time) Effects {
	snapshot := s.Snapshot
	snapshot.Thresholds = snapshot.Thresholds.In(s.PatientZone)
	values := o.valuesToEvaluate()
	findings := alerts.Evaluate(values, snapshot.Thresholds, snapshot.Baseline)
	o.Bounds = o.Bounds.With(alerts.BoundsFor(values, snapshot.Thresholds, findings))
	effects := Effects{
		Observation: o, Transmit: o.FHIRStatus != "" && o.mergedPart == nil && !o.isQueued,
		PatientDay: o.Reading.MeasuredAt.In(s.PatientZone).Format(time.DateOnly),
		CountDay:   o.Reading.MeasuredAt.In(rules.PracticeZone).Format(time.DateOnly),
		// A manually entered reading never counts, even if it names a device. Source: docs/decisions/billing.md, "30-day period and the 16
		// days (99454)".
		DeviceReading: s.DeviceAssigned && cmp.Or(o.Origin, o.Source.Origin()).CountsAsTransmission(),
	}
	effects.TransmitHeartRate = rules.SendHeartRate && o.FHIRStatus != "" && !o.isQueued && fhir.HasHeartRate(values)
	sequence := s.sequence(o, values, findings)
	effects.Progress = alerts.AutoResolve(snapshot.Open, evaluated(o, findings, s.Surrounding.Around), sequence, now, rules.NormalReadingsNeeded)
	for _, finding := range findings {
		if finding.Breached() && !isRaised(s.Raised, finding) {
			raised := alertDraft(o, finding, false)
			raised.Snoozed, raised.WorseThanNotified = alerts.SuppressedBy(snapshot.Snoozes, finding, values, snapshot.Thresholds, now)
			s.setLateness(&raised, o.Reading.DeviceID, sequence, rules, now)
			raised.WorseThanNotified = raised.WorseThanNotified || s.isWorse(raised, values)
			raised.Push = rules.WarningPush.DecidePush(raised, values, snapshot.Thresholds, s.Pushes[finding.Type])
			effects.Alerts = append(effects.Alerts, raised)
		}
	}
	for _, m := range values.Kind.Definition().Qualifiers {
		if m.Notice != "" && values.Qualifier(m) == vitals.Yes {
			effects.Alerts = append(effects.Alerts, alertDraft(o, alerts.Finding{
				Type: alerts.TypeDeviceInfo, Level: alerts.Normal, Parameter: m.Name, Message: m.Notice,
			}, true))
		}
	}
	if s.DoubtfulTimeAlert != nil {
		effects.Alerts = append(effects.Alerts, *s.DoubtfulTimeAlert)
	}
	question, replaced, asks := s.Surrounding.sharedCuffQuestion(o, rules.isLate(o.Reading.MeasuredAt, now))
	if effects.Replaced = replaced; asks {
		question.Push = rules.WarningPush.DecidePush(question, values, snapshot.Thresholds, alerts.PushHistory{})
		effects.Alerts = append(effects.Alerts, question)
	}
	if recurring, raised := s.Heartbeats.warningDraft(o, rules, now); raised {
		recurring.Push = rules.WarningPush.DecidePush(recurring, values, snapshot.Thresholds, alerts.PushHistory{})
		effects.Alerts = append(effects.Alerts, recurring)
	}
	if s.Hold <= 0 || !effects.holdEscalation(snapshot, s.Hold, now) {
		effects.decideEscalation(snapshot, s.PrimaryProvider, now)
	}
	effects.SnapshotAfter = effects.snapshotAfter(snapshot, storedInstant(now))
	effects.TriageRow = effects.SnapshotAfter.ComputeRow(now)
	return effects
}

func alertDraft(o Observation, finding alerts.Finding, informative bool) alerts.Draft {
	return alerts.Draft{
		PatientID: o.PatientID, ObservationID: o.ID, Finding: finding, MeasuredAt: o.Reading.MeasuredAt,
		Origin: o.Origin, Informative: informative,
	}
}

// snapshotAfter returns the patient snapshot after the effects are written.
func (e *Effects) snapshotAfter(snapshot triage.PatientSnapshot, now time.Time) triage.PatientSnapshot {
	snapshot.Latest = snapshot.Latest.With(e.Observation.Reading, e.Observation.Origin)
	progress := map[string]alerts.Progress{}
	for _, p := range e.Progress {
		progress[p.Alert.ID] = p
	}
	snapshot.Recent = slices.Clip(snapshot.Recent) // keeps the input's slice unchanged
	open := make([]alerts.OpenAlert, 0, len(snapshot.Open)+len(e.Alerts))
	for _, alert := range snapshot.Open {
		change, touched := progress[alert.ID]
		if change.Superseded {
			snapshot.Recent = slices.DeleteFunc(slices.Clone(snapshot.Recent), func(a triage.RecentAlert) bool {
				return a.Type == alert.Type && a.Level == alert.Level && a.CreatedAt.Equal(alert.CreatedAt)
			})
		}
		if change.Resolved {
			continue
		}
		if touched {
			alert.NormalReadings = change.NormalReadings
		}
		open = append(open, alert)
	}
	for _, alert := range e.Alerts {
		if !alert.Superseded {
			snapshot.Recent = append(snapshot.Recent, triage.RecentAlert{Type: alert.Finding.Type, Level: alert.Finding.Level, CreatedAt: now})
		}
		if !alert.IsClosed() {
			raised := alerts.OpenAlert{
				Type: alert.Finding.Type, Level: alert.Finding.Level,
				MeasuredAt: alert.MeasuredAt, CreatedAt: now, NormalReadings: alert.NormalReadings,
				Parameter: alert.Finding.Parameter, Value: alert.Finding.Value, Origin: alert.Origin, Late: alert.Late, TimeInDoubt: alert.TimeInDoubt,
				ResolvesWithin: alerts.ResolveWindow(snapshot.Schedule, alert.Finding.Type),
				UnprovenDevice: unprovenDevice(e.Observation.Reading.DeviceID, alert.ClockUnproven),
			}
			if raised.Level == alerts.Critical {
				raised.Reported = alerts.ReadingValues(&e.Observation.Reading, raised.Type)
			}
			open = append(open, raised)
		}
	}
	snapshot.Open = open
	if e.Escalation == nil {
		return snapshot
	}
	snapshot.Escalations = slices.Clone(snapshot.Escalations)
	for i := range snapshot.Escalations {
		if snapshot.Escalations[i].ID == e.Escalation.Join {
			snapshot.Escalations[i].Priority = escalations.Stat
			return snapshot
		}
	}
	snapshot.Escalations = append(snapshot.Escalations, escalations.ActiveEscalation{Priority: escalations.Stat, BySystem: true})
	return snapshot
}

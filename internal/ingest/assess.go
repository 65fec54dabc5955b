package ingest

import (
	"cmp"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/escalations"
	"github.com/vigilhealth/vigil/internal/fhir"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// AssessInput is all that the consequences of a reading depend on.
type AssessInput struct {
	Snapshot triage.Picture
	// PrimaryProvider is the e-mail address of the patient's primary provider, or "".
	PrimaryProvider string
	// PatientZone is where the patient's days begin.
	PatientZone *time.Location
	// DeviceAssigned: the device was assigned to the patient when the reading was taken.
	DeviceAssigned bool
	// Around is what else was measured, where the reading is not the newest of its kind, or came late.
	Surrounding SurroundingReadings
	// Told is what people have heard of as critical; nil where nobody has.
	LastNotified *LastNotified
	// Flags are those of a reading with flags that are counted.
	Heartbeats HeartbeatFlags
	// MayHold: the escalation of this reading may wait for another one, see [Effects.hold].
	MayHold bool
}

// Rules are the settings that assessing depends on.
type Rules struct {
	PracticeZone         *time.Location
	NormalReadingsNeeded alerts.NormalReadingsNeeded
	AutoTransform        bool
	MaxFuture            time.Duration
	// LateAfter is the age from which a reading is late; 0 for never.
	LateAfter time.Duration
	// IrregularHeartbeats is how many flags within seven days raise a warning; 0 for never.
	IrregularHeartbeats int
	// Suspect is how far a value may lie from the patient's usual ones before it is doubted.
	Suspect vitals.Distance
	// ConfirmReadings is how long the escalation of a first severe blood pressure waits for another reading; 0 for not at all.
	ConfirmReadings time.Duration
	// SendHeartRate has a pulse sent to the EMR as an observation of its own, too; SendDevice what is known of the device.
	SendHeartRate, SendDevice bool
}

// Effects are the consequences of one stored reading, decided and not yet written.
type Effects struct {
	Observation Observation
	Alerts      []alerts.Draft
	// Progress is what the reading does to open alerts.
	Progress []alerts.Progress
	// OpenEscalation is the stat escalation to open; JoinEscalation an open one that the critical alerts join.
	OpenEscalation *escalations.Draft
	JoinEscalation string
	// Renotify: people are to hear anew of the one that is joined. Worse is what is worse than what they know, or "".
	Renotify          bool
	WorseThanNotified phi.Text
	// PatientLabel names the patient to those who are told; "" while nobody is.
	PatientLabel string
	// After is the patient's picture once the effects are written, and Place what the list shows of it.
	SnapshotAfter triage.Picture
	TriageRow     triage.Place
	// Transmit: the observation has a FHIR form and waits for delivery.
	Transmit bool
	// TransmitHeartRate: its pulse is sent as an observation of its own, too.
	TransmitHeartRate bool
	// PatientDay is the local date that has data now; CountDay the practice's date.
	PatientDay, CountDay string
	// DeviceReading: the day counts as a day of transmission for billing.
	DeviceReading bool
}

// Assess decides everything that follows from a stored reading. It touches nothing.
func Assess(o Observation, s AssessInput, rules Rules, now time.Time) Effects {
	snapshot := s.Snapshot
	snapshot.Thresholds = snapshot.Thresholds.In(s.PatientZone)
	judged := o.Reading
	if o.addition != nil {
		judged = *o.addition
	}
	findings := alerts.Evaluate(judged, snapshot.Thresholds, snapshot.Weighings)
	effects := Effects{
		Observation: o, Transmit: o.FHIRStatus != "" && o.addition == nil,
		PatientDay: o.Reading.MeasuredAt.In(s.PatientZone).Format(time.DateOnly),
		CountDay:   o.Reading.MeasuredAt.In(rules.PracticeZone).Format(time.DateOnly),
		// What somebody typed never counts, whatever device they named. Source: docs/decisions/billing.md, "30-day period and the 16 days (99454)".
		DeviceReading: s.DeviceAssigned && cmp.Or(o.Origin, o.Source.Origin()).Transmits(),
	}
	effects.TransmitHeartRate = rules.SendHeartRate && o.FHIRStatus != "" && fhir.HasHeartRate(judged)
	sequence := s.sequence(o, judged, findings)
	effects.Progress = alerts.AutoResolve(snapshot.Open, evaluated(o, findings), sequence, now, rules.NormalReadingsNeeded)
	for _, finding := range findings {
		if finding.Breached() {
			raised := alertDraft(o, finding, false)
			raised.Snoozed, raised.Worse = alerts.Quiet(snapshot.Snoozes, finding, judged, snapshot.Thresholds, now)
			s.setLateness(&raised, sequence, rules, now)
			raised.Worse = raised.Worse || s.isWorse(raised, judged)
			effects.Alerts = append(effects.Alerts, raised)
		}
	}
	for _, m := range judged.Kind.Definition().Marks {
		if m.Informs != "" && judged.Says(m) == vitals.Yes {
			effects.Alerts = append(effects.Alerts, alertDraft(o, alerts.Finding{
				Type: alerts.TypeDeviceInfo, Level: alerts.Normal, Parameter: m.Name, Message: m.Informs,
			}, true))
		}
	}
	if recurring, raised := s.Heartbeats.warningDraft(o, rules, now); raised {
		effects.Alerts = append(effects.Alerts, recurring)
	}
	if !s.MayHold || !effects.holdEscalation(snapshot, rules.ConfirmReadings, now) {
		effects.escalate(snapshot, s.PrimaryProvider, now)
	}
	effects.SnapshotAfter = effects.snapshotAfter(snapshot, storedInstant(now))
	effects.TriageRow = effects.SnapshotAfter.Place(now)
	return effects
}

func alertDraft(o Observation, finding alerts.Finding, informative bool) alerts.Draft {
	return alerts.Draft{
		PatientID: o.PatientID, ObservationID: o.ID, Finding: finding, MeasuredAt: o.Reading.MeasuredAt,
		Origin: o.Origin, Informative: informative,
	}
}

// escalate joins the critical alerts to the escalation that the system has open for the patient, or opens one for the first
// that is not snoozed. Source: docs/decisions/alerts.md, "STAT-severity alert" and "Snooze".
func (e *Effects) escalate(snapshot triage.Picture, primaryProvider string, now time.Time) {
	for _, alert := range e.Alerts {
		if !escalates(alert) {
			continue
		}
		for _, open := range snapshot.Escalations {
			if open.BySystem {
				e.JoinEscalation = open.ID
				e.Renotify = e.Renotify || (!alert.Snoozed && (alert.Worse || open.Renotify(now)))
				if alert.Worse && !alert.Snoozed && e.WorseThanNotified == "" {
					e.WorseThanNotified = phi.Text(alert.Finding.Message)
				}
			}
		}
		if e.JoinEscalation == "" && e.OpenEscalation == nil && !alert.Snoozed {
			e.OpenEscalation = &escalations.Draft{
				PatientID: e.Observation.PatientID, Priority: escalations.Stat, Reason: phi.Text(alert.Finding.Message), AssignedTo: primaryProvider,
			}
		}
	}
}

// snapshotAfter is the patient's picture once the effects are written.
func (e *Effects) snapshotAfter(snapshot triage.Picture, now time.Time) triage.Picture {
	snapshot.Latest = snapshot.Latest.With(e.Observation.Reading, e.Observation.Origin)
	progress := map[string]alerts.Progress{}
	for _, p := range e.Progress {
		progress[p.Alert.ID] = p
	}
	snapshot.Recent = slices.Clip(snapshot.Recent) // the situation stays as it was
	open := make([]alerts.Open, 0, len(snapshot.Open)+len(e.Alerts))
	for _, alert := range snapshot.Open {
		made, touched := progress[alert.ID]
		if made.Resolved {
			continue
		}
		if touched {
			alert.NormalReadings = made.NormalReadings
		}
		open = append(open, alert)
	}
	for _, alert := range e.Alerts {
		if !alert.Superseded {
			snapshot.Recent = append(snapshot.Recent, triage.Raised{Level: alert.Finding.Level, CreatedAt: now})
		}
		if !alert.Over() {
			raised := alerts.Open{
				Type: alert.Finding.Type, Level: alert.Finding.Level,
				MeasuredAt: alert.MeasuredAt, CreatedAt: now, NormalReadings: alert.NormalReadings,
				Parameter: alert.Finding.Parameter, Value: alert.Finding.Value, Origin: alert.Origin,
			}
			if raised.Level == alerts.Critical {
				raised.Reported = alerts.ReportedBy(&e.Observation.Reading, raised.Type)
			}
			open = append(open, raised)
		}
	}
	snapshot.Open = open
	snapshot.Escalations = slices.Clone(snapshot.Escalations)
	for i := range snapshot.Escalations {
		if snapshot.Escalations[i].ID == e.JoinEscalation {
			snapshot.Escalations[i].Priority = escalations.Stat
		}
	}
	if e.OpenEscalation != nil {
		snapshot.Escalations = append(snapshot.Escalations, escalations.Active{Priority: escalations.Stat, BySystem: true})
	}
	return snapshot
}

// DryRun says what storing readings would come to, one after the other, and stores nothing.
type DryRun struct {
	evaluator *Evaluator
	seen      map[string]string // values by gateway key
}

// NewDryRun begins with what is stored.
func NewDryRun(e *Evaluator) *DryRun { return &DryRun{evaluator: e, seen: map[string]string{}} }

// Ingest says what [Engine.Ingest] would, and remembers the reading as if it had been stored.
func (r *DryRun) Ingest(app core.App, s Submission, now time.Time) (Outcome, error) {
	if _, err := r.evaluator.findPatient(app, nil, s); err != nil {
		return Outcome{}, err
	}
	o := r.evaluator.newObservation(s, now)
	values := readingKey("", s.Reading)
	if earlier, met := r.seen[s.GatewayKey]; met {
		return Outcome{Observation: o, Duplicate: earlier == values, Conflict: earlier != values}, nil
	}
	outcome, keyless, err := findDuplicate(app, o)
	missing := collections.Missing(err)
	if missing || keyless {
		r.seen[s.GatewayKey] = values
	}
	if missing {
		return Outcome{Observation: o}, nil
	}
	return outcome, err
}

package ingest

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/devices"
	"github.com/vigilhealth/vigil/internal/escalations"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// A measurement with values that no device should report is rejected, as the contract requires, but may be the worst ever measured. The
// event is quarantined as received, the care team is notified at once, and one of them confirms or discards it. Source:
// docs/decisions/observations.md, "Implausible values".

// Sources of an event other than a vendor's webhook.
const (
	SourceImport    = "import"
	SourceDashboard = "dashboard"
	SourceClient    = "client" // a machine client, through the API
	sourceGateway   = "gateway"
)

// quarantineCause is why a quarantined measurement is not simply stored.
type quarantineCause int

const (
	outOfRange  quarantineCause = iota // values that no device should report
	futureClock                        // a time in the future; its values may be in range
	unreadable                         // other errors; its values may be in range
)

// quarantinedReading is a quarantined measurement of a patient, with the snapshot to evaluate it by.
type quarantinedReading struct {
	eventID, patientID string
	gateway.Implausible
	origin    vitals.Origin
	doubt     quarantineCause
	snapshot  triage.PatientSnapshot
	isSuspect bool // it may be another person's
	// isConflict: it has the time of another reading of its device, and other values.
	isConflict bool
	// isClockUnproven: no earlier reading shows that the device's clock is right. endsProof: one did, and this one contradicts it.
	isClockUnproven, endsProof bool
	reported                   time.Time // the device's time, if it cannot be trusted: the reading then has the time of receipt
	received                   time.Time
}

// isTimeInDoubt reports whether the device's time cannot be trusted.
func (r quarantinedReading) isTimeInDoubt() bool { return !r.reported.IsZero() }

// newQuarantinedReading returns the measurement of a quarantined event. One with a time in the future or in doubt has the time of its first
// receipt. Only an event that arrives now is compared with the device's other readings.
func (e *Pipeline) newQuarantinedReading(
	tx core.App, stored *collections.GatewayEvent, event gateway.Event, patientID string, now time.Time,
) (c quarantinedReading, err error) {
	received := stored.ReceivedAt()
	c = quarantinedReading{
		eventID: stored.Id, patientID: patientID, Implausible: *event.Implausible, origin: sourceOrigin(EventSource(stored)), received: received,
	}
	if c.IsDatedByReceipt {
		c.Reading.MeasuredAt = received
	}
	switch {
	case len(c.RejectedFor) > 0:
		c.doubt, c.isConflict = unreadable, stored.Reason() == ReasonConflict
	case c.IsDatedByReceipt:
		c.doubt = futureClock
	}
	return c, e.assessQuarantinedTime(tx, &c, event.PatientID == "", now)
}

// assessQuarantinedTime decides whether the time of a device's rejected measurement can be trusted, as [ReadingStore.judgeTime] does for a stored reading.
func (e *Pipeline) assessQuarantinedTime(tx core.App, c *quarantinedReading, isUnnamed bool, now time.Time) error {
	at := c.Reading.MeasuredAt
	if c.origin != vitals.OriginDevice || c.received.Sub(at) <= time.Hour {
		return nil
	}
	facts, err := collections.FindClockFacts(tx, c.patientID, c.Reading.DeviceID, at)
	if err != nil {
		return err
	}
	isPlaced := now.Sub(c.received) > time.Minute
	if c.isClockUnproven, err = isUnproven(tx, facts, c.patientID, c.Reading, c.received); err != nil {
		return err
	}
	c.endsProof = c.isClockUnproven && facts.IsProven && !isPlaced
	doubtful, err := devices.IsTimeDoubtful(facts, devices.TimedReading{
		MeasuredAt: at, IsLate: e.Readings.isOld(at, c.received), IsDeferred: isPlaced, IsUnnamed: isUnnamed,
		IsDangerous: func() (dangerous bool, err error) {
			c.snapshot, err = triage.ReadSnapshot(tx, c.patientID, &c.Reading, now)
			return slices.ContainsFunc(vitals.ThresholdParameters, c.isDangerousValue), err
		},
	})
	if doubtful {
		c.reported, c.Reading.MeasuredAt = at, c.received
	}
	return err
}

// alertIfImplausible raises the alert for the implausible values of a stored event, once, when its patient is identified.
func (e *Pipeline) alertIfImplausible(tx core.App, eventID string, event gateway.Event, now time.Time) error {
	if event.Implausible == nil {
		return nil
	}
	stored, err := FindQuarantined(tx, eventID)
	if err != nil || checkPending(stored) != nil {
		return err
	}
	if alerted, err := collections.PatientOfQuarantine(tx, eventID); err != nil || alerted != "" {
		return err
	}
	patient, reason, err := MatchPatient(tx, event)
	switch {
	case err != nil:
		return err
	case reason != "": // stays in quarantine
		return announceUnmatched(tx, eventID, event, reason, now)
	}
	return e.alertImplausible(tx, stored, event, patient, now)
}

// assignImplausible assigns an unmatched implausible measurement to the patient that a person chose. It does not confirm the values.
func (e *Pipeline) assignImplausible(tx core.App, stored *collections.GatewayEvent, event gateway.Event, patientID string, by audit.Actor, now time.Time) error {
	alerted, err := collections.PatientOfQuarantine(tx, stored.Id)
	if err != nil {
		return err
	}
	if alerted != "" {
		return errAlreadyMatched()
	}
	patient, err := collections.FindPatientMatch(tx, patientID)
	if err != nil {
		return err
	}
	if !patient.Active {
		return fault.Field("patient_id", "This patient is archived.")
	}
	if err := e.alertImplausible(tx, stored, event, patientID, now); err != nil {
		return err
	}
	return audit.Append(tx, audit.Entry{
		Event: audit.WebhookPlaced, Actor: by, ResourceType: audit.ResourceGatewayEvent, ResourceID: stored.Id, PatientID: patientID,
	}, now)
}

func errAlreadyMatched() error {
	return fault.State("invalid_state", "The event is matched to this patient already: confirm or discard its values.")
}

// alertImplausible raises the alerts about a quarantined measurement, unless a person decided the same one before.
func (e *Pipeline) alertImplausible(tx core.App, stored *collections.GatewayEvent, event gateway.Event, patientID string, now time.Time) error {
	c, err := e.newQuarantinedReading(tx, stored, event, patientID, now)
	if err != nil {
		return err
	}
	if !c.isTimeInDoubt() && !event.At.IsZero() { // a clock that was reset reports the same time again and again
		if decided, err := e.applyEarlierDecision(tx, stored, event, patientID, now); err != nil || decided {
			return err
		}
	}
	if err := stored.SetImplausible(tx); err != nil { // for events stored before the column existed
		return err
	}
	if c.isEvaluated() { // it may have no alert, and a person decides about it all the same
		if err := collections.SetEventPatient(tx, c.eventID, c.patientID); err != nil {
			return err
		}
	}
	return triage.UpdateAndRescore(tx, now, func(tx core.App) (string, error) { return patientID, e.raiseQuarantineAlerts(tx, c, now) })
}

// raiseQuarantineAlerts raises the alerts about a measurement; the caller ranks the patient again.
func (e *Pipeline) raiseQuarantineAlerts(tx core.App, c quarantinedReading, now time.Time) (err error) {
	if !c.isEvaluated() {
		if c.snapshot, err = triage.ReadSnapshot(tx, c.patientID, nil, now); err != nil {
			return err
		}
		if err := e.raiseAlert(tx, c, now); err != nil {
			return err
		}
		return e.raiseDoubtfulTimeAlert(tx, c, now)
	}
	if c.snapshot, err = triage.ReadSnapshot(tx, c.patientID, &c.Reading, now); err != nil {
		return err
	}
	c.isSuspect = e.Readings.IsSuspect(c.Reading, c.origin, c.snapshot)
	if c.needsOwnAlert(now) {
		if err := e.raiseAlert(tx, c, now); err != nil {
			return err
		}
	}
	if c.doubt != futureClock {
		return e.raiseDoubtfulTimeAlert(tx, c, now)
	}
	if err := e.updateFutureClockAlert(tx, c, now); err != nil {
		return err
	}
	return collections.RecordClockFault(tx, c.Reading.DeviceID, string(c.Reading.Kind), c.patientID, now)
}

// alertDecision is a decided, not yet written alert about an implausible reading.
type alertDecision struct {
	draft alerts.Draft
	// stat: a value is beyond a critical bound.
	stat bool
}

// isSuperseded reports whether each alarming group of a late implausible reading was measured since, by an origin that is at least as
// reliable. Source: docs/decisions/alerts.md, "Late readings".
func (r quarantinedReading) isSuperseded(tx core.App) (superseded bool, err error) {
	var alarming [][]*vitals.Parameter
	for _, group := range r.Reading.Kind.Definition().Groups {
		if slices.ContainsFunc(group, func(p *vitals.Parameter) bool { return r.isDangerousValue(p) }) {
			alarming = append(alarming, group)
		}
	}
	late := lateReading{r.patientID, r.Reading.MeasuredAt, r.origin, unprovenDevice(r.Reading.DeviceID, r.isClockUnproven), r.received}
	return late.hasNewer(tx, alarming)
}

// isDangerousValue reports whether a parameter's value is implausible, or beyond a critical bound next to one that is.
func (r quarantinedReading) isDangerousValue(p *vitals.Parameter) bool {
	value := r.Reading.Value(p)
	return value != nil && (slices.Contains(r.OutOfRange, p) || r.snapshot.Thresholds.IsDangerous(p, *value))
}

// decideAlert returns the alert for an implausible measurement. It is pure.
func (r quarantinedReading) decideAlert(late, superseded bool) alertDecision {
	finding, critical := r.finding()
	switch {
	case late && r.isClockUnproven && !r.isTimeInDoubt():
		finding.AddDeviceTime(r.Reading.MeasuredAt, r.received)
	case late:
		finding.AddMeasuredAt(r.Reading.MeasuredAt)
	}
	if change, found := r.criticalChange(); found {
		finding.Parameter, finding.Value, finding.Threshold, critical = change.Parameter, change.Value, change.Threshold, true
	}
	n := alertDecision{stat: critical, draft: alerts.Draft{
		PatientID: r.patientID, Finding: finding, MeasuredAt: r.Reading.MeasuredAt, Origin: r.origin,
		ReportedValues: r.reportedValues(), QuarantineID: r.eventID, Late: late, TimeInDoubt: r.isTimeInDoubt(), ClockUnproven: r.isClockUnproven,
	}}
	if n.draft.Late {
		n.draft.Superseded = superseded
		n.stat = n.stat && n.draft.ClockUnproven && !superseded
	}
	return n
}

// reportedValues returns all reported values as JSON, by column.
func (r quarantinedReading) reportedValues() phi.Text {
	encoded, _ := json.Marshal(r.Reading.ByColumn()) // finite numbers by name always encode
	return phi.Text(encoded)
}

// retractAlerts reverses the effects of an implausible measurement that is discarded: its alerts, its part of an escalation and its weight
// in the triage score.
func (e *Pipeline) retractAlerts(tx core.App, event *collections.GatewayEvent, reason phi.Text, by audit.Actor, now time.Time) error {
	raised, err := collections.AlertsOfQuarantine(tx, event.Id)
	if err != nil || len(raised) == 0 {
		return err
	}
	return triage.UpdateAndRescore(tx, now, func(tx core.App) (string, error) {
		var retracted []*collections.Alert
		for _, alert := range raised {
			if kept, err := e.removeFromAlert(tx, alert, event.Id, now); err != nil {
				return "", err
			} else if kept {
				continue
			}
			retracted = append(retracted, alert)
			ended, err := resolveAlert(tx, alert, "discarded", reason, by, now)
			if err != nil {
				return "", err
			}
			if !ended { // a closed alert is retracted as well: it no longer counts
				if err := alerts.AuditRetraction(tx, alert, reason, by, now); err != nil {
					return "", err
				}
			}
			if err := alert.Retract(tx, alerts.ReasonRetracted, now); err != nil {
				return "", err
			}
		}
		return raised[0].PatientID(), escalations.RetractAlerts(tx, retracted, "implausible measurement was discarded", by, now)
	})
}

// resolveAlert resolves an alert unless it is closed, and reports whether it did.
func resolveAlert(tx core.App, alert *collections.Alert, outcome string, notes phi.Text, by audit.Actor, now time.Time) (bool, error) {
	if _, err := alerts.NextStatus(alerts.Status(alert.Status()), alerts.Resolve); err != nil {
		return false, nil //nolint:nilerr // closed already
	}
	return true, alerts.Act(tx, alert, alerts.Action{Move: alerts.Resolve, Outcome: outcome, Notes: notes}, by, now)
}

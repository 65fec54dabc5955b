package ingest

import (
	"cmp"
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
	"github.com/vigilhealth/vigil/internal/notifications"

	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// A measurement with values that no device should report is refused, as the contract has it, and may yet be the worst that was ever
// measured. So it is kept as it came, those who look after the patient are told at once, and one of them says whether it is true.
// Source: docs/decisions/observations.md, "Implausible values".

// Ways of which a measurement can come besides a vendor's webhook.
const (
	SourceImport    = "import"
	SourceDashboard = "dashboard"
	SourceClient    = "client" // a machine with credentials of its own, through the API
	sourceGateway   = "gateway"
)

// isManualSource reports whether a person typed it, or a client sent it as people do: its patient is the one they named, and its payload is ours.
func isManualSource(source string) bool {
	return slices.Contains([]string{string(vitals.SourceAPI), string(vitals.SourcePortal), SourceDashboard, SourceClient}, source)
}

// EventSource is by which way an event came.
func EventSource(event *collections.GatewayEvent) string {
	return cmp.Or(event.Source(), event.Vendor(), sourceGateway)
}

// recordOrigin says who vouches for what came this way.
func sourceOrigin(source string) vitals.Origin {
	switch source {
	case SourceImport:
		return vitals.OriginImport
	case SourceClient:
		return vitals.OriginMachine
	case string(vitals.SourcePortal):
		return vitals.OriginPatient
	case string(vitals.SourceAPI), SourceDashboard:
		return vitals.OriginStaff
	}
	return vitals.OriginDevice
}

// implausibleReading is an implausible measurement and whose it is.
type implausibleReading struct {
	eventID, patientID string
	gateway.Implausible
	origin     vitals.Origin
	wrongClock bool
	isMinor    bool
	isSuspect  bool // it may be somebody else's
}

// alertIfImplausible has the patient's people told of what is implausible in an event that was stored, once, as soon as it is known whose it is.
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
	if err != nil || reason != "" {
		return err // it stays where people see it
	}
	return e.alertImplausible(tx, stored, event, patient, now)
}

// assignImplausible is a person's word whose an implausible measurement is that could not be placed. That it is true is for others to say.
func (e *Pipeline) assignImplausible(tx core.App, stored *collections.GatewayEvent, event gateway.Event, patientID string, by audit.Actor, now time.Time) error {
	alerted, err := collections.PatientOfQuarantine(tx, stored.Id)
	if err != nil {
		return err
	}
	if alerted != "" {
		return errAlreadyMatched()
	}
	patient, err := collections.FindReceivingPatient(tx, patientID)
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
	return fault.State("invalid_state", "The event is known to be this patient's: confirm or discard its values.")
}

func (e *Pipeline) alertImplausible(tx core.App, stored *collections.GatewayEvent, event gateway.Event, patientID string, now time.Time) error {
	wrong, err := isClockWrong(tx, event, patientID)
	if err != nil {
		return err
	}
	if !wrong { // a dead clock says the same time again and again
		if decided, err := e.applyEarlierDecision(tx, stored, event, patientID, now); err != nil || decided {
			return err
		}
	}
	c := implausibleReading{eventID: stored.Id, patientID: patientID, Implausible: *event.Implausible, origin: sourceOrigin(EventSource(stored)), wrongClock: wrong}
	if err := stored.SetImplausible(tx); err != nil { // of what was stored before anybody looked for it
		return err
	}
	if c.hasFutureClock() {
		c.Reading.MeasuredAt = stored.ReceivedAt() // the first time
		return e.alertFutureClock(tx, c, now)
	}
	return e.raiseAndRank(tx, c, now)
}

// alertDecision is what people are to hear of a claim, decided and not yet written.
type alertDecision struct {
	draft alerts.Draft
	// stat: a value lies beyond a critical bound. known: what was measured since speaks for itself.
	stat, superseded bool
}

// isSuperseded reports whether all that alarms in a late claim was measured since, as readings know it: by something at least as reliable,
// group by group. Source: docs/decisions/alerts.md, "Late readings".
func (c implausibleReading) isSuperseded(tx core.App, t alerts.Thresholds) (over bool, err error) {
	var alarming [][]*vitals.Parameter
	for _, group := range c.Reading.Kind.Definition().Groups {
		if slices.ContainsFunc(group, func(p *vitals.Parameter) bool { return c.isAlarmingValue(p, t) }) {
			alarming = append(alarming, group)
		}
	}
	return HasNewerReadings(tx, c.patientID, alarming, c.Reading.MeasuredAt, c.origin)
}

// isAlarmingValue reports whether the value of a parameter is implausible, or beyond a critical bound beside one that is.
func (c implausibleReading) isAlarmingValue(p *vitals.Parameter, t alerts.Thresholds) bool {
	value := c.Reading.Value(p)
	return value != nil && (slices.Contains(c.Outside, p) || t.Alarms(p, *value))
}

// decideAlert decides what an implausible measurement means; known says that what was measured since speaks for itself. It touches nothing.
func (c implausibleReading) decideAlert(snapshot triage.Picture, late, superseded bool) alertDecision {
	finding, critical := c.finding(snapshot.Thresholds)
	if late && !c.wrongClock {
		finding.Date(c.Reading.MeasuredAt)
	}
	if c.hasFutureClock() {
		finding.Message = c.findingText(snapshot) + finding.Message
	}
	if change, found := c.criticalChange(snapshot); found {
		finding.Parameter, finding.Value, finding.Threshold, critical = change.Parameter, change.Value, change.Threshold, true
	}
	n := alertDecision{stat: critical, draft: alerts.Draft{
		PatientID: c.patientID, Finding: finding, MeasuredAt: c.Reading.MeasuredAt, Origin: c.origin,
		ReportedValues: c.reportedValues(), QuarantineID: c.eventID, Late: c.wrongClock || late,
	}}
	if n.draft.Late {
		n.stat, n.superseded, n.draft.Superseded = false, superseded, superseded
	}
	return n
}

// reportedValues are all that were reported, by field.
func (c implausibleReading) reportedValues() phi.Text {
	reported := map[string]float64{}
	for _, p := range vitals.Parameters {
		if value := c.Reading.Value(p); value != nil {
			reported[p.Column] = *value
		}
	}
	encoded, _ := json.Marshal(reported) // finite numbers by name always have a form
	return phi.Text(encoded)
}

// raiseAndRank stores the alert of a claim, the stat escalation where there has to be one, and where the patient ranks now.
func (e *Pipeline) raiseAndRank(tx core.App, c implausibleReading, now time.Time) error {
	return triage.Change(tx, now, func(tx core.App) (string, error) {
		snapshot, err := triage.ReadPicture(tx, c.patientID, nil, now)
		if err != nil {
			return "", err
		}
		c.isMinor = snapshot.Minor != nil
		return c.patientID, e.raiseAlert(tx, c, snapshot, now)
	})
}

// raiseAlert stores and tells the alert of a claim, and opens the escalation.
func (e *Pipeline) raiseAlert(tx core.App, c implausibleReading, snapshot triage.Picture, now time.Time) (err error) {
	late, superseded := e.Evaluator.IsLate(c.Reading.MeasuredAt, now), false
	if late && !c.wrongClock {
		if superseded, err = c.isSuperseded(tx, snapshot.Thresholds); err != nil {
			return err
		}
	}
	n := c.decideAlert(snapshot, late, superseded)
	if gathered, err := e.mergeIntoAlert(tx, c, n, snapshot, now); err != nil || gathered {
		return err
	}
	id, err := alerts.Raise(tx, n.draft, now)
	if err != nil {
		return err
	}
	if n.superseded {
		if err := alerts.NoteAutoResolved(tx, collections.EndedAlert{ID: id, PatientID: c.patientID}, now); err != nil {
			return err
		}
	}
	if c.wrongClock { // nobody is called for it but for the clock
		return devices.NoteWrongClock(tx, c.Reading, c.patientID, now)
	}
	label, err := collections.PatientLabel(tx, c.patientID)
	if err != nil {
		return err
	}
	if n.stat {
		if n.draft.Worse, err = c.isWorse(tx, snapshot, now); err != nil {
			return err
		}
		if err := openOrJoinEscalation(tx, snapshot, n.draft, id, label, now); err != nil {
			return err
		}
	}
	return n.announce(tx, id, label, now)
}

// isWorse reports whether a claim is about more than what people have heard of as critical.
func (c implausibleReading) isWorse(tx core.App, snapshot triage.Picture, now time.Time) (bool, error) {
	lastNotified, err := triage.Told(tx, snapshot, now)
	if _, open := snapshot.OpenBySystem(); err != nil || !open && len(lastNotified) == 0 {
		return false, err
	}
	var values []alerts.Reported
	for _, p := range vitals.Watched {
		if value := c.Reading.Value(p); value != nil {
			values = append(values, alerts.Reported{Of: p, Value: *value})
		}
	}
	change, found := c.criticalChange(snapshot)
	return found && alerts.WorseChange(change, lastNotified) || alerts.WorseReported(values, snapshot.Thresholds, lastNotified), nil
}

// announce has people told of an alert, in the app only where it is over already.
func (n alertDecision) announce(tx core.App, alertID, label string, now time.Time) error {
	announcement := notifications.Announcement{
		Kind: notifications.AlertRaised, Severity: string(n.draft.Finding.Level), PatientID: n.draft.PatientID, AlertID: alertID,
		Body: label + ": " + n.draft.Finding.Message, Key: alerts.AnnouncementKey(alertID), AtOnce: n.draft.Worse,
	}
	if n.superseded {
		announcement.Kind, announcement.Key = notifications.ReadingSuperseded, announcement.Key+" superseded"
	}
	return notifications.Announce(tx, announcement, now)
}

// openOrJoinEscalation opens the stat escalation of an alert, or has the alert join the one that the system has open, as for a critical reading.
// Source: docs/decisions/alerts.md, "STAT-severity alert".
func openOrJoinEscalation(tx core.App, snapshot triage.Picture, draft alerts.Draft, alertID, label string, now time.Time) error {
	assignee, err := collections.ActiveProviderEmail(tx, draft.PatientID)
	if err != nil {
		return err
	}
	id, opened, err := escalations.OpenBySystem(tx, escalations.Draft{
		PatientID: draft.PatientID, Priority: escalations.Stat, Reason: phi.Text(draft.Finding.Message), AssignedTo: assignee, AlertID: alertID,
	}, now)
	if err != nil {
		return err
	}
	key, why := "escalation "+id, draft.Finding.Message
	if !opened {
		again, worse := draft.Worse, phi.Text("")
		if draft.Worse {
			worse = phi.Text(draft.Finding.Message)
		}
		for _, active := range snapshot.Escalations {
			again = again || (active.ID == id && active.Renotify(now))
		}
		joined := escalations.JoinedBy(worse)
		if err := escalations.Join(tx, id, again, joined, now); err != nil || !again {
			return err
		}
		key, why = key+" joined "+collections.Instant(now), joined.Reveal()
	}
	return notifications.Announce(tx, notifications.Announcement{
		Kind: notifications.EscalationOpened, Severity: string(alerts.Critical), PatientID: draft.PatientID, EscalationID: id, AlertID: alertID,
		Body: label + ", stat: " + why, Key: key,
	}, now)
}

// retractAlerts does what follows when an implausible measurement is discarded: nothing was measured, so its alerts, what of an escalation came of
// them and what they weighed are taken back.
func (e *Pipeline) retractAlerts(tx core.App, event *collections.GatewayEvent, reason phi.Text, by audit.Actor, now time.Time) error {
	raised, err := collections.AlertsOfQuarantine(tx, event.Id)
	if err != nil || len(raised) == 0 {
		return err
	}
	return triage.Change(tx, now, func(tx core.App) (string, error) {
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
			if !ended { // the alert changes all the same: it counts for nothing any more
				if err := alerts.NoteWithdrawn(tx, alert, reason, by, now); err != nil {
					return "", err
				}
			}
			if err := alert.Withdraw(tx, alerts.ReasonWithdrawn, now); err != nil {
				return "", err
			}
		}
		return raised[0].PatientID(), escalations.TakeBack(tx, retracted, "implausible measurement was discarded", by, now)
	})
}

// resolveAlert ends an alert that is not over, and reports whether it did.
func resolveAlert(tx core.App, alert *collections.Alert, outcome string, notes phi.Text, by audit.Actor, now time.Time) (bool, error) {
	if _, err := alerts.Next(alerts.Status(alert.Status()), alerts.Resolve); err != nil {
		return false, nil //nolint:nilerr // it is over already
	}
	return true, alerts.Act(tx, alert, alerts.Action{Move: alerts.Resolve, Outcome: outcome, Notes: notes}, by, now)
}

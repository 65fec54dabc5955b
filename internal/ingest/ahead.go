package ingest

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/internal/notifications"

	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// What a device says of the future is refused, as the contract has it, and was measured all the same: not before it came, and mostly just
// then. So it is kept as what is implausible is, with the time of receipt, people hear of the clock and what it said, and what is dangerous is
// told as loudly as if the clock were right. Source: docs/decisions/devices.md, "Future clock".

// hasFutureClock reports whether the device's clock is.
func (c implausibleReading) hasFutureClock() bool { return !c.Ahead.IsZero() }

// alertFutureClock has people told of what a device said of the future.
func (e *Pipeline) alertFutureClock(tx core.App, c implausibleReading, now time.Time) error {
	if err := collections.NotePatientOf(tx, c.eventID, c.patientID); err != nil {
		return err
	}
	return triage.Change(tx, now, func(tx core.App) (string, error) {
		snapshot, err := triage.ReadPicture(tx, c.patientID, &c.Reading, now)
		if err != nil {
			return "", err
		}
		c.isMinor = snapshot.Minor != nil
		c.isSuspect = e.Evaluator.IsSuspect(c.Reading, c.origin, snapshot)
		if c.isAlarming(snapshot, now) {
			if err := e.raiseAlert(tx, c, snapshot, now); err != nil {
				return "", err
			}
		}
		if err := e.updateClockAlert(tx, c, snapshot, now); err != nil {
			return "", err
		}
		return c.patientID, collections.NoteClockAhead(tx, c.Reading.DeviceID, string(c.Reading.Kind), c.patientID, now)
	})
}

// isAlarming: somebody has to hear of the values now, whatever the clock says. What a snooze keeps quiet of a right clock it keeps quiet here.
func (c implausibleReading) isAlarming(snapshot triage.Picture, now time.Time) bool {
	return len(c.Outside) > 0 || slices.ContainsFunc(c.breachedFindings(snapshot), func(f alerts.Finding) bool {
		suppressed, _ := alerts.Quiet(snapshot.Snoozes, f, c.Reading, snapshot.Thresholds, now)
		return f.Level == alerts.Critical && !suppressed
	})
}

// breachedFindings are what the values mean by the patient's bounds, as of when they came. What may be somebody else's means nothing yet.
func (c implausibleReading) breachedFindings(snapshot triage.Picture) (list []alerts.Finding) {
	if c.isSuspect {
		return nil
	}
	for _, finding := range alerts.Evaluate(c.Reading, snapshot.Thresholds, snapshot.Weighings) {
		if finding.Breached() {
			list = append(list, finding)
		}
	}
	return list
}

// findingText is what the values mean, in words that others follow.
func (c implausibleReading) findingText(snapshot triage.Picture) string {
	var words strings.Builder
	for _, finding := range c.breachedFindings(snapshot) {
		words.WriteString(finding.Message + " ")
	}
	return words.String()
}

// criticalChange is what is critical of values in range that are watched for changes.
func (c implausibleReading) criticalChange(snapshot triage.Picture) (alerts.Finding, bool) {
	if !c.hasFutureClock() || len(c.Outside) > 0 {
		return alerts.Finding{}, false
	}
	list := c.breachedFindings(snapshot)
	i := slices.IndexFunc(list, func(f alerts.Finding) bool {
		return f.Level == alerts.Critical && c.Reading.Kind.Definition().Main().Change != nil
	})
	if i < 0 {
		return alerts.Finding{}, false
	}
	return list[i], true
}

// severity orders what came from a clock that is ahead: what breaches nothing, warnings, what is critical, each by how far it is beyond its
// bound.
func (c implausibleReading) severity(snapshot triage.Picture) (worst float64) {
	for _, finding := range c.breachedFindings(snapshot) {
		beyond := math.Abs(finding.Value-finding.Threshold) / max(math.Abs(finding.Threshold), 1)
		severity := 1 + beyond/(1+beyond)
		if finding.Level == alerts.Critical {
			severity++
		}
		worst = max(worst, severity)
	}
	return worst
}

// updateClockAlert keeps one alert open about the clock of a device, with the worst of what it said that is told nowhere else: what is worse takes
// the place of what the open one shows.
func (e *Pipeline) updateClockAlert(tx core.App, c implausibleReading, snapshot triage.Picture, now time.Time) error {
	open, err := openClockAlerts(tx, c.Reading.DeviceID, c.patientID)
	if err != nil {
		return err
	}
	for _, alert := range open {
		shown, waits, err := e.shownSeverity(tx, alert, snapshot, now)
		if err != nil {
			return err
		}
		if waits && (c.isAlarming(snapshot, now) || c.severity(snapshot) <= shown) {
			return nil
		}
	}
	for _, alert := range open {
		if err := supersedeAlert(tx, alert, now); err != nil {
			return err
		}
	}
	return c.raiseClockAlert(tx, snapshot, now)
}

// openClockAlerts are the open alerts about a clock that was ahead, of a device and patient. One about a dead clock tells of another fault.
func openClockAlerts(tx core.App, deviceID, patientID string) ([]*collections.Alert, error) {
	open, err := collections.OpenClockAlerts(tx, deviceID, patientID, alerts.TypeDeviceClock)
	return slices.DeleteFunc(open, func(a *collections.Alert) bool { return a.QuarantineID() == "" }), err
}

// isPending reports whether a kept event waits for somebody.
func isPending(tx core.App, eventID string) bool {
	stored, err := FindQuarantined(tx, eventID)
	return err == nil && checkPending(stored) == nil
}

// shownSeverity is the severity of what an alert about a clock shows, and whether that still waits for somebody: what was decided or judged since keeps
// nothing quiet.
func (e *Pipeline) shownSeverity(tx core.App, alert *collections.Alert, snapshot triage.Picture, now time.Time) (severity float64, pending bool, err error) {
	other, snapshot, readable, err := e.pendingFutureReading(tx, alert.QuarantineID(), alert.PatientID(), snapshot, now)
	if err != nil || !readable {
		return 0, false, err
	}
	return other.severity(snapshot), true, nil
}

// pendingFutureReading is what a kept event of a clock that is ahead claims, with what the patient's other values make of it, as when it came; not readable:
// nothing of it waits, or it cannot be read.
func (e *Pipeline) pendingFutureReading(
	tx core.App, eventID, patientID string, snapshot triage.Picture, now time.Time,
) (c implausibleReading, readingSnapshot triage.Picture, readable bool, err error) {
	if c, readingSnapshot, readable, err = e.pendingReading(tx, eventID, patientID, snapshot, now); c.Ahead.IsZero() {
		readable = false
	}
	return c, readingSnapshot, readable, err
}

// pendingReading is what a kept event claims that waits for somebody.
func (e *Pipeline) pendingReading(
	tx core.App, eventID, patientID string, snapshot triage.Picture, now time.Time,
) (c implausibleReading, readingSnapshot triage.Picture, readable bool, err error) {
	if eventID == "" {
		return c, snapshot, false, nil
	}
	stored, err := FindQuarantined(tx, eventID)
	if err != nil || checkPending(stored) != nil {
		return c, snapshot, false, nil //nolint:nilerr // what cannot be opened hides nothing else
	}
	event, err := e.parseImplausible(stored)
	if err != nil {
		return c, snapshot, false, nil //nolint:nilerr // the same
	}
	c = implausibleReading{eventID: eventID, patientID: patientID, Implausible: *event.Implausible, origin: sourceOrigin(EventSource(stored)), isMinor: snapshot.Minor != nil}
	if !c.hasFutureClock() {
		c.wrongClock, err = isClockWrong(tx, event, patientID)
		return c, snapshot, err == nil, err
	}
	c.Reading.MeasuredAt = stored.ReceivedAt()
	if err := snapshot.Weigh(tx, &c.Reading, now); err != nil {
		return c, snapshot, false, err
	}
	c.isSuspect = e.Evaluator.IsSuspect(c.Reading, c.origin, snapshot)
	return c, snapshot, true, nil
}

// raiseClockAlert tells of a clock with all that it said at once.
func (c implausibleReading) raiseClockAlert(tx core.App, snapshot triage.Picture, now time.Time) error {
	finding, _ := c.finding(snapshot.Thresholds)
	message := c.findingText(snapshot) + finding.Message
	id, err := alerts.Raise(tx, alerts.Draft{
		PatientID: c.patientID, DeviceID: c.Reading.DeviceID, MeasuredAt: c.Reading.MeasuredAt, Origin: c.origin, Unmeasured: true,
		ReportedValues: c.reportedValues(), QuarantineID: c.eventID,
		Finding: alerts.Finding{Type: alerts.TypeDeviceClock, Level: alerts.Warning, Parameter: "measured_at", Message: message},
	}, now)
	if err != nil {
		return err
	}
	return notifications.Announce(tx, notifications.Announcement{
		Kind: notifications.DeviceAlertRaised, Severity: string(alerts.Warning), PatientID: c.patientID, AlertID: id, Body: message,
		Key: alerts.TypeDeviceClock + "/" + id,
	}, now)
}

// supersedeAlert ends an alert, because what it tells is told otherwise from now on.
func supersedeAlert(tx core.App, alert *collections.Alert, now time.Time) error {
	if ended, err := collections.EndAlert(tx, alert.Id, string(alerts.StatusAutoResolved), alerts.System, now); err != nil || !ended {
		return err
	}
	if err := alert.Withdraw(tx, alerts.ReasonSuperseded, now); err != nil {
		return err
	}
	return alerts.NoteAutoResolved(tx, collections.EndedAlert{ID: alert.Id, PatientID: alert.PatientID()}, now)
}

// maxClockEvents bounds how many events of one device are looked at anew.
const maxClockEvents = 200

// alertNextPending tells of the worst that still waits of a device whose clock is ahead, once somebody has decided about what was told.
func (e *Pipeline) alertNextPending(tx core.App, decided gateway.Event, patientID string, now time.Time) error {
	if decided.Implausible == nil || decided.Implausible.Ahead.IsZero() {
		return nil
	}
	open, err := openClockAlerts(tx, decided.DeviceID, patientID)
	if err != nil || slices.ContainsFunc(open, func(a *collections.Alert) bool { return isPending(tx, a.QuarantineID()) }) {
		return err
	}
	pending, err := collections.EventsAhead(tx, decided.DeviceID, patientID, maxClockEvents)
	if err != nil || len(pending) == 0 {
		return err
	}
	return triage.Change(tx, now, func(tx core.App) (string, error) {
		snapshot, err := triage.ReadPicture(tx, patientID, &decided.Implausible.Reading, now)
		if err != nil {
			return "", err
		}
		worst, readingSnapshot, err := e.worstPending(tx, pending, patientID, snapshot, now)
		if err != nil || worst == nil {
			return "", err
		}
		for _, alert := range open { // what they show is a reading by now
			if err := supersedeAlert(tx, alert, now); err != nil {
				return "", err
			}
		}
		if err := e.raiseDeferred(tx, *worst, readingSnapshot, now); err != nil {
			return "", err
		}
		return patientID, worst.raiseClockAlert(tx, readingSnapshot, now)
	})
}

// raiseDeferred tells of what is dangerous by now and was not when it came, because it was in doubt or snoozed.
func (e *Pipeline) raiseDeferred(tx core.App, c implausibleReading, snapshot triage.Picture, now time.Time) error {
	if !c.isAlarming(snapshot, now) {
		return nil
	}
	raised, err := collections.AlertsOfQuarantine(tx, c.eventID)
	alreadyRaised := slices.ContainsFunc(raised, func(a *collections.Alert) bool { return a.Type() == alerts.TypeImplausibleReading })
	if err != nil || alreadyRaised {
		return err
	}
	return e.raiseAlert(tx, c, snapshot, now)
}

// worstPending is what is worst among kept events of a clock that is ahead, the newest of equally severe ones, with the picture to judge it by; nil
// where nothing of them waits.
func (e *Pipeline) worstPending(
	tx core.App, pending []string, patientID string, snapshot triage.Picture, now time.Time,
) (worst *implausibleReading, readingSnapshot triage.Picture, err error) {
	var severity float64
	for _, id := range pending {
		c, weighed, readable, err := e.pendingFutureReading(tx, id, patientID, snapshot, now)
		if err != nil {
			return nil, readingSnapshot, err
		}
		if readable && (worst == nil || c.severity(weighed) > severity) {
			worst, readingSnapshot, severity = &c, weighed, c.severity(weighed)
		}
	}
	return worst, readingSnapshot, nil
}

// isRedelivery reports whether a gateway's reading that is stored came again, whole: what was to be decided the first time may not have been.
func (v classification) isRedelivery(event gateway.Event) bool {
	o := v.outcome.Observation
	return v.status == Duplicate && o.Source == vitals.SourceGateway && !o.EnteredInError && event.Implausible == nil && len(event.LeftOut) == 0
}

// reconcileRedelivery decides about a measurement that was refused, is in the quarantine, and has been taken since, because its time has come: the reading speaks for
// itself, and says nothing good of the clock. What somebody has discarded stays so.
func (e *Pipeline) reconcileRedelivery(app core.App, event gateway.Event, v classification, d Delivery) error {
	quarantined, err := collections.FindGatewayEvent(app, gateway.BodyID(d.Vendor, d.Body))
	if collections.Missing(err) || err == nil && !quarantined.Implausible() {
		return nil
	}
	if err != nil {
		return err
	}
	return app.RunInTransaction(func(tx core.App) error {
		if err := collections.NoteClockStillAhead(tx, event.DeviceID, event.At); err != nil {
			return err
		}
		if quarantined.Status() == collections.EventDiscarded {
			o, err := e.Evaluator.Retract(tx, v.outcome.Observation.ID, "The same measurement was discarded.", audit.System(), d.At)
			if err != nil || e.RecheckBilling == nil {
				return err
			}
			return e.RecheckBilling(tx, o.PatientID, o.Reading.MeasuredAt, d.At)
		}
		if quarantined.Status() != collections.EventRejected || event.Implausible != nil || len(event.LeftOut) > 0 {
			return nil // values that are not in the reading go on waiting for somebody
		}
		raised, err := collections.AlertsOfQuarantine(tx, quarantined.Id)
		if err != nil {
			return err
		}
		err = triage.Change(tx, d.At, func(tx core.App) (string, error) {
			for _, alert := range raised {
				if alert.Type() == alerts.TypeDeviceClock {
					continue // it is about the clock
				}
				if kept, err := e.removeFromAlert(tx, alert, quarantined.Id, d.At); err != nil {
					return "", err
				} else if kept {
					continue
				}
				if err := supersedeAlert(tx, alert, d.At); err != nil {
					return "", err
				}
			}
			return v.patient, nil
		})
		if err != nil {
			return err
		}
		if err := collections.NoteReadingOf(tx, quarantined.Id, v.outcome.Observation.ID); err != nil {
			return err
		}
		if err := closeEvent(tx, quarantined, closure{status: collections.EventReleased, observation: v.outcome.Observation.ID, patient: v.patient}, d.By, d.At); err != nil {
			return err
		}
		reported, err := e.parseImplausible(quarantined)
		if err != nil {
			return nil //nolint:nilerr // nothing in it was kept for its clock
		}
		return e.alertNextPending(tx, reported, v.patient, d.At)
	})
}

// completesStored reports whether the rest of what a clock that is ahead said is a reading of the patient's, because its time has come, and what is
// missing there: once confirmed it completes that one, so that nothing is measured twice.
func completesStored(tx core.App, event gateway.Event, patientID string) (stored bool, missing vitals.Reading, err error) {
	if event.Implausible.Ahead.IsZero() || len(event.Implausible.Outside) == 0 {
		return false, missing, nil
	}
	record, err := collections.FindObservationByGatewayKey(tx, event.Key())
	if err != nil {
		return false, missing, ignoreMissing(err)
	}
	o := ObservationFromRecord(record)
	_, fits := o.Reading.Add(event.Implausible.Reading)
	return fits && o.PatientID == patientID && !o.EnteredInError, event.Implausible.Reading.Beyond(o.Reading), nil
}

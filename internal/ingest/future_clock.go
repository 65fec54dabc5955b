package ingest

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/triage"
)

// A measurement with a time in the future is rejected, as the contract requires, but its values were measured. The event is quarantined
// like an implausible one, with the time of receipt; one alert reports the clock and the worst values, and dangerous values alert as if the
// clock were right. Source: docs/decisions/devices.md, "Future clock".

// hasFutureClock reports whether the device has a future clock.
func (c implausibleReading) hasFutureClock() bool { return !c.Ahead.IsZero() }

// alertFutureClock raises the alerts for a measurement from a future clock.
func (e *Pipeline) alertFutureClock(tx core.App, c implausibleReading, now time.Time) error {
	if err := collections.SetEventPatient(tx, c.eventID, c.patientID); err != nil {
		return err
	}
	return triage.UpdateAndRescore(tx, now, func(tx core.App) (string, error) {
		snapshot, err := triage.ReadSnapshot(tx, c.patientID, &c.Reading, now)
		if err != nil {
			return "", err
		}
		c.isMinor = snapshot.Minor != nil
		c.isSuspect = e.Readings.IsSuspect(c.Reading, c.origin, snapshot)
		if c.isAlarming(snapshot, now) {
			if err := e.raiseAlert(tx, c, snapshot, now); err != nil {
				return "", err
			}
		}
		if err := e.updateClockAlert(tx, c, snapshot, now); err != nil {
			return "", err
		}
		return c.patientID, collections.RecordFutureClock(tx, c.Reading.DeviceID, string(c.Reading.Kind), c.patientID, now)
	})
}

// isAlarming reports whether the values need an alert of their own. A snooze suppresses them as it does for a right clock.
func (c implausibleReading) isAlarming(snapshot triage.PatientSnapshot, now time.Time) bool {
	return len(c.OutOfRange) > 0 || slices.ContainsFunc(c.breachedFindings(snapshot), func(f alerts.Finding) bool {
		suppressed, _ := alerts.SuppressedBy(snapshot.Snoozes, f, c.Reading, snapshot.Thresholds, now)
		return f.Level == alerts.Critical && !suppressed
	})
}

// breachedFindings returns the findings beyond the patient's bounds, as of receipt; none for a suspect reading.
func (c implausibleReading) breachedFindings(snapshot triage.PatientSnapshot) (list []alerts.Finding) {
	if c.isSuspect {
		return nil
	}
	for _, finding := range alerts.Evaluate(c.Reading, snapshot.Thresholds, snapshot.Baseline) {
		if finding.Breached() {
			list = append(list, finding)
		}
	}
	return list
}

// findingText returns the messages of the breached findings, each followed by a space.
func (c implausibleReading) findingText(snapshot triage.PatientSnapshot) string {
	var words strings.Builder
	for _, finding := range c.breachedFindings(snapshot) {
		words.WriteString(finding.Message + " ")
	}
	return words.String()
}

// criticalChange returns the critical finding of a value in range that is watched for changes.
func (c implausibleReading) criticalChange(snapshot triage.PatientSnapshot) (alerts.Finding, bool) {
	if !c.hasFutureClock() || len(c.OutOfRange) > 0 {
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

// severity orders readings of a future clock: no breach, warnings, critical; each by the relative distance beyond its bound.
func (c implausibleReading) severity(snapshot triage.PatientSnapshot) (worst float64) {
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

// updateClockAlert keeps one alert open for a device's future clock, showing the worst values that have no alert of their own: worse values
// supersede it.
func (e *Pipeline) updateClockAlert(tx core.App, c implausibleReading, snapshot triage.PatientSnapshot, now time.Time) error {
	open, err := openClockAlerts(tx, c.Reading.DeviceID, c.patientID)
	if err != nil {
		return err
	}
	for _, alert := range open {
		shown, pending, err := e.shownSeverity(tx, alert, snapshot, now)
		if err != nil {
			return err
		}
		if pending && (c.isAlarming(snapshot, now) || c.severity(snapshot) <= shown) {
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

// openClockAlerts returns the open alerts about a future clock. Alerts about a wrong clock have no quarantined event and are
// excluded.
func openClockAlerts(tx core.App, deviceID, patientID string) ([]*collections.Alert, error) {
	open, err := collections.OpenClockAlerts(tx, deviceID, patientID, alerts.TypeDeviceClock)
	return slices.DeleteFunc(open, func(a *collections.Alert) bool { return a.QuarantineID() == "" }), err
}

// isPending reports whether a quarantined event is still pending.
func isPending(tx core.App, eventID string) bool {
	stored, err := FindQuarantined(tx, eventID)
	return err == nil && checkPending(stored) == nil
}

// shownSeverity returns the severity of the values that a clock alert shows, and whether its event is still pending.
func (e *Pipeline) shownSeverity(tx core.App, alert *collections.Alert, snapshot triage.PatientSnapshot, now time.Time) (severity float64, pending bool, err error) {
	other, snapshot, readable, err := e.pendingFutureReading(tx, alert.QuarantineID(), alert.PatientID(), snapshot, now)
	if err != nil || !readable {
		return 0, false, err
	}
	return other.severity(snapshot), true, nil
}

// pendingFutureReading is [Pipeline.pendingReading] for events of a future clock.
func (e *Pipeline) pendingFutureReading(
	tx core.App, eventID, patientID string, snapshot triage.PatientSnapshot, now time.Time,
) (c implausibleReading, readingSnapshot triage.PatientSnapshot, readable bool, err error) {
	if c, readingSnapshot, readable, err = e.pendingReading(tx, eventID, patientID, snapshot, now); c.Ahead.IsZero() {
		readable = false
	}
	return c, readingSnapshot, readable, err
}

// pendingReading returns the implausible reading of a pending event, with the patient snapshot to evaluate it by as of receipt; readable is
// false if the event is closed or cannot be read.
func (e *Pipeline) pendingReading(
	tx core.App, eventID, patientID string, snapshot triage.PatientSnapshot, now time.Time,
) (c implausibleReading, readingSnapshot triage.PatientSnapshot, readable bool, err error) {
	if eventID == "" {
		return c, snapshot, false, nil
	}
	stored, err := FindQuarantined(tx, eventID)
	if err != nil || checkPending(stored) != nil {
		return c, snapshot, false, nil //nolint:nilerr // an unreadable event must not hide the others
	}
	event, err := e.parseImplausible(stored)
	if err != nil {
		return c, snapshot, false, nil //nolint:nilerr // as above
	}
	c = implausibleReading{eventID: eventID, patientID: patientID, Implausible: *event.Implausible, origin: sourceOrigin(EventSource(stored)), isMinor: snapshot.Minor != nil}
	if !c.hasFutureClock() {
		c.wrongClock, err = isWrongClock(tx, event, patientID)
		return c, snapshot, err == nil, err
	}
	c.Reading.MeasuredAt = stored.ReceivedAt()
	if err := snapshot.ReloadBaseline(tx, &c.Reading, now); err != nil {
		return c, snapshot, false, err
	}
	c.isSuspect = e.Readings.IsSuspect(c.Reading, c.origin, snapshot)
	return c, snapshot, true, nil
}

// raiseClockAlert raises the alert about a future clock, with all values of the reading.
func (c implausibleReading) raiseClockAlert(tx core.App, snapshot triage.PatientSnapshot, now time.Time) error {
	finding, _ := c.finding(snapshot.Thresholds)
	message := c.findingText(snapshot) + finding.Message
	id, err := alerts.Raise(tx, alerts.Draft{
		PatientID: c.patientID, DeviceID: c.Reading.DeviceID, MeasuredAt: c.Reading.MeasuredAt, Origin: c.origin, WithoutValue: true,
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

// supersedeAlert resolves an alert that another one replaces.
func supersedeAlert(tx core.App, alert *collections.Alert, now time.Time) error {
	if ended, err := collections.ResolveAlert(tx, alert.Id, string(alerts.StatusAutoResolved), alerts.System, now); err != nil || !ended {
		return err
	}
	if err := alert.Retract(tx, alerts.ReasonSuperseded, now); err != nil {
		return err
	}
	return alerts.AuditAutoResolved(tx, collections.ResolvedAlert{ID: alert.Id, PatientID: alert.PatientID()}, now)
}

// maxClockEvents bounds how many events of one device are read again.
const maxClockEvents = 200

// alertNextPending raises the alert for the worst event still pending of a device with a future clock, after a person decided about the
// one that was shown.
func (e *Pipeline) alertNextPending(tx core.App, decided gateway.Event, patientID string, now time.Time) error {
	if decided.Implausible == nil || decided.Implausible.Ahead.IsZero() {
		return nil
	}
	open, err := openClockAlerts(tx, decided.DeviceID, patientID)
	if err != nil || slices.ContainsFunc(open, func(a *collections.Alert) bool { return isPending(tx, a.QuarantineID()) }) {
		return err
	}
	pending, err := collections.FutureEvents(tx, decided.DeviceID, patientID, maxClockEvents)
	if err != nil || len(pending) == 0 {
		return err
	}
	return triage.UpdateAndRescore(tx, now, func(tx core.App) (string, error) {
		snapshot, err := triage.ReadSnapshot(tx, patientID, &decided.Implausible.Reading, now)
		if err != nil {
			return "", err
		}
		worst, readingSnapshot, err := e.worstPending(tx, pending, patientID, snapshot, now)
		if err != nil || worst == nil {
			return "", err
		}
		for _, alert := range open { // their events are stored readings now
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

// raiseDeferred raises an alert that was suppressed on arrival (suspect or snoozed) and is due now.
func (e *Pipeline) raiseDeferred(tx core.App, c implausibleReading, snapshot triage.PatientSnapshot, now time.Time) error {
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

// worstPending returns the most severe of the pending events of a future clock, the newest of equals, with the snapshot to evaluate it by;
// nil if none is pending.
func (e *Pipeline) worstPending(
	tx core.App, pending []string, patientID string, snapshot triage.PatientSnapshot, now time.Time,
) (worst *implausibleReading, readingSnapshot triage.PatientSnapshot, err error) {
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

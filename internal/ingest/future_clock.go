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

// isEvaluated reports whether values in range are evaluated now. Others wait until a person confirms them.
func (r quarantinedReading) isEvaluated() bool {
	return r.doubt == futureClock || r.doubt == unreadable
}

// needsOwnAlert reports whether the values need an alert of their own. A snooze suppresses them as it does for a right clock.
func (r quarantinedReading) needsOwnAlert(now time.Time) bool {
	return len(r.OutOfRange) > 0 || slices.ContainsFunc(r.breachedFindings(), func(f alerts.Finding) bool {
		suppressed, _ := alerts.SuppressedBy(r.snapshot.Snoozes, f, r.Reading, r.snapshot.Thresholds, now)
		return f.Level == alerts.Critical && !suppressed
	})
}

// breachedFindings returns the findings beyond the patient's bounds, as of receipt; none for a suspect reading, or one that is not evaluated
// yet.
func (r quarantinedReading) breachedFindings() (list []alerts.Finding) {
	if r.isSuspect || !r.isEvaluated() {
		return nil
	}
	for _, finding := range alerts.Evaluate(r.Reading, r.snapshot.Thresholds, r.snapshot.Baseline) {
		if finding.Breached() {
			list = append(list, finding)
		}
	}
	return list
}

// findingText returns the messages of the breached findings, each followed by a space.
func (r quarantinedReading) findingText() string {
	var words strings.Builder
	for _, finding := range r.breachedFindings() {
		words.WriteString(finding.Message + " ")
	}
	return words.String()
}

// criticalChange returns the critical finding of a value in range that is watched for changes.
func (r quarantinedReading) criticalChange() (alerts.Finding, bool) {
	if !r.isEvaluated() || len(r.OutOfRange) > 0 {
		return alerts.Finding{}, false
	}
	list := r.breachedFindings()
	i := slices.IndexFunc(list, func(f alerts.Finding) bool {
		return f.Level == alerts.Critical && r.Reading.Kind.Definition().Main().Change != nil
	})
	if i < 0 {
		return alerts.Finding{}, false
	}
	return list[i], true
}

// severity orders readings of a future clock: no breach, warnings, critical; each by the relative distance beyond its bound.
func (r quarantinedReading) severity() (worst float64) {
	for _, finding := range r.breachedFindings() {
		beyond := math.Abs(finding.Value-finding.Threshold) / max(math.Abs(finding.Threshold), 1)
		severity := 1 + beyond/(1+beyond)
		if finding.Level == alerts.Critical {
			severity++
		}
		worst = max(worst, severity)
	}
	return worst
}

// updateFutureClockAlert keeps one alert open for a device's future clock, showing the worst values that have no alert of their own: worse values
// supersede it.
func (e *Pipeline) updateFutureClockAlert(tx core.App, c quarantinedReading, now time.Time) error {
	open, err := openFutureClockAlerts(tx, c.Reading.DeviceID, c.patientID)
	if err != nil {
		return err
	}
	for _, alert := range open {
		shown, err := e.pendingReading(tx, alert.QuarantineID(), alert.PatientID(), c.snapshot, now)
		if err != nil {
			return err
		}
		if shown != nil && shown.doubt == futureClock && (c.needsOwnAlert(now) || c.severity() <= shown.severity()) {
			return nil
		}
	}
	for _, alert := range open {
		if err := supersedeAlert(tx, alert, now); err != nil {
			return err
		}
	}
	return c.raiseFutureClockAlert(tx, now)
}

// openFutureClockAlerts returns the open alerts about a future clock. Alerts about doubtful times have no quarantined event and are
// excluded.
func openFutureClockAlerts(tx core.App, deviceID, patientID string) ([]*collections.Alert, error) {
	open, err := collections.OpenClockAlerts(tx, deviceID, patientID, alerts.TypeDeviceClock)
	return slices.DeleteFunc(open, func(a *collections.Alert) bool { return a.QuarantineID() == "" }), err
}

// isPending reports whether a quarantined event is still pending.
func isPending(tx core.App, eventID string) bool {
	stored, err := FindQuarantined(tx, eventID)
	return err == nil && checkPending(stored) == nil
}

// pendingReading returns the measurement of a pending event, with the patient snapshot to evaluate it by as of receipt; nil if the event is
// closed or cannot be read.
func (e *Pipeline) pendingReading(tx core.App, eventID, patientID string, snapshot triage.PatientSnapshot, now time.Time) (*quarantinedReading, error) {
	if eventID == "" {
		return nil, nil
	}
	stored, err := FindQuarantined(tx, eventID)
	if err != nil || checkPending(stored) != nil {
		return nil, nil //nolint:nilerr // an unreadable event must not hide the others
	}
	event, err := e.parseImplausible(stored)
	if err != nil {
		return nil, nil //nolint:nilerr // as above
	}
	c, err := e.newQuarantinedReading(tx, stored, event, patientID, now)
	if c.snapshot = snapshot; err != nil || c.doubt != futureClock {
		return &c, err
	}
	if err := c.snapshot.ReloadBaseline(tx, &c.Reading, now); err != nil {
		return nil, err
	}
	c.isSuspect = e.Readings.IsSuspect(c.Reading, c.origin, c.snapshot)
	return &c, nil
}

// raiseFutureClockAlert raises the alert about a future clock, with all values of the reading.
func (r quarantinedReading) raiseFutureClockAlert(tx core.App, now time.Time) error {
	finding, _ := r.finding()
	return raiseClockDraft(tx, alerts.Draft{
		PatientID: r.patientID, DeviceID: r.Reading.DeviceID, MeasuredAt: r.Reading.MeasuredAt, Origin: r.origin, OmitsValue: true,
		ReportedValues: r.reportedValues(), QuarantineID: r.eventID,
		Finding: alerts.Finding{Type: alerts.TypeDeviceClock, Level: alerts.Warning, Parameter: "measured_at", Message: finding.Message},
	}, now)
}

// raiseClockDraft stores and announces an alert about a clock.
func raiseClockDraft(tx core.App, draft alerts.Draft, now time.Time) error {
	id, err := alerts.Raise(tx, draft, now)
	if err != nil {
		return err
	}
	return notifications.Announce(tx, draft.Announcement(id, ""), now)
}

// raiseDoubtfulTimeAlert raises the day's clock alert for a doubtful time or an ended clock proof.
func (e *Pipeline) raiseDoubtfulTimeAlert(tx core.App, c quarantinedReading, now time.Time) error {
	if !c.isTimeInDoubt() && !c.endsProof {
		return nil
	}
	zone, err := collections.ZoneOfPatient(tx, c.patientID, e.Readings.rules.PracticeZone)
	if err != nil {
		return err
	}
	raised, err := collections.ClockAlertSince(tx, c.Reading.DeviceID, c.patientID, alerts.TypeDeviceClock, collections.StartOfDay(now.In(zone)))
	if err != nil {
		return err
	}
	if err := collections.RecordClockFault(tx, c.Reading.DeviceID, string(c.Reading.Kind), c.patientID, now); err != nil {
		return err
	}
	switch {
	case raised == nil:
		asReported, consequence := c.Reading, textUnproven
		if c.isTimeInDoubt() {
			asReported.MeasuredAt, consequence = c.reported, textDatedByReceipt
		}
		return raiseClockDraft(tx, doubtfulTimeDraft(Observation{PatientID: c.patientID, Reading: asReported}, c.origin, c.received, consequence), now)
	case raised.Status() == string(alerts.StatusAutoResolved):
		return alerts.Reopen(tx, raised, 0, now)
	}
	return nil
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
	if decided.Implausible == nil || decided.Implausible.FutureTime.IsZero() {
		return nil
	}
	open, err := openFutureClockAlerts(tx, decided.DeviceID, patientID)
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
		worst, err := e.worstPending(tx, pending, patientID, snapshot, now)
		if err != nil || worst == nil {
			return "", err
		}
		for _, alert := range open { // their events are stored readings now
			if err := supersedeAlert(tx, alert, now); err != nil {
				return "", err
			}
		}
		if err := e.raiseDeferred(tx, *worst, now); err != nil {
			return "", err
		}
		return patientID, worst.raiseFutureClockAlert(tx, now)
	})
}

// raiseDeferred raises an alert that was suppressed on arrival (suspect or snoozed) and is due now.
func (e *Pipeline) raiseDeferred(tx core.App, c quarantinedReading, now time.Time) error {
	if !c.needsOwnAlert(now) {
		return nil
	}
	raised, err := collections.AlertsOfQuarantine(tx, c.eventID)
	alreadyRaised := slices.ContainsFunc(raised, func(a *collections.Alert) bool { return a.Type() == alerts.TypeImplausibleReading })
	if err != nil || alreadyRaised {
		return err
	}
	return e.raiseAlert(tx, c, now)
}

// worstPending returns the most severe of the pending events of a future clock, the newest of equals; nil if none is pending.
func (e *Pipeline) worstPending(
	tx core.App, pending []string, patientID string, snapshot triage.PatientSnapshot, now time.Time,
) (worst *quarantinedReading, err error) {
	for _, id := range pending {
		c, err := e.pendingReading(tx, id, patientID, snapshot, now)
		if err != nil {
			return nil, err
		}
		if c != nil && c.doubt == futureClock && (worst == nil || c.severity() > worst.severity()) {
			worst = c
		}
	}
	return worst, nil
}

package triage

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/async"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/escalations"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// currentValueWindow is how long the latest value counts as current.
const currentValueWindow = 24 * time.Hour

// StartSnooze stores a snooze, see [alerts.StartSnooze]. An expired one ends first, and the notifications of its end; of a replaced one,
// users are notified of what the new one does not cover.
func StartSnooze(app core.App, patientID string, draft alerts.SnoozeDraft, by audit.Actor, now time.Time) (snooze *collections.Snooze, err error) {
	err = UpdateAndRescore(app, now, func(tx core.App) (string, error) {
		before, err := collections.CurrentSnooze(tx, patientID, draft.Type)
		if err != nil {
			return "", err
		}
		notified := false
		if before != nil && !before.InForce(now) {
			if notified, err = expireSnooze(tx, before, now); err != nil {
				return "", err
			}
			before = nil
		}
		if snooze, err = alerts.StartSnooze(tx, patientID, draft, by, now); err == nil && before != nil {
			notified, err = notifyAfterSnooze(tx, before, now, now)
		}
		return rescoreIf(notified, patientID), err
	})
	return snooze, err
}

// EndSnooze ends a snooze before its time, see [alerts.EndSnooze], and notifies of alerts that are still open.
func EndSnooze(app core.App, patientID string, number int64, by audit.Actor, now time.Time) (snooze *collections.Snooze, err error) {
	err = UpdateAndRescore(app, now, func(tx core.App) (string, error) {
		if snooze, err = alerts.EndSnooze(tx, patientID, number, by, now); err != nil {
			return "", err
		}
		notified, err := notifyAfterSnooze(tx, snooze, now, now)
		return rescoreIf(notified, patientID), err
	})
	return snooze, err
}

// rescoreIf returns the patient to rescore: a notification may have opened an escalation.
func rescoreIf(notified bool, patientID string) string {
	if notified {
		return patientID
	}
	return ""
}

// snoozeBatch limits the snoozes ended in one run; the next run, a minute later, continues.
const snoozeBatch = 500

// EndDueSnoozes ends every expired snooze, each in its own transaction, and notifies of alerts that are still open; a failure does not stop
// the others. Source: docs/decisions/alerts.md, "Snooze".
func EndDueSnoozes(ctx context.Context, app core.App, now time.Time) (ended, sent int, err error) {
	due, err := collections.DueSnoozes(app, now, snoozeBatch)
	if err != nil {
		return 0, 0, err
	}
	ended, err = async.ForEach(ctx, due, func(id string) (over bool, err error) {
		notified := false
		err = UpdateAndRescore(app, now, func(tx core.App) (string, error) {
			snooze, err := collections.FindSnoozeByID(tx, id)
			if err != nil || snooze.Closed() || snooze.InForce(now) { // ended by another user
				return "", err
			}
			over = true
			notified, err = expireSnooze(tx, snooze, now)
			return rescoreIf(notified, snooze.PatientID()), err
		})
		if err != nil {
			return false, fmt.Errorf("snooze %s: %w", id, err)
		}
		if notified {
			sent++
		}
		return over, nil
	})
	return ended, sent, err
}

func expireSnooze(tx core.App, snooze *collections.Snooze, now time.Time) (notified bool, err error) {
	if err := alerts.ExpireSnooze(tx, snooze, now); err != nil {
		return false, err
	}
	return notifyAfterSnooze(tx, snooze, snooze.EndsAt(), now)
}

// notifyAfterSnooze sends one notification for what a snooze leaves open: unacknowledged critical alerts, which escalate unless late;
// unacknowledged warnings while the latest value is out of range; or an acknowledged critical value of the last day without a newer one.
// Alerts notified since the end or covered by another snooze are skipped. Source: docs/decisions/alerts.md, "Snooze" and "Late readings".
func notifyAfterSnooze(tx core.App, snooze *collections.Snooze, end, now time.Time) (notified bool, err error) {
	patient, kind := snooze.PatientID(), snooze.Type()
	if found, err := IsMonitored(tx, patient); err != nil || !found {
		return false, err
	}
	snapshot, err := ReadSnapshot(tx, patient, nil, now)
	if err != nil {
		return false, err
	}
	alert, open, err := alertToNotify(tx, snapshot, kind, now)
	if err != nil {
		return false, err
	}
	critical := alert != nil && alert.Level() == string(alerts.Critical)
	if (!critical || open == 0) && !snapshot.IsSnoozed(kind, alerts.Critical, now) {
		if undecided, err := snoozedClockAlert(tx, snapshot, kind); err != nil {
			return false, err
		} else if undecided != nil {
			alert, open, critical = undecided, 1, true
		}
	}
	if alert == nil {
		return false, nil
	}
	if notified, err := collections.NotifiedSince(tx, patient, kind, critical, end); err != nil || notified {
		return false, err
	}
	label, err := collections.PatientLabel(tx, patient)
	if err != nil {
		return false, err
	}
	if critical && open > 0 && (!alert.Late() || alert.ClockUnproven()) {
		trigger := snapshot.StatTrigger(alert.Id, phi.Text(alert.DisplayMessage()))
		trigger.Renotify = true
		if _, _, err := escalations.JoinOrOpen(tx, trigger, now); err != nil {
			return false, err
		}
		if alert, err = collections.FindAlert(tx, alert.Id); err != nil {
			return false, err
		}
		if err := collections.AttachCriticalAlerts(tx, patient, kind, alert.EscalationID(), now); err != nil {
			return false, err
		}
	}
	if rule := alerts.PushRule(alert.PushRule()); !critical && !rule.Pushes() && rule != alerts.ListedNever {
		if err := collections.SetPushRule(tx, alert.Id, string(alerts.PushedSnoozeEnd), "Pushed: still present when the snooze ended.", now); err != nil {
			return false, err
		}
	}
	announcement := alerts.Reannouncement(alert, label, alerts.RenotifyKey(alert.Id, snooze.Id))
	announcement.Severity, announcement.AtOnce = severityOf(critical), true
	announcement.Body = fmt.Sprintf("%s: no longer snoozed are alerts about %s. Not acknowledged: %d. The latest: %s", label, strings.ReplaceAll(kind, "_", " "), open, alert.DisplayMessage())
	return true, notifications.Announce(tx, announcement, now)
}

// alertToNotify returns the alert to notify of, nil for none, and how many of the same level are unacknowledged: of the most severe the one
// measured last, a late one only if all are late and nothing newer arrived.
func alertToNotify(tx core.App, snapshot PatientSnapshot, kind string, now time.Time) (alert *collections.Alert, open int, err error) {
	late, err := collections.LateAlerts(tx, snapshot.PatientID, kind)
	if err != nil {
		return nil, 0, err
	}
	var worst alerts.OpenAlert
	for _, one := range snapshot.Open {
		if one.Type != kind || snapshot.IsSnoozed(kind, one.Level, now) {
			continue
		}
		if slices.Contains(late, one.ID) {
			if over, err := isSuperseded(tx, snapshot.PatientID, one); err != nil {
				return nil, 0, err
			} else if over {
				continue
			}
		}
		graver := one.Level == alerts.Critical && worst.Level != alerts.Critical
		if worst.ID != "" && !graver && one.Level != worst.Level {
			continue
		}
		if graver {
			open = 0
		}
		open++
		if worst.ID == "" || graver || isPreferred(one, worst, late) {
			worst = one
		}
	}
	latest, _, found := snapshot.CurrentFinding(kind)
	if worst.Level == alerts.Critical || worst.ID != "" && found && latest.Breached() {
		alert, err = collections.FindAlert(tx, worst.ID)
		return alert, open, err
	}
	if snapshot.IsSnoozed(kind, alerts.Critical, now) {
		return nil, 0, nil
	}
	alert, err = acknowledgedCritical(tx, snapshot, kind, now)
	return alert, 0, err
}

// isPreferred reports whether an alert is notified rather than another of the same level: alerts that escalate first, then newer ones.
func isPreferred(one, other alerts.OpenAlert, late []string) bool {
	if isLate := slices.Contains(late, one.ID); isLate != slices.Contains(late, other.ID) {
		return !isLate
	}
	return !one.MeasuredAt.Before(other.MeasuredAt)
}

// snoozedClockAlert returns the future-clock alert with undecided critical values of a kind if a snooze suppresses its notification; nil
// for none. A change of weight is excluded: the suspect-reading alert covers it. Source: docs/decisions/devices.md, "Future clock".
func snoozedClockAlert(tx core.App, snapshot PatientSnapshot, kind string) (*collections.Alert, error) {
	waiting, err := collections.UndecidedClockAlerts(tx, snapshot.PatientID, alerts.TypeDeviceClock, alerts.TypeImplausibleReading)
	if err != nil {
		return nil, err
	}
	for _, alert := range waiting {
		reported, err := alerts.ParseReported(alert.ReportedValues().Reveal())
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(reported, func(v alerts.ReportedValue) bool {
			return v.Parameter.Group == kind && snapshot.Thresholds.IsDangerous(v.Parameter, v.Value)
		}) {
			return alert, nil
		}
	}
	return nil, nil
}

func severityOf(critical bool) string {
	if critical {
		return string(alerts.Critical)
	}
	return string(alerts.Warning)
}

// RetractFromSnoozes removes a patient's retracted alerts from the baselines of snoozes. One of critical alerts ends if its baseline becomes empty, or if
// an alert that it suppressed exceeds what remains; open alerts are then notified as at every end. The caller rescores the patient.
// Source: docs/decisions/alerts.md, "Breaking through a snooze".
func RetractFromSnoozes(tx core.App, patientID string, retracted []*collections.Alert, by audit.Actor, now time.Time) error {
	var seen []string
	for _, alert := range retracted {
		if slices.Contains(seen, alert.Type()) {
			continue
		}
		seen = append(seen, alert.Type())
		snooze, err := collections.CurrentSnooze(tx, patientID, alert.Type())
		if err != nil {
			return err
		}
		if snooze == nil || !snooze.InForce(now) {
			continue
		}
		remaining, changed, err := alerts.RetractFromBaseline(tx, snooze, retracted)
		if err != nil {
			return err
		}
		if !changed || !snooze.IncludeCritical() {
			continue
		}
		ends := len(remaining) == 0
		if !ends {
			if ends, err = exceededBaseline(tx, snooze, remaining, now); err != nil {
				return err
			}
		}
		if !ends {
			continue
		}
		if err := alerts.EndSnoozeNow(tx, snooze, by, now); err != nil {
			return err
		}
		if _, err := notifyAfterSnooze(tx, snooze, now, now); err != nil {
			return err
		}
	}
	return nil
}

// exceededBaseline reports whether an alert that the snooze suppressed exceeds its reduced baseline.
func exceededBaseline(tx core.App, snooze *collections.Snooze, found []alerts.WorstValue, now time.Time) (bool, error) {
	quiet, err := collections.SnoozedCriticalAlerts(tx, snooze.PatientID(), snooze.Type(), snooze.CreatedAt())
	if err != nil || len(quiet) == 0 {
		return false, err
	}
	snapshot, err := ReadSnapshot(tx, snooze.PatientID(), nil, now)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(snapshot.Open, func(o alerts.OpenAlert) bool {
		return slices.Contains(quiet, o.ID) && o.Exceeds(found, snapshot.Thresholds)
	}), nil
}

// acknowledgedCritical returns the acknowledged alert about a critical value of the last day that is still the latest of its origin; nil
// for none. A value typed since then does not replace a device's. A resolved alert is not notified again.
// Source: docs/decisions/alerts.md, "Snooze" and "Reading origins".
func acknowledgedCritical(tx core.App, snapshot PatientSnapshot, kind string, now time.Time) (*collections.Alert, error) {
	for _, measured := range snapshot.CriticalSince(kind, now.Add(-currentValueWindow)) {
		alert, err := collections.CriticalAlertMeasuredAt(tx, snapshot.PatientID, kind, string(alerts.StatusAcknowledged), measured)
		if err != nil || alert != nil {
			return alert, err
		}
	}
	return nil, nil
}

// isSuperseded reports whether a value at least as reliable was measured after the reading behind an alert; a late reading is then no news.
// Source: docs/decisions/alerts.md, "Late readings".
func isSuperseded(tx core.App, patientID string, alert alerts.OpenAlert) (bool, error) {
	var kinds []vitals.Kind
	var columns []string
	for _, p := range vitals.ThresholdParameters {
		if p.Group == alert.Type {
			kinds, columns = append(kinds, p.Kinds...), append(columns, p.Column)
		}
	}
	if len(columns) == 0 {
		return false, nil
	}
	return collections.NewerReadings[vitals.Kind]{
		PatientID: patientID, Kinds: kinds, Columns: columns, After: alert.MeasuredAt, TypedToo: vitals.OriginPatient.CanResolve(alert.Origin),
	}.Exist(tx)
}

package triage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/notifications"
)

// currentWithin is for how long the latest value counts as that of now.
const currentWithin = 24 * time.Hour

// StartSnooze stores a snooze, see [alerts.StartSnooze]. One before it that has run out ends first, and is told of as if the clock had
// ended it; of one that is replaced people hear what the new one does not keep quiet.
func StartSnooze(app core.App, patientID string, draft alerts.SnoozeDraft, by audit.Actor, now time.Time) (snooze *collections.Snooze, err error) {
	err = Change(app, now, func(tx core.App) (string, error) {
		before, err := collections.CurrentSnooze(tx, patientID, draft.Type)
		if err != nil {
			return "", err
		}
		told := false
		if before != nil && !before.InForce(now) {
			if told, err = runOut(tx, before, now); err != nil {
				return "", err
			}
			before = nil
		}
		if snooze, err = alerts.StartSnooze(tx, patientID, draft, by, now); err == nil && before != nil {
			told, err = tellAfterSnooze(tx, before, now, now)
		}
		return movedBy(told, patientID), err
	})
	return snooze, err
}

// EndSnooze ends a snooze before its time, see [alerts.EndSnooze], and tells what still stands.
func EndSnooze(app core.App, patientID string, number int64, by audit.Actor, now time.Time) (snooze *collections.Snooze, err error) {
	err = Change(app, now, func(tx core.App) (string, error) {
		if snooze, err = alerts.EndSnooze(tx, patientID, number, by, now); err != nil {
			return "", err
		}
		told, err := tellAfterSnooze(tx, snooze, now, now)
		return movedBy(told, patientID), err
	})
	return snooze, err
}

// movedBy is whom telling may have moved: it may have opened an escalation.
func movedBy(told bool, patientID string) string {
	if told {
		return patientID
	}
	return ""
}

// snoozeRound bounds how many snoozes one round ends; the next minute goes on.
const snoozeRound = 500

// EndDueSnoozes ends every snooze that has run out, each in a transaction of its own, and tells what still stands; told is of how many. One
// that fails does not hold up the others. Source: docs/decisions/alerts.md, "Snooze".
func EndDueSnoozes(ctx context.Context, app core.App, now time.Time) (ended, told int, err error) {
	due, err := collections.DueSnoozes(app, now, snoozeRound)
	if err != nil {
		return 0, 0, err
	}
	var failures []error
	for _, id := range due {
		if err := ctx.Err(); err != nil {
			return ended, told, errors.Join(append(failures, err)...)
		}
		over, said := false, false
		err := Change(app, now, func(tx core.App) (string, error) {
			snooze, err := collections.FindSnoozeByID(tx, id)
			if err != nil || snooze.Over() || snooze.InForce(now) { // somebody was quicker
				return "", err
			}
			over = true
			said, err = runOut(tx, snooze, now)
			return movedBy(said, snooze.PatientID()), err
		})
		switch {
		case err != nil:
			failures = append(failures, fmt.Errorf("snooze %s: %w", id, err))
		case over:
			ended++
			if said {
				told++
			}
		}
	}
	return ended, told, errors.Join(failures...)
}

func runOut(tx core.App, snooze *collections.Snooze, now time.Time) (told bool, err error) {
	if err := alerts.RunOut(tx, snooze, now); err != nil {
		return false, err
	}
	return tellAfterSnooze(tx, snooze, snooze.EndsAt(), now)
}

// tellAfterSnooze judges what a snooze leaves behind that ended at a time, and tells it once, whatever was told just before: unacknowledged
// critical alerts, which escalate unless they came late; unacknowledged warnings while the latest value is out of range; and a critical value of the last day
// that somebody has acknowledged and nothing was measured since. What a reading has told after the end, or another snooze keeps quiet, is
// left out. Source: docs/decisions/alerts.md, "Snooze" and "Late readings".
func tellAfterSnooze(tx core.App, snooze *collections.Snooze, end, now time.Time) (told bool, err error) {
	patient, kind := snooze.PatientID(), snooze.Type()
	if there, err := Watched(tx, patient); err != nil || !there {
		return false, err
	}
	picture, err := ReadPicture(tx, patient, nil, now)
	if err != nil {
		return false, err
	}
	alert, open, err := toTell(tx, picture, kind, now)
	if err != nil {
		return false, err
	}
	critical := alert != nil && alert.Level() == string(alerts.Critical)
	if (!critical || open == 0) && !picture.Snoozed(kind, alerts.Critical, now) {
		if undecided, err := silenced(tx, picture, kind); err != nil {
			return false, err
		} else if undecided != nil {
			alert, open, critical = undecided, 1, true
		}
	}
	if alert == nil {
		return false, nil
	}
	if said, err := collections.ToldSince(tx, patient, kind, critical, end); err != nil || said {
		return false, err
	}
	whom, err := collections.PatientLabel(tx, patient)
	if err != nil {
		return false, err
	}
	if critical && open > 0 && !alert.Late() {
		if err := EscalateCritical(tx, picture, alert, true, now); err != nil {
			return false, err
		}
		if alert, err = collections.FindAlert(tx, alert.Id); err != nil {
			return false, err
		}
		if err := collections.AttachCriticalAlerts(tx, patient, kind, alert.EscalationID(), now); err != nil {
			return false, err
		}
	}
	return true, notifications.Announce(tx, notifications.Announcement{
		Kind: notifications.AlertRaised, Severity: severityOf(critical), PatientID: patient, AlertID: alert.Id,
		Body: fmt.Sprintf("%s: no longer snoozed are alerts about %s. Not acknowledged: %d. The latest: %s", whom, strings.ReplaceAll(kind, "_", " "), open, alert.MessageShown()),
		Key:  alerts.ToldAgainKey(alert.Id, snooze.Id), AtOnce: true,
	}, now)
}

// toTell is the alert by which people are told what still stands of a kind, nil for nothing, and how many as severe nobody has
// acknowledged: of the most severe ones the one that was measured last, a late one only where all of them are and nothing has come since.
func toTell(tx core.App, picture Picture, kind string, now time.Time) (alert *collections.Alert, open int, err error) {
	late, err := collections.LateAlerts(tx, picture.PatientID, kind)
	if err != nil {
		return nil, 0, err
	}
	var worst alerts.Open
	for _, one := range picture.Open {
		if one.Type != kind || picture.Snoozed(kind, one.Level, now) {
			continue
		}
		if slices.Contains(late, one.ID) {
			if over, err := overtaken(tx, picture.PatientID, one); err != nil {
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
		if worst.ID == "" || graver || preferred(one, worst, late) {
			worst = one
		}
	}
	latest, _, known := picture.Standing(kind)
	if worst.Level == alerts.Critical || worst.ID != "" && known && latest.Breached() {
		alert, err = collections.FindAlert(tx, worst.ID)
		return alert, open, err
	}
	if picture.Snoozed(kind, alerts.Critical, now) {
		return nil, 0, nil
	}
	alert, err = answered(tx, picture, kind, now)
	return alert, 0, err
}

// preferred reports whether people are told by one alert rather than by another that is as severe: one that escalates goes first.
func preferred(one, other alerts.Open, late []string) bool {
	if isLate := slices.Contains(late, one.ID); isLate != slices.Contains(late, other.ID) {
		return !isLate
	}
	return !one.MeasuredAt.Before(other.MeasuredAt)
}

// silenced is the alert about a clock that is ahead which shows critical values of a kind that nobody has decided about, and that are told
// nowhere else, since a snooze silences them. Nil for none. A change of weight is left out: whose it is, is asked there.
// Source: docs/decisions/devices.md, "Future clock".
func silenced(tx core.App, picture Picture, kind string) (*collections.Alert, error) {
	waiting, err := collections.UndecidedClockAlerts(tx, picture.PatientID, alerts.TypeDeviceClock, alerts.TypeImplausibleReading)
	if err != nil {
		return nil, err
	}
	for _, alert := range waiting {
		reported, err := alerts.ReadReported(alert.ReportedValues().Reveal())
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(reported, func(v alerts.Reported) bool { return v.Of.Group == kind && picture.Thresholds.Alarms(v.Of, v.Value) }) {
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

package messaging

import (
	"context"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/devices"
)

// reminderWindow is how long after its time a reminder of a missed reading is still queued, in case
// the service was down.
const reminderWindow = 2 * time.Hour

// recent is how far back batteries and readings to be repeated are looked for.
const recent = 10 * time.Minute

// Reminders queues automatic messages: of missed readings at the patient's time, of batteries, and of readings to be taken again.
type Reminders struct {
	Devices *devices.Engine
	At      string // 18:00, for patients without a time of their own
	Zone    *time.Location
}

// Queue stores the messages that are due. Each cause has one, so that a run can be repeated. Source: docs/decisions/messages.md, "Reminders".
func (r Reminders) Queue(ctx context.Context, app core.App, now time.Time) (queued int, err error) {
	if _, on := IsOn(app); !on {
		return 0, nil
	}
	causes, err := r.recentCauses(app, now)
	if err != nil {
		return 0, err
	}
	missed, err := r.missedReadings(ctx, app, now)
	if err != nil {
		return 0, err
	}
	for _, cause := range append(causes, missed...) {
		if err := ctx.Err(); err != nil {
			return queued, err
		}
		err := app.RunInTransaction(func(tx core.App) error {
			did, err := QueueAutomatic(tx, cause, now)
			if did {
				queued++
			}
			return err
		})
		if err != nil {
			return queued, err
		}
	}
	return queued, nil
}

// recentCauses returns the messages about batteries, and readings to be taken again.
func (r Reminders) recentCauses(app core.App, now time.Time) (causes []Automatic, err error) {
	since := now.Add(-recent)
	low, err := collections.AlertsRaisedSince(app, alerts.TypeDeviceBattery, since)
	if err != nil {
		return nil, err
	}
	for _, alert := range low {
		causes = append(causes, Automatic{PatientID: alert.PatientID, Template: BatteryLow, Cause: "battery_low:" + alert.ID})
	}
	again, err := collections.PromptsToMeasureAgain(app, since)
	for _, prompt := range again {
		causes = append(causes, Automatic{PatientID: prompt.PatientID, Template: TakeAgain, RequestedKind: collections.AnyKind, Cause: "take_again:" + prompt.ID})
	}
	return causes, err
}

// missedReadings returns the reminders that are due in each time zone: nothing of an expected kind was measured today.
func (r Reminders) missedReadings(ctx context.Context, app core.App, now time.Time) (due []Automatic, err error) {
	zones, err := collections.PatientZones(app)
	if err != nil {
		return nil, err
	}
	for _, name := range zones {
		local := now.In(collections.Zone(name, r.Zone))
		today := local.Format(time.DateOnly)
		from := "00:00"
		if start := local.Add(-reminderWindow); start.Format(time.DateOnly) == today {
			from = start.Format("15:04")
		}
		ids, err := collections.PatientsToRemind(app, collections.RemindersDue{Zone: name, After: from, Until: local.Format("15:04"), At: r.At, Day: today, Now: now})
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			kinds, err := r.Devices.MissingToday(app, id, today, now)
			if err != nil {
				return nil, err
			}
			if len(kinds) > 0 {
				due = append(due, Automatic{PatientID: id, Template: MissedReading, RequestedKind: requestedKind(kinds), Cause: missedCause(id, today)})
			}
		}
	}
	return due, nil
}

// requestedKind returns the kind of reading that a message requests.
func requestedKind(kinds []string) string {
	if len(kinds) == 1 {
		return kinds[0]
	}
	return collections.AnyKind
}

func missedCause(patientID, day string) string {
	return string(MissedReading) + ":" + patientID + ":" + day
}

// IsOver reports whether the reading that a reminder requests has arrived, or the reminder's day
// has passed.
func (r Reminders) IsOver(tx core.App, m *collections.Message, now time.Time) (bool, error) {
	day, is := strings.CutPrefix(m.Cause(), missedCause(m.PatientID(), ""))
	if !is {
		return false, nil
	}
	zone, err := collections.ZoneOfPatient(tx, m.PatientID(), r.Zone)
	if err != nil || now.In(zone).Format(time.DateOnly) != day {
		return true, err
	}
	kinds, err := r.Devices.MissingToday(tx, m.PatientID(), day, now)
	return len(kinds) == 0, err
}

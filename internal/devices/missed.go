package devices

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/escalations"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// CheckMissed judges, for every active patient, the days that ended in the patient's zone since the last check, and raises one
// missed_reading alert for each day with less than was expected; a run of missed days opens an escalation. Days judged
// before stay as they were judged. since is the start of the last check that went through, zero for none.
// Source: docs/decisions/devices.md, "Measurement schedule".
func (e *Engine) CheckMissed(ctx context.Context, app core.App, since, now time.Time) (raised int, err error) {
	zones, err := collections.PatientZones(app)
	if err != nil {
		return 0, err
	}
	for _, name := range zones {
		zone := collections.Zone(name, e.rules.PracticeZone)
		for _, day := range EndedDays(zone, since, now) {
			patients, err := collections.WatchedPatients(app, name)
			if err != nil {
				return raised, err
			}
			for _, patient := range patients {
				if err := ctx.Err(); err != nil {
					return raised, err
				}
				missed, err := e.judgeDay(app, patient, zone, day, now)
				if err != nil {
					return raised, err
				}
				if missed {
					raised++
				}
			}
		}
	}
	return raised, nil
}

// judgeDay raises the alert of one patient and day, unless it was raised before.
func (e *Engine) judgeDay(app core.App, p collections.WatchedPatient, zone *time.Location, day string, now time.Time) (raised bool, err error) {
	monitoring, err := monitoringOf(app, p, zone)
	if err != nil {
		return false, err
	}
	if len(monitoring.expected(day)) == 0 {
		return false, nil
	}
	limit := e.rules.MissedDaysBeforeEscalation
	days, err := readingDays(app, p.ID, day, lookBack(limit))
	if err != nil || len(monitoring.Missed(day, days[day])) == 0 {
		return false, err
	}
	err = app.RunInTransaction(func(tx core.App) error {
		// A reading may have come in between, and a day is judged once.
		if days, err = readingDays(tx, p.ID, day, lookBack(limit)); err != nil {
			return err
		}
		missing := monitoring.Missed(day, days[day])
		judged, err := collections.MissedAlertOf(tx, p.ID, day)
		if err != nil || judged || len(missing) == 0 {
			return err
		}
		raised = true
		alertID, err := raiseMissed(tx, p.ID, zone, day, missing, now)
		if err != nil || monitoring.Streak(day, days, limit) != limit {
			return err
		}
		return e.escalateMissed(tx, p.ID, alertID, now)
	})
	return raised, err
}

func raiseMissed(tx core.App, patientID string, zone *time.Location, day string, missing []Missing, now time.Time) (string, error) {
	date, err := time.ParseInLocation(time.DateOnly+" 15", day+" 12", zone) // noon exists in every zone
	if err != nil {
		return "", fmt.Errorf("read day: %w", err)
	}
	words := make([]string, len(missing))
	for i, kind := range missing {
		words[i] = kind.String()
	}
	draft := alerts.Draft{
		PatientID: patientID, MeasuredAt: collections.StartOfNextDay(date).Add(-time.Second), Unmeasured: true,
		Finding: alerts.Finding{
			Type: alerts.TypeMissedReading, Level: alerts.NoData, Parameter: day,
			Message: "Missed on " + day + ": " + strings.Join(words, ", ") + ".",
		},
	}
	return raise(tx, alarm{draft: draft, kind: notifications.ReadingMissed, key: alerts.TypeMissedReading + "/" + patientID + "/" + day}, now)
}

// escalateMissed opens the urgent escalation of a run of missed days, or lets the alert join one that the system has open.
func (e *Engine) escalateMissed(tx core.App, patientID, alertID string, now time.Time) error {
	assignee, err := collections.ActiveProviderEmail(tx, patientID)
	if err != nil {
		return err
	}
	reason := "No measurement for " + strconv.Itoa(e.rules.MissedDaysBeforeEscalation) + " days"
	draft := escalations.Draft{PatientID: patientID, Priority: escalations.Urgent, Reason: phi.Text(reason), AssignedTo: assignee, AlertID: alertID}
	return triage.UpdateAndRescore(tx, now, func(tx core.App) (string, error) {
		id, opened, err := escalations.OpenOrJoin(tx, draft, now)
		if err != nil || !opened {
			return "", err
		}
		return patientID, notifications.Announce(tx, notifications.Announcement{
			Kind: notifications.EscalationOpened, Severity: "warning", PatientID: patientID, AlertID: alertID, EscalationID: id,
			Body: reason, Key: string(notifications.EscalationOpened) + "/" + id,
		}, now)
	})
}

// monitoringOf reads what is expected of a patient. A device that is still on its way is expected from the day after it
// should arrive, or from its first reading; one that was in the patient's hands before it was recorded, at once.
func monitoringOf(app core.App, p collections.WatchedPatient, zone *time.Location) (Monitoring, error) {
	m := Monitoring{Schedule: p.Schedule, Enrolled: p.CreatedAt.In(zone).Format(time.DateOnly)}
	held, err := collections.DevicesHeldBy(app, p.ID)
	if err != nil {
		return m, err
	}
	for _, device := range held {
		from := device.AssignedAt()
		expected := Expected{Kind: vitals.Kind(device.Kind()), After: from.In(zone).Format(time.DateOnly)}
		if device.LastReadingAt().Before(from) {
			order, err := collections.LatestDelivery(app, device.DeviceID(), p.ID)
			if err != nil {
				return m, err
			}
			if order.Date > expected.After && order.CreatedAt.Sub(from) < 24*time.Hour {
				expected.After = order.Date
			}
		}
		m.Devices = append(m.Devices, expected)
	}
	return m, nil
}

// readingDays counts the readings of a patient by day and kind, on day and so many days before.
func readingDays(app core.App, patientID, day string, back int) (map[string]ReadingDay, error) {
	last, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return nil, fmt.Errorf("read day: %w", err)
	}
	rows, err := collections.ReadingDays(app, patientID, last.AddDate(0, 0, -back).Format(time.DateOnly), day)
	if err != nil {
		return nil, err
	}
	days := map[string]ReadingDay{}
	for _, row := range rows {
		if days[row.Day] == nil {
			days[row.Day] = ReadingDay{}
		}
		days[row.Day][vitals.Kind(row.Kind)] = row.Readings
	}
	return days, nil
}

// Expected is a device from which readings are expected. Days are dates, YYYY-MM-DD, in the patient's zone.
type Expected struct {
	Kind vitals.Kind
	// After is the day of assignment, or of arrival: nothing is missed on it or before.
	After string
}

// Monitoring is what a patient is expected to measure.
type Monitoring struct {
	// Schedule is nil when there is none: one reading a day of each kind there is a device for.
	Schedule collections.Schedule
	Devices  []Expected
	// Enrolled is the day the patient was taken in; nothing is missed on it or before.
	Enrolled string
}

// ReadingDay says how many readings of each kind a day has.
type ReadingDay map[vitals.Kind]int

// Missing is a kind that was measured less often than expected.
type Missing struct {
	Kind      vitals.Kind
	Got, Want int
}

func (m Missing) String() string {
	name := strings.ReplaceAll(string(m.Kind), "_", " ")
	if m.Got == 0 {
		return name
	}
	return fmt.Sprintf("%s (%d of %d)", name, m.Got, m.Want)
}

// expected says how many readings of each kind a day wants. Source: docs/decisions/devices.md, "Measurement schedule".
func (m Monitoring) expected(day string) ReadingDay {
	want := ReadingDay{}
	if m.Schedule == nil {
		for _, device := range m.Devices {
			if device.Kind != "" && device.After < day {
				want[device.Kind] = 1
			}
		}
		return want
	}
	for kind, expectation := range m.Schedule {
		if day > m.Enrolled && expectation.On(weekday(day)) && m.started(vitals.Kind(kind), day) {
			want[vitals.Kind(kind)] = max(expectation.PerDay, 1)
		}
	}
	return want
}

// Wanted is how many readings a day wants in all.
func (m Monitoring) Wanted(day string) (total int) {
	for _, wanted := range m.expected(day) {
		total += wanted
	}
	return total
}

// started reports whether the patient can have measured the kind on the day: with a device that had come by then, or by
// other means when there is none for it.
func (m Monitoring) started(kind vitals.Kind, day string) bool {
	none := true
	for _, device := range m.Devices {
		if device.Kind == kind {
			if device.After < day {
				return true
			}
			none = false
		}
	}
	return none
}

func weekday(day string) string {
	date, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return ""
	}
	return strings.ToLower(date.Weekday().String())
}

// Missed lists what is missing on a day, in the contract's order of kinds.
func (m Monitoring) Missed(day string, got ReadingDay) (missing []Missing) {
	want := m.expected(day)
	for _, kind := range vitals.Kinds {
		if got[kind] < want[kind] {
			missing = append(missing, Missing{kind, got[kind], want[kind]})
		}
	}
	return missing
}

// Streak counts the missed days in a row up to and including day, looking at no more than most of them: days on which
// something expected was not measured at all. Days on which nothing is expected neither count nor end the streak.
func (m Monitoring) Streak(day string, days map[string]ReadingDay, most int) (streak int) {
	date, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return 0
	}
	for range lookBack(most) {
		key := date.Format(time.DateOnly)
		date = date.AddDate(0, 0, -1)
		if len(m.expected(key)) == 0 {
			continue
		}
		if !slices.ContainsFunc(m.Missed(key, days[key]), func(missing Missing) bool { return missing.Got == 0 }) {
			return streak
		}
		if streak++; streak > most {
			return streak
		}
	}
	return streak
}

// redeliveryWindow is how many days may hold a streak of that length: one expected day a week is the least.
func lookBack(streak int) int { return 7 * (streak + 1) }

// EndedDays are the days that ended in a zone after since and not after now, oldest first and at most a week of them. Days
// are the calendar's: one may last 23 or 25 hours. Without a since it is the day that ended last.
func EndedDays(zone *time.Location, since, now time.Time) (days []string) {
	year, month, date := now.In(zone).Date()
	for back := 1; back <= 7; back++ {
		end := collections.StartOfDay(time.Date(year, month, date-back+1, 12, 0, 0, 0, zone))
		if !since.IsZero() && !end.After(since) {
			break
		}
		days = append(days, time.Date(year, month, date-back, 12, 0, 0, 0, time.UTC).Format(time.DateOnly))
		if since.IsZero() {
			break
		}
	}
	slices.Reverse(days)
	return days
}

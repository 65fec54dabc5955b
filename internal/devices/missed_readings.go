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

// CheckMissed checks, for every active patient, the days that ended in the patient's zone since the last check, and raises one
// missed_reading alert for each day with fewer readings than expected; a run of missed days opens an escalation. A day is checked once.
// since is the start of the last successful check, zero for none. Source: docs/decisions/devices.md, "Measurement schedule".
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
				missed, err := e.checkDay(app, patient, zone, day, now)
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

// checkDay raises the alert of one patient and day, unless it exists.
func (e *Engine) checkDay(app core.App, p collections.WatchedPatient, zone *time.Location, day string, now time.Time) (raised bool, err error) {
	monitoring, err := monitoringOf(app, p, zone)
	if err != nil {
		return false, err
	}
	if len(monitoring.expected(day)) == 0 {
		return false, nil
	}
	if p.Hold.InForce(now) {
		return false, nil
	}
	limit := e.rules.MissedDaysBeforeEscalation
	days, err := readingDays(app, p.ID, day, streakWindow(limit))
	if err != nil || len(monitoring.Missed(day, days[day])) == 0 {
		return false, err
	}
	err = app.RunInTransaction(func(tx core.App) error {
		// a reading may have arrived in between, and a day alerts once
		if days, err = readingDays(tx, p.ID, day, streakWindow(limit)); err != nil {
			return err
		}
		missing := monitoring.Missed(day, days[day])
		alerted, err := collections.HasMissedReadingAlert(tx, p.ID, day)
		if err != nil || alerted || len(missing) == 0 {
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

func raiseMissed(tx core.App, patientID string, zone *time.Location, day string, missing []MissingReadings, now time.Time) (string, error) {
	date, err := time.ParseInLocation(time.DateOnly+" 15", day+" 12", zone) // noon exists in every zone
	if err != nil {
		return "", fmt.Errorf("read day: %w", err)
	}
	words := make([]string, len(missing))
	for i, kind := range missing {
		words[i] = kind.String()
	}
	draft := alerts.Draft{
		PatientID: patientID, MeasuredAt: collections.StartOfNextDay(date).Add(-time.Second), OmitsValue: true,
		Finding: alerts.Finding{
			Type: alerts.TypeMissedReading, Level: alerts.NoData, Parameter: day,
			Message: "Missed on " + day + ": " + strings.Join(words, ", ") + ".",
		},
	}
	return raise(tx, deviceAlert{draft: draft, kind: notifications.ReadingMissed, notificationKey: alerts.TypeMissedReading + "/" + patientID + "/" + day}, now)
}

// escalateMissed opens the urgent escalation of a run of missed days, or joins the alert to the one that the system has open.
func (e *Engine) escalateMissed(tx core.App, patientID, alertID string, now time.Time) error {
	reason := "No measurement for " + strconv.Itoa(e.rules.MissedDaysBeforeEscalation) + " days"
	trigger := escalations.Trigger{Draft: escalations.Draft{
		PatientID: patientID, Priority: escalations.Urgent, Reason: phi.Text(reason), AlertID: alertID,
	}}
	return triage.UpdateAndRescore(tx, now, func(tx core.App) (string, error) {
		if _, opened, err := escalations.JoinOrOpen(tx, trigger, now); err != nil || !opened {
			return "", err
		}
		return patientID, nil
	})
}

// monitoringOf reads what a patient is expected to measure. A device in shipment counts from the day after its expected arrival, or from
// its first reading; one that the patient had before it was recorded counts at once.
func monitoringOf(app core.App, p collections.WatchedPatient, zone *time.Location) (Monitoring, error) {
	m := Monitoring{Schedule: p.Schedule, Enrolled: p.CreatedAt.In(zone).Format(time.DateOnly)}
	m.HoldFirst, m.HoldLast = p.Hold.Days(zone)
	held, err := collections.DevicesOfPatient(app, p.ID)
	if err != nil {
		return m, err
	}
	for _, device := range held {
		from := device.AssignedAt()
		expected := Expected{Kind: vitals.Kind(device.Kind()), After: from.In(zone).Format(time.DateOnly)}
		if device.LastReadingAt().Before(from) {
			order, err := collections.LatestOrderDelivery(app, device.DeviceID(), p.ID)
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

// readingDays counts the patient's readings by day and kind, for a day and a number of days before.
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
	// After is the day of assignment or arrival: nothing is missed until the day after.
	After string
}

// Monitoring is what a patient is expected to measure.
type Monitoring struct {
	// Schedule is nil for none: one reading a day of each kind of device.
	Schedule collections.Schedule
	Devices  []Expected
	// Enrolled is the day of enrollment: nothing is missed until the day after.
	Enrolled string
	// HoldFirst and HoldLast are the days of the latest patient hold, on which nothing is expected; "" for none.
	HoldFirst, HoldLast string
}

// onHold reports whether a day belongs to a patient hold.
func (m Monitoring) onHold(day string) bool {
	return m.HoldFirst != "" && m.HoldFirst <= day && day <= m.HoldLast
}

// ReadingDay counts the readings of one day by kind.
type ReadingDay map[vitals.Kind]int

// MissingReadings is a kind with fewer readings than expected.
type MissingReadings struct {
	Kind      vitals.Kind
	Got, Want int
}

func (m MissingReadings) String() string {
	name := strings.ReplaceAll(string(m.Kind), "_", " ")
	if m.Got == 0 {
		return name
	}
	return fmt.Sprintf("%s (%d of %d)", name, m.Got, m.Want)
}

// expected returns the number of readings expected on a day, by kind. Source: docs/decisions/devices.md, "Measurement schedule".
func (m Monitoring) expected(day string) ReadingDay {
	want := ReadingDay{}
	if m.onHold(day) {
		return want
	}
	if m.Schedule == nil {
		for _, device := range m.Devices {
			if device.Kind != "" && device.After < day {
				want[device.Kind] = 1
			}
		}
		return want
	}
	for kind, expectation := range m.Schedule {
		if day > m.Enrolled && expectation.ExpectsOn(weekday(day)) && m.canMeasure(vitals.Kind(kind), day) {
			want[vitals.Kind(kind)] = max(expectation.PerDay, 1)
		}
	}
	return want
}

// ExpectedCount returns how many readings are expected on a day.
func (m Monitoring) ExpectedCount(day string) (total int) {
	for _, wanted := range m.expected(day) {
		total += wanted
	}
	return total
}

// canMeasure reports whether the patient could measure the kind on the day: with a device that had arrived, or in another way if there is
// no device for it.
func (m Monitoring) canMeasure(kind vitals.Kind, day string) bool {
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

// Missed returns what is missing on a day, in the contract's order of kinds.
func (m Monitoring) Missed(day string, got ReadingDay) (missing []MissingReadings) {
	want := m.expected(day)
	for _, kind := range vitals.Kinds {
		if got[kind] < want[kind] {
			missing = append(missing, MissingReadings{kind, got[kind], want[kind]})
		}
	}
	return missing
}

// Streak counts the missed days in a row up to and including day, up to one more than limit: days on which an expected kind was not
// measured at all. Days without expectations neither count nor end the streak; a patient hold ends it.
func (m Monitoring) Streak(day string, days map[string]ReadingDay, limit int) (streak int) {
	date, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return 0
	}
	for range streakWindow(limit) {
		key := date.Format(time.DateOnly)
		date = date.AddDate(0, 0, -1)
		if m.onHold(key) {
			return streak
		}
		if len(m.expected(key)) == 0 {
			continue
		}
		if !slices.ContainsFunc(m.Missed(key, days[key]), func(missing MissingReadings) bool { return missing.Got == 0 }) {
			return streak
		}
		if streak++; streak > limit {
			return streak
		}
	}
	return streak
}

// streakWindow returns how many days a streak of that length may span, with at least one expected day a week.
func streakWindow(streak int) int { return 7 * (streak + 1) }

// EndedDays returns the days that ended in a zone after since and not after now, oldest first and at most a week. Calendar days may have 23
// or 25 hours. Without a since it returns the last ended day.
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

// MissingToday returns the kinds of which a patient has no reading yet on the current day, where one is expected; none during a hold.
func (e *Engine) MissingToday(app core.App, patientID, day string, now time.Time) (kinds []string, err error) {
	p, err := collections.FindWatchedPatient(app, patientID)
	if err != nil || p.Hold.InForce(now) {
		return nil, collections.IgnoreNotFound(err)
	}
	zone := collections.Zone(p.TimeZone, e.rules.PracticeZone)
	monitoring, err := monitoringOf(app, p, zone)
	if err != nil || len(monitoring.expected(day)) == 0 {
		return nil, err
	}
	days, err := readingDays(app, p.ID, day, 0)
	if err != nil {
		return nil, err
	}
	for _, missing := range monitoring.Missed(day, days[day]) {
		if missing.Got == 0 {
			kinds = append(kinds, string(missing.Kind))
		}
	}
	return kinds, nil
}

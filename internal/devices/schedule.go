package devices

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/vitals"
)

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

// lookBack is how many days may hold a streak of that length: one expected day a week is the least.
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

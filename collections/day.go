package collections

import (
	"sync"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// StartOfDay returns the first moment of a time's calendar day in its own location. If the clocks skip midnight (Cairo, Asunción), the day
// starts after the gap; if midnight occurs twice, at the first one.
func StartOfDay(at time.Time) time.Time {
	year, month, date := at.Date()
	return startOfDay(year, month, date, at.Location())
}

// StartOfNextDay returns the first moment of the following day; a day may have 23 or 25 hours.
func StartOfNextDay(at time.Time) time.Time {
	year, month, date := at.Date()
	return startOfDay(year, month, date+1, at.Location())
}

// ParseDay returns the first moment of a day, such as 2026-01-15, in a zone. It returns zero for any other text.
func ParseDay(day string, zone *time.Location) time.Time {
	at, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return time.Time{}
	}
	year, month, date := at.Date()
	return startOfDay(year, month, date, zone)
}

func startOfDay(year int, month time.Month, date int, zone *time.Location) time.Time {
	day := time.Date(year, month, date, 0, 0, 0, 0, time.UTC).Format(time.DateOnly)
	start := time.Date(year, month, date, 0, 0, 0, 0, zone)
	for start.Format(time.DateOnly) < day {
		start = start.Add(30 * time.Minute)
	}
	for earlier := start.Add(-30 * time.Minute); earlier.Format(time.DateOnly) == day; earlier = earlier.Add(-30 * time.Minute) {
		start = earlier
	}
	return start
}

// zoneCache caches time zones by name, because the standard library reads them from disk on each load. It is a process-wide variable: time
// zones never change.
var zoneCache sync.Map

// Zone returns the time zone with an IANA name, or the practice's if the name is empty or unknown.
func Zone(name string, practice *time.Location) *time.Location {
	if name == "" {
		return practice
	}
	if known, ok := zoneCache.Load(name); ok {
		return known.(*time.Location)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return practice
	}
	zoneCache.Store(name, zone)
	return zone
}

// practiceZone is the key of the practice's time zone in the app's store.
const practiceZone = "vigil.practice_zone"

// SetPracticeZone sets the practice's time zone of an app.
func SetPracticeZone(app core.App, zone *time.Location) { app.Store().Set(practiceZone, zone) }

// PracticeZone returns the practice's time zone, UTC if it is not set.
func PracticeZone(app core.App) *time.Location {
	if zone, ok := app.Store().Get(practiceZone).(*time.Location); ok && zone != nil {
		return zone
	}
	return time.UTC
}

// ZoneOfPatient returns the time zone of a patient.
func ZoneOfPatient(app core.App, patientID string, practice *time.Location) (*time.Location, error) {
	name, err := queryValue[string](app, "find the patient's time zone", `SELECT time_zone FROM patients WHERE id = {:id}`, dbx.Params{"id": patientID})
	return Zone(name, practice), err
}

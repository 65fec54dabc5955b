package collections

import (
	"sync"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// StartOfDay is the first moment of the calendar day that a time falls on in its own location. Where the clocks skip midnight, as in Cairo
// or Asunción, that is later than the hour that does not exist; where midnight comes twice it is the first one.
func StartOfDay(at time.Time) time.Time {
	year, month, date := at.Date()
	return startOfDay(year, month, date, at.Location())
}

// StartOfNextDay is the first moment of the day after; a day may last 23 or 25 hours.
func StartOfNextDay(at time.Time) time.Time {
	year, month, date := at.Date()
	return startOfDay(year, month, date+1, at.Location())
}

// ParseDay is the first moment of a day, written 2026-01-15, in a zone; zero for anything else.
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

// zones are the time zones asked for so far, by name. The standard library reads them from disk each time; they never change.
var zones sync.Map

// Zone is a person's time zone by its IANA name; the practice's when there is no name, or one that is unknown here.
func Zone(name string, practice *time.Location) *time.Location {
	if name == "" {
		return practice
	}
	if known, ok := zones.Load(name); ok {
		return known.(*time.Location)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return practice
	}
	zones.Store(name, zone)
	return zone
}

// practiceZone is the key of the practice's time zone in the app's store.
const practiceZone = "vigil.practice_zone"

// SetPracticeZone tells the app, for as long as it runs, where the practice's days begin.
func SetPracticeZone(app core.App, zone *time.Location) { app.Store().Set(practiceZone, zone) }

// PracticeZone is where the practice's days begin; UTC for an app that was not told.
func PracticeZone(app core.App) *time.Location {
	if zone, ok := app.Store().Get(practiceZone).(*time.Location); ok && zone != nil {
		return zone
	}
	return time.UTC
}

// ZoneOfPatient is the time zone of a patient.
func ZoneOfPatient(app core.App, patientID string, practice *time.Location) (*time.Location, error) {
	name, err := queryValue[string](app, "find the patient's time zone", `SELECT time_zone FROM patients WHERE id = {:id}`, dbx.Params{"id": patientID})
	return Zone(name, practice), err
}

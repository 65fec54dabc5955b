package collections

import (
	"sync"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

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

// ZoneOfPatient is the time zone of a patient.
func ZoneOfPatient(app core.App, patientID string, practice *time.Location) (*time.Location, error) {
	name, err := queryValue[string](app, "find the patient's time zone", `SELECT time_zone FROM patients WHERE id = {:id}`, dbx.Params{"id": patientID})
	return Zone(name, practice), err
}

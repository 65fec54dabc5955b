package ingest

import (
	"fmt"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// SaveAssignment stores with save who held a device and when, and counts anew the days that this changes, inside the caller's transaction:
// which readings count for billing depends on who held the device when they were taken.
// Source: docs/decisions/billing.md, "30-day period and the 16 days (99454)".
func SaveAssignment(tx core.App, record *core.Record, practice *time.Location, save func() error) error {
	stored := core.NewRecord(record.Collection()) // a new one was nobody's
	if !record.IsNew() {
		var err error
		if stored, err = tx.FindRecordById(record.Collection(), record.Id); err != nil {
			return fmt.Errorf("find the assignment: %w", err)
		}
	}
	if err := save(); err != nil {
		return err
	}
	before, after := collections.AsDeviceAssignment(stored), collections.AsDeviceAssignment(record)
	since := firstOf(before.From(), after.From())
	if before.From().Equal(after.From()) && before.PatientID() == after.PatientID() && before.DeviceID() == after.DeviceID() {
		if before.To().Equal(after.To()) {
			return nil
		}
		since = firstOf(before.To(), after.To())
	}
	for _, patient := range slices.Compact([]string{before.PatientID(), after.PatientID()}) {
		if patient == "" {
			continue
		}
		zone, err := collections.ZoneOfPatient(tx, patient, practice)
		if err != nil {
			return err
		}
		if err := RecountDays(tx, patient, zone, since); err != nil {
			return err
		}
	}
	return nil
}

// firstOf is the earlier of two moments; a zero one has not come.
func firstOf(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// RecountDays counts the days with data of a patient anew inside the caller's transaction, from the day in which the given moment lies; from
// the zero moment, all of them. Days always stand in the zone the patient is in now. Source: docs/decisions/conventions.md, "Practice and time zone".
func RecountDays(tx core.App, patientID string, zone *time.Location, since time.Time) error {
	days := collections.Days{PatientID: patientID}
	if !since.IsZero() {
		days.From = collections.StartOfDay(since.In(zone))
	}
	counted, err := countDays(tx, zone, days)
	if err != nil {
		return err
	}
	return replaceDays(tx, days, counted)
}

// countDays counts the days with data from the readings that hold; which of them count for billing is as [Assess] has it.
func countDays(app core.App, zone *time.Location, of collections.Days) (map[patientDay]dayCount, error) {
	readings, err := collections.ReadingsOfDays(app, of)
	if err != nil {
		return nil, err
	}
	days := map[patientDay]dayCount{}
	for _, r := range readings {
		key := patientDay{of.PatientID, collections.ParseInstant(r.MeasuredAt).In(zone).Format(time.DateOnly), r.Kind}
		days[key] = days[key].plus(r.ID, r.FromDevice)
	}
	return days, nil
}

// replaceDays puts days with data in the place of those that are stored.
func replaceDays(tx core.App, which collections.Days, days map[patientDay]dayCount) error {
	if err := collections.ForgetDays(tx, which); err != nil {
		return err
	}
	return storeDays(tx, days)
}

package ingest

import (
	"fmt"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// SaveAssignment saves a device assignment with save and recounts the patients' days that it changes, in the caller's transaction: readings
// count for billing by the holder of the device at the time. Source: docs/decisions/billing.md, "30-day period and the 16 days (99454)".
func SaveAssignment(tx core.App, record *core.Record, practice *time.Location, save func() error) error {
	stored := core.NewRecord(record.Collection()) // a new assignment has no old holder
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
		zones, err := collections.ZonesOfPatient(tx, patient, practice)
		if err != nil {
			return err
		}
		if err := RecountDays(tx, patient, zones, since); err != nil {
			return err
		}
	}
	return nil
}

// firstOf returns the earlier of two times; a zero time is never.
func firstOf(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// RecountDays recounts a patient's days with data in the caller's transaction, from the day of since on; all of them for the zero time.
// Source: docs/decisions/conventions.md, "Practice and time zone".
func RecountDays(tx core.App, patientID string, zones collections.DatedZones, since time.Time) error {
	days := collections.DayFilter{PatientID: patientID}
	if !since.IsZero() {
		days.First = since.UTC().AddDate(0, 0, -1).Format(time.DateOnly) // a zone later on may be behind
	}
	counted, err := countDays(tx, zones, days)
	if err != nil {
		return err
	}
	return replaceDays(tx, days, counted)
}

// countDays counts the days with data from the stored readings, by the billing rule of [Assess].
func countDays(app core.App, zones collections.DatedZones, of collections.DayFilter) (map[patientDay]dayCount, error) {
	readings, err := collections.ReadingsOfDays(app, of)
	if err != nil {
		return nil, err
	}
	days := map[patientDay]dayCount{}
	for _, r := range readings {
		if key := (patientDay{of.PatientID, zones.Day(collections.ParseInstant(r.MeasuredAt)), r.Kind}); of.Has(key.day) {
			days[key] = days[key].plus(r.ID, r.FromDevice)
		}
	}
	return days, nil
}

// replaceDays replaces the stored days with data.
func replaceDays(tx core.App, which collections.DayFilter, days map[patientDay]dayCount) error {
	if err := collections.DeleteReadingDays(tx, which); err != nil {
		return err
	}
	return storeDays(tx, days)
}

// patientDay is a key of reading_days: a patient's day with data. Its fields are in the order of the columns.
type patientDay struct{ patient, day, kind string }

type dayCount struct {
	first                 string // observation
	readings, fromDevices int
}

// plus returns the count with one more reading.
func (c dayCount) plus(observation string, fromDevice bool) dayCount {
	if c.readings == 0 {
		c.first = observation
	}
	c.readings++
	if fromDevice {
		c.fromDevices++
	}
	return c
}

// storeDays adds readings to the days with data.
func storeDays(tx core.App, counted map[patientDay]dayCount) error {
	days := make([][]any, 0, len(counted))
	for key, day := range counted {
		days = append(days, []any{key.patient, key.day, key.kind, day.first, day.readings, day.fromDevices})
	}
	if err := collections.AddReadingDays.Store(tx, days); err != nil {
		return fmt.Errorf("store reading days: %w", err)
	}
	return nil
}

package observations

import (
	"fmt"
	"slices"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// FollowAssignment stores with save who held a device and when, and counts anew the days that this changes, inside the caller's transaction:
// which readings count for billing depends on who held the device when they were taken.
// Source: docs/decisions/billing.md, "30-day period and the 16 days (99454)".
func FollowAssignment(tx core.App, record *core.Record, practice *time.Location, save func() error) error {
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
		zone, err := zoneOf(tx, patient, practice)
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
	readings, days := dbx.Expression(nil), dbx.Expression(dbx.HashExp{"patient": patientID})
	if !since.IsZero() {
		from := collections.StartOfDay(since.In(zone))
		readings = dbx.NewExp("measured_at >= {:from}", dbx.Params{"from": collections.Instant(from)})
		days = dbx.And(days, dbx.NewExp("day >= {:day}", dbx.Params{"day": from.Format(time.DateOnly)}))
	}
	counted, err := countDays(tx, patientID, zone, readings)
	if err != nil {
		return err
	}
	return replaceDays(tx, days, counted)
}

// zoneOf is the time zone of a patient.
func zoneOf(tx core.App, patientID string, practice *time.Location) (*time.Location, error) {
	var name string
	err := tx.DB().NewQuery(`SELECT time_zone FROM patients WHERE id = {:id}`).Bind(dbx.Params{"id": patientID}).Row(&name)
	return collections.Zone(name, practice), failed("find the patient's time zone", err)
}

// fromDevice says whether a reading counts for billing, as [Assess] has it.
var fromDevice = fmt.Sprintf("(source != '%s' AND device_id != '' AND patient IS (%s)) AS from_device", vitals.SourcePortal,
	collections.DeviceHolderQuery("observations.device_id", "observations.measured_at"))

// countDays counts the days with data of a patient from the readings that hold and match; nil matches all.
func countDays(app core.App, patientID string, zone *time.Location, match dbx.Expression) (map[patientDay]dayCount, error) {
	var readings []struct {
		ID         string `db:"id"`
		Kind       string `db:"observation_type"`
		MeasuredAt string `db:"measured_at"`
		FromDevice bool   `db:"from_device"`
	}
	err := app.DB().Select("id", "observation_type", "measured_at", fromDevice).From(collections.Observations).
		Where(dbx.HashExp{"patient": patientID, "status": collections.StatusFinal}).AndWhere(match).OrderBy("measured_at", "id").All(&readings)
	if err != nil {
		return nil, failed("count days with data", err)
	}
	days := map[patientDay]dayCount{}
	for _, r := range readings {
		key := patientDay{patientID, collections.ParseInstant(r.MeasuredAt).In(zone).Format(time.DateOnly), r.Kind}
		days[key] = days[key].with(r.ID, r.FromDevice)
	}
	return days, nil
}

// replaceDays puts days with data in the place of those that match.
func replaceDays(tx core.App, match dbx.Expression, days map[patientDay]dayCount) error {
	if _, err := tx.NonconcurrentDB().Delete("reading_days", match).Execute(); err != nil {
		return fmt.Errorf("empty reading days: %w", err)
	}
	return storeDays(tx, days)
}

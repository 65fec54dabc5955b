package collections

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// Upserts of the stored totals of readings. Source: docs/decisions/observations.md.
var (
	// AddDailyCounts has the columns day, kind, status and readings.
	AddDailyCounts = NewRowInsert("daily_counts", "day, observation_type, status, readings",
		"ON CONFLICT (day, observation_type, status) DO UPDATE SET readings = readings + excluded.readings")
	// AddReadingDays has the columns patient, day, kind, first observation, readings, and device readings.
	AddReadingDays = NewRowInsert("reading_days", "patient, day, observation_type, first_observation, readings, device_readings",
		`ON CONFLICT (patient, day, observation_type) DO UPDATE
			SET readings = readings + excluded.readings, device_readings = device_readings + excluded.device_readings`)
)

// DayFilter selects days of a patient, and of a kind unless "". First and Last are dates, both inclusive; "" is open.
type DayFilter struct {
	PatientID, Kind, First, Last string
}

func (d DayFilter) where() Conditions {
	return Conditions{dbx.HashExp{"patient": d.PatientID}}.Equal("observation_type", d.Kind)
}

// Has reports whether a date is selected.
func (d DayFilter) Has(day string) bool { return d.First <= day && (d.Last == "" || day <= d.Last) }

// DatedReading is a final reading, as day counts need it.
type DatedReading struct {
	ID         string `db:"id"`
	Kind       string `db:"observation_type"`
	MeasuredAt string `db:"measured_at"`
	FromDevice bool   `db:"from_device"` // a device assigned to the patient at that time
}

// IsTransmitted is an observation that no person typed: it came from a device, a program or a vendor's file. A reading stored before
// origins were recorded has the origin of its source.
func IsTransmitted(observation string) string {
	return "(" + observation + ".origin IN ('device', 'machine', 'import') OR " + observation + ".origin = '' AND " + observation + ".source = 'gateway')"
}

// ReadingsOfDays returns the final readings of the days, in any zone and in order. Typed readings are never from a device, even if they name one.
func ReadingsOfDays(app core.App, d DayFilter) (found []DatedReading, err error) {
	where := d.where().And(anyKind(app))
	from, to := DatedZones{}.Bounds(d.First, d.Last)
	if !from.IsZero() {
		where = append(where, dbx.NewExp("measured_at >= {:from}", dbx.Params{"from": FormatInstant(from)}))
	}
	if !to.IsZero() {
		where = append(where, dbx.NewExp("measured_at < {:to}", dbx.Params{"to": FormatInstant(to)}))
	}
	err = app.DB().Select("id", "observation_type", "measured_at", "("+IsTransmitted("observations")+" AND device_id != '' AND patient IS ("+
		DeviceHolderQuery("observations.device_id", "observations.measured_at")+")) AS from_device").From(Observations).
		Where(AllOf(append(where, dbx.HashExp{"status": StatusFinal}))).OrderBy("measured_at", "id").All(&found)
	return found, wrap(err, "count days with data")
}

// DeleteReadingDays deletes the stored days with data.
func DeleteReadingDays(tx core.App, d DayFilter) error {
	where := append(d.where(), dbx.NewExp("day >= {:first}", dbx.Params{"first": d.First}))
	if d.Last != "" {
		where = append(where, dbx.NewExp("day <= {:last}", dbx.Params{"last": d.Last}))
	}
	_, err := tx.NonconcurrentDB().Delete("reading_days", AllOf(where)).Execute()
	return wrap(err, "delete reading days")
}

func dateOf(at time.Time) string { return at.Format(time.DateOnly) }

// StoredDay is a stored day with data.
type StoredDay struct {
	Day      string `db:"day"`
	Kind     string `db:"observation_type"`
	Readings int    `db:"readings"`
	Devices  int    `db:"device_readings"`
}

// StoredDays returns a patient's stored days.
func StoredDays(app core.App, patientID string) ([]StoredDay, error) {
	return queryAll[StoredDay](app, "read days with data", `SELECT day, observation_type, readings, device_readings FROM reading_days WHERE patient = {:patient}`,
		dbx.Params{"patient": patientID})
}

// TotalReadings sums the stored totals of days, both inclusive, of a kind unless "".
func TotalReadings(app core.App, first, last, kind string) (int, error) {
	return queryValue[int](app, "add up daily counts", `SELECT COALESCE(SUM(readings), 0) FROM daily_counts
		WHERE day BETWEEN {:first} AND {:last} AND ({:kind} = '' OR observation_type = {:kind})`, dbx.Params{"first": first, "last": last, "kind": kind})
}

// NextDayToCount returns the next reading from a time on and the next day with a total, each by an index; "" for none.
func NextDayToCount(app core.App, from time.Time) (measured, day string, err error) {
	err = app.DB().NewQuery(`SELECT COALESCE((SELECT MIN(measured_at) FROM observations WHERE measured_at >= {:from}), ''),
		COALESCE((SELECT MIN(day) FROM daily_counts WHERE day >= {:day}), '')`).
		Bind(dbx.Params{"from": FormatInstant(from), "day": dateOf(from)}).Row(&measured, &day)
	return measured, day, wrap(err, "find the next day with readings")
}

const countedTotals = `SELECT observation_type, status, COUNT(*) FROM observations WHERE measured_at >= {:from} AND measured_at < {:to} GROUP BY 1, 2`

func totalParams(day time.Time) dbx.Params {
	return dbx.Params{"day": dateOf(day), "from": FormatInstant(day), "to": FormatInstant(StartOfNextDay(day))}
}

// TotalsDiffer reports whether the stored totals of a day differ from its readings. day is the start of the day.
func TotalsDiffer(app core.App, day time.Time) (bool, error) {
	return queryValue[bool](app, "compare the totals of a day", `WITH counted AS MATERIALIZED (`+countedTotals+`),
			totals AS (SELECT observation_type, status, readings FROM daily_counts WHERE day = {:day} AND readings != 0)
		SELECT EXISTS (SELECT * FROM counted EXCEPT SELECT * FROM totals) OR EXISTS (SELECT * FROM totals EXCEPT SELECT * FROM counted)`, totalParams(day))
}

// RecountTotals replaces the totals of a day by a new count.
func RecountTotals(tx core.App, day time.Time) error {
	if err := exec(tx, "delete the totals of a day", `DELETE FROM daily_counts WHERE day = {:day}`, totalParams(day)); err != nil {
		return err
	}
	return exec(tx, "recount the totals of a day",
		`INSERT INTO daily_counts (day, observation_type, status, readings) SELECT {:day}, * FROM (`+countedTotals+`)`, totalParams(day))
}

// MoveTotalToError moves one reading from the total of a status to that of readings entered in error. It does nothing if the day has no total
// of its kind.
func MoveTotalToError(tx core.App, day, kind, from string) error {
	const of = ` WHERE day = {:day} AND observation_type = {:kind} AND status = {:from}`
	for _, statement := range []string{
		`INSERT INTO daily_counts (day, observation_type, status, readings)
			SELECT day, observation_type, 'entered_in_error', 1 FROM daily_counts` + of + `
			ON CONFLICT (day, observation_type, status) DO UPDATE SET readings = readings + 1`,
		`UPDATE daily_counts SET readings = readings - 1` + of,
		`DELETE FROM daily_counts` + of + ` AND readings <= 0`,
	} {
		if err := exec(tx, "correct daily count", statement, dbx.Params{"day": day, "kind": kind, "from": from}); err != nil {
			return err
		}
	}
	return nil
}

// ProcessingTime is the number of readings of a bucket with a processing time in milliseconds, and their total time.
type ProcessingTime struct {
	Bucket   string `db:"bucket" json:"b"`
	MS       int64  `db:"ms" json:"m"`
	Readings int    `db:"readings" json:"n"`
	TotalUS  int64  `db:"total_us" json:"u"`
}

// ProcessingTimes returns those of a range of buckets, in order.
func ProcessingTimes(app core.App, first, last time.Time) ([]ProcessingTime, error) {
	return queryAll[ProcessingTime](app, "read processing times",
		`SELECT bucket, ms, readings, total_us FROM processing_times WHERE bucket BETWEEN {:first} AND {:last} ORDER BY bucket, ms`,
		dbx.Params{"first": FormatInstant(first), "last": FormatInstant(last)})
}

// AddProcessingTimes adds processing times with one statement.
func AddProcessingTimes(tx core.App, list []ProcessingTime) error {
	encoded, err := json.Marshal(list)
	if err != nil {
		return fmt.Errorf("encode processing times: %w", err)
	}
	return exec(tx, "store processing times", `INSERT INTO processing_times (bucket, ms, readings, total_us)
		SELECT value ->> 'b', value ->> 'm', value ->> 'n', value ->> 'u' FROM json_each({:list}) WHERE TRUE
		ON CONFLICT (bucket, ms) DO UPDATE SET readings = readings + excluded.readings, total_us = total_us + excluded.total_us`,
		dbx.Params{"list": string(encoded)})
}

// DayCount is the number of readings of a kind on a day.
type DayCount struct {
	Day      string `db:"day"`
	Kind     string `db:"observation_type"`
	Readings int    `db:"readings"`
}

// ReadingDays returns a patient's daily readings by kind, both ends inclusive.
func ReadingDays(app core.App, patientID, first, last string) ([]DayCount, error) {
	return queryAll[DayCount](app, "read reading days", `SELECT day, observation_type, readings FROM reading_days
		WHERE patient = {:patient} AND day BETWEEN {:first} AND {:last}`, dbx.Params{"patient": patientID, "first": first, "last": last})
}

// DailyCounts returns the practice's final daily readings by kind, both ends inclusive.
func DailyCounts(app core.App, first, last string) ([]DayCount, error) {
	return queryAll[DayCount](app, "read daily counts", `SELECT day, observation_type, readings FROM daily_counts
		WHERE day BETWEEN {:first} AND {:last} AND status = 'final'`, dbx.Params{"first": first, "last": last})
}

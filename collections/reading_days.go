package collections

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// What the readings of a transaction add to the sums that are kept. Source: docs/decisions/observations.md.
var (
	// AddDailyCounts takes day, kind, status and readings.
	AddDailyCounts = NewRowInsert("daily_counts", "day, observation_type, status, readings",
		"ON CONFLICT (day, observation_type, status) DO UPDATE SET readings = readings + excluded.readings")
	// AddReadingDays takes patient, day, kind, the first observation, readings, and those of devices.
	AddReadingDays = NewRowInsert("reading_days", "patient, day, observation_type, first_observation, readings, device_readings",
		`ON CONFLICT (patient, day, observation_type) DO UPDATE
			SET readings = readings + excluded.readings, device_readings = device_readings + excluded.device_readings`)
)

// Days are those of a patient, and of a kind unless "". From and To are where a day begins in the patient's zone, or zero; From is
// included.
type Days struct {
	PatientID, Kind string
	From, To        time.Time
}

// where chooses rows by a column that begins with the day or the time, as layout writes it.
func (d Days) where(column string, layout func(time.Time) string) Conditions {
	c := Conditions{dbx.HashExp{"patient": d.PatientID}}.Equal("observation_type", d.Kind)
	if !d.From.IsZero() {
		c = append(c, dbx.NewExp(column+" >= {:from}", dbx.Params{"from": layout(d.From)}))
	}
	if !d.To.IsZero() {
		c = append(c, dbx.NewExp(column+" < {:to}", dbx.Params{"to": layout(d.To)}))
	}
	return c
}

// DatedReading is a reading that holds, as days count it.
type DatedReading struct {
	ID         string `db:"id"`
	Kind       string `db:"observation_type"`
	MeasuredAt string `db:"measured_at"`
	FromDevice bool   `db:"from_device"` // which the patient held then
}

// Transmitted is the condition that no person typed the reading of an observation: it came from a device, a program or a vendor's file. One
// that was stored before its origin was noted has the origin of its source.
func Transmitted(observation string) string {
	return "(" + observation + ".origin IN ('device', 'machine', 'import') OR " + observation + ".origin = '' AND " + observation + ".source = 'gateway')"
}

// ReadingsOfDays are the readings that hold, in order; what a person typed is from no device, whichever they named.
func ReadingsOfDays(app core.App, d Days) (found []DatedReading, err error) {
	err = app.DB().Select("id", "observation_type", "measured_at", "("+Transmitted("observations")+" AND device_id != '' AND patient IS ("+
		DeviceHolderQuery("observations.device_id", "observations.measured_at")+")) AS from_device").From(Observations).
		Where(Every(append(d.where("measured_at", Instant).And(anyKind(app)), dbx.HashExp{"status": StatusFinal}))).OrderBy("measured_at", "id").All(&found)
	return found, wrap(err, "count days with data")
}

// ForgetDays empties the days with data.
func ForgetDays(tx core.App, d Days) error {
	_, err := tx.NonconcurrentDB().Delete("reading_days", Every(d.where("day", dateOf))).Execute()
	return wrap(err, "empty reading days")
}

func dateOf(at time.Time) string { return at.Format(time.DateOnly) }

// StoredDay is a day with data as it is stored.
type StoredDay struct {
	Day      string `db:"day"`
	Kind     string `db:"observation_type"`
	Readings int    `db:"readings"`
	Devices  int    `db:"device_readings"`
}

// StoredDays are a patient's.
func StoredDays(app core.App, patientID string) ([]StoredDay, error) {
	return queryAll[StoredDay](app, "read days with data", `SELECT day, observation_type, readings, device_readings FROM reading_days WHERE patient = {:patient}`,
		dbx.Params{"patient": patientID})
}

// TotalReadings is how many readings the totals of some days have, both included, of a kind unless "".
func TotalReadings(app core.App, first, last, kind string) (int, error) {
	return queryValue[int](app, "add up daily counts", `SELECT COALESCE(SUM(readings), 0) FROM daily_counts
		WHERE day BETWEEN {:first} AND {:last} AND ({:kind} = '' OR observation_type = {:kind})`, dbx.Params{"first": first, "last": last, "kind": kind})
}

// NextCounted are the next reading from a time on and the next day with a total, each found by an index; "" for none.
func NextCounted(app core.App, from time.Time) (measured, day string, err error) {
	err = app.DB().NewQuery(`SELECT COALESCE((SELECT MIN(measured_at) FROM observations WHERE measured_at >= {:from}), ''),
		COALESCE((SELECT MIN(day) FROM daily_counts WHERE day >= {:day}), '')`).
		Bind(dbx.Params{"from": Instant(from), "day": dateOf(from)}).Row(&measured, &day)
	return measured, day, wrap(err, "find the next day with readings")
}

const countedTotals = `SELECT observation_type, status, COUNT(*) FROM observations WHERE measured_at >= {:from} AND measured_at < {:to} GROUP BY 1, 2`

func totalOf(day time.Time) dbx.Params {
	return dbx.Params{"day": dateOf(day), "from": Instant(day), "to": Instant(StartOfNextDay(day))}
}

// TotalsDiffer reports whether the totals of a day, which begins at the given time, are not those of its readings.
func TotalsDiffer(app core.App, day time.Time) (bool, error) {
	return queryValue[bool](app, "compare the totals of a day", `WITH counted AS MATERIALIZED (`+countedTotals+`),
			totals AS (SELECT observation_type, status, readings FROM daily_counts WHERE day = {:day} AND readings != 0)
		SELECT EXISTS (SELECT * FROM counted EXCEPT SELECT * FROM totals) OR EXISTS (SELECT * FROM totals EXCEPT SELECT * FROM counted)`, totalOf(day))
}

// CountTotals counts the totals of a day anew.
func CountTotals(tx core.App, day time.Time) error {
	if err := exec(tx, "empty the totals of a day", `DELETE FROM daily_counts WHERE day = {:day}`, totalOf(day)); err != nil {
		return err
	}
	return exec(tx, "count the totals of a day anew",
		`INSERT INTO daily_counts (day, observation_type, status, readings) SELECT {:day}, * FROM (`+countedTotals+`)`, totalOf(day))
}

// MoveTotal moves one reading from the total of a status to that of those entered in error. Where the day has no total of its kind it stays.
func MoveTotal(tx core.App, day, kind, from string) error {
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

// Timing is how many readings of a bucket took so many milliseconds, and what they took together.
type Timing struct {
	Bucket   string `db:"bucket" json:"b"`
	MS       int64  `db:"ms" json:"m"`
	Readings int    `db:"readings" json:"n"`
	TotalUS  int64  `db:"total_us" json:"u"`
}

// Timings are those of the buckets from one to another, in order.
func Timings(app core.App, first, last time.Time) ([]Timing, error) {
	return queryAll[Timing](app, "read processing times",
		`SELECT bucket, ms, readings, total_us FROM processing_times WHERE bucket BETWEEN {:first} AND {:last} ORDER BY bucket, ms`,
		dbx.Params{"first": Instant(first), "last": Instant(last)})
}

// AddTimings adds to the processing times: one statement, however many there are.
func AddTimings(tx core.App, list []Timing) error {
	encoded, err := json.Marshal(list)
	if err != nil {
		return fmt.Errorf("encode processing times: %w", err)
	}
	return exec(tx, "store processing times", `INSERT INTO processing_times (bucket, ms, readings, total_us)
		SELECT value ->> 'b', value ->> 'm', value ->> 'n', value ->> 'u' FROM json_each({:list}) WHERE TRUE
		ON CONFLICT (bucket, ms) DO UPDATE SET readings = readings + excluded.readings, total_us = total_us + excluded.total_us`,
		dbx.Params{"list": string(encoded)})
}

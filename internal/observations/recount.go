package observations

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// patientsAtATime is how many patients' days are compared by one query, so that none reads for long.
const patientsAtATime = 500

// Recount compares the sums that are kept with the observations they are sums of, and puts right what differs: the totals per day of the
// practice, and the days with data of each patient. A difference is a fault somewhere, or the practice has moved to another time zone. It
// returns how many days were compared, and how many days, and days of patients whose days were wrong, were counted anew.
func (e *Engine) Recount(ctx context.Context, app core.App) (days, wrong int, err error) {
	days, wrong, err = e.recountTotals(ctx, app)
	if err != nil {
		return days, wrong, err
	}
	ofPatients, err := e.recountPatients(ctx, app)
	return days, wrong + ofPatients, err
}

// recountTotals goes through the days from the first that has a reading or a total to the last.
func (e *Engine) recountTotals(ctx context.Context, app core.App) (days, wrong int, err error) {
	var first, last, firstKept, lastKept string
	err = app.DB().NewQuery(`SELECT COALESCE(MIN(measured_at), ''), COALESCE(MAX(measured_at), '') FROM observations`).Row(&first, &last)
	if err == nil {
		err = app.DB().NewQuery(`SELECT COALESCE(MIN(day), ''), COALESCE(MAX(day), '') FROM daily_counts`).Row(&firstKept, &lastKept)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("find the days with readings: %w", err)
	}
	zone := e.rules.PracticeZone
	day, end := collections.StartOfDay(collections.ParseInstant(first).In(zone)), collections.StartOfDay(collections.ParseInstant(last).In(zone))
	if kept := collections.ParseDay(firstKept, zone); !kept.IsZero() && (first == "" || kept.Before(day)) {
		day = kept
	}
	if kept := collections.ParseDay(lastKept, zone); !kept.IsZero() && (last == "" || kept.After(end)) {
		end = kept
	}
	if first == "" && firstKept == "" {
		return 0, 0, nil
	}
	for ; !day.After(end); day = collections.StartOfNextDay(day) {
		if err := ctx.Err(); err != nil {
			return days, wrong, err
		}
		differs, err := recountTotal(app, day)
		if err != nil {
			return days, wrong, err
		}
		days++
		if differs {
			wrong++
		}
	}
	return days, wrong, nil
}

const (
	countedTotals = `SELECT observation_type, status, COUNT(*) FROM observations WHERE measured_at >= {:from} AND measured_at < {:to} GROUP BY 1, 2`
	keptTotals    = `SELECT observation_type, status, readings FROM daily_counts WHERE day = {:day} AND readings != 0`
)

// recountTotal compares one day first beside the writer, and only what differs again in its stead.
func recountTotal(app core.App, day time.Time) (differs bool, err error) {
	params := dbx.Params{
		"day": day.Format(time.DateOnly), "from": collections.Instant(day), "to": collections.Instant(collections.StartOfNextDay(day)),
	}
	compare := func(db dbx.Builder) error {
		return db.NewQuery(`SELECT EXISTS (SELECT * FROM (` + countedTotals + `) EXCEPT ` + keptTotals + `)
			OR EXISTS (` + keptTotals + ` EXCEPT SELECT * FROM (` + countedTotals + `))`).Bind(params).Row(&differs)
	}
	if err := compare(app.DB()); err != nil || !differs {
		return false, failed("compare the totals of a day", err)
	}
	err = app.RunInTransaction(func(tx core.App) error {
		if err := compare(tx.NonconcurrentDB()); err != nil || !differs {
			return err
		}
		for _, statement := range []string{
			`DELETE FROM daily_counts WHERE day = {:day}`,
			`INSERT INTO daily_counts (day, observation_type, status, readings) SELECT {:day}, * FROM (` + countedTotals + `)`,
		} {
			if _, err := tx.NonconcurrentDB().NewQuery(statement).Bind(params).Execute(); err != nil {
				return err
			}
		}
		return nil
	})
	return differs, failed("count the totals of a day anew", err)
}

// recountPatients compares how many readings the days with data hold with how many there are, for each patient and kind.
func (e *Engine) recountPatients(ctx context.Context, app core.App) (days int, err error) {
	for after := ""; ctx.Err() == nil; {
		var ids []string
		err := app.DB().NewQuery(`SELECT id FROM patients WHERE id > {:after} ORDER BY id LIMIT +{:limit}`).
			Bind(dbx.Params{"after": after, "limit": patientsAtATime}).Column(&ids)
		if err != nil || len(ids) == 0 {
			return days, failed("list patients", err)
		}
		after = ids[len(ids)-1]
		wrong, err := miscounted(app, ids)
		if err != nil {
			return days, err
		}
		for _, id := range wrong {
			n, err := e.recountPatient(app, id)
			if err != nil {
				return days, err
			}
			days += n
		}
	}
	return days, ctx.Err()
}

// miscounted are those of the patients whose days with data do not add up to their readings.
func miscounted(db core.App, ids []string) (wrong []string, err error) {
	list, err := json.Marshal(ids)
	if err != nil {
		return nil, err
	}
	const (
		among   = `patient IN (SELECT value FROM json_each({:ids}))`
		counted = `SELECT patient, observation_type, COUNT(*) FROM observations WHERE ` + among + ` AND status = '` + collections.StatusFinal + `' GROUP BY 1, 2`
		kept    = `SELECT patient, observation_type, SUM(readings) FROM reading_days WHERE ` + among + ` GROUP BY 1, 2 HAVING SUM(readings) != 0`
	)
	err = db.DB().NewQuery(`SELECT DISTINCT patient FROM (SELECT * FROM (` + counted + ` EXCEPT ` + kept + `)
		UNION ALL SELECT * FROM (` + kept + ` EXCEPT ` + counted + `))`).Bind(dbx.Params{"ids": string(list)}).Column(&wrong)
	return wrong, failed("compare days with data", err)
}

// recountPatient counts a patient's days anew, by the time zone the patient is in now, unless they add up after all.
func (e *Engine) recountPatient(app core.App, id string) (days int, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		if wrong, err := miscounted(tx, []string{id}); err != nil || len(wrong) == 0 {
			return err
		}
		zone, err := e.zoneOf(tx, id)
		if err != nil {
			return err
		}
		counted, err := countDays(tx, id, zone, nil)
		if err != nil {
			return err
		}
		days = max(1, len(counted))
		return replaceDays(tx, dbx.HashExp{"patient": id}, counted)
	})
	return days, err
}

// zoneOf is the time zone of a patient.
func (e *Engine) zoneOf(tx core.App, patientID string) (*time.Location, error) {
	var name string
	err := tx.DB().NewQuery(`SELECT time_zone FROM patients WHERE id = {:id}`).Bind(dbx.Params{"id": patientID}).Row(&name)
	return collections.Zone(name, e.rules.PracticeZone), failed("find the patient's time zone", err)
}

// countDays counts the days with data of a patient from the readings that hold and match; nil matches all.
func countDays(tx core.App, patientID string, zone *time.Location, match dbx.Expression) (map[patientDay]dayCount, error) {
	var readings []struct {
		ID         string `db:"id"`
		Kind       string `db:"observation_type"`
		DeviceID   string `db:"device_id"`
		MeasuredAt string `db:"measured_at"`
		Source     string `db:"source"`
	}
	err := tx.DB().Select("id", "observation_type", "device_id", "measured_at", "source").From(collections.Observations).
		Where(dbx.HashExp{"patient": patientID, "status": collections.StatusFinal}).AndWhere(match).OrderBy("measured_at", "id").All(&readings)
	if err != nil {
		return nil, failed("count days with data", err)
	}
	days := map[patientDay]dayCount{}
	for _, r := range readings {
		at, holder := collections.ParseInstant(r.MeasuredAt), ""
		if r.DeviceID != "" && r.Source != string(vitals.SourcePortal) {
			if holder, err = collections.DeviceHolder(tx, r.DeviceID, at); err != nil {
				return nil, err
			}
		}
		key := patientDay{patientID, at.In(zone).Format(time.DateOnly), r.Kind}
		days[key] = days[key].with(r.ID, holder == patientID)
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

// failed says what failed, if anything did.
func failed(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

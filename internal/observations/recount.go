package observations

import (
	"context"
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// patientsAtATime is how many patients are listed by one query; their days are compared one patient after the other, so that no query and no
// transaction lasts longer than one of them takes.
const patientsAtATime = 500

// Recount compares the sums that are kept with all observations they are sums of, and puts right what differs:
//   - the totals of the practice: the readings of each day in the practice's time zone, by kind and status;
//   - the days with data of each patient: for each day in the patient's time zone and each kind the readings that hold, and how many of
//     them count for billing, because they came from a device that the patient held then.
//
// Which reading of a day was the first is not compared. A difference is a fault somewhere, or the practice has moved to another time zone.
// It returns how many days of the practice were compared, and how many of those and of the patients' days were wrong and counted anew.
func (e *Engine) Recount(ctx context.Context, app core.App) (days, wrong int, err error) {
	days, wrong, err = e.recountTotals(ctx, app)
	if err != nil {
		return days, wrong, err
	}
	ofPatients, err := e.recountPatients(ctx, app)
	return days, wrong + ofPatients, err
}

// recountTotals goes through the days that have a reading or a total, the oldest first.
func (e *Engine) recountTotals(ctx context.Context, app core.App) (days, wrong int, err error) {
	for from := (time.Time{}); ctx.Err() == nil; days++ {
		day, err := e.nextTotal(app, from)
		if err != nil || day.IsZero() {
			return days, wrong, err
		}
		differs, err := recountTotal(app, day)
		if err != nil {
			return days, wrong, err
		}
		if differs {
			wrong++
		}
		from = collections.StartOfNextDay(day)
	}
	return days, wrong, ctx.Err()
}

// nextDays finds the next reading and the next total, each by an index.
const nextDays = `SELECT COALESCE((SELECT MIN(measured_at) FROM observations WHERE measured_at >= {:from}), ''),
	COALESCE((SELECT MIN(day) FROM daily_counts WHERE day >= {:day}), '')`

// nextTotal is the first day from the given one on that has a reading or a total, in the practice's zone; zero when there is none.
func (e *Engine) nextTotal(app core.App, from time.Time) (next time.Time, err error) {
	var measured, kept string
	err = app.DB().NewQuery(nextDays).Bind(dbx.Params{"from": collections.Instant(from), "day": from.Format(time.DateOnly)}).Row(&measured, &kept)
	if err != nil {
		return next, fmt.Errorf("find the next day with readings: %w", err)
	}
	if measured != "" {
		next = collections.StartOfDay(collections.ParseInstant(measured).In(e.rules.PracticeZone))
	}
	if day := collections.ParseDay(kept, e.rules.PracticeZone); !day.IsZero() && (measured == "" || day.Before(next)) {
		next = day
	}
	return next, nil
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
		return db.NewQuery(`WITH counted AS MATERIALIZED (` + countedTotals + `), kept AS (` + keptTotals + `)
			SELECT EXISTS (SELECT * FROM counted EXCEPT SELECT * FROM kept) OR EXISTS (SELECT * FROM kept EXCEPT SELECT * FROM counted)`).
			Bind(params).Row(&differs)
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

// recountPatients compares the days with data of one patient after the other. Only those who differ are compared again in the writer's
// stead, since a reading may have come while they were looked at.
func (e *Engine) recountPatients(ctx context.Context, app core.App) (wrong int, err error) {
	for after := ""; ctx.Err() == nil; {
		var ids []string
		err := app.DB().NewQuery(`SELECT id FROM patients WHERE id > {:after} ORDER BY id LIMIT +{:limit}`).
			Bind(dbx.Params{"after": after, "limit": patientsAtATime}).Column(&ids)
		if err != nil || len(ids) == 0 {
			return wrong, failed("list patients", err)
		}
		after = ids[len(ids)-1]
		for _, id := range ids {
			if ctx.Err() != nil {
				break
			}
			_, differ, err := e.miscounted(app, id)
			if err == nil && differ > 0 {
				differ, err = e.recountPatient(app, id)
			}
			if err != nil {
				return wrong, err
			}
			wrong += differ
		}
	}
	return wrong, ctx.Err()
}

// miscounted counts the patient's days with data, by the time zone the patient is in now, and how many of the kept ones differ from that.
func (e *Engine) miscounted(app core.App, id string) (counted map[patientDay]dayCount, wrong int, err error) {
	zone, err := zoneOf(app, id, e.rules.PracticeZone)
	if err != nil {
		return nil, 0, err
	}
	if counted, err = countDays(app, id, zone, nil); err != nil {
		return nil, 0, err
	}
	var kept []struct {
		Day      string `db:"day"`
		Kind     string `db:"observation_type"`
		Readings int    `db:"readings"`
		Devices  int    `db:"device_readings"`
	}
	err = app.DB().Select("day", "observation_type", "readings", "device_readings").From("reading_days").
		Where(dbx.HashExp{"patient": id}).All(&kept)
	wrong = len(counted)
	for _, row := range kept {
		is, exists := counted[patientDay{id, row.Day, row.Kind}]
		switch right := is.readings == row.Readings && is.fromDevices == row.Devices; {
		case exists && right:
			wrong--
		case !exists && !right:
			wrong++
		}
	}
	return counted, wrong, failed("read days with data", err)
}

// recountPatient counts a patient's days anew, unless they add up after all.
func (e *Engine) recountPatient(app core.App, id string) (wrong int, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		counted, differ, err := e.miscounted(tx, id)
		if err != nil || differ == 0 {
			return err
		}
		wrong = differ
		return replaceDays(tx, dbx.HashExp{"patient": id}, counted)
	})
	return wrong, err
}

// failed says what failed, if anything did.
func failed(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

package ingest

import (
	"context"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// patientsPerQuery is how many patients are listed by one query; their days are compared one patient after the other, so that no query and no
// transaction lasts longer than one of them takes.
const patientsPerQuery = 500

// Recount compares the sums that are kept with all observations they are sums of, and puts right what differs:
//   - the totals of the practice: the readings of each day in the practice's time zone, by kind and status;
//   - the days with data of each patient: for each day in the patient's time zone and each kind the readings that hold, and how many of
//     them count for billing, because they came from a device that the patient held then.
//
// Which reading of a day was the first is not compared. A difference is a fault somewhere, or the practice has moved to another time zone.
// It returns how many days of the practice were compared, and how many of those and of the patients' days were wrong and counted anew.
func (e *Evaluator) Recount(ctx context.Context, app core.App) (days, wrong int, err error) {
	days, wrong, err = e.recountTotals(ctx, app)
	if err != nil {
		return days, wrong, err
	}
	ofPatients, err := e.recountPatients(ctx, app)
	return days, wrong + ofPatients, err
}

// recountTotals goes through the days that have a reading or a total, the oldest first.
func (e *Evaluator) recountTotals(ctx context.Context, app core.App) (days, wrong int, err error) {
	for from := (time.Time{}); ctx.Err() == nil; days++ {
		day, err := e.nextDayToCompare(app, from)
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

// nextDayToCompare is the first day from the given one on that has a reading or a total, in the practice's zone; zero when there is none.
func (e *Evaluator) nextDayToCompare(app core.App, from time.Time) (next time.Time, err error) {
	measured, stored, err := collections.NextCounted(app, from)
	if err != nil {
		return next, err
	}
	if measured != "" {
		next = collections.StartOfDay(collections.ParseInstant(measured).In(e.rules.PracticeZone))
	}
	if day := collections.ParseDay(stored, e.rules.PracticeZone); !day.IsZero() && (measured == "" || day.Before(next)) {
		next = day
	}
	return next, nil
}

// recountTotal compares one day first beside the writer, and only what differs again in its stead.
func recountTotal(app core.App, day time.Time) (differs bool, err error) {
	if differs, err = collections.TotalsDiffer(app, day); err != nil || !differs {
		return false, err
	}
	err = app.RunInTransaction(func(tx core.App) error {
		if differs, err = collections.TotalsDiffer(tx, day); err != nil || !differs {
			return err
		}
		return collections.CountTotals(tx, day)
	})
	return differs, err
}

// recountPatients compares the days with data of one patient after the other. Only those who differ are compared again in the writer's
// stead, since a reading may have come while they were looked at.
func (e *Evaluator) recountPatients(ctx context.Context, app core.App) (wrong int, err error) {
	for after := ""; ctx.Err() == nil; {
		ids, err := collections.PatientsAfter(app, after, patientsPerQuery)
		if err != nil || len(ids) == 0 {
			return wrong, err
		}
		after = ids[len(ids)-1]
		for _, id := range ids {
			if ctx.Err() != nil {
				break
			}
			_, differ, err := e.countDifferences(app, id)
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

// countDifferences counts the patient's days with data, by the time zone the patient is in now, and how many of the kept ones differ from that.
func (e *Evaluator) countDifferences(app core.App, id string) (counted map[patientDay]dayCount, wrong int, err error) {
	zone, err := collections.ZoneOfPatient(app, id, e.rules.PracticeZone)
	if err != nil {
		return nil, 0, err
	}
	if counted, err = countDays(app, zone, collections.Days{PatientID: id}); err != nil {
		return nil, 0, err
	}
	stored, err := collections.StoredDays(app, id)
	wrong = len(counted)
	for _, row := range stored {
		is, exists := counted[patientDay{id, row.Day, row.Kind}]
		switch right := is.readings == row.Readings && is.fromDevices == row.Devices; {
		case exists && right:
			wrong--
		case !exists && !right:
			wrong++
		}
	}
	return counted, wrong, err
}

// recountPatient counts a patient's days anew, unless they add up after all.
func (e *Evaluator) recountPatient(app core.App, id string) (wrong int, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		counted, differ, err := e.countDifferences(tx, id)
		if err != nil || differ == 0 {
			return err
		}
		wrong = differ
		return replaceDays(tx, collections.Days{PatientID: id}, counted)
	})
	return wrong, err
}

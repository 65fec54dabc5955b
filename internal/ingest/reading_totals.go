package ingest

import (
	"context"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// patientsPerQuery is how many patients one query lists; each is compared separately, so that no query or transaction takes longer than one
// patient.
const patientsPerQuery = 500

// Recount compares the stored totals with the observations and corrects differences:
//   - the practice's totals: the readings of each day in the practice's time zone, by kind and status;
//   - each patient's days with data in the patient's time zone of the time: by kind, the readings that count, and how many of them count for billing,
//     because they came from a device that the patient had then.
//
// The first reading of a day is not compared. A difference means a bug or a change of the practice's time zone. Recount returns how many
// days of the practice were compared, and how many days of the practice and of patients were corrected.
func (rs *ReadingStore) Recount(ctx context.Context, app core.App) (days, wrong int, err error) {
	days, wrong, err = rs.recountTotals(ctx, app)
	if err != nil {
		return days, wrong, err
	}
	ofPatients, err := rs.recountPatients(ctx, app)
	return days, wrong + ofPatients, err
}

// recountTotals compares the days that have a reading or a total, oldest first.
func (rs *ReadingStore) recountTotals(ctx context.Context, app core.App) (days, wrong int, err error) {
	for from := (time.Time{}); ctx.Err() == nil; days++ {
		day, err := rs.nextDayToCompare(app, from)
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

// nextDayToCompare returns the first day, from the given one on, with a reading or a total in the practice's zone; zero for none.
func (rs *ReadingStore) nextDayToCompare(app core.App, from time.Time) (next time.Time, err error) {
	measured, stored, err := collections.NextDayToCount(app, from)
	if err != nil {
		return next, err
	}
	if measured != "" {
		next = collections.StartOfDay(collections.ParseInstant(measured).In(rs.rules.PracticeZone))
	}
	if day := collections.ParseDay(stored, rs.rules.PracticeZone); !day.IsZero() && (measured == "" || day.Before(next)) {
		next = day
	}
	return next, nil
}

// recountTotal compares one day outside a transaction first, and only a differing one again inside one.
func recountTotal(app core.App, day time.Time) (differs bool, err error) {
	if differs, err = collections.TotalsDiffer(app, day); err != nil || !differs {
		return false, err
	}
	err = app.RunInTransaction(func(tx core.App) error {
		if differs, err = collections.TotalsDiffer(tx, day); err != nil || !differs {
			return err
		}
		return collections.RecountTotals(tx, day)
	})
	return differs, err
}

// recountPatients compares the days of one patient after the other. A differing one is compared again in a transaction, since a reading may
// have been stored in between.
func (rs *ReadingStore) recountPatients(ctx context.Context, app core.App) (wrong int, err error) {
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
			_, differ, err := rs.countDifferences(app, id)
			if err == nil && differ > 0 {
				differ, err = rs.recountPatient(app, id)
			}
			if err != nil {
				return wrong, err
			}
			wrong += differ
		}
	}
	return wrong, ctx.Err()
}

// countDifferences counts the patient's days with data, and how many stored ones differ.
func (rs *ReadingStore) countDifferences(app core.App, id string) (counted map[patientDay]dayCount, wrong int, err error) {
	zones, err := collections.ZonesOfPatient(app, id, rs.rules.PracticeZone)
	if err != nil {
		return nil, 0, err
	}
	if counted, err = countDays(app, zones, collections.DayFilter{PatientID: id}); err != nil {
		return nil, 0, err
	}
	stored, err := collections.StoredDays(app, id)
	wrong = len(counted)
	for _, row := range stored {
		is, exists := counted[patientDay{id, row.Day, row.Kind}]
		switch equal := is.readings == row.Readings && is.fromDevices == row.Devices; {
		case exists && equal:
			wrong--
		case !exists && !equal:
			wrong++
		}
	}
	return counted, wrong, err
}

// recountPatient corrects a patient's days, unless they no longer differ.
func (rs *ReadingStore) recountPatient(app core.App, id string) (wrong int, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		counted, differ, err := rs.countDifferences(tx, id)
		if err != nil || differ == 0 {
			return err
		}
		wrong = differ
		return replaceDays(tx, collections.DayFilter{PatientID: id}, counted)
	})
	return wrong, err
}

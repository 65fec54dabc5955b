package vitalsummary

import (
	"context"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// From so many readings on so many days a week's mean says something: twelve on three days.
// Source: docs/decisions/fhir.md, "Mean blood pressure"; Shimbo et al., Circulation 142:e42 (2020).
const (
	leastReadings = 12
	leastDays     = 3
	daysOfWeek    = 7
	// weeksBack is how many weeks that are over are looked at: readings come late.
	weeksBack = 2
)

// Week is a patient's blood pressure in a week that is over, Monday to Sunday where the patient is.
type Week struct {
	PatientID string
	From, To  string // dates
	// Enough: its mean says something.
	Enough bool
}

// EachWeek goes through the weeks that are over of all patients whom the EMR knows.
func (r *Reader) EachWeek(ctx context.Context, app core.App, now time.Time, do func(Week) error) error {
	patients, err := collections.PatientsAtEMR(app, string(vitals.BloodPressure), now.AddDate(0, 0, -daysOfWeek*(weeksBack+1)))
	if err != nil {
		return err
	}
	for _, p := range patients {
		zone := collections.Zone(p.TimeZone, r.practice)
		for back := 1; back <= weeksBack; back++ {
			if err := ctx.Err(); err != nil {
				return err
			}
			week := Week{PatientID: p.PatientID}
			week.From, week.To = weekBefore(now.In(zone), back)
			mean, days, err := meanOf(app, p.PatientID, week.From, week.To, zone)
			if err != nil {
				return err
			}
			week.Enough = mean.Readings >= leastReadings && days >= leastDays
			if err := do(week); err != nil {
				return err
			}
		}
	}
	return nil
}

// weekBefore are the Monday and the Sunday of a week before the one of a moment.
func weekBefore(now time.Time, back int) (monday, sunday string) {
	year, month, day := now.Date()
	today := time.Date(year, month, day, 12, 0, 0, 0, time.UTC) // dates: no zone may move them
	sinceMonday := (int(today.Weekday()) + daysOfWeek - int(time.Monday)) % daysOfWeek
	from := today.AddDate(0, 0, -sinceMonday-daysOfWeek*back)
	return from.Format(time.DateOnly), from.AddDate(0, 0, daysOfWeek-1).Format(time.DateOnly)
}

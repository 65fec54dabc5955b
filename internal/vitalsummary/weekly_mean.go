package vitalsummary

import (
	"context"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// The minimum of readings and days for a meaningful weekly mean. Source: docs/decisions/fhir.md, "Mean blood pressure"; Shimbo et al.,
// Circulation 142:e42 (2020).
const (
	minReadings = 12
	minDays     = 3
	daysOfWeek  = 7
	// weeksToCheck is how many past weeks are checked, because readings may be late.
	weeksToCheck = 2
)

// Week is a patient's blood pressure of a past week, Monday to Sunday in the patient's time zone.
type Week struct {
	PatientID string
	From, To  string // dates
	// HasEnough: there are enough readings for a mean.
	HasEnough bool
}

// EachWeek calls do for the past weeks of all patients with an EMR record.
func (r *Reader) EachWeek(ctx context.Context, app core.App, now time.Time, do func(Week) error) error {
	patients, err := collections.LinkedPatientsWithReadings(app, string(vitals.BloodPressure), now.AddDate(0, 0, -daysOfWeek*(weeksToCheck+1)))
	if err != nil {
		return err
	}
	for _, p := range patients {
		zone := collections.Zone(p.TimeZone, r.practice)
		for back := 1; back <= weeksToCheck; back++ {
			if err := ctx.Err(); err != nil {
				return err
			}
			week := Week{PatientID: p.PatientID}
			week.From, week.To = weekDates(now.In(zone), back)
			mean, days, err := meanOf(app, p.PatientID, week.From, week.To, zone)
			if err != nil {
				return err
			}
			week.HasEnough = mean.Readings >= minReadings && days >= minDays
			if err := do(week); err != nil {
				return err
			}
		}
	}
	return nil
}

// weekDates returns the Monday and Sunday of a week before the current one.
func weekDates(now time.Time, back int) (monday, sunday string) {
	year, month, day := now.Date()
	today := time.Date(year, month, day, 12, 0, 0, 0, time.UTC) // dates: no zone may move them
	sinceMonday := (int(today.Weekday()) + daysOfWeek - int(time.Monday)) % daysOfWeek
	from := today.AddDate(0, 0, -sinceMonday-daysOfWeek*back)
	return from.Format(time.DateOnly), from.AddDate(0, 0, daysOfWeek-1).Format(time.DateOnly)
}

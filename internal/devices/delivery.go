package devices

import (
	"time"

	"github.com/rickar/cal/v2"
	"github.com/rickar/cal/v2/us"
)

// workdays are Monday to Friday without the federal holidays of the United States, as they are observed.
var workdays = func() *cal.BusinessCalendar {
	calendar := cal.NewBusinessCalendar()
	calendar.Cacheable = true
	calendar.AddHoliday(us.Holidays...)
	return calendar
}()

// DeliveryDate is the date, YYYY-MM-DD, so many working days after today in the practice's zone.
// Source: docs/decisions/devices.md, "Device assignment".
func DeliveryDate(now time.Time, zone *time.Location, workingDays int) string {
	year, month, day := now.In(zone).Date()
	today := time.Date(year, month, day, 12, 0, 0, 0, time.UTC) // a calendar date: no zone may move it
	if workingDays == 0 {
		return today.Format(time.DateOnly)
	}
	return workdays.WorkdaysFrom(today, workingDays).Format(time.DateOnly)
}

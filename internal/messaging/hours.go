package messaging

import (
	"fmt"
	"regexp"
	"time"
)

// Hours is the time of day, in the patient's time zone, in which messages may be sent: From is
// included, Until is not; both have the form 08:00. Source: 47 CFR 64.1200(c)(1), which sets 8 a.m.
// to 9 p.m. at the called party's location for solicitations.
type Hours struct{ From, Until string }

var hoursForm = regexp.MustCompile(`^(([01]\d|2[0-3]):[0-5]\d)-((?:[01]\d|2[0-3]):[0-5]\d|24:00)$`)

// ParseHours reads hours such as 08:00-21:00. They cannot include midnight.
func ParseHours(text string) (Hours, error) {
	parts := hoursForm.FindStringSubmatch(text)
	if parts == nil || parts[1] >= parts[3] {
		return Hours{}, fmt.Errorf("%q is not a range of hours such as 08:00-21:00", text)
	}
	return Hours{From: parts[1], Until: parts[3]}, nil
}

// Include reports whether messages may be sent at a time.
func (h Hours) Include(at time.Time, zone *time.Location) bool {
	local := at.In(zone).Format("15:04")
	return h.From <= local && local < h.Until
}

// Next returns the first time from at on that is within the hours.
func (h Hours) Next(at time.Time, zone *time.Location) time.Time {
	if h.Include(at, zone) {
		return at
	}
	local := at.In(zone)
	var hour, minute int
	if _, err := fmt.Sscanf(h.From, "%d:%d", &hour, &minute); err != nil {
		return at // unreachable: ParseHours checked the form
	}
	for days := range 3 {
		opens := time.Date(local.Year(), local.Month(), local.Day()+days, hour, minute, 0, 0, zone)
		for end := opens.Add(2 * time.Hour); opens.Before(end) && !h.Include(opens, zone); { // a clock that was set forward skips the first minutes
			opens = opens.Add(time.Minute)
		}
		if !opens.Before(at) && h.Include(opens, zone) {
			return opens
		}
	}
	return at.Add(24 * time.Hour) // a range that clocks skip altogether, such as 02:00-03:00 on one day of the year
}

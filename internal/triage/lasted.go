package triage

import (
	"fmt"
	"time"
)

// lasted says how long something is as people say it: two days and more in days.
func lasted(d time.Duration) string {
	const inDays = 48 * time.Hour
	switch hours := int(d.Hours()); {
	case d >= inDays:
		return fmt.Sprintf("%d days", hours/24)
	case hours == 1:
		return "1 hour"
	default:
		return fmt.Sprintf("%d hours", hours)
	}
}

package triage

import (
	"fmt"
	"time"
)

// formatDuration renders a duration in hours, or in days from 48 hours.
func formatDuration(d time.Duration) string {
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

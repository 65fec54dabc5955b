package notifications

import (
	"fmt"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/access"
)

const (
	// eveningHour begins the night that a digest is about.
	eveningHour = 18
	// A patient is on track with readings on 16 days of the last 30.
	paceDays, paceWindow = 16, 30
)

// writeDigest sums up the night, by role: alerts, escalations and pace for those who treat, pace for medical assistants, billing for those
// who bill. "" is nothing to report. Source: docs/decisions/notifications.md, "Daily digest".
func writeDigest(app core.App, user *collections.User, local time.Time) (string, error) {
	role := access.Role(user.Role())
	scope := collections.Scope("")
	if clinicians[role] {
		own, err := collections.OwnPatients(app, user.Id)
		if err != nil {
			return "", err
		}
		if own > 0 {
			scope = collections.Scope(user.Id)
		}
	}
	var parts []string
	if clinicians[role] || role == access.Admin {
		night, err := nightly(app, scope, local)
		if err != nil {
			return "", err
		}
		parts = append(parts, night...)
	}
	if role != access.DataMonitor {
		since := local.AddDate(0, 0, -paceWindow).Format(time.DateOnly)
		behind, err := collections.PatientsBehind(app, scope, since, paceDays)
		if err != nil {
			return "", err
		}
		if behind > 0 {
			parts = append(parts, fmt.Sprintf("Patients below %d days of readings: %d.", paceDays, behind))
		}
	}
	if billers[role] {
		tasks, err := writeBillingTasks(app, user, local)
		if err != nil {
			return "", err
		}
		if tasks != "" {
			parts = append(parts, tasks)
		}
	}
	return strings.Join(parts, "\n"), nil
}

// nightly is what happened since the evening before.
func nightly(app core.App, scope collections.Scope, local time.Time) (parts []string, err error) {
	evening := time.Date(local.Year(), local.Month(), local.Day()-1, eveningHour, 0, 0, 0, local.Location())
	levels, err := collections.AlertsSince(app, scope, evening)
	if err != nil {
		return nil, err
	}
	var counted []string
	for _, level := range []string{"critical", "warning", "no_data"} {
		if levels[level] > 0 {
			counted = append(counted, fmt.Sprintf("%d %s", levels[level], strings.ReplaceAll(level, "_", " ")))
		}
	}
	if len(counted) > 0 {
		parts = append(parts, "Alerts since "+evening.Format("15:04")+": "+strings.Join(counted, ", ")+".")
	}
	open, err := collections.OpenEscalations(app, scope)
	if err == nil && open > 0 {
		parts = append(parts, fmt.Sprintf("Open escalations: %d.", open))
	}
	return parts, err
}

package notifications

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
)

// defaultReminderTime is the local time of reminders without a time preference.
const defaultReminderTime = "09:00"

// clinicians are the roles that review patients. Source: docs/decisions/dashboard.md, "Role-dependent sections".
var clinicians = map[authz.Role]bool{authz.ClinicalManager: true, authz.Provider: true, authz.Nurse: true}

// billers are the roles that work on claims.
var billers = map[authz.Role]bool{authz.Admin: true, authz.DataMonitor: true}

// Remind announces what is due by each user's local time: daily digests, pending reviews and billing tasks. It may run at any frequency: each
// reminder is announced once a day, and one without content at its time is skipped for that day. It returns the number of announcements.
// Source: docs/decisions/notifications.md, "Daily digest" and "Reminders".
func Remind(app core.App, practice *time.Location, now time.Time) (announced int, err error) {
	people, err := collections.UserList(app, collections.UserFilter{Active: new(true)})
	if err != nil {
		return 0, err
	}
	ids := make([]string, len(people))
	for i, user := range people {
		ids[i] = user.Id
	}
	chosen, err := collections.PreferencesOf(app, ids)
	if err != nil {
		return 0, err
	}
	var failures []error
	for _, user := range people {
		preferences := decodePreferences(chosen[user.Id], user.TimeZone())
		n, err := remindOne(app, user, preferences, now.In(preferences.location(practice)))
		if announced += n; err != nil {
			failures = append(failures, fmt.Errorf("user %d: %w", user.Number(), err))
		}
	}
	return announced, errors.Join(failures...)
}

// reminder is an announcement to one user, at most once a day.
type reminder struct {
	kind    Kind
	at      string // HH:MM
	isDaily bool   // every day; otherwise on Mondays
	write   func(app core.App, user *collections.User, local time.Time) (body string, err error)
}

func remindOne(app core.App, user *collections.User, p Preferences, local time.Time) (announced int, err error) {
	role := authz.Role(user.Role())
	var due []reminder
	if daily := p.Channels.DailyDigest; role != authz.Patient && (daily.Push || daily.InApp) {
		due = append(due, reminder{DigestReady, daily.Time, true, writeDigest})
	}
	if clinicians[role] {
		due = append(due, reminder{ReviewsPending, defaultReminderTime, true, writeReviews})
	}
	if billers[role] {
		due = append(due, reminder{BillingTasksPending, defaultReminderTime, false, writeBillingTasks})
	}
	var failures []error
	for _, r := range due {
		if local.Format("15:04") < r.at || !r.isDaily && local.Weekday() != time.Monday {
			continue
		}
		wasAnnounced, err := r.announce(app, user, local)
		if wasAnnounced {
			announced++
		}
		failures = append(failures, err)
	}
	return announced, errors.Join(failures...)
}

// announce stores the reminder unless it was handled today or has no content.
func (r reminder) announce(app core.App, user *collections.User, local time.Time) (wasAnnounced bool, err error) {
	key := string(r.kind) + "/" + user.Id + "/" + local.Format(time.DateOnly)
	if done, err := collections.Announced(app, key); done || err != nil {
		return false, err
	}
	body, err := r.write(app, user, local)
	if err != nil {
		return false, err
	}
	closedAt := time.Time{}
	if body == "" {
		closedAt = local // a closed announcement without text marks the day as done
	}
	err = announce(app, Announcement{Kind: r.kind, Severity: "info", UserID: user.Id, Body: body, Key: key}, closedAt, local)
	return body != "" && err == nil, err
}

func writeReviews(app core.App, user *collections.User, _ time.Time) (string, error) {
	waiting, err := collections.CountPatientsToReview(app, user.Id)
	if err != nil || waiting == 0 {
		return "", err
	}
	return "Patients waiting for your review: " + fmt.Sprint(waiting) + ".", nil
}

func writeBillingTasks(app core.App, _ *collections.User, _ time.Time) (string, error) {
	counts, err := collections.BillingByStatus(app)
	if err != nil || counts["pending_review"]+counts["reviewed"]+counts["denied"] == 0 {
		return "", err
	}
	return billingCounts(counts), nil
}

func billingCounts(counts map[string]int) string {
	return fmt.Sprintf("Billing: %d pending review, %d reviewed, %d denied.", counts["pending_review"], counts["reviewed"], counts["denied"])
}

// RemindEach calls remind for each id in a transaction of its own, and returns how many succeeded.
func RemindEach(ctx context.Context, app core.App, ids []string, remind func(tx core.App, id string) error) (reminded int, err error) {
	for _, id := range ids {
		if err := ctx.Err(); err != nil {
			return reminded, err
		}
		if err := app.RunInTransaction(func(tx core.App) error { return remind(tx, id) }); err != nil {
			return reminded, err
		}
		reminded++
	}
	return reminded, nil
}

const (
	// eveningHour is the start of the night that a digest covers.
	eveningHour = 18
	// A patient is on track with readings on 16 of the last 30 days.
	onTrackDays, onTrackWindow = 16, 30
)

// writeDigest summarizes the night by role: alerts, escalations and patients behind for clinicians and administrators, patients behind for medical
// assistants, and billing tasks for billers. It returns "" if there is nothing to report. Source: docs/decisions/notifications.md, "Daily digest".
func writeDigest(app core.App, user *collections.User, local time.Time) (string, error) {
	role := authz.Role(user.Role())
	careTeamOf := ""
	if clinicians[role] {
		own, err := collections.CountTeamPatients(app, user.Id)
		if err != nil {
			return "", err
		}
		if own > 0 {
			careTeamOf = user.Id
		}
	}
	var parts []string
	if clinicians[role] || role == authz.Admin {
		night, err := nightSummary(app, careTeamOf, local)
		if err != nil {
			return "", err
		}
		parts = append(parts, night...)
	}
	if role != authz.DataMonitor {
		since := local.AddDate(0, 0, -onTrackWindow).Format(time.DateOnly)
		behind, err := collections.CountPatientsBehind(app, careTeamOf, since, onTrackDays)
		if err != nil {
			return "", err
		}
		if behind > 0 {
			parts = append(parts, fmt.Sprintf("Patients below %d days of readings: %d.", onTrackDays, behind))
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

// nightSummary returns alerts since the previous evening, warnings of a day that were not pushed, and open escalations.
func nightSummary(app core.App, careTeamOf string, local time.Time) (parts []string, err error) {
	evening := time.Date(local.Year(), local.Month(), local.Day()-1, eveningHour, 0, 0, 0, local.Location())
	levels, err := collections.CountAlertsSince(app, careTeamOf, evening)
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
	listed, err := collections.CountListedWarnings(app, careTeamOf, local.AddDate(0, 0, -1))
	if err != nil {
		return nil, err
	}
	if listed > 0 { // of the day too: no other notification has them
		parts = append(parts, fmt.Sprintf("Warnings not pushed in the last 24 hours: %d.", listed))
	}
	open, err := collections.CountOpenEscalations(app, careTeamOf)
	if err == nil && open > 0 {
		parts = append(parts, fmt.Sprintf("Open escalations: %d.", open))
	}
	return parts, err
}

package devices

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// maxStaleAge is the maximum age of the newest reading: old readings that are sent later do not describe the device now.
const maxStaleAge = 7 * 24 * time.Hour

// ComparedValues returns the compared values of a reading as text; "" if it lacks one that its kind compares, such as SpO2, or has a
// meter's HI or LO.
func ComparedValues(r vitals.Reading) string {
	rule := r.Kind.Definition().Stale
	var same strings.Builder
	for _, p := range slices.Concat(rule.Of, rule.Also) {
		value := r.Value(p)
		switch {
		case value != nil:
			fmt.Fprintf(&same, "/%.*f", rule.Decimals, vitals.RoundHalfUp(*value, rule.Decimals))
		case slices.Contains(rule.Of, p):
			return ""
		default:
			same.WriteString("/-")
		}
	}
	if r.Qualifier(vitals.Comparator) != "" {
		return ""
	}
	return same.String()
}

// Stale reports whether the newest readings of one kind, newest first, are equal on as many consecutive days in the zone as the kind's rule
// requires, and since when.
func Stale(readings []vitals.Reading, zone *time.Location) (since time.Time, stale bool) {
	if len(readings) == 0 || ComparedValues(readings[0]) == "" {
		return time.Time{}, false
	}
	same, days := ComparedValues(readings[0]), map[string]bool{}
	for _, r := range readings {
		if ComparedValues(r) != same {
			break
		}
		since = r.MeasuredAt
		days[since.In(zone).Format(time.DateOnly)] = true
	}
	year, month, date := readings[0].MeasuredAt.In(zone).Date()
	for back := range readings[0].Kind.Definition().Stale.Days {
		if !days[time.Date(year, month, date-back, 12, 0, 0, 0, time.UTC).Format(time.DateOnly)] {
			return since, false
		}
	}
	return since, true
}

// CheckStale checks the patients and kinds with readings stored after since, and raises one stale_reading warning for each run of equal
// values. since is the start of the last successful check, zero for none.
func (e *Engine) CheckStale(ctx context.Context, app core.App, since, now time.Time) (seen, raised int, err error) {
	if earliest := now.Add(-maxStaleAge); since.Before(earliest) {
		since = earliest
	}
	rows, err := collections.RecentlyMeasured(app, since)
	if err != nil {
		return 0, 0, err
	}
	for _, row := range rows {
		if err := ctx.Err(); err != nil {
			return seen, raised, err
		}
		seen++
		stale, err := e.checkStale(app, row, now)
		if err != nil {
			return seen, raised, err
		}
		if stale {
			raised++
		}
	}
	return seen, raised, nil
}

func (e *Engine) checkStale(app core.App, row collections.MeasuredKind, now time.Time) (raised bool, err error) {
	kind, zone := vitals.Kind(row.Kind), collections.Zone(row.TimeZone, e.rules.PracticeZone)
	lastAlert, err := collections.LastAlertMeasured(app, row.PatientID, alerts.TypeStaleReading, row.Kind)
	if err != nil {
		return false, err
	}
	readings, err := recentReadings(app, row.PatientID, kind, lastAlert, now)
	if err != nil || len(readings) == 0 || readings[0].MeasuredAt.Before(now.Add(-maxStaleAge)) {
		return false, err
	}
	since, stale := Stale(readings, zone)
	if !stale || (!lastAlert.IsZero() && !since.After(lastAlert)) {
		return false, nil // no run, or one that has an alert
	}
	newest := readings[0]
	err = app.RunInTransaction(func(tx core.App) error {
		if again, err := collections.LastAlertMeasured(tx, row.PatientID, alerts.TypeStaleReading, row.Kind); err != nil || !again.Equal(lastAlert) {
			return err // another check ran concurrently
		}
		raised = true
		draft := alerts.Draft{
			PatientID: row.PatientID, DeviceID: newest.DeviceID, MeasuredAt: newest.MeasuredAt, OmitsValue: true,
			Finding: alerts.Finding{
				Type: alerts.TypeStaleReading, Level: alerts.Warning, Parameter: string(kind),
				Message: fmt.Sprintf("The same %s values were sent on %d days in a row: the readings may be stale.", kind.Title(), kind.Definition().Stale.Days),
			},
		}
		_, err := raise(tx, deviceAlert{draft: draft, kind: notifications.DeviceAlertRaised}, now)
		return err
	})
	return raised, err
}

// recentReadings reads enough readings of a kind for the rule: the days it compares, and all since the last alert, so that a long run
// alerts once.
func recentReadings(app core.App, patientID string, kind vitals.Kind, lastAlert, now time.Time) ([]vitals.Reading, error) {
	from := now.Add(-maxStaleAge).AddDate(0, 0, -kind.Definition().Stale.Days-1)
	if !lastAlert.IsZero() && lastAlert.Before(from) {
		from = lastAlert
	}
	rule := kind.Definition().Stale
	compared := slices.Concat(rule.Of, rule.Also)
	var readings []vitals.Reading
	columns := "comparator, " + vitals.Columns(compared)
	err := collections.EachReadingNewestFirst(app, patientID, string(kind), from, columns, func(rows *dbx.Rows) error {
		r := vitals.Reading{Kind: kind}
		var measuredAt, comparator string
		values := []any{&measuredAt, &r.DeviceID, &comparator}
		for _, p := range compared {
			values = append(values, r.ValuePtr(p))
		}
		if err := rows.Scan(values...); err != nil {
			return err
		}
		r.MeasuredAt = collections.ParseInstant(measuredAt)
		r.SetQualifier(vitals.Comparator, comparator)
		readings = append(readings, r)
		return nil
	})
	return readings, err
}

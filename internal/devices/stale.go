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

// staleWithin is how old the newest reading may be: history that is brought along later says nothing about a device now.
const staleWithin = 7 * 24 * time.Hour

// Sameness is what of a reading is compared, "" for one that cannot be: without what its kind compares, such as SpO2 without
// a pulse, and a meter's HI or LO.
func Sameness(r vitals.Reading) string {
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
	if r.Says(vitals.Comparator) != "" {
		return ""
	}
	return same.String()
}

// Stale reports whether the newest readings, newest first and all of one kind, say the same on as many consecutive days in
// the zone as the kind's rule has, and since when they have done so.
func Stale(readings []vitals.Reading, zone *time.Location) (since time.Time, stale bool) {
	if len(readings) == 0 || Sameness(readings[0]) == "" {
		return time.Time{}, false
	}
	same, days := Sameness(readings[0]), map[string]bool{}
	for _, r := range readings {
		if Sameness(r) != same {
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

// CheckStale looks at the patients and kinds with readings stored after since, and raises one stale_reading warning for each
// run of equal values. since is the start of the last check that went through, zero for none.
func (e *Engine) CheckStale(ctx context.Context, app core.App, since, now time.Time) (seen, raised int, err error) {
	if earliest := now.Add(-staleWithin); since.Before(earliest) {
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
		stale, err := e.judgeStale(app, row, now)
		if err != nil {
			return seen, raised, err
		}
		if stale {
			raised++
		}
	}
	return seen, raised, nil
}

func (e *Engine) judgeStale(app core.App, row collections.Measured, now time.Time) (raised bool, err error) {
	kind, zone := vitals.Kind(row.Kind), collections.Zone(row.TimeZone, e.rules.PracticeZone)
	told, err := collections.LastAlertMeasured(app, row.PatientID, alerts.TypeStaleReading, row.Kind)
	if err != nil {
		return false, err
	}
	readings, err := runOf(app, row.PatientID, kind, told, now)
	if err != nil || len(readings) == 0 || readings[0].MeasuredAt.Before(now.Add(-staleWithin)) {
		return false, err
	}
	since, stale := Stale(readings, zone)
	if !stale || (!told.IsZero() && !since.After(told)) {
		return false, nil // nothing, or the run that was told of
	}
	newest := readings[0]
	err = app.RunInTransaction(func(tx core.App) error {
		if again, err := collections.LastAlertMeasured(tx, row.PatientID, alerts.TypeStaleReading, row.Kind); err != nil || !again.Equal(told) {
			return err // another check was faster
		}
		raised = true
		draft := alerts.Draft{
			PatientID: row.PatientID, DeviceID: newest.DeviceID, MeasuredAt: newest.MeasuredAt, Unmeasured: true,
			Finding: alerts.Finding{
				Type: alerts.TypeStaleReading, Level: alerts.Warning, Parameter: string(kind),
				Message: fmt.Sprintf("The same %s values came on %d days in a row: the readings may be stale.", kind.Title(), kind.Definition().Stale.Days),
			},
		}
		_, err := raise(tx, alarm{draft: draft, kind: notifications.DeviceAlertRaised}, now)
		return err
	})
	return raised, err
}

// runOf reads enough of the latest readings of a kind to judge them: the days that the rule looks at, and all since the last
// alert, so that a long run is told of once.
func runOf(app core.App, patientID string, kind vitals.Kind, told, now time.Time) ([]vitals.Reading, error) {
	from := now.Add(-staleWithin).AddDate(0, 0, -kind.Definition().Stale.Days-1)
	if !told.IsZero() && told.Before(from) {
		from = told
	}
	rule := kind.Definition().Stale
	compared := slices.Concat(rule.Of, rule.Also)
	var readings []vitals.Reading
	columns := "comparator, " + vitals.Columns(compared)
	err := collections.EachReadingBack(app, patientID, string(kind), from, columns, func(rows *dbx.Rows) error {
		r := vitals.Reading{Kind: kind}
		var measuredAt, comparator string
		values := []any{&measuredAt, &r.DeviceID, &comparator}
		for _, p := range compared {
			values = append(values, r.Slot(p))
		}
		if err := rows.Scan(values...); err != nil {
			return err
		}
		r.MeasuredAt = collections.ParseInstant(measuredAt)
		r.Say(vitals.Comparator, comparator)
		readings = append(readings, r)
		return nil
	})
	return readings, err
}

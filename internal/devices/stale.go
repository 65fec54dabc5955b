package devices

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// staleDays is how many local days in a row with the same values make them suspicious.
// Source: docs/decisions/devices.md, "Stale readings".
var staleDays = map[vitals.Kind]int{vitals.BloodPressure: 5, vitals.Weight: 5, vitals.PulseOximetry: 5, vitals.BloodGlucose: 3}

// staleWithin is how old the newest reading may be: history that is brought along later says nothing about a device now.
const staleWithin = 7 * 24 * time.Hour

// Sameness is what of a reading is compared, "" for one that cannot be: SpO2 without a pulse, and a meter's HI or LO.
func Sameness(r vitals.Reading) string {
	number := func(value *float64) string {
		if value == nil {
			return "-"
		}
		return fmt.Sprintf("%.2f", *value)
	}
	switch {
	case r.Kind == vitals.BloodPressure:
		return number(r.Systolic) + "/" + number(r.Diastolic) + "/" + number(r.Pulse)
	case r.Kind == vitals.Weight && r.WeightKg != nil:
		return fmt.Sprintf("%.1f", vitals.RoundHalfUp(*r.WeightKg, 1))
	case r.Kind == vitals.PulseOximetry && r.Pulse != nil:
		return number(r.SpO2) + "/" + number(r.Pulse)
	case r.Kind == vitals.BloodGlucose && r.Comparator == "":
		return number(r.GlucoseMgDL)
	}
	return ""
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
	for back := range staleDays[readings[0].Kind] {
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
	told, err := lastStale(app, row.PatientID, kind)
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
		if again, err := lastStale(tx, row.PatientID, kind); err != nil || !again.Equal(told) {
			return err // another check was faster
		}
		raised = true
		name := strings.ReplaceAll(string(kind), "_", " ")
		draft := alerts.Draft{
			PatientID: row.PatientID, DeviceID: newest.DeviceID, MeasuredAt: newest.MeasuredAt, Unmeasured: true,
			Finding: alerts.Finding{
				Type: alerts.TypeStaleReading, Level: alerts.Warning, Parameter: string(kind),
				Message: fmt.Sprintf("The same %s values came on %d days in a row: the readings may be stale.", name, staleDays[kind]),
			},
		}
		_, err := raise(tx, alarm{draft: draft, kind: notifications.DeviceAlertRaised}, now)
		return err
	})
	return raised, err
}

// lastStale is the time of the reading for which the last stale_reading alert of a patient and kind was raised; zero for none.
func lastStale(app core.App, patientID string, kind vitals.Kind) (time.Time, error) {
	var at string
	err := app.DB().NewQuery(`SELECT COALESCE(MAX(measured_at), '') FROM alerts
		WHERE patient = {:patient} AND type = 'stale_reading' AND parameter = {:kind}`).
		Bind(dbx.Params{"patient": patientID, "kind": string(kind)}).Row(&at)
	if err != nil {
		return time.Time{}, fmt.Errorf("find stale_reading alert: %w", err)
	}
	return collections.ParseInstant(at), nil
}

// runOf reads enough of the latest readings of a kind to judge them: the days that the rule looks at, and all since the last
// alert, so that a long run is told of once.
func runOf(app core.App, patientID string, kind vitals.Kind, told, now time.Time) ([]vitals.Reading, error) {
	from := now.Add(-staleWithin).AddDate(0, 0, -staleDays[kind]-1)
	if !told.IsZero() && told.Before(from) {
		from = told
	}
	var rows []struct {
		MeasuredAt string   `db:"measured_at"`
		DeviceID   string   `db:"device_id"`
		Systolic   *float64 `db:"systolic"`
		Diastolic  *float64 `db:"diastolic"`
		Pulse      *float64 `db:"pulse"`
		WeightKg   *float64 `db:"weight_kg"`
		SpO2       *float64 `db:"spo2"`
		Glucose    *float64 `db:"glucose_mg_dl"`
		Comparator string   `db:"comparator"`
	}
	err := app.DB().NewQuery(`SELECT measured_at, device_id, systolic, diastolic, pulse, weight_kg, spo2, glucose_mg_dl, comparator FROM observations
		WHERE patient = {:patient} AND observation_type = {:kind} AND measured_at >= {:from} AND status = 'final' ORDER BY measured_at DESC, id DESC`).
		Bind(dbx.Params{"patient": patientID, "kind": string(kind), "from": collections.Instant(from)}).All(&rows)
	if err != nil {
		return nil, fmt.Errorf("read latest readings: %w", err)
	}
	readings := make([]vitals.Reading, len(rows))
	for i, row := range rows {
		readings[i] = vitals.Reading{
			Kind: kind, MeasuredAt: collections.ParseInstant(row.MeasuredAt), DeviceID: row.DeviceID, Systolic: row.Systolic, Diastolic: row.Diastolic,
			Pulse: row.Pulse, WeightKg: row.WeightKg, SpO2: row.SpO2, GlucoseMgDL: row.Glucose, Comparator: row.Comparator,
		}
	}
	return readings, nil
}

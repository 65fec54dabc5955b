package triage

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// loadBaseline reads the values that changes are measured against: those in the window before the latest value, while it counts, and before
// reading; for reading also what makes it suspect or what it may confirm. Snapshots without such values cost nothing.
func loadBaseline(app core.App, snapshots []PatientSnapshot, reading *vitals.Reading, now time.Time) error {
	of := map[string]*PatientSnapshot{}
	var ids []string
	var earliest, latest time.Time
	for i := range snapshots {
		from, to, needed := snapshots[i].baselineSpan(reading, now)
		if !needed {
			continue
		}
		if len(ids) == 0 || from.Before(earliest) {
			earliest = from
		}
		if to.After(latest) {
			latest = to
		}
		of[snapshots[i].PatientID] = &snapshots[i]
		ids = append(ids, snapshots[i].PatientID)
	}
	if len(ids) == 0 {
		return nil
	}
	list, err := json.Marshal(ids)
	if err != nil {
		return fmt.Errorf("list patients with earlier values: %w", err)
	}
	span := dbx.Params{"patients": string(list), "from": collections.FormatInstant(earliest), "to": collections.FormatInstant(latest)}
	for _, parameter := range vitals.ChangeParameters {
		for _, kind := range parameter.Kinds {
			if err := loadBaselineValues(app, of, kind, parameter, span, reading); err != nil {
				return err
			}
		}
	}
	return nil
}

// usualStart is, in SQL, the time of the first of the values that define what is usual: a fixed number before the reading, within a number
// of days.
const usualStart = `min({:from}, COALESCE((SELECT u.measured_at FROM observations u WHERE u.patient = p.value AND u.observation_type = {:kind}
	AND u.measured_at >= {:since} AND u.measured_at < {:at} AND u.status = 'final' ORDER BY u.measured_at DESC LIMIT 1 OFFSET {:before}), {:since}))`

func loadBaselineValues(
	app core.App, of map[string]*PatientSnapshot, kind vitals.Kind, parameter *vitals.Parameter, span dbx.Params, reading *vitals.Reading,
) error {
	from := "{:from}"
	if d := parameter.Suspect; d != nil && reading != nil && reading.Value(parameter) != nil {
		from = usualStart
		span["since"], span["at"] = collections.FormatInstant(reading.MeasuredAt.AddDate(0, 0, -d.Days)), collections.FormatInstant(reading.MeasuredAt)
		span["kind"], span["before"] = string(kind), d.Among-1
	}
	rows, err := app.DB().NewQuery(`SELECT o.patient, o.` + parameter.Column + `, o.measured_at, CASE o.status WHEN 'suspect' THEN o.id ELSE o.review_state END,
			o.suspect_reason, CASE WHEN o.confirmed_by IN ('', '` + alerts.System + `') THEN o.origin ELSE '` + string(vitals.OriginStaff) + `' END
		FROM json_each({:patients}) p CROSS JOIN observations o
		WHERE o.patient = p.value AND o.observation_type = '` + string(kind) + `' AND o.measured_at >= ` + from + ` AND o.measured_at < {:to}
			AND o.status IN ('final', 'suspect') AND o.` + parameter.Column + ` IS NOT NULL`).Bind(span).Rows()
	if err != nil {
		return fmt.Errorf("load earlier values: %w", err)
	}
	defer rows.Close() //nolint:errcheck // Err below reports failures
	for rows.Next() {
		var patient, at, review, reason, origin string
		var value float64
		if err := rows.Scan(&patient, &value, &at, &review, &reason, &origin); err != nil {
			return fmt.Errorf("load an earlier value: %w", err)
		}
		p := of[patient]
		w := alerts.BaselineValue{
			Parameter: parameter, Value: value, MeasuredAt: collections.ParseInstant(at), Confirmed: review == reviewConfirmed, Origin: vitals.Origin(origin),
		}
		if review != "" && review != reviewConfirmed { // review is the observation's id
			p.Suspects = append(p.Suspects, StoredSuspect{w, review, reason})
			continue
		}
		p.Baseline = append(p.Baseline, w)
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("load earlier values: %w", err)
	}
	return nil
}

// reviewConfirmed is the review state of a reading that was suspect and then confirmed.
const reviewConfirmed = "confirmed"

// StoredSuspect is a value that may be another person's, with its observation and reason.
type StoredSuspect struct {
	alerts.BaselineValue
	ID, Reason string
}

// baselineSpan returns the span in which a patient's earlier values are needed, if any.
func (p *PatientSnapshot) baselineSpan(reading *vitals.Reading, now time.Time) (from, to time.Time, needed bool) {
	span := func(first, last time.Time) {
		if from.IsZero() || first.Before(from) {
			from = first
		}
		if last.After(to) {
			to = last
		}
	}
	for _, parameter := range vitals.ChangeParameters {
		rule := p.Thresholds.Change(parameter)
		if latest, measured := p.Latest.Value(parameter); latest != nil && !measured.Before(now.Add(-vitalsWindow)) {
			span(rule.Since(measured, rule.WindowDays), measured)
		}
		if value, measured := p.Latest.recentVerified(parameter, now); value != nil {
			span(rule.Since(measured, rule.WindowDays), measured)
		}
		if reading == nil || reading.Value(parameter) == nil {
			continue
		}
		measured := reading.MeasuredAt
		span(rule.Since(measured, rule.WindowDays), measured)
		if d := parameter.Suspect; d != nil {
			span(measured.Add(-d.Within), measured.Add(d.Within+time.Microsecond)) // the end is exclusive
		}
	}
	return from, to, !from.IsZero()
}

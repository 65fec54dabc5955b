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

// loadWeighings reads what changes are measured against: the values in the window before the latest one, while that counts,
// and before the reading at hand; with it what it is doubted by, and what it may bear out. Pictures without any cost nothing.
func loadWeighings(app core.App, pictures []Picture, reading *vitals.Reading, now time.Time) error {
	of := map[string]*Picture{}
	var ids []string
	var earliest, latest time.Time
	for i := range pictures {
		from, to, needed := pictures[i].weighed(reading, now)
		if !needed {
			continue
		}
		if len(ids) == 0 || from.Before(earliest) {
			earliest = from
		}
		if to.After(latest) {
			latest = to
		}
		of[pictures[i].PatientID] = &pictures[i]
		ids = append(ids, pictures[i].PatientID)
	}
	if len(ids) == 0 {
		return nil
	}
	list, err := json.Marshal(ids)
	if err != nil {
		return fmt.Errorf("list patients with earlier values: %w", err)
	}
	span := dbx.Params{"patients": string(list), "from": collections.Instant(earliest), "to": collections.Instant(latest)}
	for _, parameter := range vitals.Changing {
		for _, kind := range parameter.Kinds {
			if err := loadValues(app, of, kind, parameter, span, reading); err != nil {
				return err
			}
		}
	}
	return nil
}

// usual is where the last values begin that tell what is usual of a parameter: at so many before the reading, or where it is too long ago.
const usual = `min({:from}, COALESCE((SELECT u.measured_at FROM observations u WHERE u.patient = p.value AND u.observation_type = {:kind}
	AND u.measured_at >= {:since} AND u.measured_at < {:at} AND u.status = 'final' ORDER BY u.measured_at DESC LIMIT 1 OFFSET {:before}), {:since}))`

func loadValues(
	app core.App, of map[string]*Picture, kind vitals.Kind, parameter *vitals.Parameter, span dbx.Params, reading *vitals.Reading,
) error {
	from := "{:from}"
	if d := parameter.Doubt; d != nil && reading != nil && reading.Value(parameter) != nil {
		from = usual
		span["since"], span["at"] = collections.Instant(reading.MeasuredAt.AddDate(0, 0, -d.Days)), collections.Instant(reading.MeasuredAt)
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
	defer rows.Close() //nolint:errcheck // Err below tells what went wrong
	for rows.Next() {
		var patient, at, review, reason, origin string
		var value float64
		if err := rows.Scan(&patient, &value, &at, &review, &reason, &origin); err != nil {
			return fmt.Errorf("load an earlier value: %w", err)
		}
		p := of[patient]
		w := alerts.Weighing{
			Of: parameter, Value: value, MeasuredAt: collections.ParseInstant(at), Confirmed: review == confirmed, Origin: vitals.Origin(origin),
		}
		if review != "" && review != confirmed { // it is the observation
			p.Doubted = append(p.Doubted, Doubted{w, review, reason})
			continue
		}
		p.Weighings = append(p.Weighings, w)
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("load earlier values: %w", err)
	}
	return nil
}

// confirmed is how a reading is kept that was doubted once.
const confirmed = "confirmed"

// Doubted is a value that may be somebody else's, its observation, and why it is in doubt.
type Doubted struct {
	alerts.Weighing
	ID, Reason string
}

// weighed says between which times a patient's earlier values are needed, if any are.
func (p *Picture) weighed(reading *vitals.Reading, now time.Time) (from, to time.Time, needed bool) {
	span := func(first, last time.Time) {
		if from.IsZero() || first.Before(from) {
			from = first
		}
		if last.After(to) {
			to = last
		}
	}
	for _, parameter := range vitals.Changing {
		rule := p.Thresholds.Change(parameter)
		if latest, measured := p.Latest.Value(parameter); latest != nil && !measured.Before(now.Add(-vitalsWindow)) {
			span(rule.Since(measured, rule.WindowDays), measured)
		}
		if value, measured := p.Latest.outlasting(parameter, now); value != nil {
			span(rule.Since(measured, rule.WindowDays), measured)
		}
		if reading == nil || reading.Value(parameter) == nil {
			continue
		}
		measured := reading.MeasuredAt
		span(rule.Since(measured, rule.WindowDays), measured)
		if d := parameter.Doubt; d != nil {
			span(measured.Add(-d.Within), measured.Add(d.Within+time.Microsecond)) // what comes after is not included
		}
	}
	return from, to, !from.IsZero()
}

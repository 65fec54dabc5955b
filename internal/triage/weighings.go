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
			if err := loadValues(app, of, kind, parameter, span); err != nil {
				return err
			}
		}
	}
	return nil
}

func loadValues(app core.App, of map[string]*Picture, kind vitals.Kind, parameter *vitals.Parameter, span dbx.Params) error {
	rows, err := app.DB().NewQuery(`SELECT o.patient, o.` + parameter.Column + `, o.measured_at, o.review_state = 'confirmed',
			CASE o.status WHEN 'suspect' THEN o.id ELSE '' END FROM json_each({:patients}) p CROSS JOIN observations o
		WHERE o.patient = p.value AND o.observation_type = '` + string(kind) + `' AND o.measured_at >= {:from} AND o.measured_at < {:to}
			AND o.status IN ('final', 'suspect') AND o.` + parameter.Column + ` IS NOT NULL`).Bind(span).Rows()
	if err != nil {
		return fmt.Errorf("load earlier values: %w", err)
	}
	defer rows.Close() //nolint:errcheck // Err below tells what went wrong
	for rows.Next() {
		var patient, at, doubted string
		var value float64
		var confirmed bool
		if err := rows.Scan(&patient, &value, &at, &confirmed, &doubted); err != nil {
			return fmt.Errorf("load an earlier value: %w", err)
		}
		p := of[patient]
		w := alerts.Weighing{Of: parameter, Value: value, MeasuredAt: collections.ParseInstant(at), Confirmed: confirmed}
		if doubted != "" {
			p.Doubted = append(p.Doubted, Doubted{w, doubted})
			continue
		}
		p.Weighings = append(p.Weighings, w)
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("load earlier values: %w", err)
	}
	return nil
}

// Doubted is a value that may be somebody else's, and its observation.
type Doubted struct {
	alerts.Weighing
	ID string
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
		if reading == nil || reading.Value(parameter) == nil {
			continue
		}
		measured := reading.MeasuredAt
		span(rule.Since(measured, rule.WindowDays), measured)
		if d := parameter.Doubt; d != nil {
			span(measured.AddDate(0, 0, -d.Days), measured.Add(d.Within+time.Microsecond)) // what comes after is not included
		}
	}
	return from, to, !from.IsZero()
}

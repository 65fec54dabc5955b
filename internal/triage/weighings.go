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
// and before the reading at hand. Pictures without any cost nothing.
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
	rows, err := app.DB().NewQuery(`SELECT o.patient, o.` + parameter.Column + `, o.measured_at FROM json_each({:patients}) p CROSS JOIN observations o
		WHERE o.patient = p.value AND o.observation_type = '` + string(kind) + `' AND o.measured_at >= {:from} AND o.measured_at < {:to}
			AND o.status = 'final' AND o.` + parameter.Column + ` IS NOT NULL`).Bind(span).Rows()
	if err != nil {
		return fmt.Errorf("load earlier values: %w", err)
	}
	defer rows.Close() //nolint:errcheck // Err below tells what went wrong
	for rows.Next() {
		var patient, at string
		var value float64
		if err := rows.Scan(&patient, &value, &at); err != nil {
			return fmt.Errorf("load an earlier value: %w", err)
		}
		p := of[patient]
		p.Weighings = append(p.Weighings, alerts.Weighing{Of: parameter, Value: value, MeasuredAt: collections.ParseInstant(at)})
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("load earlier values: %w", err)
	}
	return nil
}

// weighed says between which times a patient's earlier values are needed, if any are.
func (p *Picture) weighed(reading *vitals.Reading, now time.Time) (from, to time.Time, needed bool) {
	window := 0
	at := func(moment time.Time) {
		if from.IsZero() || moment.Before(from) {
			from = moment
		}
		if moment.After(to) {
			to = moment
		}
	}
	for _, parameter := range vitals.Changing {
		if latest, measured := p.Latest.Value(parameter); latest != nil && !measured.Before(now.Add(-vitalsWindow)) {
			at(measured)
		}
		if reading != nil && reading.Value(parameter) != nil {
			at(reading.MeasuredAt)
		}
		window = max(window, p.Thresholds.Change(parameter).WindowDays)
	}
	return from.AddDate(0, 0, -window), to, !from.IsZero()
}

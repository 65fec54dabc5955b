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

// loadWeighings reads the weights that the weight rule can compare with: those in the window before the latest weight, while
// that one counts, and before the reading at hand. Pictures without any cost nothing.
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
		return fmt.Errorf("list patients with weights: %w", err)
	}
	rows, err := app.DB().NewQuery(`SELECT o.patient, o.weight_kg, o.measured_at FROM json_each({:patients}) p CROSS JOIN observations o
		WHERE o.patient = p.value AND o.observation_type = 'weight' AND o.measured_at >= {:from} AND o.measured_at < {:to}
			AND o.status = 'final' AND o.weight_kg IS NOT NULL`).
		Bind(dbx.Params{"patients": string(list), "from": collections.Instant(earliest), "to": collections.Instant(latest)}).Rows()
	if err != nil {
		return fmt.Errorf("load weights: %w", err)
	}
	defer rows.Close() //nolint:errcheck // Err below tells what went wrong
	for rows.Next() {
		var patient, at string
		var kg float64
		if err := rows.Scan(&patient, &kg, &at); err != nil {
			return fmt.Errorf("load a weight: %w", err)
		}
		p := of[patient]
		p.Weighings = append(p.Weighings, alerts.Weighing{Kg: kg, MeasuredAt: collections.ParseInstant(at)})
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("load weights: %w", err)
	}
	return nil
}

// weighed says between which times a patient's weights are needed, if any are.
func (p *Picture) weighed(reading *vitals.Reading, now time.Time) (from, to time.Time, needed bool) {
	at := func(moment time.Time) {
		if from.IsZero() || moment.Before(from) {
			from = moment
		}
		if moment.After(to) {
			to = moment
		}
	}
	if latest := p.Latest.Weight; latest != nil && !latest.MeasuredAt.Before(now.Add(-vitalsWindow)) {
		at(latest.MeasuredAt.Time)
	}
	if reading != nil && reading.Kind == vitals.Weight {
		at(reading.MeasuredAt)
	}
	return from.AddDate(0, 0, -p.Thresholds.Weight.WindowDays), to, !from.IsZero()
}

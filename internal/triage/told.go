package triage

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/vitals"
)

const (
	// heardFor is how long people know what they were told of an escalation that is open.
	heardFor = 24 * time.Hour
	// heardClosed is the same of one that was closed: as long as the push about one alert speaks for another.
	heardClosed = 30 * time.Minute
)

// HeardOfCritical reports whether people may know of something critical: an escalation is open, or there was a critical alert a moment ago.
func (p Picture) HeardOfCritical(now time.Time) bool {
	if _, open := p.OpenBySystem(); open {
		return true
	}
	return slices.ContainsFunc(p.Recent, func(a Raised) bool { return a.Level == alerts.Critical && now.Sub(a.CreatedAt) <= heardClosed })
}

// Told are the critical values by which people were told last of the patient's escalation, or of one that was closed a moment ago: each
// parameter and direction once. What was taken back since is none of them. Source: docs/decisions/alerts.md, "Worse than last notified".
func Told(app core.App, p Picture, now time.Time) (known []alerts.Known, err error) {
	columns := make([]string, len(vitals.Watched))
	for i, parameter := range vitals.Watched {
		columns[i] = parameter.Column
	}
	rows, err := collections.ToldCritical(app, p.PatientID, now.Add(-heardFor), now.Add(-heardClosed), columns)
	if err != nil {
		return nil, err
	}
	for _, row := range rows { // the newest first
		alert := alerts.Open{ID: row.ID, Type: row.Type, Level: alerts.Critical, Parameter: row.Parameter, Value: row.Value}
		var values []any
		if err := json.Unmarshal([]byte(row.Values), &values); err != nil {
			return nil, fmt.Errorf("read what was told: %w", err)
		}
		alert.Reported = readReported(alert, row.Sealed, values)
		for _, told := range toldBy(alert, row.Gathered, row.Shown) {
			for _, k := range told.Extremes(p.Thresholds) {
				if !slices.ContainsFunc(known, func(o alerts.Known) bool { return o.Parameter == k.Parameter && o.High == k.High }) {
					known = append(known, k)
				}
			}
		}
	}
	return known, nil
}

// toldBy is an alert as often as people were told of it, with the values by which they were, the last first: one about several events may show
// another one by now.
func toldBy(alert alerts.Open, sealed, shown string) []alerts.Open {
	g, err := collections.OpenGathering(sealed, shown)
	if err != nil || len(g.Told) == 0 {
		return []alerts.Open{alert}
	}
	var all []alerts.Open
	for _, told := range g.Told {
		if reported, err := alerts.ReadReported(string(told.Values)); err == nil {
			alert.Value = told.Value
			alert.Reported = alert.Claimed(reported)
			all = append(all, alert)
		}
	}
	return all
}

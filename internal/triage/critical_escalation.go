package triage

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/escalations"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/vitals"
)

const (
	// notifiedWindow is how long a notification about an open escalation counts.
	notifiedWindow = 24 * time.Hour
	// notifiedClosedWindow is the same for a closed one: as long as the push about one alert covers another.
	notifiedClosedWindow = 30 * time.Minute
)

// NotifiedOfCritical reports whether users may have been notified of a critical value: an escalation is open, or a critical alert is
// recent.
func (p PatientSnapshot) NotifiedOfCritical(now time.Time) bool {
	if _, open := p.SystemEscalation(); open {
		return true
	}
	return slices.ContainsFunc(p.Recent, func(a RecentAlert) bool {
		return a.Level == alerts.Critical && now.Sub(a.CreatedAt) <= notifiedClosedWindow
	})
}

// LastNotified returns the critical values of the most recent notifications about the patient's escalation, or one closed recently: one per
// parameter and direction. Retracted values are excluded. Source: docs/decisions/alerts.md, "Worse than last notified".
func LastNotified(app core.App, p PatientSnapshot, now time.Time) (found []alerts.WorstValue, err error) {
	columns := make([]string, len(vitals.ThresholdParameters))
	for i, parameter := range vitals.ThresholdParameters {
		columns[i] = parameter.Column
	}
	rows, err := collections.NotifiedCriticalAlerts(app, p.PatientID, now.Add(-notifiedWindow), now.Add(-notifiedClosedWindow), columns)
	if err != nil {
		return nil, err
	}
	for _, row := range rows { // the newest first
		alert := alerts.OpenAlert{ID: row.ID, Type: row.Type, Level: alerts.Critical, Parameter: row.Parameter, Value: row.Value}
		var values []any
		if err := json.Unmarshal([]byte(row.Values), &values); err != nil {
			return nil, fmt.Errorf("read notified values: %w", err)
		}
		alert.Reported = readReported(alert, row.Sealed, values)
		for _, notified := range notifiedValues(alert, row.Aggregate, row.ShownEventID) {
			for _, k := range notified.CriticalValues(p.Thresholds) {
				if !slices.ContainsFunc(found, func(o alerts.WorstValue) bool { return o.Parameter == k.Parameter && o.High == k.High }) {
					found = append(found, k)
				}
			}
		}
	}
	return found, nil
}

// notifiedValues returns an alert once per notification, with the values it showed then, newest first: an alert about several events may
// show another one now.
func notifiedValues(alert alerts.OpenAlert, sealed, shown string) []alerts.OpenAlert {
	g, err := collections.OpenAggregate(sealed, shown)
	if err != nil || len(g.Notified) == 0 {
		return []alerts.OpenAlert{alert}
	}
	var all []alerts.OpenAlert
	for _, notified := range g.Notified {
		if reported, err := alerts.ParseReported(string(notified.Values)); err == nil {
			alert.Value = notified.Value
			alert.Reported = alert.WithOwnChange(reported)
			all = append(all, alert)
		}
	}
	return all
}

// StatTrigger returns the trigger of the patient's stat escalation about a critical alert, see [escalations.JoinOrOpen].
func (p PatientSnapshot) StatTrigger(alertID string, reason phi.Text) escalations.Trigger {
	return escalations.Trigger{
		Draft: escalations.Draft{PatientID: p.PatientID, Priority: escalations.Stat, AlertID: alertID, Reason: reason}, Active: p.Escalations,
	}
}

// SystemEscalation returns the open escalation that the system opened for the patient.
func (p PatientSnapshot) SystemEscalation() (open escalations.ActiveEscalation, found bool) {
	i := slices.IndexFunc(p.Escalations, func(e escalations.ActiveEscalation) bool { return e.BySystem })
	if i < 0 {
		return open, false
	}
	return p.Escalations[i], true
}

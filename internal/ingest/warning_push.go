package ingest

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// loadPushes reads what the decisions about a reading's warnings depend on. It queries only for warnings, and only if the practice pushes
// them by their trend. Source: docs/decisions/notifications.md, "Pages for warnings".
func (rs *ReadingStore) loadPushes(tx core.App, s *AssessInput, o Observation) error {
	if rs.rules.WarningPush != alerts.PushTrend {
		return nil
	}
	for _, finding := range alerts.Evaluate(o.valuesToEvaluate(), s.Snapshot.Thresholds, s.Snapshot.Baseline) {
		if !(alerts.Draft{Finding: finding}).NeedsPushHistory() {
			continue
		}
		history, err := pushHistory(tx, o.PatientID, finding.Type, o.valuesToEvaluate())
		if err != nil {
			return err
		}
		if s.Pushes == nil {
			s.Pushes = map[string]alerts.PushHistory{}
		}
		s.Pushes[finding.Type] = history
	}
	return nil
}

// pushHistory reads a patient's readings and pushes of the alert type of a reading. Suspect and retracted readings do not count. A fasting value
// has bounds of its own, so only other fasting values are compared with it.
func pushHistory(tx core.App, patientID, alertType string, of vitals.Reading) (h alerts.PushHistory, err error) {
	h.Parameters = alerts.PushParameters(alertType)
	columns := make([]string, len(h.Parameters))
	for i, p := range h.Parameters {
		columns[i] = p.Column
	}
	pushed, err := collections.PushedAlerts(tx, patientID, alertType, columns, alerts.PushesConsidered)
	if err != nil {
		return h, err
	}
	for _, one := range pushed {
		h.Pushed = append(h.Pushed, alerts.Pushed{
			PushReading: pushReading(one.ReadingValues), Parameter: one.Parameter, Beyond: one.Value - one.Threshold,
		})
	}
	meal := ""
	if of.Qualifier(vitals.MealContext) == vitals.MealFasting {
		meal = vitals.MealFasting
	}
	readings, err := collections.LastValues(tx, patientID, kindsOf([][]*vitals.Parameter{h.Parameters}), columns, meal, alerts.PushReadings)
	for _, one := range readings {
		h.Readings = append(h.Readings, pushReading(one))
	}
	return h, err
}

func pushReading(v collections.ReadingValues) alerts.PushReading {
	return alerts.PushReading{ObservationID: v.ID, MeasuredAt: v.MeasuredAt, Values: v.Values}
}

// decidePush decides whether an alert that is not raised by [Assess] is pushed. r are the values that raised it.
func (rs *ReadingStore) decidePush(tx core.App, d alerts.Draft, r vitals.Reading, t alerts.Thresholds) (decision alerts.PushDecision, err error) {
	var history alerts.PushHistory
	if rs.rules.WarningPush == alerts.PushTrend && d.NeedsPushHistory() {
		if history, err = pushHistory(tx, d.PatientID, d.Finding.Type, r); err != nil {
			return decision, err
		}
	}
	return rs.rules.WarningPush.DecidePush(d, r, t, history), nil
}

// decideReopened decides again about an alert that was not pushed because a newer reading had ended it. Another keeps its decision.
func (rs *ReadingStore) decideReopened(tx core.App, alert *collections.Alert, now time.Time) error {
	if alerts.PushRule(alert.PushRule()) != alerts.ListedSuperseded {
		return nil
	}
	d := alerts.Draft{
		PatientID: alert.PatientID(), ObservationID: alert.ObservationID(), Snoozed: alert.Snoozed(),
		Finding: alerts.Finding{Type: alert.Type(), Level: alerts.Level(alert.Level())},
	}
	var reading vitals.Reading
	var thresholds alerts.Thresholds
	if rs.rules.WarningPush == alerts.PushTrend && d.NeedsPushHistory() {
		o, err := FindObservation(tx, alert.ObservationID())
		if err != nil {
			return err
		}
		snapshot, err := triage.ReadSnapshot(tx, alert.PatientID(), nil, now)
		if err != nil {
			return err
		}
		reading, thresholds = o.Reading, snapshot.Thresholds
	}
	decision, err := rs.decidePush(tx, d, reading, thresholds)
	if err != nil {
		return err
	}
	return collections.SetPushRule(tx, alert.Id, string(decision.Rule), decision.Reason, now)
}

// shownAverages returns a reading with the averages that a warning is about.
func shownAverages(average map[string]float64) vitals.Reading {
	r := vitals.Reading{Kind: vitals.BloodPressure}
	for _, p := range []*vitals.Parameter{vitals.Systolic, vitals.Diastolic} {
		r = r.With(p, average[p.Name])
	}
	return r
}

package ingest

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/escalations"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// weighWeakSignals returns how an oximeter's readings with a weak signal count for the early warning, by observation, of readings in order of
// measurement. A repeat with a good signal that scores less, within the wait, takes the place of a weak one. Source:
// docs/decisions/alerts.md, "Weak signal".
func weighWeakSignals(known []Observation, rules alerts.EarlyWarningRules, now time.Time) map[string]weighedReading {
	weighed := map[string]weighedReading{}
	for i, o := range known {
		if o.Reading.Kind != vitals.PulseOximetry || !o.Reading.HasWeakSignal() {
			continue
		}
		w, ends := weighedReading{Reading: o.Reading}, o.Received().Add(weakSignalWait)
		isDecided := false
		for _, repeat := range known[i+1:] {
			decides := repeat.Reading.Kind == o.Reading.Kind && !repeat.Reading.HasWeakSignal() && !repeat.Received().After(ends) &&
				repeat.Reading.MeasuredAt.After(o.Reading.MeasuredAt) && (repeat.Origin != vitals.OriginPatient || o.Origin == vitals.OriginPatient)
			if decides {
				if isDecided = true; rules.Points(repeat.Reading) < rules.Points(o.Reading) {
					w.Reading = repeat.Reading
				}
				break
			}
		}
		isRepeat, isConfirmed := false, false
		for _, earlier := range known[:i] {
			if _, isWeak := weighed[earlier.ID]; isWeak && o.Received().Sub(earlier.Received()) < weakSignalWait {
				isRepeat, isConfirmed = true, isConfirmed || rules.Points(earlier.Reading) >= rules.Points(o.Reading)
			}
		}
		if !isDecided && !isConfirmed && ends.After(now) && rules.Points(o.Reading) > 0 {
			w.waitsUntil = ends
		}
		w.hidesNone = !isDecided && (isRepeat || !w.waitsUntil.IsZero())
		weighed[o.ID] = w
	}
	return weighed
}

// weighedReading is a reading with a weak signal, or the repeat that takes its place.
type weighedReading struct {
	vitals.Reading
	waitsUntil time.Time // end of the wait for a repeat; zero for none
	hidesNone  bool
}

// endEarlyWarningHold escalates an early warning at the end of its hold: no repeat has ended it.
func endEarlyWarningHold(tx core.App, alert *collections.Alert, snapshot triage.PatientSnapshot, now time.Time) error {
	switch alerts.Status(alert.Status()) {
	case alerts.StatusActive, alerts.StatusAcknowledged:
	default:
		return nil
	}
	trigger := snapshot.StatTrigger(alert.Id, phi.Text(alert.DisplayMessage()))
	if alert.Level() != string(alerts.Critical) {
		trigger.Priority = escalations.Urgent
	}
	_, _, err := escalations.JoinOrOpen(tx, trigger, now)
	return err
}

package ingest

import (
	"slices"
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// recheckIrregularHeartbeats checks again whether irregular heartbeats recur, if the reading had the flag.
func (w *retraction) recheckIrregularHeartbeats() error {
	enough := w.readings.rules.IrregularHeartbeats
	if enough == 0 || w.observation.Reading.Qualifier(vitals.IrregularHeartbeat) != vitals.Yes {
		return nil
	}
	open, err := collections.OpenAlertsOf(w.tx, w.observation.PatientID, alerts.TypeIrregularHeartbeat)
	if err != nil {
		return err
	}
	flags := HeartbeatFlags{}
	for _, alert := range open {
		at := alert.MeasuredAt()
		if flags, err = findHeartbeatFlags(w.tx, w.observation.PatientID, at, w.now); err != nil {
			return err
		}
		if flags.hasRunAfter(at, enough) {
			return nil // the warning is right without the reading
		}
		action := alerts.Action{Move: alerts.Resolve, Outcome: collections.StatusEnteredInError}
		if err := alerts.Act(w.tx, alert, action, w.by, w.now); err != nil {
			return err
		}
		if err := alert.Retract(w.tx, alerts.ReasonRetracted, w.now); err != nil {
			return err
		}
	}
	return w.warnWithoutReading(enough)
}

// warnWithoutReading raises the warning again at another reading, if the retracted one had raised it and the run remains.
func (w *retraction) warnWithoutReading(enough int) error {
	hasWarning := slices.ContainsFunc(w.raised, func(a *collections.Alert) bool { return a.Type() == alerts.TypeIrregularHeartbeat })
	flags, err := findHeartbeatFlags(w.tx, w.observation.PatientID, w.observation.Reading.MeasuredAt, w.now)
	if err != nil || !hasWarning {
		return err
	}
	at, found := flags.newRun(w.observation.Reading.MeasuredAt, enough)
	if !found {
		return nil
	}
	observations, err := collections.ObservationsAfter(w.tx, w.observation.PatientID, flaggedKinds(), at.Add(-time.Microsecond))
	if err != nil || len(observations) == 0 {
		return err
	}
	o := ObservationFromRecord(observations[0])
	warning := alertDraft(o, recurringFinding(flags.countWithin(at)), false)
	warning.WithoutValue = true
	return raiseAndAnnounce(w.tx, warning, w.now)
}

package ingest

import (
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/devices"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// ConfirmImplausible stores an implausible measurement as an observation with all its values, because a person confirms them. Its alert is
// resolved and it is evaluated like any reading. Faults: not_found; invalid_state for an event that is closed, unmatched or has no
// implausible values; and the faults of a reading.
func (e *Pipeline) ConfirmImplausible(app core.App, id string, notes phi.Text, by audit.Actor, now time.Time) (outcome Outcome, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		pending, err := FindQuarantined(tx, id)
		if err != nil {
			return err
		}
		if err := checkPending(pending); err != nil {
			return err
		}
		patient, err := collections.PatientOfQuarantine(tx, id)
		if err != nil {
			return err
		}
		if patient == "" {
			return fault.State("invalid_state", "No values of this event are pending confirmation for a patient.")
		}
		event, err := e.parseImplausible(pending)
		if err != nil {
			return err
		}
		if err := checkConfirmable(*event.Implausible); err != nil {
			return err
		}
		match := patientMatch{patient: patient, manual: true}
		s, err := e.confirmedSubmission(tx, pending, &event, match, by, now)
		if err != nil {
			return err
		}
		if err := e.resolveConfirmedAlerts(tx, pending, notes, by, now); err != nil {
			return err
		}
		outcome, err = e.ingestForPerson(tx, s, &match, now)
		if err != nil {
			return err
		}
		if err := collections.SetAlertObservation(tx, id, outcome.Observation.ID); err != nil {
			return err
		}
		ended := eventClosure{status: collections.EventReleased, observation: outcome.Observation.ID, patient: match.patient, reason: notes}
		if err := closeEvent(tx, pending, ended, by, now); err != nil || isManualSource(pending.Source()) {
			return err
		}
		forms, err := e.pendingForms(tx, event, outcome.Observation.Reading, patient)
		if err != nil {
			return err
		}
		if err := e.closeStoredForms(tx, forms, classification{patient: patient, outcome: outcome}, by, now); err != nil {
			return err
		}
		if err := e.alertNextPending(tx, event, patient, now); err != nil {
			return err
		}
		return e.addPendingParts(tx, event, outcome.Observation, match, by, now)
	})
	return outcome, err
}

// checkConfirmable rejects values that contradict each other or lack one; no person can confirm them.
func checkConfirmable(i gateway.Implausible) error {
	if i.IsIncomplete {
		return fault.State("invalid_state", "A value of this measurement is missing or cannot be read: discard it, and measure again.")
	}
	c := validate.NewChecks()
	if check := i.Reading.Kind.Definition().CheckCoherence; check != nil {
		check(i.Reading, c)
	}
	return c.Err()
}

// resolveConfirmedAlerts resolves the alerts about an event with confirmed values; the stored reading replaces them.
func (e *Pipeline) resolveConfirmedAlerts(tx core.App, event *collections.GatewayEvent, notes phi.Text, by audit.Actor, now time.Time) error {
	raised, err := collections.AlertsOfQuarantine(tx, event.Id)
	if err != nil {
		return err
	}
	for _, alert := range raised {
		if kept, err := e.removeFromAlert(tx, alert, event.Id, now); err != nil {
			return err
		} else if kept {
			continue
		}
		if _, err := resolveAlert(tx, alert, "confirmed", notes, by, now); err != nil {
			return err
		}
	}
	return nil
}

// confirmedSubmission returns the submission of a confirmed measurement.
func (e *Pipeline) confirmedSubmission(
	tx core.App, stored *collections.GatewayEvent, event *gateway.Event, match patientMatch, by audit.Actor, now time.Time,
) (s Submission, err error) {
	source := EventSource(stored)
	reading, asReceived := event.Implausible.Reading, event.Implausible.IsDatedByReceipt
	switch {
	case isManualSource(source):
		s = Submission{PatientID: match.patient, Reading: reading, Source: vitals.Source(source), By: by, ReceivedAt: now}
		if source == SourceDashboard || source == SourceClient {
			s.Source = vitals.SourceAPI
		}
	case event.IsPartImplausible(): // the rest is stored already
		part := reading // if only the clock was wrong, all values are pending
		if len(event.Implausible.OutOfRange) > 0 {
			part = reading.OnlyValues(event.Implausible.OutOfRange)
		}
		event.Reading = &part
		s = gatewaySubmission(*event, match.patient, by, now)
		s.IsPart = true
		s.Arrival = Arrival{At: event.ReceivedAt, IsDeferred: true}
	default:
		rest, missing, err := completesStored(tx, *event, match.patient)
		if err != nil {
			return s, err
		}
		if rest {
			event.Reading, asReceived = &missing, false // takes the time of the reading it completes
			s = gatewaySubmission(*event, match.patient, by, now)
			s.IsPart = true
			break
		}
		event.Type, event.Reading, event.Parts = gateway.MeasurementCreated, &reading, event.Implausible.Parts
		if s, err = e.matchedSubmission(tx, *event, match, by, now); err != nil {
			return s, err
		}
		if event.At.IsZero() || event.DeviceID == "" || stored.Reason() == ReasonConflict {
			s.GatewayKey = "" // its key is, or would be, that of others
		}
	}
	if source == SourceImport {
		s.Device = devices.GatewayReport{Model: event.DeviceModel}
	}
	s.Origin, s.ConfirmedBy, s.UsesReceiptTime = sourceOrigin(source), by.Email, asReceived
	raised, err := collections.AlertsOfQuarantine(tx, stored.Id) // the person confirms the values, not the time
	s.TimeInDoubt = slices.ContainsFunc(raised, (*collections.Alert).TimeInDoubt)
	return s, err
}

// completesStored reports whether a stored reading of the patient has the same key as an event from a future clock, and returns the values
// it lacks. Confirming the event then completes that reading instead of storing a second one.
func completesStored(tx core.App, event gateway.Event, patientID string) (stored bool, missing vitals.Reading, err error) {
	if event.Implausible.FutureTime.IsZero() || len(event.Implausible.OutOfRange) == 0 {
		return false, missing, nil
	}
	record, err := collections.FindObservationByGatewayKey(tx, event.Key())
	if err != nil {
		return false, missing, collections.IgnoreNotFound(err)
	}
	o := ObservationFromRecord(record)
	_, fits := o.Reading.Merge(event.Implausible.Reading)
	return fits && o.PatientID == patientID && !o.EnteredInError, event.Implausible.Reading.Except(o.Reading), nil
}

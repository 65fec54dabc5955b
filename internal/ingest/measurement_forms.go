package ingest

import (
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// A sender repeats one measurement in several forms: misspelled, in another envelope, corrected.
// Events of one patient, device and second with the same values are one: a decision closes all.
// Source: docs/decisions/gateway.md, "Several forms of one measurement".

// measurementForm is a quarantined event with what it reports.
type measurementForm struct {
	stored   *collections.GatewayEvent
	reported gateway.Event
}

func (f measurementForm) reading() vitals.Reading { return f.reported.Implausible.Reading }

func (f measurementForm) isPending() bool { return checkPending(f.stored) == nil }

// formsOf returns the device's quarantined events with the same measurement as event, decided ones
// first. r holds its values; a part matches only if all values are equal.
func (e *Pipeline) formsOf(app core.App, event gateway.Event, r vitals.Reading, patientID, except string) (forms []measurementForm, err error) {
	if event.DeviceID == "" || event.At.IsZero() {
		return nil, nil
	}
	ids, err := collections.EventsOfMeasurement(app, event.DeviceID, patientID, event.At)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if id == except {
			continue
		}
		stored, err := FindQuarantined(app, id)
		if collections.IsUnreadable(err) {
			continue // its key is missing
		}
		if err != nil {
			return nil, err
		}
		reported, err := e.parseImplausible(stored)
		if err != nil || sourceOrigin(EventSource(stored)) != vitals.OriginDevice || reported.Part != event.Part {
			continue
		}
		isSame := agrees
		if event.Part != "" {
			isSame = vitals.Reading.SameValues
		}
		if isSame(reported.Implausible.Reading, r) {
			forms = append(forms, measurementForm{stored, reported})
		}
	}
	return forms, nil
}

// agrees reports whether two readings of a kind have a value in common and none that differs.
func agrees(a, b vitals.Reading) bool {
	isCommon := false
	for _, p := range a.Kind.Definition().All {
		of, other := a.Value(p), b.Value(p)
		if of == nil || other == nil {
			continue
		}
		if *of != *other {
			return false
		}
		isCommon = true
	}
	return isCommon && a.Kind == b.Kind
}

// statesAnotherKind reports whether a harmless event names an unknown kind: a person decides about
// it. A dangerous one counts as the same measurement, so that it raises no second alert.
func statesAnotherKind(event gateway.Event) bool {
	return slices.Contains(event.Implausible.RejectedFor, "measurement_type") && !event.Implausible.IsDangerous()
}

// addsDanger reports whether a reading has a dangerous value that a known one of the same measurement lacks.
func addsDanger(r, known vitals.Reading) bool {
	added := r.Except(known)
	outside, _ := added.OutOfRange()
	return (&gateway.Implausible{Reading: added, OutOfRange: outside}).IsDangerous()
}

// findDecided returns a closed event with the same measurement of the same patient; nil for none. It decides nothing about a dangerous value that
// it lacked.
func (e *Pipeline) findDecided(tx core.App, event gateway.Event, r vitals.Reading, patientID, except string) (*collections.GatewayEvent, error) {
	forms, err := e.formsOf(tx, event, r, patientID, except)
	if err != nil {
		return nil, err
	}
	for _, form := range forms {
		if !form.isPending() && !addsDanger(r, form.reading()) {
			return form.stored, nil
		}
	}
	return nil, nil
}

// pendingForms returns the undecided events of a reading that add no danger to it.
func (e *Pipeline) pendingForms(app core.App, event gateway.Event, r vitals.Reading, patientID string) (pending []measurementForm, err error) {
	forms, err := e.formsOf(app, event, r, patientID, "")
	for _, form := range forms {
		if form.isPending() && !statesAnotherKind(form.reported) && !addsDanger(form.reading(), r) {
			pending = append(pending, form)
		}
	}
	return pending, err
}

// closeStoredForms closes events because their measurement is stored, with their alerts.
func (e *Pipeline) closeStoredForms(tx core.App, forms []measurementForm, v classification, by audit.Actor, now time.Time) error {
	for _, form := range forms {
		raised, err := collections.AlertsOfQuarantine(tx, form.stored.Id)
		if err != nil {
			return err
		}
		err = triage.UpdateAndRescore(tx, now, func(tx core.App) (string, error) {
			for _, alert := range raised {
				if alert.Type() == alerts.TypeDeviceClock {
					continue // it is about the clock
				}
				if kept, err := e.removeFromAlert(tx, alert, form.stored.Id, now); err != nil {
					return "", err
				} else if kept {
					continue
				}
				if err := supersedeAlert(tx, alert, now); err != nil {
					return "", err
				}
			}
			return v.patient, nil
		})
		if err != nil {
			return err
		}
		if err := collections.SetAlertObservation(tx, form.stored.Id, v.outcome.Observation.ID); err != nil {
			return err
		}
		ended := eventClosure{status: collections.EventReleased, observation: v.outcome.Observation.ID, patient: v.patient}
		if err := closeEvent(tx, form.stored, ended, by, now); err != nil {
			return err
		}
		if err := e.alertNextPending(tx, form.reported, v.patient, now); err != nil {
			return err
		}
	}
	return nil
}

// discardOtherForms discards the undecided events with the measurement of one that a person discarded.
func (e *Pipeline) discardOtherForms(
	tx core.App, decided gateway.Event, eventID, patientID string, reason phi.Text, by audit.Actor, now time.Time,
) error {
	if patientID == "" {
		return nil
	}
	forms, err := e.formsOf(tx, decided, decided.Implausible.Reading, patientID, eventID)
	if err != nil {
		return err
	}
	for _, form := range forms {
		if !form.isPending() || addsDanger(form.reading(), decided.Implausible.Reading) {
			continue
		}
		if err := closeEvent(tx, form.stored, eventClosure{status: collections.EventDiscarded, reason: reason, patient: patientID}, by, now); err != nil {
			return err
		}
		if err := e.retractAlerts(tx, form.stored, reason, by, now); err != nil {
			return err
		}
	}
	return nil
}

// applyEarlierDecision closes an event in the same way as an earlier one with the same measurement, or as the reading that is stored of it.
func (e *Pipeline) applyEarlierDecision(tx core.App, stored *collections.GatewayEvent, event gateway.Event, patientID string, now time.Time) (bool, error) {
	if isManualSource(EventSource(stored)) || EventSource(stored) == SourceImport {
		return false, nil
	}
	if statesAnotherKind(event) {
		return false, nil
	}
	ended := eventClosure{patient: patientID, reason: "The same measurement was decided before."}
	earlier, err := e.findDecided(tx, event, event.Implausible.Reading, patientID, stored.Id)
	switch {
	case err != nil:
		return false, err
	case earlier != nil:
		ended.status, ended.observation = earlier.Status(), earlier.ObservationID()
	default:
		if ended, err = findStored(tx, event, patientID); err != nil || ended.status == "" {
			return false, err
		}
	}
	if err := collections.SetEventPatient(tx, stored.Id, patientID); err != nil {
		return false, err
	}
	return true, closeEvent(tx, stored, ended, audit.System(), now)
}

// findStored returns how to close an unreadable event if its measurement is stored; the status is "" if it is not.
func findStored(tx core.App, event gateway.Event, patientID string) (c eventClosure, err error) {
	if len(event.Implausible.RejectedFor) == 0 || event.Part != "" || event.DeviceID == "" || event.Implausible.IsDatedByReceipt {
		return c, nil
	}
	event.Type, event.Reading = gateway.MeasurementCreated, &event.Implausible.Reading
	record, err := collections.FindObservationByGatewayKey(tx, event.Key())
	if err != nil {
		return c, collections.IgnoreNotFound(err)
	}
	o := ObservationFromRecord(record)
	if o.PatientID != patientID || !agrees(o.Reading, *event.Reading) || addsDanger(*event.Reading, o.Reading) {
		return c, nil
	}
	c = eventClosure{status: collections.EventReleased, observation: o.ID, patient: patientID, reason: "The same measurement is stored."}
	if o.EnteredInError {
		c.status, c.observation = collections.EventDiscarded, ""
	}
	return c, nil
}

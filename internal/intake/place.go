package intake

import (
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/internal/observations"
)

// Reasons why an event is held for a person to place.
const (
	ReasonUnknownPatient  = "unknown_patient"
	ReasonPatientMismatch = "patient_mismatch"
	ReasonPatientInactive = "patient_inactive"
	ReasonUnsupportedType = "unsupported_type"
	ReasonConflict        = "conflicting_duplicate"
	ReasonDeviceMismatch  = "device_patient_mismatch"
	ReasonBeforeBirth     = "before_birth"
	ReasonNoReading       = observations.ReasonNoReading // a part of one that has not come
)

// reasonFor says why a measurement that had been placed was refused in the end: the patient or the device changed hands
// this very moment, or the time cannot be that patient's.
func reasonFor(refused *fault.Error) string {
	switch {
	case refused.Code == ReasonDeviceMismatch:
		return ReasonDeviceMismatch
	case refused.Fields["measured_at"] != nil:
		return ReasonBeforeBirth
	case refused.Kind == fault.NotFound || refused.Fields["patient_id"] != nil:
		return ReasonPatientInactive
	}
	return refused.Code
}

// Place finds the patient of a gateway measurement: who held the device then, else the patient the gateway names. When the two
// disagree it does not guess. reason says why the event cannot be placed.
// Source: docs/decisions/gateway.md, "Which patient does an event belong to".
func Place(app core.App, event gateway.Event) (patientID, reason string, err error) {
	holder, err := collections.DeviceHolder(app, event.DeviceID, event.At)
	if err != nil {
		return "", "", err
	}
	patient, err := collections.FindNamedPatient(app, event.PatientID)
	switch {
	case err != nil:
		return "", "", err
	case holder == "" && patient.ID == "":
		return "", ReasonUnknownPatient, nil
	case holder != "" && patient.ID != "" && patient.ID != holder:
		return "", ReasonPatientMismatch, nil
	case patient.ID == "":
		if patient, err = collections.FindReceivingPatient(app, holder); err != nil {
			return "", "", err
		}
	}
	switch {
	case patient.ID == "":
		return "", ReasonUnknownPatient, nil
	case !patient.Active || patient.DeletedAt != "":
		return "", ReasonPatientInactive, nil
	}
	return patient.ID, "", nil
}

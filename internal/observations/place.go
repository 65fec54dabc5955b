package observations

import (
	"fmt"
	"strings"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/gateway"
)

// Reasons why a gateway event is kept for a person to place.
const (
	ReasonUnknownPatient  = "unknown_patient"
	ReasonPatientMismatch = "patient_mismatch"
	ReasonPatientInactive = "patient_inactive"
	ReasonUnsupportedType = "unsupported_type"
	ReasonConflict        = "conflicting_duplicate"
	ReasonDeviceMismatch  = "device_patient_mismatch"
	ReasonBeforeBirth     = "before_birth"
)

// ReasonFor says why a measurement that had been placed was refused in the end: the patient or the device changed hands
// this very moment, or the time cannot be that patient's.
func ReasonFor(refused *fault.Error) string {
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

// candidate is a patient an event may belong to.
type candidate struct {
	ID        string `db:"id"`
	Active    bool   `db:"active"`
	DeletedAt string `db:"deleted_at"`
}

// Place finds the patient of a gateway measurement: who held the device then, else the patient the gateway names. When the two
// disagree it does not guess. reason says why the event cannot be placed.
// Source: docs/decisions/gateway.md, "Which patient does an event belong to".
func Place(app core.App, event gateway.Event) (patientID, reason string, err error) {
	holder, err := collections.DeviceHolder(app, event.DeviceID, event.At)
	if err != nil {
		return "", "", err
	}
	named, err := namedPatient(app, event.PatientID)
	if err != nil {
		return "", "", err
	}
	var patient *candidate
	switch {
	case holder == "" && named == nil:
		return "", ReasonUnknownPatient, nil
	case holder == "":
		patient = named
	case named != nil && named.ID != holder:
		return "", ReasonPatientMismatch, nil
	default:
		if patient, err = findCandidate(app, byID, dbx.Params{"id": holder}); err != nil {
			return "", "", err
		}
	}
	if patient == nil {
		return "", ReasonUnknownPatient, nil
	}
	if !patient.Active || patient.DeletedAt != "" {
		return "", ReasonPatientInactive, nil
	}
	return patient.ID, "", nil
}

// namedPatient looks for the gateway's own identifier first, then for our id and for the MRN.
func namedPatient(app core.App, identifier string) (*candidate, error) {
	if identifier == "" {
		return nil, nil
	}
	return findCandidate(app, byIdentifier, dbx.Params{"value": identifier, "id": strings.ToLower(identifier)})
}

// Each search has an index of its own: an event must not cost more in a larger practice.
const (
	byID         = `SELECT id, active, deleted_at FROM patients WHERE id = {:id}`
	byIdentifier = `SELECT id, active, deleted_at FROM (
		SELECT 1 AS preference, id, active, deleted_at FROM patients WHERE gateway_patient_id = {:value} AND gateway_patient_id != ''
		UNION ALL SELECT 2, id, active, deleted_at FROM patients WHERE id = {:id}
		UNION ALL SELECT 3, id, active, deleted_at FROM patients WHERE mrn = {:value} COLLATE NOCASE
	) ORDER BY preference LIMIT 1`
)

func findCandidate(app core.App, search string, params dbx.Params) (*candidate, error) {
	var patient candidate
	err := app.DB().NewQuery(search).Bind(params).One(&patient)
	if collections.Missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find patient of event: %w", err)
	}
	return &patient, nil
}

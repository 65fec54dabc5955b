package web

import (
	"strings"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/validate"
)

// patientParameter names the patient of a portal request.
const patientParameter = "patient_id"

// msgNamePatient is the error of a request that does not name which of several patients it is about.
const msgNamePatient = "Name the patient: this account has access to several."

// choosePatient sets the patient that a portal request is about, from its path or query. Endpoints
// that name the patient elsewhere, the FHIR interface and bodies with readings, call
// [Call.ChoosePatient]; until then a caller with several patients has none. Source:
// docs/decisions/roles.md, "Caregivers".
func (c *Call) choosePatient(row Route) error {
	c.action = row.Permission
	isList := row.Path == BasePath+"/patients/"                   // each row names its patient
	isResource := row.Path == BasePath+"/fhir/observations/{id}/" // its id names the patient
	if c.Reach != authz.Own || c.Caller.Role != authz.Patient || !authz.IsOfPatient(row.Permission) || isList || isResource ||
		row.Permission == authz.IngestReadings || !strings.HasPrefix(row.Path, BasePath+"/") {
		return nil
	}
	named := c.Request.URL.Query().Get(patientParameter)
	if strings.HasPrefix(row.Path, BasePath+"/patients/{id}/") || row.Path == BasePath+"/fhir/patients/{id}/" {
		if named = c.Request.PathValue("id"); named == "" {
			return fault.Missing()
		}
		id, _ := validate.ParseUUID(named)
		return c.ChoosePatient(patientParameter, id, true)
	}
	checks := validate.NewChecks()
	id := checks.UUID(patientParameter, validate.Of(named), false)
	if err := checks.Err(); named != "" && err != nil {
		return err
	}
	return c.ChoosePatient(patientParameter, id, named != "")
}

// ChoosePatient sets the patient that a portal request is about. If none is named, it is the user's
// own record or only patient; with several, field is rejected. It denies what the caller's scope
// for the patient does not cover. For a patient outside the caller's access it sets none, so that
// the endpoint answers as if the patient did not exist.
func (c *Call) ChoosePatient(field, patientID string, isNamed bool) error {
	if c.Caller.Role != authz.Patient {
		return nil
	}
	if !isNamed {
		if len(c.Caller.Patients) == 0 {
			return nil
		}
		if patientID = c.Caller.DefaultPatient(); patientID == "" {
			return fault.Field(field, msgNamePatient)
		}
	}
	c.Caller.PatientID, c.Caller.Scope = "", c.Caller.ScopeFor(patientID)
	if c.Caller.Scope == "" {
		return nil
	}
	c.Caller.PatientID = patientID
	if !c.Caller.Scope.May(c.action) {
		return fault.Denied()
	}
	return nil
}

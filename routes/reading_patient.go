package routes

import (
	"cmp"
	"strings"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vitals"
	"github.com/vigilhealth/vigil/routes/web"
)

// identifyPatient fills in the patient's id: the one with the sent MRN or EMR id, or the only one of a portal user. It
// chooses the patient of a portal request. Source: docs/decisions/observations.md, "Patient of a reading".
func identifyPatient(c *web.Call, envelope *vitals.Envelope) error {
	if err := findByIdentifier(c, envelope); err != nil {
		return err
	}
	if c.Caller.Role != authz.Patient {
		return nil
	}
	isNamed := envelope.PatientID.Given() || envelope.PatientID.Sent() && !envelope.PatientID.Null()
	id, _ := validate.ParseUUID(envelope.PatientID.Value)
	if err := c.ChoosePatient("patient_id", id, isNamed); err != nil || isNamed {
		return err
	}
	if c.Caller.PatientID == "" {
		return fault.Missing()
	}
	envelope.PatientID = validate.Of(c.Caller.PatientID)
	return nil
}

// findByIdentifier fills in the id of the patient with the sent MRN or EMR id.
func findByIdentifier(c *web.Call, envelope *vitals.Envelope) error {
	checks, sent := validate.NewChecks(), []string{}
	var found *collections.Patient
	var failure error
	for _, by := range []struct {
		name  string
		value validate.String
		find  func(core.App, string) (*collections.Patient, error)
	}{
		{"patient_id", envelope.PatientID, nil},
		{"patient_mrn", envelope.PatientMRN, collections.FindPatientByMRN},
		{"patient_external_id", envelope.PatientExternalID, findByExternalID},
	} {
		if !by.value.Sent() || by.value.Null() {
			continue
		}
		if sent = append(sent, by.name); len(sent) > 1 {
			checks.Reject(by.name, "Send either "+sent[0]+" or "+by.name+", not both.")
		}
		if by.find == nil {
			continue
		}
		if c.Caller.Role == authz.Patient { // a portal user needs none, and learns nothing about others
			checks.Reject(by.name, "Leave this out.")
			continue
		}
		if value := checks.Text(by.name, by.value, validate.Required(100).Identifier()); len(checks.Fields) == 0 {
			if found, failure = by.find(c.App, value); collections.IsNotFound(failure) {
				failure = &fault.Error{Kind: fault.NotFound, Code: "not_found", Detail: "Not found.", Fields: fault.Fields{by.name: {"No patient has it."}}}
			}
		}
	}
	if err := cmp.Or(checks.Err(), failure); err != nil || found == nil {
		return err
	}
	envelope.PatientID = validate.Of(found.Id)
	return nil
}

// findByExternalID finds a patient by the EMR's id, also in the form of a FHIR reference.
func findByExternalID(app core.App, id string) (*collections.Patient, error) {
	return collections.FindPatientByExternalID(app, strings.TrimPrefix(id, "Patient/"))
}

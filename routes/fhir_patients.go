package routes

import (
	"net/http"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fhir"
	"github.com/vigilhealth/vigil/routes/web"
)

// readFHIRPatient serves the FHIR R4 Patient. Every role that may read it sees all of it.
func (a *api) readFHIRPatient(c *web.Call, patient *collections.Patient) error {
	if err := collections.Readable(patient.ProxyRecord()); err != nil {
		return err
	}
	body, err := fhir.Patient(fhir.StoredPatient{
		ID: patient.Id, Who: patient.Demographics(), Gender: patient.Gender(), MRN: patient.MRN(), ExternalID: patient.ExternalID(),
		Active: patient.Active(), Version: patient.Version(), UpdatedAt: patient.UpdatedAt(),
	}, a.FHIRSystems).Encode()
	if err != nil {
		return err
	}
	if err := c.RecordRead(audit.PatientRead, audit.ResourcePatient, patient.Id, patient.Id); err != nil {
		return err
	}
	return c.Send(http.StatusOK, web.Preferred(c.Request.Header, web.JSONType, fhir.ContentType), body)
}

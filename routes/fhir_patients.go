package routes

import (
	"net/http"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fhir"
)

// readFHIRPatient serves the FHIR R4 Patient. Every role that may read it sees all of it.
func (a *api) readFHIRPatient(c *call) error {
	p, err := a.patient(c, collections.FindPatient)
	if err != nil {
		return err
	}
	if err := collections.Readable(p.ProxyRecord()); err != nil {
		return err
	}
	body, err := fhir.Patient(fhir.StoredPatient{
		ID: p.Id, Who: p.Demographics(), Gender: p.Gender(), MRN: p.MRN(), ExternalID: p.ExternalID(),
		Active: p.Active(), Version: p.Version(), UpdatedAt: p.UpdatedAt(),
	}, a.FHIRSystems).Encode()
	if err != nil {
		return err
	}
	if err := c.recordRead(audit.PatientRead, audit.ResourcePatient, p.Id, p.Id); err != nil {
		return err
	}
	return c.send(http.StatusOK, preferred(c.Request.Header, jsonType, fhir.ContentType), body)
}

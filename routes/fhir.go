package routes

import (
	"net/http"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fhir"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/routes/web"
)

// readFHIRObservation serves the FHIR R4 Observation, rendered from the stored reading.
func (a *api) readFHIRObservation(c *web.Call) error {
	o, err := a.findObservation(c)
	if err != nil {
		return err
	}
	names, err := patients.Names(c.App, []string{o.PatientID})
	if err != nil {
		return err
	}
	if !names[o.PatientID].Readable() {
		return &collections.Unreadable{Collection: collections.Patients, ID: o.PatientID}
	}
	body, err := fhir.Observation(o.FHIR(), phi.Text(names[o.PatientID].FirstLast())).Encode()
	if err != nil {
		return err
	}
	if err := c.RecordRead(audit.ObservationRead, audit.ResourceObservation, o.ID, o.PatientID); err != nil {
		return err
	}
	return c.Send(http.StatusOK, web.Preferred(c.Request.Header, web.JSONType, fhir.ContentType), body)
}

package routes

import (
	"net/http"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/ratelimit"
	"github.com/vigilhealth/vigil/routes/web"
)

func holdRows() []route {
	return []route{
		{http.MethodPost, "/patients/{id}/hold/", authz.HoldPatients, ratelimit.User, withPatient((*api).setHold)},
		{http.MethodDelete, "/patients/{id}/hold/", authz.HoldPatients, ratelimit.User, withPatient((*api).endHold)},
	}
}

// setHold answers 201 with a new hold, and 200 with a changed one.
func (a *api) setHold(c *web.Call, patient *collections.Patient) error {
	answer := c.Created
	if patient.Hold().InForce(c.Now) {
		answer = c.OK
	}
	read := fromBodyIn(collections.Zone(patient.TimeZone(), a.Zone), patients.HoldBody.Read)
	return change(c, patient.Id, read, patients.SetHold, a.showPatient(c, answer, func(v patients.View) any { return v.Hold }))
}

func (a *api) endHold(c *web.Call, patient *collections.Patient) error {
	_, err := patients.EndHold(c.App, patient.Id, c.Actor(), c.Now)
	return c.NoContent(err)
}

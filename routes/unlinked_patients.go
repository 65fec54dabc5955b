package routes

import (
	"context"
	"strings"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/emr"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/routes/web"
)

// unlinkedView is a patient without a link to the EMR, with the details to search for there.
type unlinkedView struct {
	PatientID       string  `json:"patient_id"`
	PatientName     string  `json:"patient_name"`
	MRN             string  `json:"mrn"`
	DateOfBirth     *string `json:"date_of_birth"`
	WaitingReadings int     `json:"waiting_readings"`
	OldestReadingAt *string `json:"oldest_reading_at"`
}

// listUnlinkedPatients lists patients with undeliverable readings because they are not linked to an EMR record.
// Source: docs/decisions/emr.md, "Linking".
func (a *api) listUnlinkedPatients(c *web.Call) error {
	q, p := c.Listing()
	team, err := a.careTeamFilterAfter(c, q, "")
	if err != nil {
		return err
	}
	page, total, err := collections.UnlinkedPatients(c.App, team, p.Offset(), p.Size)
	if err != nil {
		return err
	}
	ids := web.Map(page, func(u collections.UnlinkedPatient) string { return u.ID })
	people, err := collections.PatientsByID(c.App, ids)
	if err != nil {
		return err
	}
	waits := make(map[string]collections.UnlinkedPatient, len(page))
	for _, u := range page {
		waits[u.ID] = u
	}
	people, unreadable := collections.ReadableOnly(people)
	views := web.Map(people, func(p *collections.Patient) unlinkedView {
		who, waiting := p.Demographics(), waits[p.Id]
		return unlinkedView{
			PatientID: p.Id, PatientName: strings.TrimSpace(who.FirstName + " " + who.LastName), MRN: p.MRN(), DateOfBirth: orNull(who.DateOfBirth),
			WaitingReadings: waiting.Readings, OldestReadingAt: instantOf(waiting.Oldest),
		}
	})
	if err := c.RecordRead(audit.PatientRead, audit.ResourcePatient, "", ids...); err != nil {
		return err
	}
	return web.RespondPage(c, p, total, views, unreadable)
}

// linkBody holds the id of the patient's EMR record.
type linkBody struct {
	EMRID     validate.String  `json:"emr_id"`
	Confirmed validate.Boolean `json:"confirmed"`
}

type linkRequest struct {
	emrID     string
	confirmed bool
}

func (b linkBody) read(checks *validate.Checks) (link linkRequest) {
	sent := checks.Text("emr_id", b.EMRID, validate.Required(100).Identifier())
	link.emrID = strings.TrimPrefix(sent, "Patient/")
	if sent != "" && !emr.IsPatientID(link.emrID) {
		checks.Reject("emr_id", "Must be an id of the EMR, such as Patient/123.")
	}
	if confirmed := checks.Boolean("confirmed", b.Confirmed, false); confirmed != nil {
		link.confirmed = *confirmed
	}
	return link
}

type linkedView struct {
	PatientID string   `json:"patient_id"`
	EMRID     string   `json:"emr_id"`
	Warnings  []string `json:"warnings"`
}

// linkPatient links a patient to an EMR record after reading that record from the EMR.
func (a *api) linkPatient(c *web.Call, patient *collections.Patient) error {
	link, err := web.Read(c, linkBody.read)
	if err != nil {
		return err
	}
	if !a.EMR.Client.HasBackendService() && !a.EMR.Client.CanConnect() {
		return fault.State("emr_not_configured", "EMR is not configured.")
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), emrImportTimeout)
	defer cancel()
	warnings, err := patients.Link(ctx, c.App, a.EMR.Client, patient, link.emrID, link.confirmed, c.Actor(), c.Now)
	if err != nil {
		return emrFault(err)
	}
	return c.OK(linkedView{patient.Id, "Patient/" + link.emrID, append([]string{}, warnings...)})
}

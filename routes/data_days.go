package routes

import (
	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/routes/web"
)

// dataDaysView is the calendar of a patient's days with data.
type dataDaysView struct {
	PatientID  string   `json:"patient_id"`
	TimeZone   string   `json:"time_zone"`
	Today      string   `json:"today"`
	First      string   `json:"first_day"`
	Last       string   `json:"last_day"`
	Period     bool     `json:"billing_period"`
	Days       []string `json:"days"`
	NoConsent  []string `json:"days_without_consent"`
	Typed      []string `json:"days_typed"`
	DaysNeeded int      `json:"days_needed"`
	ToGo       int      `json:"days_to_go"`
	DaysLeft   int      `json:"days_left"`
	Reached    *string  `json:"reached"`
	Reachable  []string `json:"reachable"`
	Earlier    string   `json:"earlier"`
	Later      *string  `json:"later"`
}

func (a *api) readDataDays(c *web.Call, patient *collections.Patient) error {
	q := c.Query()
	date := q.Date("date")
	if err := q.Err(); err != nil {
		return err
	}
	days, err := a.Billing.DataDays(c.App, patient.Id, date, c.Now)
	if err == nil {
		err = c.RecordRead(audit.ObservationRead, audit.ResourcePatient, patient.Id, patient.Id)
	}
	return web.RespondWith(c.OK, func(d billing.DataDays) dataDaysView { return viewDataDays(patient.Id, d) })(days, err)
}

func viewDataDays(patientID string, d billing.DataDays) dataDaysView {
	v := dataDaysView{
		PatientID: patientID, TimeZone: d.Zone.String(), Today: d.Today, First: d.Start, Last: d.End, Period: d.InPeriod,
		Days: append([]string{}, d.Days...), NoConsent: append([]string{}, d.WithoutConsent...), Typed: append([]string{}, d.Manual...),
		DaysNeeded: d.Needed, ToGo: max(0, d.Needed-len(d.Days)), DaysLeft: d.DaysLeft, Reached: d.Reached, Reachable: d.Reachable,
		Earlier: billing.AddDays(d.Start, -1),
	}
	if d.End < d.Today {
		v.Later = new(billing.AddDays(d.End, 1))
	}
	return v
}

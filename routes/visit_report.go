package routes

import (
	"cmp"
	"net/http"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/ratelimit"
	"github.com/vigilhealth/vigil/internal/visitreport"
	"github.com/vigilhealth/vigil/routes/web"
)

func visitRows() []route {
	return []route{
		{http.MethodGet, "/patients/data-days/", authz.ReadDataDays, ratelimit.User, (*api).listDaysShort},
		{http.MethodGet, "/patients/{id}/data-days/", authz.ReadDataDays, ratelimit.User, withPatient((*api).readDataDays)},
		{http.MethodGet, "/patients/{id}/report/", authz.ReadVisitReport, ratelimit.User, withPatient((*api).readVisitReport)},
		{http.MethodPost, "/patients/{id}/report/send/", authz.TransmitObservations, ratelimit.User, withPatient((*api).sendReport)},
	}
}

// readVisitReport answers with the report for a visit as a PDF. The file name is the same for every patient, so that it
// reveals nothing.
func (a *api) readVisitReport(c *web.Call, patient *collections.Patient) error {
	q := c.Query()
	request := visitreport.Request{Days: visitreport.DefaultDays}
	if days := q.Integer("days"); days != nil {
		if request.Days = int(*days); *days < visitreport.MinDays || *days > visitreport.MaxDays {
			q.Reject("days", "Must be a whole number from 7 to 90.")
		}
	}
	if month := monthOf(q, "month"); month.Start != "" {
		request.From, request.To = a.Billing.TimeRange(month)
		switch {
		case q.Has("days"):
			q.Reject("month", "Must not be combined with days.")
		case request.From.After(c.Now):
			q.Reject("month", "Must not be in the future.")
		}
	}
	weight, temperature := q.OneOf("weight_unit", auth.WeightUnits...), q.OneOf("temperature_unit", auth.TemperatureUnits...)
	if err := q.Err(); err != nil {
		return err
	}
	var err error
	if request.Units, err = a.reportUnits(c, weight, temperature); err != nil {
		return err
	}
	names, err := collections.UserNames(c.App, []string{c.Caller.RecordID})
	if err != nil {
		return err
	}
	name := names[c.Caller.RecordID]
	request.MadeBy = phi.Text(name.First.Reveal() + " " + name.Last.Reveal())
	// Calls and notes are time entries; some roles see only their own minutes.
	if authz.ReachOf(c.Caller.Role, authz.ReadTimeEntries) != authz.All {
		request.MinutesOf = c.Caller.RecordID
	}
	report, err := visitreport.Build(c.App, visitreport.Practice{Name: a.PracticeName, Letterhead: a.Letterhead, Zone: a.Zone}, patient, request, c.Now)
	if err != nil {
		return err
	}
	if err := c.RecordRead(audit.PatientRead, audit.ResourceVisitReport, patient.Id, patient.Id); err != nil {
		return err
	}
	out, err := report.PDF()
	if err != nil {
		return err
	}
	return c.Attach("application/pdf", "visit-report.pdf", out)
}

// reportUnits returns the requested units, else the caller's own; a client has the practice's.
func (a *api) reportUnits(c *web.Call, weight, temperature string) (units visitreport.Units, err error) {
	callers, err := collections.UsersByID(c.App, []string{c.Caller.RecordID})
	for _, user := range callers {
		ownWeight, ownTemperature, _ := user.Display(a.DisplayUnits)
		weight, temperature = cmp.Or(weight, ownWeight), cmp.Or(temperature, ownTemperature)
	}
	weight, temperature = cmp.Or(weight, a.DisplayUnits.Weight), cmp.Or(temperature, a.DisplayUnits.Temperature)
	return visitreport.Units{Pounds: weight == "lb", Fahrenheit: temperature == "F"}, err
}

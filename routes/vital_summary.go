package routes

import (
	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vitals"
	"github.com/vigilhealth/vigil/internal/vitalsummary"
	"github.com/vigilhealth/vigil/routes/web"
)

// summaryView summarizes a patient's readings of the last days.
type summaryView struct {
	PatientID string                   `json:"patient_id"`
	AsOf      string                   `json:"as_of"`
	Periods   []validate.OrderedObject `json:"periods"`
}

func viewSummary(s vitalsummary.Summary) summaryView {
	return summaryView{PatientID: s.PatientID, AsOf: validate.FormatInstant(s.AsOf), Periods: web.Map(s.Periods, viewSummaryPeriod)}
}

func viewSummaryPeriod(period vitalsummary.Period) (view validate.OrderedObject) {
	view.Add("days", period.Days)
	for _, group := range period.Groups {
		view.Add(group.Name, viewSummaryGroup(group))
	}
	return view
}

func viewSummaryGroup(g vitalsummary.Group) (view validate.OrderedObject) {
	view.Add("readings", g.Readings)
	view.Add("days", g.Days)
	for _, p := range g.Parameters {
		view.Add(summaryName("mean", g, p), g.All.Mean(p))
		view.Add(summaryName("min", g, p), g.All.Min(p))
		view.Add(summaryName("max", g, p), g.All.Max(p))
	}
	view.Add("morning", viewPartOfDay(g, g.Morning))
	view.Add("evening", viewPartOfDay(g, g.Evening))
	view.Add("in_range_percent", g.InRange)
	view.Add("by_device", g.ByDevice)
	view.Add("typed", g.Manual)
	for _, p := range g.Parameters {
		if p.Change != nil {
			view.Add("change_"+p.Range.Unit, g.All.Change(p))
		}
	}
	return view
}

func viewPartOfDay(g vitalsummary.Group, part vitalsummary.Values) (view validate.OrderedObject) {
	view.Add("readings", part.Readings)
	for _, p := range g.Parameters {
		view.Add(summaryName("mean", g, p), part.Mean(p))
	}
	return view
}

// summaryName is the word alone if the group has one parameter, else the word and the parameter.
func summaryName(word string, g vitalsummary.Group, p *vitals.Parameter) string {
	if len(g.Parameters) == 1 {
		return word
	}
	return word + "_" + p.Name
}

func (a *api) readVitalSummary(c *web.Call, patient *collections.Patient) error {
	summary, err := vitalsummary.NewReader(a.Zone).Load(c.App, patient.Id, c.Now)
	if err == nil {
		err = c.RecordRead(audit.ObservationRead, audit.ResourcePatient, patient.Id, patient.Id)
	}
	return web.RespondWith(c.OK, viewSummary)(summary, err)
}

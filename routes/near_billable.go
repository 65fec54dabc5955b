package routes

import (
	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/routes/web"
)

// nearView is a patient close to a code.
type nearView struct {
	billing.NearWorth
	PatientName string `json:"patient_name"`
	MRN         string `json:"mrn"`
	Missing     string `json:"missing"`
}

// nearest is how many patients close to a code a page has unless it is asked for another number.
const nearest = 50

func (a *api) listNearBillable(c *web.Call) error {
	q := c.Query()
	byWorth := q.Ordering("missing", "-worth") == "-worth"
	unit, page := q.OneOf("unit", "days", "minutes"), q.Paging()
	if !q.Has("page_size") {
		page.Size = nearest
	}
	if err := q.Err(); err != nil {
		return err
	}
	include, err := a.ofTheirs(c)
	if err != nil {
		return err
	}
	filter := billing.NearFilter{Include: include, Unit: unit, ByWorth: byWorth}
	near, total, err := a.Billing.NearBillable(c.App, c.Now, filter, page.Offset(), page.Size)
	if err != nil {
		return err
	}
	names, err := patients.Names(c.App, distinct(near, func(n billing.NearWorth) string { return n.PatientID }))
	if err != nil {
		return err
	}
	views := web.Views(near, func(n billing.NearWorth) nearView {
		return nearView{n, names[n.PatientID].FirstLast(), names[n.PatientID].MRN, n.Still()}
	})
	answer, err := web.PageOf(c, page, total, views)
	if err != nil {
		return err
	}
	return c.Answer(answer, recordShown(c, audit.ResourceBillingEntry, "", views, func(v nearView) string { return v.PatientID }))
}

// ofTheirs says of which patients the caller may hear: nil for all, else those of the own care teams.
func (a *api) ofTheirs(c *web.Call) (func(string) bool, error) {
	team, err := a.team(c, "")
	if err != nil || team == "" {
		return nil, err
	}
	mine, err := collections.PatientsOfTeam(c.App, team)
	return func(id string) bool { return mine[id] }, err
}

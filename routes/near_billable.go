package routes

import (
	"math"
	"slices"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/routes/web"
)

// nearView is a patient close to a billable code.
type nearView struct {
	billing.NearCode
	billing.RevenueEstimate
	PatientName string `json:"patient_name"`
	MRN         string `json:"mrn"`
	Missing     string `json:"missing"`
}

// defaultNearPatients is the default page size.
const defaultNearPatients = 50

func (a *api) listNearBillable(c *web.Call) error {
	q := c.Query()
	byWorth := q.Ordering("missing", "-worth") == "-worth"
	unit, page := q.OneOf("unit", "days", "minutes"), q.Paging()
	if !q.Has("page_size") {
		page.Size = defaultNearPatients
	}
	if err := q.Err(); err != nil {
		return err
	}
	include, err := a.careTeamPredicate(c)
	if err != nil {
		return err
	}
	all, err := a.Billing.NearBillable(c.App, c.Now, include, math.MaxInt)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(n billing.NearCode) bool { return unit != "" && n.Unit != unit })
	near, worth, err := a.pageNearBillable(c, all, page, byWorth)
	if err != nil {
		return err
	}
	names, err := patients.Names(c.App, distinct(near, func(n billing.NearCode) string { return n.PatientID }))
	if err != nil {
		return err
	}
	views := web.Map(near, func(n billing.NearCode) nearView {
		return nearView{n, n.EstimateIn(worth), names[n.PatientID].FullName(), names[n.PatientID].MRN, n.MissingText()}
	})
	answer, err := web.PageOf(c, page, len(all), views)
	if err != nil {
		return err
	}
	return c.Respond(answer, recordShown(c, audit.ResourceBillingEntry, "", views, func(v nearView) string { return v.PatientID }))
}

// careTeamPredicate limits patients to the caller's care teams; nil means all patients.
func (a *api) careTeamPredicate(c *web.Call) (func(string) bool, error) {
	team, err := a.careTeamFilter(c, "")
	if err != nil || team == "" {
		return nil, err
	}
	mine, err := collections.PatientsOfTeam(c.App, team)
	return func(id string) bool { return mine[id] }, err
}

// pageNearBillable returns a page of patients close to a code, ordered by what is missing or by revenue, with the
// revenue estimate of each. Ordering by revenue estimates all of them.
func (a *api) pageNearBillable(c *web.Call, all []billing.NearCode, page web.Paging, byWorth bool) ([]billing.NearCode, map[string]billing.RevenueEstimate, error) {
	weighed := all
	if !byWorth {
		weighed = web.Cut(page, all)
	}
	worth, err := a.Billing.EstimateRevenue(c.App, weighed, a.Billing.Day(c.Now))
	if err != nil {
		return nil, nil, err
	}
	if byWorth {
		slices.SortFunc(all, billing.ByEstimatedGain(worth))
	}
	return web.Cut(page, all), worth, nil
}

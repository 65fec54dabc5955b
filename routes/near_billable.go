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

// nearView is a patient close to a code.
type nearView struct {
	billing.Near
	billing.Worth
	PatientName string `json:"patient_name"`
	MRN         string `json:"mrn"`
	Missing     string `json:"missing"`
}

// nearest is how many patients close to a code are shown.
const nearest = 50

func (a *api) listNearBillable(c *web.Call) error {
	q := c.Query()
	byWorth := q.Ordering("missing", "-worth") == "-worth"
	if err := q.Err(); err != nil {
		return err
	}
	team, err := a.team(c, "")
	if err != nil {
		return err
	}
	var include func(string) bool
	if team != "" {
		mine, err := collections.PatientsOfTeam(c.App, team)
		if err != nil {
			return err
		}
		include = func(id string) bool { return mine[id] }
	}
	near, worth, err := a.nearest(c, include, byWorth)
	if err != nil {
		return err
	}
	names, err := patients.Names(c.App, distinct(near, func(n billing.Near) string { return n.PatientID }))
	if err != nil {
		return err
	}
	views := web.Views(near, func(n billing.Near) nearView {
		return nearView{n, n.WorthIn(worth), names[n.PatientID].FirstLast(), names[n.PatientID].MRN, n.Still()}
	})
	return c.Answer(map[string]any{"count": len(views), "results": views}, recordShown(c, audit.ResourceBillingEntry, "", views, func(v nearView) string { return v.PatientID }))
}

// nearest are the patients close to a code, the least missing or the most worth first, with what each is worth.
func (a *api) nearest(c *web.Call, include func(string) bool, byWorth bool) ([]billing.Near, map[string]billing.Worth, error) {
	limit := nearest
	if byWorth {
		limit = math.MaxInt // what is worth most may miss more
	}
	near, err := a.Billing.NearBillable(c.App, c.Now, include, limit)
	if err != nil {
		return nil, nil, err
	}
	worth, err := a.Billing.NearWorth(c.App, near, a.Billing.Day(c.Now))
	if err != nil {
		return nil, nil, err
	}
	if byWorth {
		slices.SortFunc(near, billing.ByWorth(worth))
	}
	return near[:min(nearest, len(near))], worth, nil
}

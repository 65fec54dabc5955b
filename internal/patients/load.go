package patients

import (
	"slices"
	"sync"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/claims"

	"github.com/vigilhealth/vigil/internal/templates"
)

// Engine gathers what deciding takes. The zero value but for Billing is ready.
type Engine struct {
	Billing *billing.Engine
	// Delivers says whether readings go to an EMR.
	Delivers func() bool

	lock sync.Mutex
	// seen are what was found of sealed records, which take longest to open, until one of them or what they refer to has changed.
	seen map[string]prospect
}

// prospect is what preflight found when a record had a version.
type prospect struct {
	version int64
	stamp   string
	found   claims.FirstClaimCheck
}

// some is how many patients are asked for together.
const some = 1000

// firstCode is the code that a first month leads to.
const firstCode = billing.DeviceSupply

// Of says where the enrolment of a patient stands.
func (e *Engine) Of(app core.App, p *collections.Patient, now time.Time) (Enrolment, error) {
	ids := []string{p.Id}
	found, err := e.Billing.Claims.CheckFirstClaims(app, ids, firstCode, e.Billing.Day(now))
	if err != nil {
		return Enrolment{}, err
	}
	facts, err := e.facts(app, ids, now)
	if err != nil {
		return Enrolment{}, err
	}
	f := facts[p.Id]
	if len(found) > 0 {
		f.Claim = found[0]
	}
	age, known := Age(p, now, e.Billing.Zone)
	needs, err := templates.NeedsOf(app, []templates.Candidate{{PatientID: p.Id, Codes: p.ICD10Codes(), Age: age, AgeKnown: known}})
	if err != nil {
		return Enrolment{}, err
	}
	orders, err := collections.FirstOrders(app, ids)
	if err != nil {
		return Enrolment{}, err
	}
	schedule := p.MonitoringSchedule()
	f.Needs, f.Linked, f.Expects = needs[p.Id], p.ExternalID() != "", schedule == nil || len(schedule) > 0
	f.Visited = slices.ContainsFunc(orders, func(o collections.FirstOrder) bool { return o.Kind == collections.EstablishedVisit })
	return Decide(f), nil
}

// facts are those that can be read of many patients; what only hints need is taken to be there.
func (e *Engine) facts(app core.App, ids []string, now time.Time) (map[string]Facts, error) {
	ready, err := e.Billing.Readiness(app, ids, now)
	if err != nil {
		return nil, err
	}
	teams, err := collections.CareTeams(app, ids)
	if err != nil {
		return nil, err
	}
	candidates := make([]templates.Candidate, len(ids))
	for i, id := range ids {
		candidates[i].PatientID = id
	}
	needs, err := templates.NeedsOf(app, candidates)
	if err != nil {
		return nil, err
	}
	delivers, all := e.Delivers != nil && e.Delivers(), make(map[string]Facts, len(ids))
	for _, id := range ids {
		all[id] = Facts{
			Ready: ready[id], RequireOrder: e.Billing.RequireOrder, Delivers: delivers, Team: len(teams[id]),
			Needs: templates.Needs{Thresholds: needs[id].Thresholds}, Visited: true, Expects: true,
		}
	}
	return all, nil
}

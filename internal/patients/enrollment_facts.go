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

// Enrollments reads what [DecideEnrollment] needs. Only Billing is required.
type Enrollments struct {
	Billing *billing.Engine
	// Delivers reports whether readings go to an EMR.
	Delivers func() bool

	lock sync.Mutex
	// cached are the preflight results, which take the longest because records are sealed, until a version or stamp changes.
	cached map[string]prospect
}

// prospect is a preflight result for a version of a record.
type prospect struct {
	version int64
	stamp   string
	found   claims.FirstClaimCheck
}

// factsBatch is how many patients are read together.
const factsBatch = 1000

// firstCode is the CPT code of a first month.
const firstCode = billing.DeviceSupply

// Of returns the enrollment of a patient.
func (e *Enrollments) Of(app core.App, p *collections.Patient, now time.Time) (Enrollment, error) {
	ids := []string{p.Id}
	found, err := e.Billing.Claims.CheckFirstClaims(app, ids, firstCode, e.Billing.Day(now))
	if err != nil {
		return Enrollment{}, err
	}
	facts, err := e.facts(app, ids, now)
	if err != nil {
		return Enrollment{}, err
	}
	f := facts[p.Id]
	if len(found) > 0 {
		f.Claim = found[0]
	}
	age, ok := Age(p, now, e.Billing.Zone)
	needs, err := templates.NeedsOf(app, []templates.Candidate{{PatientID: p.Id, Codes: p.ICD10Codes(), Age: age, AgeKnown: ok}})
	if err != nil {
		return Enrollment{}, err
	}
	orders, err := collections.FirstOrders(app, ids)
	if err != nil {
		return Enrollment{}, err
	}
	schedule := p.MonitoringSchedule()
	f.Needs, f.Linked, f.Expects = needs[p.Id], p.ExternalID() != "", schedule == nil || len(schedule) > 0
	f.Visited = slices.ContainsFunc(orders, func(o collections.FirstOrder) bool { return o.Kind == collections.EstablishedVisit })
	return DecideEnrollment(f), nil
}

// facts reads the facts of many patients; those that only hints use are set to true.
func (e *Enrollments) facts(app core.App, ids []string, now time.Time) (map[string]EnrollmentFacts, error) {
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
	delivers, all := e.Delivers != nil && e.Delivers(), make(map[string]EnrollmentFacts, len(ids))
	for _, id := range ids {
		all[id] = EnrollmentFacts{
			Ready: ready[id], RequireOrder: e.Billing.RequireOrder, Delivers: delivers, Team: len(teams[id]),
			Needs: templates.Needs{Thresholds: needs[id].Thresholds}, Visited: true, Expects: true,
		}
	}
	return all, nil
}

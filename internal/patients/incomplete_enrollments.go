package patients

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/claims"
)

// EnrollmentFilter limits the incomplete enrollments; "" does not.
type EnrollmentFilter struct{ State, Step, Stops string }

// EnrollmentRow is the enrollment of one patient.
type EnrollmentRow struct {
	Patient   string
	CreatedAt time.Time
	Enrollment
}

// IncompleteEnrollments are the enrollments that are not done, newest first, with counts by step and consequence.
type IncompleteEnrollments struct {
	Rows             []EnrollmentRow
	Total            int // before the filter
	Missing, Waiting int // of these
	Steps            map[string]int
	Stops            map[string]int
}

// Incomplete checks all active patients, or those of a user's care teams.
func (e *Enrollments) Incomplete(app core.App, careTeamOf string, filter EnrollmentFilter, now time.Time) (*IncompleteEnrollments, error) {
	list, err := collections.PatientsByEnrollment(app, careTeamOf)
	if err != nil {
		return nil, err
	}
	prospects, err := e.claimChecks(app, list, now)
	if err != nil {
		return nil, err
	}
	u := &IncompleteEnrollments{Rows: []EnrollmentRow{}, Steps: map[string]int{}, Stops: map[string]int{}}
	for part := range slices.Chunk(list, factsBatch) {
		ids := make([]string, len(part))
		for i, p := range part {
			ids[i] = p.ID
		}
		facts, err := e.facts(app, ids, now)
		if err != nil {
			return nil, err
		}
		for _, p := range part {
			f := facts[p.ID]
			f.Claim, f.Linked = prospects[p.ID], p.Linked
			u.add(EnrollmentRow{p.ID, collections.ParseInstant(p.CreatedAt), DecideEnrollment(f)}, filter)
		}
	}
	return u, nil
}

func (e *IncompleteEnrollments) add(r EnrollmentRow, filter EnrollmentFilter) {
	switch r.State {
	case EnrollmentDone:
		return
	case EnrollmentMissing:
		e.Missing++
	default:
		e.Waiting++
	}
	e.Total++
	at := filter.Step == ""
	for _, s := range r.Steps {
		if s.State != EnrollmentDone {
			e.Steps[s.Step]++
			at = at || s.Step == filter.Step
		}
	}
	for _, what := range r.Stops {
		e.Stops[what]++
	}
	if at && (filter.State == "" || r.State == filter.State) && (filter.Stops == "" || slices.Contains(r.Stops, filter.Stops)) {
		e.Rows = append(e.Rows, r)
	}
}

// claimChecks returns the preflight results of all patients; each version of a record is opened once.
func (e *Enrollments) claimChecks(app core.App, list []collections.EnrolledPatient, now time.Time) (map[string]claims.FirstClaimCheck, error) {
	ids := make([]string, len(list))
	for i, p := range list {
		ids[i] = p.ID
	}
	day := e.Billing.Day(now)
	common, own, err := preflightStamps(app, ids, day)
	if err != nil {
		return nil, err
	}
	found, stale := make(map[string]claims.FirstClaimCheck, len(list)), []string{}
	e.lock.Lock()
	if len(e.cached) > 2*len(list)+factsBatch {
		e.cached = nil // most patients are no longer listed
	}
	for _, p := range list {
		if was, ok := e.cached[p.ID]; ok && was.version == p.Version && was.stamp == common+own[p.ID] {
			found[p.ID] = was.found
		} else {
			stale = append(stale, p.ID)
		}
	}
	e.lock.Unlock()
	for part := range slices.Chunk(stale, factsBatch) {
		fresh, err := e.Billing.Claims.CheckFirstClaims(app, part, firstCode, day)
		if err != nil {
			return nil, err
		}
		for _, p := range fresh {
			found[p.Patient] = p
		}
	}
	e.cacheClaimChecks(list, stale, found, common, own)
	return found, nil
}

// cacheClaimChecks caches results under the versions listed before the reads: a change in between is read again.
func (e *Enrollments) cacheClaimChecks(list []collections.EnrolledPatient, stale []string, found map[string]claims.FirstClaimCheck, common string, own map[string]string) {
	if len(stale) == 0 {
		return
	}
	e.lock.Lock()
	defer e.lock.Unlock()
	if e.cached == nil {
		e.cached = make(map[string]cachedClaimCheck, len(list))
	}
	versions := make(map[string]int64, len(list))
	for _, p := range list {
		versions[p.ID] = p.Version
	}
	for _, id := range stale {
		e.cached[id] = cachedClaimCheck{versions[id], common + own[id], found[id]}
	}
}

// preflightStamps change with everything that preflight reads besides the patient's record: day, payers, staff and codes for all patients,
// and the first order of monitoring of each.
func preflightStamps(app core.App, ids []string, day string) (common string, own map[string]string, err error) {
	payers, err := collections.ListPayers(app)
	if err != nil {
		return "", nil, err
	}
	others, err := collections.PreflightVersion(app)
	if err != nil {
		return "", nil, err
	}
	raw, err := json.Marshal([]any{day, payers, others})
	if err != nil {
		return "", nil, fmt.Errorf("encode what preflight reads: %w", err)
	}
	sum := sha256.Sum256(raw)
	orders, err := collections.FirstOrders(app, ids)
	if err != nil {
		return "", nil, err
	}
	own = make(map[string]string, len(orders))
	for _, o := range orders {
		if o.Kind == collections.OrderOfMonitoring {
			own[o.Patient] = o.Dated
		}
	}
	return hex.EncodeToString(sum[:8]), own, nil
}

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

// Filter says which unfinished enrolments are looked for; "" is all.
type Filter struct{ State, Step, Stops string }

// Row is the enrolment of one patient.
type Row struct {
	Patient   string
	CreatedAt time.Time
	Enrolment
}

// Unfinished are the enrolments that are not done, whoever was enrolled last first, and how many of all miss or wait at each step.
type Unfinished struct {
	Rows             []Row
	Total            int // unfinished, before the filter
	Missing, Waiting int // of these
	Steps            map[string]int
	Stops            map[string]int
}

// Unfinished looks at all active patients; of a person's care teams unless "".
func (e *Engine) Unfinished(app core.App, careTeamOf string, filter Filter, now time.Time) (*Unfinished, error) {
	list, err := collections.PatientsByEnrolment(app, careTeamOf)
	if err != nil {
		return nil, err
	}
	prospects, err := e.prospects(app, list, now)
	if err != nil {
		return nil, err
	}
	u := &Unfinished{Rows: []Row{}, Steps: map[string]int{}, Stops: map[string]int{}}
	for part := range slices.Chunk(list, some) {
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
			u.add(Row{p.ID, collections.ParseInstant(p.CreatedAt), Decide(f)}, filter)
		}
	}
	return u, nil
}

func (u *Unfinished) add(r Row, filter Filter) {
	switch r.State {
	case Done:
		return
	case Missing:
		u.Missing++
	default:
		u.Waiting++
	}
	u.Total++
	at := filter.Step == ""
	for _, s := range r.Steps {
		if s.State != Done {
			u.Steps[s.Step]++
			at = at || s.Step == filter.Step
		}
	}
	for _, what := range r.Stops {
		u.Stops[what]++
	}
	if at && (filter.State == "" || r.State == filter.State) && (filter.Stops == "" || slices.Contains(r.Stops, filter.Stops)) {
		u.Rows = append(u.Rows, r)
	}
}

// prospects are what preflight finds of all, opened once for each version of a record.
func (e *Engine) prospects(app core.App, list []collections.EnrolledPatient, now time.Time) (map[string]claims.FirstClaimCheck, error) {
	ids := make([]string, len(list))
	for i, p := range list {
		ids[i] = p.ID
	}
	day := e.Billing.Day(now)
	common, own, err := stamps(app, ids, day)
	if err != nil {
		return nil, err
	}
	found, stale := make(map[string]claims.FirstClaimCheck, len(list)), []string{}
	e.lock.Lock()
	if len(e.seen) > 2*len(list)+some {
		e.seen = nil // most of them have gone
	}
	for _, p := range list {
		if was, known := e.seen[p.ID]; known && was.version == p.Version && was.stamp == common+own[p.ID] {
			found[p.ID] = was.found
		} else {
			stale = append(stale, p.ID)
		}
	}
	e.lock.Unlock()
	for part := range slices.Chunk(stale, some) {
		fresh, err := e.Billing.Claims.CheckFirstClaims(app, part, firstCode, day)
		if err != nil {
			return nil, err
		}
		for _, p := range fresh {
			found[p.Patient] = p
		}
	}
	e.remember(list, stale, found, common, own)
	return found, nil
}

// remember stores in memory what was read under the versions that were listed before it was read: what changed in between is read again.
func (e *Engine) remember(list []collections.EnrolledPatient, stale []string, found map[string]claims.FirstClaimCheck, common string, own map[string]string) {
	if len(stale) == 0 {
		return
	}
	e.lock.Lock()
	defer e.lock.Unlock()
	if e.seen == nil {
		e.seen = make(map[string]prospect, len(list))
	}
	versions := make(map[string]int64, len(list))
	for _, p := range list {
		versions[p.ID] = p.Version
	}
	for _, id := range stale {
		e.seen[id] = prospect{versions[id], common + own[id], found[id]}
	}
}

// stamps change when anything does that preflight reads besides the patient's record: the day, payers, staff and codes for all, and for each
// patient the first order of monitoring.
func stamps(app core.App, ids []string, day string) (common string, own map[string]string, err error) {
	payers, err := collections.ListPayers(app)
	if err != nil {
		return "", nil, err
	}
	others, err := collections.PreflightStamp(app)
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

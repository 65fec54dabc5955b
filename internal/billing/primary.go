package billing

import (
	"slices"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// leaving are the states of a first code beside which, or after which, the code that stands on it may go to a payer: one that waits may never go, one
// that was denied is not there for the payer. Source: docs/decisions/billing.md, "Recount before submission".
var leaving = []string{Reviewed, Submitted, Paid, Appealed}

// leaves reports whether an entry of a code that goes to a payer, or went, overlaps a period.
func (f *facts) leaves(code string, period Span) bool {
	return slices.ContainsFunc(f.entries[code], func(x existing) bool { return slices.Contains(leaving, x.Status) && x.overlaps(period) })
}

// alone reports whether the entry stands on one that does not go to a payer with it.
func (r *recount) alone() bool {
	return r.leaving && r.claim.code == NextTwenty && !r.facts.leaves(FirstTwenty, r.claim.period)
}

// Primary is an entry that another one stands on.
type Primary struct{ ID, Status string }

// Primaries are, for each of some entries of a code that stands on another code, the entries of that one for the same period.
func (e *Engine) Primaries(app core.App, entries []*collections.BillingEntry) (map[string][]Primary, error) {
	found, since := map[string][]Primary{}, "9999-12-31"
	var patients []string
	for _, entry := range entries {
		if entry.CPTCode() == NextTwenty {
			found[entry.Id], since = nil, min(since, entry.PeriodStart())
			patients = append(patients, entry.PatientID())
		}
	}
	if len(patients) == 0 {
		return found, nil
	}
	slices.Sort(patients)
	l := &loader{Engine: e, app: app, ids: slices.Compact(patients), since: since, found: map[string]*facts{}}
	for _, id := range l.ids {
		l.found[id] = &facts{entries: map[string][]existing{}}
	}
	if err := l.entries(); err != nil {
		return nil, err
	}
	for _, entry := range entries {
		if entry.CPTCode() != NextTwenty {
			continue
		}
		for _, x := range l.found[entry.PatientID()].entries[FirstTwenty] {
			if x.overlaps(Span{entry.PeriodStart(), entry.PeriodEnd()}) {
				found[entry.Id] = append(found[entry.Id], Primary{x.ID, x.Status})
			}
		}
	}
	return found, nil
}

package billing

import (
	"slices"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// submittableStates are the states of a primary code with or after which its add-on code may be submitted: a pending entry may never be
// submitted, and a denied one does not exist for the payer. Source: docs/decisions/billing.md, "Recount before submission".
var submittableStates = []string{Reviewed, Submitted, Paid, Appealed}

// hasSubmittableEntry reports whether an entry of a code that is or will be with a payer overlaps a period.
func (f *patientFacts) hasSubmittableEntry(code string, period Span) bool {
	return slices.ContainsFunc(f.entries[code], func(x existingEntry) bool { return slices.Contains(submittableStates, x.Status) && x.overlaps(period) })
}

// lacksPrimary reports whether the entry is an add-on code without its primary code in the submission.
func (r *recount) lacksPrimary() bool {
	return r.isSubmitting && r.claim.code == NextTwenty && !r.facts.hasSubmittableEntry(FirstTwenty, r.claim.period)
}

// PrimaryEntry is an entry that an add-on code requires.
type PrimaryEntry struct{ ID, Status string }

// PrimaryEntries returns, for each entry of an add-on code, the entries of its primary code in the same period.
func (e *Engine) PrimaryEntries(app core.App, entries []*collections.BillingEntry) (map[string][]PrimaryEntry, error) {
	found, since := map[string][]PrimaryEntry{}, "9999-12-31"
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
	l := &factsLoader{Engine: e, app: app, ids: slices.Compact(patients), since: since, facts: map[string]*patientFacts{}}
	for _, id := range l.ids {
		l.facts[id] = &patientFacts{entries: map[string][]existingEntry{}}
	}
	if err := l.loadEntries(); err != nil {
		return nil, err
	}
	for _, entry := range entries {
		if entry.CPTCode() != NextTwenty {
			continue
		}
		for _, x := range l.facts[entry.PatientID()].entries[FirstTwenty] {
			if x.overlaps(Span{entry.PeriodStart(), entry.PeriodEnd()}) {
				found[entry.Id] = append(found[entry.Id], PrimaryEntry{x.ID, x.Status})
			}
		}
	}
	return found, nil
}

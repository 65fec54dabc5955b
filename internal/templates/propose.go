package templates

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// Candidate is a patient, as proposing a template needs it.
type Candidate struct {
	PatientID string
	Codes     []string // ICD-10-CM, the most important first
	Age       int
	AgeKnown  bool
}

// Needs is what a patient lacks in thresholds.
type Needs struct {
	Thresholds bool
	// Proposed is the number of a fitting template that was not applied; 0 for none.
	Proposed int64
}

// NeedsOf returns the needs of patients, by id.
func NeedsOf(app core.App, candidates []Candidate) (map[string]Needs, error) {
	ids := make([]string, len(candidates))
	for i, c := range candidates {
		ids[i] = c.PatientID
	}
	states, err := collections.ThresholdsStates(app, ids)
	if err != nil {
		return nil, err
	}
	of := make(map[string]collections.ThresholdsState, len(states))
	for _, state := range states {
		of[state.PatientID] = state
	}
	needs := make(map[string]Needs, len(candidates))
	var offers []offer
	for _, c := range candidates {
		state := of[c.PatientID]
		minor := state.AgeGroup == collections.AgeMinor
		need := Needs{Thresholds: minor && state.Needed}
		if len(c.Codes) > 0 || minor {
			if offers == nil {
				if offers, err = readOffers(app); err != nil {
					return nil, err
				}
			}
			applied, err := collections.ParseAppliedTemplates(state.Templates)
			if err != nil {
				return nil, err
			}
			need.Proposed = propose(offers, c, minor, applied)
		}
		needs[c.PatientID] = need
	}
	return needs, nil
}

// offer is a template that may be proposed.
type offer struct {
	number         int64
	codes          []string
	minAge, maxAge *float64
}

// readOffers never returns nil without an error.
func readOffers(app core.App) ([]offer, error) {
	rows, err := collections.OfferedTemplates(app)
	if err != nil {
		return nil, err
	}
	offers := make([]offer, len(rows))
	for i, row := range rows {
		offers[i] = offer{number: collections.Number(row.ID), minAge: row.MinAge, maxAge: row.MaxAge}
		if json.Unmarshal([]byte(row.Diagnoses), &offers[i].codes) != nil {
			offers[i].codes = nil // none
		}
	}
	return offers, nil
}

// propose picks the template that fits a patient and was not applied yet: by the first diagnosis that has one, of several the most
// specific, then the oldest. By age alone templates are proposed only to minors: adults have the practice's defaults. Source:
// docs/decisions/alerts.md, "Templates".
func propose(offers []offer, c Candidate, minor bool, applied []collections.AppliedTemplate) int64 {
	isApplied := func(o offer) bool {
		return slices.ContainsFunc(applied, func(a collections.AppliedTemplate) bool { return a.ID == o.number })
	}
	open := func(o offer) bool { return o.fits(c) && !isApplied(o) }
	for _, code := range c.Codes {
		var best offer
		exact := 0
		for _, o := range offers {
			if isApplied(o) { // a less specific one would undo it
				exact = max(exact, o.matchLength(code, c.Codes)-1)
			}
		}
		for _, o := range offers {
			if length := o.matchLength(code, c.Codes); length > exact && open(o) {
				best, exact = o, length
			}
		}
		if best.number > 0 {
			return best.number
		}
	}
	if minor {
		for _, o := range offers {
			if len(o.codes) == 0 && (o.minAge != nil || o.maxAge != nil) && open(o) {
				return o.number
			}
		}
	}
	return 0
}

// matchLength returns how much of a code the template matches; 0 for no match. A name such as J44+Z99.81 matches the first code if the
// patient has the second as well, and is then more specific than either.
func (o offer) matchLength(code string, all []string) (length int) {
	for _, named := range o.codes {
		first, second, both := strings.Cut(named, "+")
		has := func(other string) bool { return strings.HasPrefix(other, second) }
		if strings.HasPrefix(code, first) && (!both || slices.ContainsFunc(all, has)) {
			length = max(length, len(named))
		}
	}
	return length
}

// fits reports whether the patient's age fits; an unknown age fits no template with an age.
func (o offer) fits(c Candidate) bool {
	if o.minAge == nil && o.maxAge == nil {
		return true
	}
	age := float64(c.Age)
	return c.AgeKnown && (o.minAge == nil || age >= *o.minAge) && (o.maxAge == nil || age <= *o.maxAge)
}

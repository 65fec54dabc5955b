package templates

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/triage"
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
	// Proposed is the number of the first fitting template that no one has decided on, and All are all of them; 0 and empty for none.
	Proposed int64
	All      []int64
	// Provisional are the bounds of these templates in force, to be decided on by DecideBy; zero for none.
	Provisional []alerts.ProvisionalBound
	DecideBy    time.Time
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
		minor := collections.IsMinorGroup(state.AgeGroup)
		need := Needs{Thresholds: minor && state.Needed, DecideBy: triage.DecideBy(collections.ParseInstant(state.ProvisionalSince))}
		if need.Provisional, err = alerts.ParseProvisional(state.Provisional); err != nil {
			return nil, err
		}
		if len(c.Codes) > 0 || minor {
			if offers == nil {
				if offers, err = readOffers(app); err != nil {
					return nil, err
				}
			}
			decided, err := readDecisions(state)
			if err != nil {
				return nil, err
			}
			if need.All = pickTemplates(offers, c, minor, decided); len(need.All) > 0 {
				need.Proposed = need.All[0]
			}
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

// decisions are the templates of a patient that a clinician decided on, by number.
type decisions struct{ applied, declined []int64 }

func readDecisions(state collections.ThresholdsState) (d decisions, err error) {
	applied, err := collections.ParseAppliedTemplates(state.Templates)
	if err != nil {
		return d, err
	}
	declined, err := collections.ParseDeclinedTemplates(state.Declined)
	for _, a := range applied {
		d.applied = append(d.applied, a.ID)
	}
	for _, a := range declined {
		d.declined = append(d.declined, a.ID)
	}
	return d, err
}

// pickTemplates picks the undecided templates that fit a patient, in order of the diagnoses: for each the
// most specific one, then the oldest, and none less specific than an applied one. By age alone it
// proposes only to minors, and only without a template by diagnosis: adults have the practice's
// defaults. Source: docs/decisions/alerts.md, "Templates".
func pickTemplates(offers []offer, c Candidate, minor bool, d decisions) (numbers []int64) {
	for _, code := range c.Codes {
		var best offer
		exact := 0
		for _, o := range offers {
			if slices.Contains(d.applied, o.number) { // a less specific one would undo it
				exact = max(exact, o.matchLength(code, c.Codes)-1)
			}
		}
		for _, o := range offers {
			isDecided := slices.Contains(d.applied, o.number) || slices.Contains(d.declined, o.number)
			if length := o.matchLength(code, c.Codes); length > exact && o.fits(c) && !isDecided {
				best, exact = o, length
			}
		}
		if best.number > 0 && !slices.Contains(numbers, best.number) {
			numbers = append(numbers, best.number)
		}
	}
	if minor && len(numbers) == 0 {
		for _, o := range offers {
			if len(o.codes) == 0 && (o.minAge != nil || o.maxAge != nil) && o.fits(c) && !slices.Contains(slices.Concat(d.applied, d.declined), o.number) {
				return []int64{o.number}
			}
		}
	}
	return numbers
}

// bareCode returns a code without its dot and in capitals, in which spellings of one diagnosis are equal.
func bareCode(code string) string {
	return strings.ToUpper(strings.ReplaceAll(strings.TrimSpace(code), ".", ""))
}

// SameDiagnoses reports whether two lists have the same codes, in any order and spelling.
func SameDiagnoses(a, b []string) bool {
	bare := func(codes []string) (list []string) {
		for _, code := range codes {
			list = append(list, bareCode(code))
		}
		slices.Sort(list)
		return slices.Compact(list)
	}
	return slices.Equal(bare(a), bare(b))
}

// matchLength returns how much of a code the template matches; 0 for no match. A name such as J44+Z99.81 matches the first code if the
// patient has the second as well, and is then more specific than either.
func (o offer) matchLength(code string, all []string) (length int) {
	for _, named := range o.codes {
		first, second, both := strings.Cut(bareCode(named), "+")
		has := func(other string) bool { return strings.HasPrefix(bareCode(other), second) }
		if strings.HasPrefix(bareCode(code), first) && (!both || slices.ContainsFunc(all, has)) {
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

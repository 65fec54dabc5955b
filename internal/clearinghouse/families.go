package clearinghouse

import (
	"slices"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// families knows which claims replace one another, as far as the receiver knows of them: a line that was sent anew moved to a newer claim, and took
// those with it that stood beside it. Source: docs/decisions/claims.md, "Batches".
type families struct {
	elder   map[string]string                // a claim of the same family for each claim; the eldest for itself
	current map[string]collections.ClaimLine // of each entry that stood on one of them, where it stands now
}

// familiesOf follows the claims on which some entries stood to all that replaced them or were replaced by them. With usage P only claims that were
// sent for production count: a payer never saw the others.
func familiesOf(app core.App, entryIDs []string, usage string) (*families, error) {
	f := &families{map[string]string{}, map[string]collections.ClaimLine{}}
	if usage != "P" {
		usage = ""
	}
	seen := map[string]bool{}
	for len(entryIDs) > 0 {
		lines, err := collections.LinesOfEntries(app, entryIDs, usage)
		if err != nil {
			return nil, err
		}
		for _, l := range lines {
			if before, ok := f.current[l.EntryID]; ok && l.Frequency != "1" {
				f.join(before.Claim, l.Claim)
			}
			f.current[l.EntryID] = l
		}
		var claims []string
		for _, l := range lines {
			if !seen[l.Claim] {
				seen[l.Claim] = true
				claims = append(claims, l.Claim)
			}
		}
		beside, err := collections.EntriesOfClaims(app, claims)
		if err != nil {
			return nil, err
		}
		entryIDs = slices.DeleteFunc(beside, func(id string) bool { _, known := f.current[id]; return known })
	}
	return f, nil
}

// of is the family of a claim, by its eldest.
func (f *families) of(claim string) string {
	for f.elder[claim] != "" && f.elder[claim] != claim {
		claim = f.elder[claim]
	}
	return claim
}

func (f *families) join(a, b string) {
	a, b = f.of(a), f.of(b)
	f.elder[max(a, b)] = min(a, b)
}

// claim is the family on which an entry stands; "" where its receiver knows of none.
func (f *families) claim(entryID string) string {
	return f.of(f.current[entryID].Claim)
}

// members are the entries that stand on a family, in the order in which they are known.
func (f *families) members(family string) (ids []string) {
	for id, l := range f.current {
		if f.of(l.Claim) == family {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b string) int { return f.compare(a, b) })
	return ids
}

// compare orders entries by where they stand: what was sent earlier first.
func (f *families) compare(a, b string) int {
	x, y := f.current[a].Line, f.current[b].Line
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

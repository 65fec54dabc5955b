package clearinghouse

import (
	"slices"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// claimChains knows which claims replace one another, as far as the receiver knows of them: a line that was sent anew moved to a newer claim, and took
// those with it that stood beside it. Source: docs/decisions/claims.md, "Batches".
type claimChains struct {
	parent  map[string]string                // a claim of the same family for each claim; the eldest for itself
	current map[string]collections.ClaimLine // of each entry that stood on one of them, where it stands now
}

// loadClaimChains follows the claims on which some entries stood to all that replaced them or were replaced by them. With usage P only claims that were
// sent for production count: a payer never saw the others.
func loadClaimChains(app core.App, entryIDs []string, usage string) (*claimChains, error) {
	f := &claimChains{map[string]string{}, map[string]collections.ClaimLine{}}
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

// rootOf is the family of a claim, by its eldest.
func (f *claimChains) rootOf(claim string) string {
	for f.parent[claim] != "" && f.parent[claim] != claim {
		claim = f.parent[claim]
	}
	return claim
}

func (f *claimChains) join(a, b string) {
	a, b = f.rootOf(a), f.rootOf(b)
	f.parent[max(a, b)] = min(a, b)
}

// chainOf is the family on which an entry stands; "" where its receiver knows of none.
func (f *claimChains) chainOf(entryID string) string {
	return f.rootOf(f.current[entryID].Claim)
}

// members are the entries that stand on a family, in the order in which they are known.
func (f *claimChains) members(family string) (ids []string) {
	for id, l := range f.current {
		if f.rootOf(l.Claim) == family {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b string) int { return f.compare(a, b) })
	return ids
}

// compare orders entries by where they stand: what was sent earlier first.
func (f *claimChains) compare(a, b string) int {
	x, y := f.current[a].Line, f.current[b].Line
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

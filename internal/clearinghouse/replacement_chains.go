package clearinghouse

import (
	"slices"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// claimChains groups claims that replace one another, as far as the receiver has them: a line that is sent again moves to a newer claim,
// together with the other lines of its claim. It is a union-find. Source: docs/decisions/claims.md, "Batches".
type claimChains struct {
	parent  map[string]string                // an earlier claim of the same chain; the first claim is its own parent
	current map[string]collections.ClaimLine // where each entry of the claims is now
}

// loadClaimChains follows the claims of entries to all claims that replaced them or were replaced by them. With usage P, only production claims
// count: a payer never received the others.
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
		others, err := collections.EntriesOfClaims(app, claims)
		if err != nil {
			return nil, err
		}
		entryIDs = slices.DeleteFunc(others, func(id string) bool { _, found := f.current[id]; return found })
	}
	return f, nil
}

// rootOf returns the chain of a claim, identified by its first claim.
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

// chainOf returns the chain of an entry; "" if the receiver has none.
func (f *claimChains) chainOf(entryID string) string {
	return f.rootOf(f.current[entryID].Claim)
}

// members returns the entries of a chain, in order of sending.
func (f *claimChains) members(chain string) (ids []string) {
	for id, l := range f.current {
		if f.rootOf(l.Claim) == chain {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b string) int { return f.compare(a, b) })
	return ids
}

// compare orders entries by their current line: earlier sent first.
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

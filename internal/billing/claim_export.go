package billing

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/async"
)

// ClaimRow is an entry in the claims export.
type ClaimRow struct {
	collections.ClaimRow
	Provider string // "Last, First"; "" for none
}

// ICD10Codes returns the diagnoses of the claim.
func (r ClaimRow) ICD10Codes() []string {
	codes := []string{}
	if json.Unmarshal([]byte(r.ICD10), &codes) != nil {
		return []string{}
	}
	return codes
}

// Amount returns the amount of the claim.
func (r ClaimRow) Amount() Cents { return Cents(r.AmountCents) }

// exportPage is how many claims are read at a time, to keep read transactions short.
const exportPage = 1000

// ForEachClaim passes the claims in some states to visit, page by page, in order of creation. payerID is a record id; "" for every payer.
func (e *Engine) ForEachClaim(ctx context.Context, app core.App, states []string, payerID string, visit func([]ClaimRow) error) error {
	exporting := async.ThrottleWhile(e.ReadingsPending)
	for after := ""; ; {
		if err := exporting.Rest(ctx); err != nil {
			return err
		}
		found, err := collections.ClaimRows(app, states, payerID, after, exportPage)
		if err != nil {
			return err
		}
		rows, err := addProviderNames(app, found)
		if err != nil {
			return err
		}
		if len(rows) > 0 {
			if err := visit(rows); err != nil {
				return err
			}
			after = rows[len(rows)-1].ID
		}
		if len(rows) < exportPage {
			return nil
		}
	}
}

func addProviderNames(app core.App, found []collections.ClaimRow) ([]ClaimRow, error) {
	ids := map[string]bool{}
	for _, row := range found {
		ids[row.ProviderID] = true
	}
	names, err := ProviderNames(app, slices.Collect(maps.Keys(ids)))
	rows := make([]ClaimRow, len(found))
	for i, row := range found {
		rows[i] = ClaimRow{row, names[row.ProviderID]}
	}
	return rows, err
}

// ProviderNames returns the names of users by record id, "Last, First".
func ProviderNames(app core.App, ids []string) (map[string]string, error) {
	names, err := collections.UserNames(app, ids)
	if err != nil {
		return nil, err
	}
	listed := make(map[string]string, len(names))
	for id, name := range names {
		listed[id] = lastFirst(name.Last.Reveal(), name.First.Reveal())
	}
	return listed, nil
}

func lastFirst(last, first string) string {
	if last == "" || first == "" {
		return last + first
	}
	return last + ", " + first
}

package clearinghouse

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
)

// CloseRemittance records that a person resolved an item of a payment, counted from 1, or with ordinal 0 all that are open. No money moves. It
// returns an invalid_state fault if nothing of that is open, or while a file is imported, which may change the items.
func CloseRemittance(app core.App, id string, ordinal int, notes string, by audit.Actor, now time.Time) error {
	if !importMu.TryLock() {
		return fault.State("invalid_state", "A file is being imported: try again when that is finished.")
	}
	defer importMu.Unlock()
	return app.RunInTransaction(func(tx core.App) error {
		row, err := collections.FindRemittance(tx, id)
		if err != nil {
			return fault.OrMissing(err)
		}
		items, err := row.Items()
		if err != nil {
			return err
		}
		if ordinal > len(items) {
			return fault.Missing()
		}
		closed := 0
		for i := range items {
			if items[i].ClosedAt == "" && (ordinal == 0 || ordinal == i+1) {
				items[i].ClosedAt, items[i].ClosedBy, items[i].Notes = collections.FormatInstant(now), by.Email, notes
				closed++
			}
		}
		if closed == 0 {
			return fault.State("invalid_state", "Nothing of this is open.")
		}
		if err := collections.CloseItems(tx, row, items, ordinal == 0, notes, by.Email, now); err != nil {
			return err
		}
		changes := audit.Changes{"trace_number": {New: row.Trace}, "closed_items": {New: closed}}
		if ordinal > 0 {
			changes["ordinal"] = audit.Change{New: ordinal}
		}
		return audit.Append(tx, audit.Entry{
			Event: audit.BillingClose, Actor: by, ResourceType: audit.ResourceRemittance, ResourceID: id, Changes: changes,
		}, now)
	})
}

package clearinghouse

import (
	"slices"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// storedPayment stores a payment, or returns the stored one: with the same content, or one of which a claim could not be read or did not balance, and which
// this file corrects. So a payment that its payer sends again is on record once. Source: docs/decisions/claims.md, "Remittances".
func (t *importRun) storedPayment(d collections.RemittanceDraft) (row collections.RemittanceRow, err error) {
	err = t.app.RunInTransaction(func(tx core.App) error {
		open, err := collections.OpenRemittancesOf(tx, d)
		if err != nil {
			return err
		}
		for _, before := range open {
			items, err := before.Items()
			if err != nil {
				return err
			}
			if slices.ContainsFunc(items, func(item collections.RemittanceItem) bool {
				return item.ClosedAt == "" && (item.Reason == unreadable || item.Reason == unbalanced)
			}) {
				if err := collections.CorrectRemittance(tx, before.ID, d.Digest, t.now); err != nil {
					return err
				}
				break
			}
		}
		row, err = collections.AddRemittance(tx, d, t.now)
		return err
	})
	return row, err
}

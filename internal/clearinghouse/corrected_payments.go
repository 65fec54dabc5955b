package clearinghouse

import (
	"slices"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/x12"
)

// storedPayment stores a payment, or returns the stored one that has the same content or that this
// file corrects (a claim was unreadable or unbalanced). A payment that is sent again is therefore
// stored once. Source: docs/decisions/claims.md, "Remittances".
func (ir *importRun) storedPayment(d collections.RemittanceDraft, claims []x12.ClaimPayment) (row collections.RemittanceRow, err error) {
	err = ir.app.RunInTransaction(func(tx core.App) error {
		open, err := collections.OpenRemittancesOf(tx, d)
		if err != nil {
			return err
		}
		for _, before := range open {
			items, err := before.Items()
			if err != nil {
				return err
			}
			if d.PaymentCents != 0 && corrects(claims, items) {
				ir.isCorrection = true
				if err := collections.CorrectRemittance(tx, before.ID, d.Digest, ir.now); err != nil {
					return err
				}
				break
			}
		}
		row, err = collections.AddRemittance(tx, d, ir.now)
		return err
	})
	return row, err
}

// corrects reports whether a payment has every claim that an earlier file left open as unreadable
// or unbalanced.
func corrects(claims []x12.ClaimPayment, items []collections.RemittanceItem) bool {
	items = slices.DeleteFunc(slices.Clone(items), func(item collections.RemittanceItem) bool {
		return item.ClosedAt != "" || item.Reason != unreadable && item.Reason != unbalanced
	})
	return len(items) > 0 && !slices.ContainsFunc(items, func(item collections.RemittanceItem) bool {
		return !slices.ContainsFunc(claims, func(c x12.ClaimPayment) bool {
			return c.ControlNumber == item.ControlNumber || c.PayerControlNumber != "" && c.PayerControlNumber == item.PayerControlNumber
		})
	})
}

// withholdContradictions leaves for a person what a corrected file states differently from the posted part, and a
// correction with a reversal that cannot be posted: posting either would add money that was never
// paid.
func (ir *importRun) withholdContradictions(all []*claimDecision) error {
	keys := map[string]bool{}
	for _, d := range all {
		for _, part := range d.parts {
			keys[part.key] = true
		}
	}
	for _, d := range all {
		if d.reason != "" {
			continue
		}
		for _, other := range all {
			if other.isDamagedReversal() && !d.IsReversal() && d.isRelated(other) {
				d.reason = "reversal_not_posted"
			}
		}
		for _, part := range d.parts {
			if !ir.isCorrection || d.reason != "" {
				break
			}
			posted, err := collections.PostedKeys(ir.app, ir.remittance, part.line.EntryID)
			if err != nil {
				return err
			}
			if slices.ContainsFunc(posted, func(key string) bool { return !keys[key] }) {
				d.reason = "already_posted"
			}
		}
	}
	return nil
}

// isDamagedReversal reports whether a decision that cannot be posted is a reversal, by its status or the sign of its amounts.
func (d *claimDecision) isDamagedReversal() bool {
	isDamaged := d.reason == unreadable || d.reason == unbalanced || d.reason == wrongSign
	return isDamaged && (d.IsReversal() || d.Charge < 0 || d.Paid < 0)
}

// isRelated reports whether two decisions are about the same line: by the claim, or for an unknown claim by the payer's number or ours of a line.
func (d *claimDecision) isRelated(other *claimDecision) bool {
	if len(other.lines) > 0 {
		return d.sharesEntry(other)
	}
	isSameClaim := d.PayerControlNumber != "" && d.PayerControlNumber == other.PayerControlNumber
	return isSameClaim || slices.ContainsFunc(d.Lines, func(l x12.ServicePayment) bool {
		return l.ControlNumber != "" && slices.ContainsFunc(other.Lines, func(m x12.ServicePayment) bool { return m.ControlNumber == l.ControlNumber })
	})
}

package billing

import (
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
)

// RefundDraft is a refund that a user records.
type RefundDraft struct {
	Amount          Cents
	Date, Reference string
	Payer           string // to which a credit was returned, one of [PayerKinds]; "" for any that paid as much
}

// Refund records a refund. Refunds add up; an undone entry is refunded once all of its payments are returned. For a valid claim only a credit
// balance is returned.
func (e *Engine) Refund(d RefundDraft, by audit.Actor, now time.Time) Transition {
	m := Transition{
		Name: "refund", From: []string{RefundDue, Paid, Denied}, event: audit.BillingRefund, detail: d.Amount.String() + " " + d.Reference, target: stateAfterRefund,
	}
	m.check = func(tx core.App, entry *collections.BillingEntry) error {
		if d.Amount <= 0 {
			return fault.Field("amount", "Must be more than zero.")
		}
		if entry.Status() != RefundDue {
			return refundCredit(tx, entry, d, by, now)
		}
		if due := entry.PaidTotalCents() - entry.RefundedCents(); int64(d.Amount) > due {
			return fault.Field("amount", "Only "+Cents(due).String()+" is due back.")
		}
		return postPayment(tx, entry, collections.Payment{
			Kind: collections.RefundKind, AmountCents: int64(d.Amount), Date: d.Date, Reference: d.Reference, Payer: d.Payer, Source: collections.SourceByHand,
			CreatedBy: by.Email,
		}, now)
	}
	m.after = releaseTimeWhenRefunded(now)
	return m
}

func stateAfterRefund(entry *collections.BillingEntry) string {
	if entry.Status() != RefundDue { // a credit was returned; the claim stays valid
		return entry.Status()
	}
	if entry.RefundedCents() >= entry.PaidTotalCents() {
		return Refunded
	}
	return RefundDue
}

// releaseTimeWhenRefunded makes the time of a refunded entry editable again, as voiding does.
func releaseTimeWhenRefunded(now time.Time) func(core.App, *collections.BillingEntry) error {
	return func(tx core.App, entry *collections.BillingEntry) error {
		if entry.Status() != Refunded {
			return nil
		}
		return collections.ReleaseBilledTime(tx, entry.Id, now)
	}
}

// CreditBalance returns how much was paid for a decided claim beyond what is left of its charge. The amount belongs to the payer of it, and the
// claim itself stays valid. Source: docs/decisions/billing.md, "Credits".
func CreditBalance(entry *collections.BillingEntry) Cents {
	if !slices.Contains([]string{Paid, Denied}, entry.Status()) {
		return 0
	}
	return Cents(max(0, min(-entry.OpenCents(), entry.PaidTotalCents())))
}

// refundCredit records that a credit balance, or part of it, was returned. The amount was never earned: it reduces the payments, as a payer's
// reversal does, and nothing else of the claim changes.
func refundCredit(tx core.App, entry *collections.BillingEntry, d RefundDraft, by audit.Actor, now time.Time) error {
	switch credit := CreditBalance(entry); {
	case credit == 0:
		return fault.State("invalid_transition", "There is no credit balance: undo the claim to refund its payments.")
	case d.Amount > credit:
		return fault.Field("amount", "Only "+credit.String()+" is the credit balance.")
	}
	list, err := collections.PaymentsOf(tx, entry.Id)
	if err != nil {
		return err
	}
	payer, ok := payerToRefund(list, d.Payer, int64(d.Amount))
	if !ok {
		return fault.Field("payer", "The refund exceeds what this payer paid.")
	}
	return postPayment(tx, entry, collections.Payment{
		Kind: collections.ReversalKind, AmountCents: -int64(d.Amount), Date: d.Date, Reference: d.Reference, Payer: payer, Source: collections.SourceByHand,
		CreatedBy: by.Email,
	}, now)
}

// payerToRefund returns a payer with payments that cover an amount: the named payer, else the first such payer of [PayerKinds].
func payerToRefund(list []collections.Payment, named string, amount int64) (payer string, ok bool) {
	sums := map[string]int64{}
	for _, p := range list {
		if p.Kind == collections.PaymentKind || p.Kind == collections.ReversalKind {
			sums[p.Payer] += p.AmountCents
		}
	}
	for _, payer := range PayerKinds {
		if sums[payer] >= amount && (named == "" || named == payer) {
			return payer, true
		}
	}
	return "", false
}

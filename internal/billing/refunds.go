package billing

import (
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
)

// RefundDraft is what a person records as paid back.
type RefundDraft struct {
	Amount          Cents
	Date, Reference string
	Payer           string // to whom a credit went, one of [PayerKinds]; "" for whoever paid as much
}

// Refund records what was paid back. Several add up; an entry that is undone is refunded when all that was paid is back. Of a claim that stands only
// what was paid too much goes back.
func (e *Engine) Refund(d RefundDraft, by audit.Actor, now time.Time) Transition {
	m := Transition{
		Name: "refund", From: []string{RefundDue, Paid, Denied}, event: audit.BillingRefund, detail: d.Amount.String() + " " + d.Reference, target: stateAfterRefund,
	}
	m.check = func(tx core.App, entry *collections.BillingEntry) error {
		if d.Amount <= 0 {
			return fault.Field("amount", "Must be more than nothing.")
		}
		if entry.Status() != RefundDue {
			return refundCredit(tx, entry, d, by, now)
		}
		if due := entry.PaidTotalCents() - entry.RefundedCents(); int64(d.Amount) > due {
			return fault.Field("amount", "Only "+Cents(due).String()+" is due back.")
		}
		return postPayment(tx, entry, collections.Payment{
			Kind: collections.RefundKind, AmountCents: int64(d.Amount), Date: d.Date, Reference: d.Reference, Payer: d.Payer, Source: collections.ByHandSource,
			CreatedBy: by.Email,
		}, now)
	}
	m.after = releaseTimeWhenRefunded(now)
	return m
}

func stateAfterRefund(entry *collections.BillingEntry) string {
	if entry.Status() != RefundDue { // what was too much is back, and the claim stands
		return entry.Status()
	}
	if entry.RefundedCents() >= entry.PaidTotalCents() {
		return Refunded
	}
	return RefundDue
}

// releaseTimeWhenRefunded lets the time of an entry be corrected again, as voiding does.
func releaseTimeWhenRefunded(now time.Time) func(core.App, *collections.BillingEntry) error {
	return func(tx core.App, entry *collections.BillingEntry) error {
		if entry.Status() != Refunded {
			return nil
		}
		return collections.FreeTime(tx, entry.Id, now)
	}
}

// CreditBalance is what was paid of a decided claim beyond all that is left of its charge: it is somebody's who paid, and the claim stands all the same.
// Source: docs/decisions/billing.md, "Credits".
func CreditBalance(entry *collections.BillingEntry) Cents {
	if !slices.Contains([]string{Paid, Denied}, entry.Status()) {
		return 0
	}
	return Cents(max(0, min(-entry.OpenCents(), entry.PaidTotalCents())))
}

// refundCredit records that a credit, or a part of it, is back with whoever paid it. It was never earned: the payments are less by it, as by a payer's own
// reversal, and nothing else of the claim changes.
func refundCredit(tx core.App, entry *collections.BillingEntry, d RefundDraft, by audit.Actor, now time.Time) error {
	switch credit := CreditBalance(entry); {
	case credit == 0:
		return fault.State("invalid_transition", "Nothing was paid beyond what is due: undo the claim to pay back what was.")
	case d.Amount > credit:
		return fault.Field("amount", "Only "+credit.String()+" was paid beyond what is due.")
	}
	list, err := collections.PaymentsOf(tx, entry.Id)
	if err != nil {
		return err
	}
	payer, ok := payerToRefund(list, d.Payer, int64(d.Amount))
	if !ok {
		return fault.Field("payer", "Not so much came from there.")
	}
	return postPayment(tx, entry, collections.Payment{
		Kind: collections.ReversalKind, AmountCents: -int64(d.Amount), Date: d.Date, Reference: d.Reference, Payer: payer, Source: collections.ByHandSource,
		CreatedBy: by.Email,
	}, now)
}

// payerToRefund is whose payments hold an amount: whoever is named, else the first of [PayerKinds] of whom that is so.
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

package billing

import (
	"slices"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/fault"
)

// AlreadyDecided is why a payer's second decision waits for a person.
const AlreadyDecided = "already_decided"

// carcPreviouslyPaid marks the part of a charge that the payer paid with an earlier decision. Source: CARC B13.
const carcPreviouslyPaid = "B13"

// IsPaidBefore reports whether a payer pays nothing because it paid with an earlier decision.
func IsPaidBefore(list []collections.Adjustment) bool {
	return len(list) > 0 && !slices.ContainsFunc(list, func(a collections.Adjustment) bool { return a.CARC != carcPreviouslyPaid })
}

// decidedAmounts are the amounts of an entry when a payer's decision arrives.
type decidedAmounts struct {
	charge, paid int64
	status       string
	adjustments  []collections.Adjustment
	rows         []collections.Payment // oldest first
}

func amountsWith(entry *collections.BillingEntry, rows []collections.Payment) decidedAmounts {
	return decidedAmounts{entry.ChargeCents(), entry.PaidTotalCents(), entry.Status(), entry.Adjustments(), rows}
}

// paymentAdjustments returns the adjustments to post with a payment. Source: docs/decisions/billing.md, "Second decisions".
func (r Remittance) paymentAdjustments(a decidedAmounts) (list []collections.Adjustment, err error) {
	before, prior := r.decidedBefore(a.rows)
	isSecond := before != 0 || len(prior) > 0
	if isSecond && r.Paid == 0 && IsPaidBefore(r.Adjustments) { // nothing is new
		return nil, nil
	}
	if isSecond && (a.paid+int64(r.Paid) > a.charge || before > 0 && before >= int64(r.Paid) && r.repeats(a.rows)) {
		return nil, fault.State(AlreadyDecided, "The payer decided the claim before, and did not reverse that.")
	}
	if a.status == VoidRequested && r.Paid == 0 { // a voided claim has no open amounts
		return nil, nil
	}
	if isSecond && len(r.Adjustments) == 0 { // money alone leaves the decision as it is
		return nil, nil
	}
	list = slices.Clone(r.Adjustments)
	standing := a.adjustments
	if isSecond {
		standing = mergeAdjustments(standing, negateAdjustments(prior))
	}
	if r.Secondary {
		list = slices.DeleteFunc(list, func(a collections.Adjustment) bool { return a.CARC == carcPriorPayer })
		list = append(list, negateAdjustments(patientShare(standing))...)
	}
	if !isSecond {
		if a.status != Paid && a.status != RefundDue { // the patient paid what remained of an earlier decision
			list = append(list, reducePatientShare(list, a.paid)...)
		}
		return list, nil
	}
	list = append(list, settlePatientShare(mergeAdjustments(standing, list))...)
	list = withoutRestated(list, min(before, a.paid+int64(r.Paid)+sumOf(standing)+sumOf(list)-a.charge))
	return append(negateAdjustments(prior), list...), nil
}

// decidedBefore returns what the same payer paid and adjusted with earlier 835s and did not reverse. A reopened claim has no adjustments left.
func (r Remittance) decidedBefore(rows []collections.Payment) (paid int64, list []collections.Adjustment) {
	for _, p := range rows {
		if p.Kind == collections.ReopeningKind {
			list = nil
			continue
		}
		if p.Source != collections.Source835 || p.Payer != r.payerKind() || p.Kind == collections.RefundKind {
			continue
		}
		paid += p.AmountCents
		list = mergeAdjustments(list, p.Adjustments)
	}
	return paid, list
}

// repeats reports whether an earlier decision of the payer has the same payment and adjustments: probably a payment made twice. What a decision
// marks as paid before was not posted.
func (r Remittance) repeats(rows []collections.Payment) bool {
	return slices.ContainsFunc(rows, func(p collections.Payment) bool {
		return p.Source == collections.Source835 && p.Kind == collections.PaymentKind && p.Payer == r.payerKind() && p.AmountCents == int64(r.Paid) &&
			!slices.ContainsFunc(r.Adjustments, func(a collections.Adjustment) bool {
				return a.CARC != carcPreviouslyPaid && !slices.ContainsFunc(p.Adjustments, func(b collections.Adjustment) bool {
					return sameReason(a, b) && a.AmountCents == b.AmountCents
				})
			})
	})
}

// paidBy returns what a payer paid less what it reversed.
func paidBy(rows []collections.Payment, payer string) (sum int64) {
	for _, p := range rows {
		if p.Payer == payer && (p.Kind == collections.PaymentKind || p.Kind == collections.ReversalKind) {
			sum += p.AmountCents
		}
	}
	return sum
}

// settlePatientShare returns the adjustments after which no part of the patient's share is negative: what the patient or another payer paid toward
// the earlier share counts with the new one, and beyond it is a credit.
func settlePatientShare(list []collections.Adjustment) (taken []collections.Adjustment) {
	beyond := int64(0)
	for _, a := range patientShare(list) {
		if a.AmountCents < 0 {
			beyond -= a.AmountCents
			a.AmountCents = -a.AmountCents
			taken = append(taken, a)
		}
	}
	return append(taken, reducePatientShare(list, beyond)...)
}

// withoutRestated reduces the adjustments of a second decision by an amount that the payer's earlier payment covers, because adjustments alone
// make no credit: first what the payer marks as paid before, contractual amounts and the patient's share last.
func withoutRestated(list []collections.Adjustment, amount int64) []collections.Adjustment {
	isNext := func(a collections.Adjustment, group string) bool {
		if group == carcPreviouslyPaid {
			return a.CARC == carcPreviouslyPaid
		}
		return a.Group == group
	}
	for _, group := range []string{carcPreviouslyPaid, GroupOther, GroupPayerInitiated, GroupCorrection, GroupContractual, GroupPatient} {
		for i, a := range list {
			if part := min(amount, a.AmountCents); part > 0 && isNext(a, group) {
				list[i].AmountCents -= part
				amount -= part
			}
		}
	}
	return slices.DeleteFunc(list, func(a collections.Adjustment) bool { return a.AmountCents == 0 })
}

func sumOf(list []collections.Adjustment) (sum int64) {
	for _, a := range list {
		sum += a.AmountCents
	}
	return sum
}

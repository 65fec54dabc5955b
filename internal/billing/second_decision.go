package billing

import (
	"slices"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/fault"
)

// AlreadyDecided is the reason code of a second decision that a person must resolve.
const AlreadyDecided = "already_decided"

// carcPreviouslyPaid marks the part of a charge that the payer paid with an earlier decision. It is
// not posted; a part that is not on record stays open for a person. Source: CARC B13.
const carcPreviouslyPaid = "B13"

// IsPaidBefore reports whether a payer pays nothing because it paid with an earlier decision.
func IsPaidBefore(list []collections.Adjustment) bool {
	return len(list) > 0 && !slices.ContainsFunc(list, func(a collections.Adjustment) bool { return a.CARC != carcPreviouslyPaid })
}

// paidBefore returns how much of a charge a decision marks as paid with an earlier decision.
func paidBefore(list []collections.Adjustment) (cents int64) {
	for _, a := range list {
		if a.CARC == carcPreviouslyPaid {
			cents += a.AmountCents
		}
	}
	return cents
}

// decidedAmounts are the amounts of an entry when a payer's decision arrives.
type decidedAmounts struct {
	charge, paidTotal int64
	status            string
	adjustments       []collections.Adjustment
	paymentState
}

func amountsWith(entry *collections.BillingEntry, rows []collections.Payment) decidedAmounts {
	return decidedAmounts{entry.ChargeCents(), entry.PaidTotalCents(), entry.Status(), entry.Adjustments(), standingOf(entry.ChargeCents(), rows)}
}

// posting is the adjustments to post with a decision: those of the payer less the part of the patient's share that is paid already.
type posting struct{ adjustments, shareOffsets []collections.Adjustment }

// paymentAdjustments returns the adjustments to post with a payment. Source: docs/decisions/billing.md, "Second decisions".
func (r Remittance) paymentAdjustments(a decidedAmounts) (p posting, err error) {
	before, prior := a.byFile[r.payerKind()], a.decided[r.payerKind()]
	isSecond := before != 0 || len(prior) > 0
	if isSecond && r.Paid == 0 && IsPaidBefore(r.Adjustments) { // nothing is new
		return p, nil
	}
	if isSecond && (a.paidTotal+int64(r.Paid) > a.charge || before > 0 && before >= int64(r.Paid) && paidBefore(r.Adjustments) != before && r.repeats(a)) {
		return p, fault.State(AlreadyDecided, "The payer decided the claim before, and did not reverse that.")
	}
	if a.status == VoidRequested && r.Paid == 0 { // a voided claim has no open amounts
		return p, nil
	}
	r.Adjustments = slices.DeleteFunc(slices.Clone(r.Adjustments), func(a collections.Adjustment) bool { return a.CARC == carcPreviouslyPaid })
	if isSecond && len(r.Adjustments) == 0 { // money alone leaves the decision as it is, as far as the charge has room
		beyond := a.paidTotal + int64(r.Paid) + sumOf(a.adjustments) - a.charge
		if beyond <= 0 {
			return p, nil
		}
		r.Adjustments = mergeAdjustments(prior, reducePatientShare(prior, beyond))
	}
	rest := mergeAdjustments(mergeAdjustments(a.adjustments, a.shareOffsets), negateAdjustments(prior))
	if r.Secondary {
		p = r.postingOf(a, prior, rest, r.secondaryAdjustments(a, rest))
		p.adjustments = append(p.adjustments, a.yieldWriteOffs(p.adjustments, int64(r.Paid), collections.SecondaryPayer)...)
		return p, nil
	}
	return r.postingOf(a, prior, rest, r.Adjustments), nil
}

// yieldWriteOffs returns what a payment of the patient or the second payer reverts of what users wrote off, beside the adjustments that it changes: what is
// paid after all is not written off. Source: docs/decisions/billing.md, "Payments and adjustments".
func (a decidedAmounts) yieldWriteOffs(changes []collections.Adjustment, amount int64, payer string) []collections.Adjustment {
	if payer == collections.PrimaryPayer { // its adjustments state what it leaves
		return nil
	}
	now, written := mergeAdjustments(a.adjustments, changes), []collections.Adjustment{}
	for _, p := range a.rows {
		switch {
		case p.Kind == collections.ReopeningKind:
			written = nil
		case p.Kind == collections.AdjustmentKind && p.Source == collections.SourceByHand:
			written = mergeAdjustments(written, p.Adjustments)
		}
	}
	written = slices.DeleteFunc(written, func(w collections.Adjustment) bool { return w.Group == GroupPatient })
	for i, w := range written {
		written[i].AmountCents = min(w.AmountCents, adjustedAmount(now, w))
	}
	return negateAdjustments(firstOf(written, a.paidTotal+amount+sumOf(now)-a.charge))
}

// postingOf returns the posting of a decision that replaces the payer's prior one; rest are the
// other adjustments. Adjustments beyond the charge are left out, because adjustments alone make no
// credit. What the patient paid reduces the patient's share.
func (r Remittance) postingOf(a decidedAmounts, prior, rest, list []collections.Adjustment) posting {
	list = slices.Clone(list)
	list = append(list, settlePatientShare(mergeAdjustments(rest, list))...)
	money := a.paid[collections.PrimaryPayer] + int64(r.Paid) // by hand too
	if a.secondaryDecided || r.Secondary {
		money += a.byFile[collections.SecondaryPayer]
	}
	list = withoutRestated(list, money+sumOf(rest)+sumOf(list)-a.charge)
	list = append(list, settlePatientShare(mergeAdjustments(rest, list))...) // of what is left
	if !r.Secondary {                                                        // what others adjusted before gives way to the first payer's money
		others := slices.DeleteFunc(slices.Clone(rest), func(a collections.Adjustment) bool { return a.Group == GroupPatient })
		list = append(list, negateAdjustments(firstOf(others, money+sumOf(rest)+sumOf(list)-a.charge))...)
		list = append(list, reducePatientShare(mergeAdjustments(rest, list), money+sumOf(rest)+sumOf(list)-a.charge)...) // as the second payer left it
	}
	toShare := max(0, a.paid[collections.PatientPays])
	if !a.secondaryDecided && !r.Secondary {
		toShare += max(0, a.paid[collections.SecondaryPayer])
	}
	return a.replace(prior, rest, list, toShare)
}

// replace returns the posting that replaces a payer's prior decision by a list, beside the rest, when toShare was paid toward the patient's share.
func (a decidedAmounts) replace(prior, rest, list []collections.Adjustment, toShare int64) posting {
	shareOffsets := negateAdjustments(reducePatientShare(mergeAdjustments(rest, list), toShare))
	p := posting{shareOffsets: mergeAdjustments(shareOffsets, negateAdjustments(a.shareOffsets))}
	p.adjustments = slices.Concat(negateAdjustments(prior), list, negateAdjustments(p.shareOffsets))
	return p
}

// secondaryAdjustments returns the changes of a secondary payer's decision. That payer decides on
// the patient's share, or on the whole charge after a denial. It may repeat the primary payer's
// adjustments (CARC 23, or its own contract), so its adjustments count only up to the amount that
// it does not pay. The rest stays open.
func (r Remittance) secondaryAdjustments(a decidedAmounts, rest []collections.Adjustment) []collections.Adjustment {
	list := slices.DeleteFunc(slices.Clone(r.Adjustments), func(a collections.Adjustment) bool { return a.CARC == carcPriorPayer })
	replaced := patientShare(rest)
	isDenied := a.primaryDenied || a.status == Denied
	if isDenied {
		replaced = rest
	}
	left := a.charge - a.paid[collections.PrimaryPayer] - sumOf(rest) + sumOf(replaced) - a.byFile[collections.SecondaryPayer] - int64(r.Paid)
	list = withoutRestated(list, sumOf(list)-max(0, left))
	if isDenied { // what the second payer does not explain stays as the first denied it
		list = append(list, firstOf(replaced, left-sumOf(list))...)
	}
	return append(list, negateAdjustments(replaced)...)
}

// firstOf returns the first adjustments of a list up to an amount.
func firstOf(list []collections.Adjustment, amount int64) (taken []collections.Adjustment) {
	for _, a := range list {
		if part := min(amount, a.AmountCents); part > 0 {
			a.AmountCents = part
			taken = append(taken, a)
			amount -= part
		}
	}
	return taken
}

// repeats reports whether an earlier decision of the payer has the same payment and adjustments,
// which is probably a duplicate payment. Amounts marked as previously paid were not posted. Of a
// secondary payer's adjustments only a part was, so its decision is posted as a trial to the
// amounts before the earlier one.
func (r Remittance) repeats(a decidedAmounts) bool {
	if r.Secondary {
		for i, p := range a.rows {
			if p.Source == collections.Source835 && p.Kind == collections.PaymentKind && p.Payer == collections.SecondaryPayer && p.AmountCents == int64(r.Paid) {
				again, err := r.paymentAdjustments(a.before(i))
				if err == nil && (!a.before(i).primaryDecided || len(mergeAdjustments(mergeAdjustments(nil, again.adjustments), negateAdjustments(p.Adjustments))) == 0) {
					return true
				}
			}
		}
		return false
	}
	return slices.ContainsFunc(a.rows, func(p collections.Payment) bool {
		return p.Source == collections.Source835 && p.Kind == collections.PaymentKind && p.Payer == r.payerKind() && p.AmountCents == int64(r.Paid) &&
			!slices.ContainsFunc(r.Adjustments, func(a collections.Adjustment) bool {
				return a.CARC != carcPreviouslyPaid && !slices.ContainsFunc(p.Adjustments, func(b collections.Adjustment) bool {
					return sameReason(a, b) && a.AmountCents == b.AmountCents
				})
			})
	})
}

// before returns the amounts before the payment with an index.
func (a decidedAmounts) before(index int) decidedAmounts {
	return amountsAfter(a.charge, a.status, a.rows[:index])
}

// amountsAfter returns the amounts that rows leave, each of which stands.
func amountsAfter(charge int64, status string, rows []collections.Payment) decidedAmounts {
	a := decidedAmounts{charge: charge, status: status, paymentState: foldPayments(rows)}
	for _, p := range rows {
		a.adjustments = mergeAdjustments(a.adjustments, p.Adjustments)
		if p.Kind == collections.PaymentKind || p.Kind == collections.ReversalKind {
			a.paidTotal += p.AmountCents
		}
	}
	return a
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
// make no credit: contractual amounts and the patient's share last.
func withoutRestated(list []collections.Adjustment, amount int64) []collections.Adjustment {
	for _, group := range []string{GroupOther, GroupPayerInitiated, GroupCorrection, GroupContractual, GroupPatient} {
		for i, a := range list {
			if part := min(amount, a.AmountCents); part > 0 && a.Group == group {
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

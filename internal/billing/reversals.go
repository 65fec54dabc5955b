package billing

import (
	"slices"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/fault"
)

var errNoOriginal = fault.State("reversal_without_original", "There is no such decision.")

// reversalOf returns what a reversal changes of a decided claim's adjustments, and the state in which it leaves the claim: both are those of the other
// payments without what is reversed. A reversal of nothing that is on record is a fault.
func reversalOf(entry *collections.BillingEntry, rows []collections.Payment, p collections.Payment) (change []collections.Adjustment, state string, err error) {
	isFirst, isDenied := p.Payer == collections.PrimaryPayer, entry.Status() == Denied
	standing, _ := withoutReversed(rows)
	switch isWhole := len(originalsOf(p, standing)) > 0; {
	case isWhole:
		var kept []collections.Payment
		if kept, state = replayStanding(entry.ChargeCents(), append(slices.Clone(rows), p)); state == Submitted && !isFirst && entry.DenialCode() != "" {
			state = Denied // by hand
		}
		change = mergeAdjustments(amountsAfter(entry.ChargeCents(), state, kept).adjustments, negateAdjustments(entry.Adjustments()))
		restoreDenial(entry, lastDenial(standing), lastDenial(kept), state)
	case p.AmountCents != 0:
		change, state = amountsWith(entry, rows).partialReversal(p), entry.Status()
	case isFirst && isDenied && lastDenial(standing).Kind == "": // by hand
		change, state = negateAdjustments(entry.Adjustments()), Submitted
	default:
		return nil, "", errNoOriginal
	}
	if state == Submitted && isFirst && isDenied { // the payer took its denial back
		clearDenial(entry)
	}
	return change, state, nil
}

// restoreDenial sets an entry's denial to the last one that is left after a reversal: none if the payer took back the only one, before or after a payment.
func restoreDenial(entry *collections.BillingEntry, before, left collections.Payment, state string) {
	switch {
	case before.Kind != "" && left.Kind == "":
		clearDenial(entry)
	case state == Denied && len(left.Stated) > 0 && denialCode(left.Stated) != entry.DenialCode():
		entry.Set(collections.EntryDenialCode, denialCode(left.Stated))
		entry.Set(collections.EntryDenialDescription, "")
		entry.Set(collections.EntryDenialDate, left.Date)
		entry.Set(collections.EntryDenialRemarks, left.Remarks)
	}
}

// lastDenial returns the first payer's last denial.
func lastDenial(rows []collections.Payment) (last collections.Payment) {
	for _, p := range rows {
		if p.Kind == collections.DenialKind && p.Payer == collections.PrimaryPayer {
			last = p
		}
	}
	return last
}

// originalsOf returns the positions of what a payer's reversal cancels: the latest decision with its amount and adjustments, else with its amount,
// else all that the payer decided. Nothing for one without stated adjustments on record.
func originalsOf(back collections.Payment, rows []collections.Payment) (found []int) {
	if back.Kind != collections.ReversalKind || back.Stated == nil {
		return nil
	}
	sum, isExact := int64(0), false
	var all, one []int
	for i, p := range rows {
		if isMoney := p.Kind == collections.PaymentKind || p.Kind == collections.ReversalKind; p.Payer != back.Payer || !isMoney && p.Kind != collections.DenialKind {
			continue
		}
		sum += p.AmountCents
		if all = append(all, i); p.Kind == collections.ReversalKind {
			continue
		}
		isSame := p.Stated != nil && len(mergeAdjustments(withoutRemarks(p.Stated), negateAdjustments(withoutRemarks(back.Stated)))) == 0
		if p.AmountCents == -back.AmountCents && (isSame || !isExact) {
			one, isExact = []int{i}, isSame
		}
	}
	if len(one) == 0 && sum == -back.AmountCents {
		return all
	}
	return one
}

func withoutRemarks(list []collections.Adjustment) []collections.Adjustment {
	list = slices.Clone(list)
	for i := range list {
		list[i].RARC = nil
	}
	return list
}

// withoutReversed returns the rows without those that a payer reversed and the reversals of these. What the first payer stated in an older 835 is what it
// left.
func withoutReversed(rows []collections.Payment) (kept []collections.Payment, isReversed bool) {
	for i, p := range rows {
		if p.Stated == nil && p.Source == collections.Source835 && p.Payer == collections.PrimaryPayer && p.Kind != collections.ReversalKind {
			p.Stated = foldPayments(rows[:i+1]).decided[collections.PrimaryPayer]
		}
		originals := originalsOf(p, kept)
		if len(originals) == 0 {
			kept = append(kept, p)
			continue
		}
		isReversed = true
		for n, i := range originals {
			kept = slices.Delete(kept, i-n, i-n+1)
		}
	}
	return kept, isReversed
}

// replayStanding returns the payments that stand, with the adjustments that they would have made without the reversed ones, and the state in which they
// leave the claim. Payments of which nothing was reversed are as they are, and have no state.
func replayStanding(charge int64, rows []collections.Payment) (out []collections.Payment, state string) {
	kept, isReversed := withoutReversed(rows)
	if !isReversed {
		return rows, ""
	}
	r := replay{charge: charge, state: Submitted, isFirstKnown: slices.ContainsFunc(rows, func(p collections.Payment) bool {
		return p.Payer == collections.PrimaryPayer
	})}
	for _, p := range kept {
		r.post(p)
	}
	last := rows[len(rows)-1]
	isReopened := last.Kind == collections.ReopeningKind && last.Source == collections.Source835 // for the decision that is posted next
	if isReopened || r.state == Submitted && len(r.amounts().adjustments) > 0 {
		r.reopen()
	}
	return r.rows, r.state
}

// replay is payments that are posted again.
type replay struct {
	charge       int64
	state        string
	isFirstKnown bool // another payer than the second has decided, at any time
	rows         []collections.Payment
}

func (r *replay) amounts() decidedAmounts { return amountsAfter(r.charge, r.state, r.rows) }

func (r *replay) reopen() {
	r.rows = append(r.rows, collections.Payment{
		Kind: collections.ReopeningKind, Source: collections.Source835, Adjustments: negateAdjustments(r.amounts().adjustments),
	})
	r.state = Submitted
}

// post posts a payment with the adjustments that it makes now.
func (r *replay) post(p collections.Payment) {
	isFirst := p.Payer == collections.PrimaryPayer
	switch {
	case p.Kind == collections.ReopeningKind && p.Source == collections.Source835: // the decision after it makes another
		return
	case p.Kind == collections.ReopeningKind:
		r.reopen()
		return
	case p.Kind == collections.AdjustmentKind:
		p.Adjustments = r.amounts().fitAdjustments(p.Adjustments)
	case p.Source == collections.SourceByHand && p.Kind == collections.PaymentKind:
		p.Adjustments = r.amounts().adjustmentsPaid(p.AmountCents, p.Payer)
		if isFirst || p.Payer == collections.SecondaryPayer && r.state == Denied {
			r.state = Paid
		}
	case p.Kind == collections.PaymentKind || p.Kind == collections.DenialKind:
		r.postDecision(&p, isFirst)
	case p.Kind == collections.ReversalKind && p.Stated != nil:
		r.postPartialReversal(&p, isFirst)
	}
	r.rows = append(r.rows, p)
}

// postDecision posts a payer's decision. The second payer's is only its money while the first payer's is to come.
func (r *replay) postDecision(p *collections.Payment, isFirst bool) {
	if isFirst && r.state == Denied {
		r.reopen()
	}
	told, a := Remittance{Secondary: !isFirst, Paid: Cents(p.AmountCents), Adjustments: p.Stated}, r.amounts()
	post := posting{p.Adjustments, p.ShareOffsets}
	switch {
	case !isFirst && (p.Kind == collections.DenialKind || !a.firstDecided && (r.isFirstKnown || len(p.Adjustments) == 0)):
		post = posting{}
	case p.Stated == nil: // an older one of the second payer stays as it was
		r.state = Paid
	case p.Kind == collections.DenialKind:
		post, r.state = told.postingOf(a, nil, mergeAdjustments(a.adjustments, a.shareOffsets), p.Stated), Denied
	default:
		post, _ = told.paymentAdjustments(a) // its money is posted in any case
		r.state = Paid
	}
	p.Adjustments, p.ShareOffsets = post.adjustments, post.shareOffsets
}

// postPartialReversal posts a reversal that cancels no whole decision: of a denial that is not on record, all adjustments; else its own, as far as
// what the payer adjusted has them. An increase that is reversed adjusts more: at most up to what is left of the charge, because adjustments alone make
// no credit.
func (r *replay) postPartialReversal(p *collections.Payment, isFirst bool) {
	p.Adjustments = nil
	if isFirst && p.AmountCents == 0 {
		r.reopen()
		return
	}
	p.Adjustments = r.amounts().partialReversal(*p)
}

func (a decidedAmounts) partialReversal(p collections.Payment) []collections.Adjustment {
	decided := a.decided[collections.SecondaryPayer]
	if p.Payer == collections.PrimaryPayer {
		decided = mergeAdjustments(a.adjustments, negateAdjustments(decided))
	}
	list := negateAdjustments(matchBookedAdjustments(matchBookedAdjustments(a.adjustments, decided), p.Stated))
	left := max(0, a.charge-a.paidTotal-p.AmountCents)
	return withoutRestated(list, sumOf(a.adjustments)+sumOf(list)-left)
}

// fitAdjustments returns what of a user's adjustments the claim has room for: a reduction up to the open amount, a reversal up to what is adjusted.
func (a decidedAmounts) fitAdjustments(list []collections.Adjustment) []collections.Adjustment {
	list = slices.Clone(list)
	for i, x := range list {
		if x.AmountCents < 0 {
			list[i].AmountCents = -min(-x.AmountCents, max(0, adjustedAmount(a.adjustments, x)))
			continue
		}
		list[i].AmountCents = min(x.AmountCents, max(0, a.charge-a.paidTotal-sumOf(a.adjustments)))
	}
	return slices.DeleteFunc(list, func(x collections.Adjustment) bool { return x.AmountCents == 0 })
}

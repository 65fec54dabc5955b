package billing

import (
	"slices"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/fault"
)

var errNoOriginal = fault.State("reversal_without_original", "There is no such decision.")

// reversalOf returns how a reversal changes the adjustments and the state of a decided claim: to
// those of the other payments alone. A reversal of a decision that is not on record is a fault.
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

// restoreDenial sets an entry's denial to the last one that is left after a reversal: none if the payer reversed the only one, before or after a payment.
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

// hasOriginal reports whether a reversal may be posted: it names a decision on record, or reverts a part of what has its number. The number of a
// decision that was not posted reverts nothing of another one.
func (r Remittance) hasOriginal(back collections.Payment, rows []collections.Payment) bool {
	standing, _ := withoutReversed(rows)
	if r.ReversesUnposted {
		return slices.ContainsFunc(standing, func(p collections.Payment) bool {
			match := likeness(back, p)
			return isDecisionOf(p, back.Payer) && (match >= sameNumber && p.PayerNumber == back.PayerNumber || match == sameStated && p.PayerNumber == "")
		})
	}
	return len(originalsOf(back, standing)) > 0 || mayBeOf(back, standing) && !isAmbiguous(back, standing)
}

// missingOriginalFault returns the fault of a reversal without a posted decision. A line without payment that
// is on a newer claim does not block the others.
func (r Remittance) missingOriginalFault() error {
	if r.Superseded && r.Paid == 0 {
		return fault.State("superseded_claim", "The claim was replaced.")
	}
	return errNoOriginal
}

// isDecisionOf reports whether a payment is a payer's decision, by file or by hand.
func isDecisionOf(p collections.Payment, payer string) bool {
	return p.Payer == payer && (p.Kind == collections.PaymentKind || p.Kind == collections.DenialKind)
}

// mayBeOf reports whether a reversal may belong to a decision: one has its claim number, a number
// is unknown, or the payer has no decision on record.
func mayBeOf(back collections.Payment, rows []collections.Payment) bool {
	return !slices.ContainsFunc(rows, func(p collections.Payment) bool { return isDecisionOf(p, back.Payer) }) ||
		slices.ContainsFunc(rows, func(p collections.Payment) bool {
			return isDecisionOf(p, back.Payer) && (p.PayerNumber == "" || back.PayerNumber == "" || p.PayerNumber == back.PayerNumber)
		})
}

// restorePayerNumber sets the payer's claim number to that of the newest 835 decision that is left,
// if it was the number of the reversed one. A corrected claim must name the decision in force (REF
// F8).
func restorePayerNumber(entry *collections.BillingEntry, rows []collections.Payment) {
	kept, _ := withoutReversed(rows)
	number, isLeft := "", false
	for _, p := range kept {
		if !isDecisionOf(p, collections.PrimaryPayer) || p.Source != collections.Source835 {
			continue
		}
		if number, isLeft = p.PayerNumber, true; number == entry.PayerControlNumber() {
			return
		}
	}
	wasReversed := slices.ContainsFunc(rows, func(p collections.Payment) bool { return p.PayerNumber == entry.PayerControlNumber() })
	if isLeft && (number != "" || wasReversed) {
		entry.Set(collections.EntryPayerControlNumber, number)
	}
}

// originalsOf returns the indexes of the decisions that a payer's reversal cancels: the latest one
// of its amount with the same number and adjustments, else with either, else with an unknown
// number; else all of the payer's decisions. It returns none if number and adjustments name
// different decisions, or if the reversal's adjustments are not on record.
func originalsOf(back collections.Payment, rows []collections.Payment) (found []int) {
	if back.Kind != collections.ReversalKind || back.Stated == nil {
		return nil
	}
	sum, best := int64(0), 0
	var all, one []int
	for i, p := range rows {
		if isMoney := p.Kind == collections.PaymentKind || p.Kind == collections.ReversalKind; p.Payer != back.Payer || !isMoney && p.Kind != collections.DenialKind {
			continue
		}
		sum += p.AmountCents
		if all = append(all, i); p.Kind == collections.ReversalKind {
			continue
		}
		if match := likeness(back, p); match > 0 && match >= best {
			one, best = []int{i}, match
		}
	}
	switch {
	case best < sameBoth && isAmbiguous(back, rows):
		return nil
	case len(one) == 0 && sum == -back.AmountCents && mayBeOf(back, rows):
		return all
	}
	return one
}

// How a decision of the amount of a reversal is like it.
const (
	sameAmount = iota + 1 // and a number is not on record
	sameNumber
	sameStated
	sameBoth
)

// likeness ranks how well a decision matches a reversal; 0 is no match.
func likeness(back, p collections.Payment) int {
	isSame := p.Stated != nil && len(mergeAdjustments(withoutRemarks(p.Stated), negateAdjustments(withoutRemarks(back.Stated)))) == 0
	hasNumber := p.PayerNumber != "" && back.PayerNumber != ""
	switch isNumber := hasNumber && p.PayerNumber == back.PayerNumber; {
	case p.AmountCents != -back.AmountCents:
		return 0
	case isSame && isNumber:
		return sameBoth
	case isSame:
		return sameStated
	case isNumber:
		return sameNumber
	case hasNumber:
		return 0
	}
	return sameAmount
}

// isAmbiguous reports whether a reversal's number names one decision and its adjustments another.
func isAmbiguous(back collections.Payment, rows []collections.Payment) bool {
	has := func(match int) bool {
		return slices.ContainsFunc(rows, func(p collections.Payment) bool { return isDecisionOf(p, back.Payer) && likeness(back, p) == match })
	}
	return has(sameNumber) && has(sameStated)
}

func withoutRemarks(list []collections.Adjustment) []collections.Adjustment {
	list = slices.Clone(list)
	for i := range list {
		list[i].RARC = nil
	}
	return list
}

// withoutReversed removes reversed payments and their reversals. A primary payer's 835 from before
// stated adjustments were stored counts with the adjustments that it left.
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

// replayStanding returns the payments that remain without the reversed ones, with the adjustments
// that they would have made alone, and the resulting state. If nothing was reversed it returns the
// rows unchanged and no state.
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
	case p.Kind == collections.ReversalKind && p.Source == collections.SourceByHand:
		p.Adjustments = r.amounts().adjustmentsRefunded(-p.AmountCents)
	case p.Kind == collections.ReversalKind && p.Stated != nil:
		r.postPartialReversal(&p, isFirst)
	}
	r.rows = append(r.rows, p)
	isOlder := p.Kind == collections.ReversalKind && p.Stated == nil && p.Source == collections.Source835
	if isOlder && isFirst && r.amounts().paid[collections.PrimaryPayer] <= 0 { // nothing was left of the payer's decisions
		r.reopen()
	}
}

// postDecision posts a payer's decision. The second payer's is only its money while the first payer's is to come.
func (r *replay) postDecision(p *collections.Payment, isFirst bool) {
	if isFirst && r.state == Denied {
		r.reopen()
	}
	told, a := Remittance{Secondary: !isFirst, Paid: Cents(p.AmountCents), Adjustments: p.Stated}, r.amounts()
	post := posting{p.Adjustments, p.ShareOffsets}
	switch {
	case !isFirst && (p.Kind == collections.DenialKind || !a.primaryDecided && (r.isFirstKnown || len(p.Adjustments) == 0)):
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

// adjustmentsRefunded returns the adjustments that restore the patient's share when a refund
// exceeds the credit balance.
func (a decidedAmounts) adjustmentsRefunded(amount int64) []collections.Adjustment {
	credit := max(0, a.paidTotal+sumOf(a.adjustments)-a.charge)
	return firstOf(patientShare(a.shareOffsets), amount-credit)
}

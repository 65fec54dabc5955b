package billing

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/phi"
)

// What a remittance decides about a line.
const (
	RemittedPayment  = "payment"
	RemittedDenial   = "denial"
	RemittedReversal = "reversal"
)

// Remittance is what an 835 states about one entry. Amounts of a reversal are the reversed amounts, as positive numbers. Source: ASC X12N
// 005010X221A1 (835), CLP, SVC and CAS.
type Remittance struct {
	Key                string // of the remittance and its line, so that it is applied once; begins with [RemittanceKey]
	Payer              string // the payer's name in its 835s
	Kind, Status       string // Status is CLP02
	Secondary          bool   // of the second payer, see [Engine.IsSecondaryAnswer]
	Paid               Cents
	Date, Reference    string // of the check or EFT
	PayerControlNumber string // CLP07
	Adjustments        []collections.Adjustment
	Superseded         bool     // about a claim that the entry has left
	ReversesUnposted   bool     // a reversal with the number of a decision that was not posted
	Remarks            []string // RARC of the whole decision: MOA, MIA
	PaidCode           string   // the code that the payer decided on instead of ours; "" for ours
	RemittanceID       string   // the stored payment of the payer; "" for none
	// DenialCode and DenialDescription are the reason of a denial; if empty, the first adjustment is.
	DenialCode, DenialDescription string
}

// ApplyRemittance applies a remittance to an entry; repeated if it was applied before with the same payment of the payer. If the entry's state does
// not allow it, or if it was applied with another payment, it returns a fault for a person to resolve.
func (e *Engine) ApplyRemittance(app core.App, entryID string, r Remittance, by audit.Actor, now time.Time) (entry *collections.BillingEntry, repeated bool, err error) {
	err = app.RunInTransaction(func(tx core.App) (err error) {
		applied, err := collections.AdoptPayment(tx, r.Key, r.RemittanceID)
		if err != nil {
			return err
		}
		if repeated = applied.Found; repeated {
			if applied.RemittanceID != r.RemittanceID {
				return fault.State("already_posted", "The decision was posted with another payment.")
			}
			entry, err = collections.FindBillingEntry(tx, entryID)
			return fault.OrMissing(err)
		}
		if r.Superseded && (r.Kind == RemittedDenial || r.Kind == RemittedPayment && r.Paid == 0 && IsContractual(r.Adjustments, false)) {
			return fault.State("superseded_claim", "The claim was replaced.")
		}
		if err := rejectManualDuplicate(tx, entryID, r); err != nil {
			return err
		}
		entry, err = e.ApplyTransition(tx, entryID, e.remittanceTransition(r, by, now), by, now)
		return err
	})
	return entry, repeated, err
}

func (e *Engine) remittanceTransition(r Remittance, by audit.Actor, now time.Time) Transition {
	switch r.Kind {
	case RemittedDenial:
		return e.remitDenial(r, by, now)
	case RemittedReversal:
		return e.remitReversal(r, by, now)
	}
	return e.remitPayment(r, by, now)
}

// newPayment returns the payment of a remittance.
func (r Remittance) newPayment(kind string, amount Cents, post posting, by audit.Actor) collections.Payment {
	return collections.Payment{
		Kind: kind, AmountCents: int64(amount), Date: r.Date, Reference: r.Reference, Payer: r.payerKind(), Source: collections.Source835, Key: r.Key,
		Adjustments: post.adjustments, ShareOffsets: post.shareOffsets, Stated: append([]collections.Adjustment{}, r.Adjustments...), Remarks: r.Remarks, PayerNumber: r.PayerControlNumber, PaidCode: r.PaidCode, RemittanceID: r.RemittanceID, CreatedBy: by.Email,
	}
}

func (r Remittance) payerKind() string {
	if r.Secondary {
		return collections.SecondaryPayer
	}
	return collections.PrimaryPayer
}

// carcPriorPayer marks the adjustment of a secondary payer for the primary payer's payment and adjustments, which are posted already. Source:
// CARC 23.
const carcPriorPayer = "23"

// remitPayment posts a payment with its adjustments. A secondary payer's decision replaces the
// patient's share; before the primary payer's decision only its money is posted. A payer's second
// decision replaces its first. Source: docs/decisions/billing.md, "Payments and adjustments".
func (e *Engine) remitPayment(r Remittance, by audit.Actor, now time.Time) Transition {
	comesFirst := false // the first payer has not decided
	m := Transition{
		Name: "pay", From: []string{Submitted, Appealed, Denied, Paid, VoidRequested, RefundDue}, event: audit.BillingPay,
		detail: r.Paid.String() + " " + r.Reference, after: announceRefundDue(now),
		target: func(entry *collections.BillingEntry) string {
			if comesFirst {
				return stateAfterPayment(entry, collections.SecondaryPayer)
			}
			return stateAfterPayment(entry, collections.PrimaryPayer)
		},
	}
	m.check = func(tx core.App, entry *collections.BillingEntry) (err error) {
		if comesFirst, err = r.precedesPrimary(tx, entry); err != nil {
			return err
		}
		if entry.Status() == Denied && !r.Secondary {
			if err := reverseAdjustments(tx, entry, collections.Source835, by, now); err != nil {
				return err
			}
		}
		rows, err := collections.PaymentsOf(tx, entry.Id)
		if err != nil {
			return err
		}
		post, err := r.paymentAdjustments(amountsWith(entry, rows))
		if err != nil {
			return err
		}
		if comesFirst {
			post = posting{}
		}
		r.storePayerControlNumber(entry)
		p := r.newPayment(collections.PaymentKind, r.Paid, post, by)
		if entry.PaidTotalCents()+p.AmountCents > entry.ChargeCents() {
			p.Reason = phi.Text("Remittance " + r.Reference)
			entry.Set(collections.EntryOverpaymentReason, p.Reason.Reveal())
		}
		return errors.Join(postPayment(tx, entry, p, now), r.noteSecondary(tx, entry))
	}
	return m
}

// precedesPrimary reports whether a secondary payer's decision is posted before the primary
// payer's. Without a secondary payer on record, the entry's own payer decided as if another payer
// came first.
func (r Remittance) precedesPrimary(tx core.App, entry *collections.BillingEntry) (bool, error) {
	if !r.Secondary || entry.Status() != Submitted && entry.Status() != Appealed {
		return false, nil
	}
	second, err := secondaryPayerID(tx, entry)
	return second != "" || entry.SecondaryStatus() != "", err
}

// patientShare returns the adjustments that the patient owes.
func patientShare(list []collections.Adjustment) []collections.Adjustment {
	return slices.DeleteFunc(slices.Clone(list), func(a collections.Adjustment) bool { return a.Group != GroupPatient })
}

// storePayerControlNumber stores the payer's control number of the claim.
func (r Remittance) storePayerControlNumber(entry *collections.BillingEntry) {
	if r.PayerControlNumber != "" && !r.Secondary && !r.Superseded {
		entry.Set(collections.EntryPayerControlNumber, r.PayerControlNumber)
	}
}

// remitDenial posts a denial with its reasons. A secondary payer's denial leaves the primary
// payer's decision and the patient's share as they are. If a void was requested, the denial is
// stored without amounts.
func (e *Engine) remitDenial(r Remittance, by audit.Actor, now time.Time) Transition {
	code, description := cmp.Or(r.DenialCode, denialCode(r.Adjustments)), r.DenialDescription
	if r.Secondary {
		return Transition{
			Name: "deny", From: []string{Submitted, Appealed, Denied, Paid, VoidRequested, RefundDue}, target: (*collections.BillingEntry).Status,
			event: audit.BillingDeny, detail: code + ": " + description,
			check: func(tx core.App, entry *collections.BillingEntry) error {
				p := r.newPayment(collections.DenialKind, 0, posting{}, by)
				p.Reason = phi.Text(strings.TrimSuffix(code+": "+cmp.Or(description, DenialText(code)), ": "))
				return errors.Join(postPayment(tx, entry, p, now), r.noteSecondary(tx, entry))
			},
		}
	}
	m := e.Deny(code, description, r.Date, now)
	m.From = append(m.From, Denied, Paid, VoidRequested, RefundDue)
	m.set[collections.EntryDenialRemarks] = r.Remarks
	m.target = func(entry *collections.BillingEntry) string {
		if isVoiding(entry) {
			return entry.Status()
		}
		return Denied
	}
	m.check = func(tx core.App, entry *collections.BillingEntry) error {
		rows, err := collections.PaymentsOf(tx, entry.Id)
		if err != nil {
			return err
		}
		is := standingOf(entry.ChargeCents(), rows)
		isDecided := is.byFile[collections.PrimaryPayer] > 0 || is.paid[collections.PrimaryPayer] > 0 || entry.Status() == Paid && len(is.decided[collections.PrimaryPayer]) > 0
		if isDecided || entry.Status() == Denied && carcOf(code) == carcDuplicate {
			return fault.State(AlreadyDecided, "The payer decided the claim before, and did not reverse that.")
		}
		if entry.Status() == Denied { // the later reason counts
			if err := reverseAdjustments(tx, entry, collections.Source835, by, now); err != nil {
				return err
			}
			if rows, err = collections.PaymentsOf(tx, entry.Id); err != nil {
				return err
			}
		}
		r.storePayerControlNumber(entry)
		post := posting{}
		if !isVoiding(entry) {
			a := amountsWith(entry, rows)
			post = r.postingOf(a, nil, mergeAdjustments(a.adjustments, a.shareOffsets), r.Adjustments)
		}
		return errors.Join(postPayment(tx, entry, r.newPayment(collections.DenialKind, 0, post, by), now), r.noteSecondary(tx, entry))
	}
	return m
}

// isVoiding reports whether a void of the claim was requested: it has no open amounts.
func isVoiding(entry *collections.BillingEntry) bool {
	return entry.Status() == VoidRequested || entry.Status() == RefundDue
}

// denialCode returns the reason of a denial: the first adjustment that is not contractual, else the first.
func denialCode(list []collections.Adjustment) string {
	if len(list) == 0 {
		return ""
	}
	i := slices.IndexFunc(list, func(a collections.Adjustment) bool { return !slices.Contains(contractualReasons, a.CARC) })
	return list[max(i, 0)].Group + "-" + list[max(i, 0)].CARC
}

// remitReversal reverses a posted remittance and restores the amounts of the remaining decisions.
// If no decision of the primary payer is left, the claim waits for its correction; payments of the
// patient or the secondary payer stay posted. The reversal counts as a refund due to the payer.
// Source: docs/decisions/billing.md, "Reversals".
func (e *Engine) remitReversal(r Remittance, by audit.Actor, now time.Time) Transition {
	left := Submitted // by what is left of the payers' decisions
	m := Transition{
		Name: "reverse", From: []string{Submitted, Appealed, Paid, Denied, RefundDue, VoidRequested}, event: audit.BillingReverse, detail: r.Paid.String() + " " + r.Reference,
		target: func(entry *collections.BillingEntry) string { return stateAfterReversal(entry, left) }, after: releaseTimeWhenRefunded(now),
	}
	m.check = func(tx core.App, entry *collections.BillingEntry) error {
		rows, err := collections.PaymentsOf(tx, entry.Id)
		if err != nil {
			return err
		}
		r.Secondary = r.Secondary || r.isSecondaryReversal(rows)
		is := standingOf(entry.ChargeCents(), rows)
		if int64(r.Paid) > min(entry.PaidTotalCents()-entry.RefundedCents(), is.paid[r.payerKind()]) {
			return fault.State("reversal_without_original", "The reversal exceeds the payments.")
		}
		p := r.newPayment(collections.ReversalKind, -r.Paid, posting{}, by)
		if !r.hasOriginal(p, rows) {
			return r.missingOriginalFault()
		}
		restorePayerNumber(entry, append(slices.Clone(rows), p))
		if err := r.noteSecondary(tx, entry); err != nil {
			return err
		}
		switch entry.Status() {
		case RefundDue:
			return postPayment(tx, entry, r.newPayment(collections.RefundKind, r.Paid, posting{}, by), now)
		case VoidRequested, Submitted, Appealed: // a resubmission or appeal already reversed the denial's adjustments
			standing, _ := withoutReversed(rows)
			if r.Paid == 0 && len(originalsOf(p, standing)) == 0 {
				return r.missingOriginalFault()
			}
			if kept, _ := withoutReversed(append(rows, p)); entry.Status() == Appealed && !r.Secondary {
				restoreDenial(entry, lastDenial(standing), lastDenial(kept), left)
			}
			return postPayment(tx, entry, p, now)
		}
		if p.Adjustments, left, err = reversalOf(entry, rows, p); err != nil {
			return err
		}
		return postPayment(tx, entry, p, now)
	}
	return m
}

func clearDenial(entry *collections.BillingEntry) {
	for _, column := range []string{collections.EntryDenialCode, collections.EntryDenialDescription, collections.EntryDenialDate} {
		entry.Set(column, "")
	}
	entry.Set(collections.EntryDenialRemarks, []string{})
}

// matchBookedAdjustments returns the part of a list that an entry has: what was omitted, never posted, or paid is not reversed. A reversal may
// lack the remark codes of what it reverses.
func matchBookedAdjustments(entry, list []collections.Adjustment) (found []collections.Adjustment) {
	left := slices.Clone(entry)
	for _, a := range list {
		for _, remarked := range []bool{true, false} {
			for i, x := range left {
				if x.Group != a.Group || x.CARC != a.CARC || sameReason(x, a) != remarked {
					continue
				}
				part := min(a.AmountCents, max(0, x.AmountCents))
				if a.AmountCents < 0 {
					part = max(a.AmountCents, min(0, x.AmountCents))
				}
				left[i].AmountCents -= part
				a.AmountCents -= part
				if x.AmountCents = part; part != 0 {
					found = append(found, x)
				}
			}
		}
	}
	return found
}

// RemittanceKey returns the prefix of the keys of a payer's remittances.
func RemittanceKey(payer string) string { return "835|" + payer + "|" }

// isSecondaryReversal reports whether a reversal is from a payer that paid only as secondary; its CLP02 does not state it.
func (r Remittance) isSecondaryReversal(list []collections.Payment) bool {
	secondary := false
	for _, p := range list {
		if strings.HasPrefix(p.Key, RemittanceKey(r.Payer)) {
			if secondary = p.Payer == collections.SecondaryPayer; !secondary {
				return false
			}
		}
	}
	return secondary
}

func stateAfterReversal(entry *collections.BillingEntry, left string) string {
	switch state := entry.Status(); state {
	case RefundDue:
		return stateAfterRefund(entry, false)
	case VoidRequested, Submitted, Appealed:
		return state
	}
	return left
}

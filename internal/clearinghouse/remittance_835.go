package clearinghouse

import (
	"errors"
	"fmt"
	"slices"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/claims"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/x12"
)

// undecidedStatuses are the CLP02 codes that decide nothing about our claim: forwarded without adjudication, and predetermination. Source: ASC
// X12N 005010X221A1 (835), CLP02.
var undecidedStatuses = map[string]string{"23": "sent_on", "25": "forecast"}

// secondaryStatuses are the CLP02 codes of a payer that decides after another. Source: as above.
var secondaryStatuses = []string{"2", "3", "20", "21"}

// import835 posts a payer's decisions, claim by claim: all lines of a claim in one transaction, or none. Other claims, and provider-level adjustments,
// are items for a person, so that the items and what was posted are the payment. Source: docs/decisions/claims.md, "Posting an 835".
func (t *importRun) import835(p x12.Remittance) error {
	digest := digestOf(p)
	if t.seen[digest] { // the same payment again in one file
		return nil
	}
	t.seen[digest] = true
	row, err := collections.AddRemittance(t.app, collections.RemittanceDraft{
		ResponseID: t.responseID, Digest: digest, Payer: p.Payer.Name, Trace: p.Trace, PaymentCents: int64(p.Total), Date: p.PaidOn, Method: p.Method,
	}, t.now)
	if err != nil {
		return err
	}
	t.remittance, t.items, t.keys = row.ID, nil, map[string]int{}
	for _, c := range p.Claims {
		if err := t.importClaimPayment(p, c); err != nil {
			return err
		}
	}
	for _, o := range p.ProviderAdjustments {
		if o.Amount != 0 {
			t.addItem(collections.RemittanceItem{Segment: SegmentProvider, ControlNumber: o.Reference, AmountCents: int64(o.Amount), Reason: "PLB " + o.Reason, Code: o.Reason})
		}
	}
	return t.finishRemittance(p, row)
}

// Segments of items: a claim, a provider adjustment, or a difference of the sums.
const (
	SegmentClaim    = "CLP"
	SegmentProvider = "PLB"
	segmentTotal    = "BPR"
)

// finishRemittance stores the items. What the payment has beyond them and what was posted is an item of its own: the payer's sums disagree.
func (t *importRun) finishRemittance(p x12.Remittance, row collections.RemittanceRow) error {
	posted, err := collections.PostedOf(t.app, []string{row.ID})
	if err != nil {
		return err
	}
	rest := int64(p.Total) - posted[row.ID]
	for _, item := range t.items {
		if item.Segment == SegmentProvider {
			rest += item.AmountCents
		} else {
			rest -= item.AmountCents
		}
	}
	if rest != 0 {
		reason := totalDiffers
		if p.Total == 0 && rest > 0 {
			reason = debtNotCarried
		}
		t.addItem(collections.RemittanceItem{Segment: segmentTotal, ControlNumber: p.Trace, AmountCents: rest, Reason: reason})
	}
	return collections.FinishRemittance(t.app, row.ID, t.items, t.now)
}

// addItem adds an item of a remittance for a person.
func (t *importRun) addItem(item collections.RemittanceItem) {
	t.items = append(t.items, item)
	t.addUnmatched(item.Segment, item.ControlNumber, x12.Cents(item.AmountCents), item.Reason)
}

// isPayee reports whether a claim's payment is to the practice: by NPI or tax id, as far as the payer states either and the practice has it.
func (t *importRun) isPayee(c x12.ClaimPayment) bool {
	practice := t.Billing.Claims.Practice
	stated := false
	for _, id := range []string{c.Payee.ID, c.PayeeTaxID} {
		if id = validate.Digits(id); id != "" {
			if id == validate.Digits(practice.NPI) || id == validate.Digits(practice.TaxID) {
				return true
			}
			stated = true
		}
	}
	return !stated || practice.NPI == "" && practice.TaxID == ""
}

// importClaimPayment posts a payer's decision about one claim, or adds it to the items with the reason why not.
func (t *importRun) importClaimPayment(p x12.Remittance, c x12.ClaimPayment) error {
	lines, err := collections.LinesOfClaim(t.app, c.ControlNumber)
	if err != nil {
		return err
	}
	lines = slices.DeleteFunc(lines, func(l collections.ClaimLine) bool {
		return l.Frequency == claims.VoidOfClaim && len(lines) > 1 && !allVoided(lines)
	})
	parts, reason, err := t.decide(c, lines)
	if err != nil {
		return err
	}
	applied := 0
	if reason == "" {
		applied, err = t.postClaim(p, c, parts)
		if refused, ok := errors.AsType[*fault.Error](err); ok && refused.Kind != fault.Internal {
			reason, applied, err = refused.Code, 0, nil
		}
	}
	t.applied += applied
	if err == nil && reason != "" {
		item := collections.RemittanceItem{
			Segment: SegmentClaim, ControlNumber: c.ControlNumber, PayerControlNumber: c.PayerControlNumber, Code: c.Status, AmountCents: int64(c.Paid), Reason: reason,
		}
		for _, l := range lines {
			item.EntryIDs = append(item.EntryIDs, l.EntryID)
		}
		t.addItem(item)
	}
	return err
}

// decide returns what a decision posts to the lines of a claim, or why a person must look at it.
func (t *importRun) decide(c x12.ClaimPayment, lines []collections.ClaimLine) (parts []lineDecision, reason string, err error) {
	switch {
	case !t.isPayee(c):
		return nil, "other_payee", nil
	case undecidedStatuses[c.Status] != "":
		return nil, undecidedStatuses[c.Status], nil
	case len(lines) == 0:
		return nil, "unknown_claim", nil
	}
	batch, err := collections.FindBatchRow(t.app, lines[0].BatchID)
	if err != nil {
		return nil, "", err
	}
	if t.isTestBatch(batch) {
		return nil, claims.TestUsage, nil
	}
	parts, reason = apportion(c, lines)
	return parts, reason, nil
}

// postClaim posts the lines of a claim, all or none, and counts those that were changed.
func (t *importRun) postClaim(p x12.Remittance, c x12.ClaimPayment, parts []lineDecision) (applied int, err error) {
	err = t.app.RunInTransaction(func(tx core.App) error {
		for _, d := range parts {
			repeated, err := t.postLine(tx, p, c, d)
			if err != nil {
				return err
			}
			if !repeated {
				applied++
			}
		}
		return nil
	})
	return applied, err
}

// allVoided reports whether all lines of a claim were voids.
func allVoided(lines []collections.ClaimLine) bool {
	return !slices.ContainsFunc(lines, func(l collections.ClaimLine) bool { return l.Frequency != claims.VoidOfClaim })
}

// postLine applies a decision to its line, once.
func (t *importRun) postLine(tx core.App, p x12.Remittance, c x12.ClaimPayment, d lineDecision) (repeated bool, err error) {
	r := billing.Remittance{
		Kind: d.kind(c), Secondary: slices.Contains(secondaryStatuses, c.Status), Paid: billing.Cents(d.paid), Date: p.PaidOn,
		Reference: p.Trace, Payer: p.PayerNumber, PayerControlNumber: c.PayerControlNumber, Adjustments: d.adjustments, Remarks: d.remarks,
		RemittanceID: t.remittance,
	}
	key := billing.RemittanceKey(p.PayerNumber) + fmt.Sprintf("%s|%s|%s|%d", p.Trace, d.line.Line, c.Status, d.paid)
	t.keys[key]++
	r.Key = fmt.Sprintf("%s|%d", key, t.keys[key])
	entry, err := collections.FindBillingEntry(tx, d.line.EntryID)
	if err != nil {
		return false, err
	}
	if r.Kind == billing.RemittedDenial && entry.Status() == billing.Paid && billing.IsPaidBefore(d.adjustments) {
		r.Kind = billing.RemittedPayment // a replacement names a line that its payer paid with an earlier claim
	}
	if entry.ClaimControlNumber() != d.line.Claim {
		r.PayerControlNumber = "" // of a replaced claim
		r.Superseded = true
	}
	_, repeated, err = t.Billing.ApplyRemittance(tx, d.line.EntryID, r, t.by, t.now)
	return repeated, err
}

// kind returns what is decided about a line. A line with no payment and no patient share is a denial, for any result of the other lines, unless all
// of it is contractual.
func (d lineDecision) kind(c x12.ClaimPayment) string {
	isSecondary := slices.Contains(secondaryStatuses, c.Status)
	switch {
	case c.Reversal():
		return billing.RemittedReversal
	case d.paid != 0 || !isSecondary && billing.IsContractual(d.adjustments):
		return billing.RemittedPayment
	case c.Denied() || !d.patientOwes() && d.line.ChargeCents > 0:
		return billing.RemittedDenial
	}
	return billing.RemittedPayment
}

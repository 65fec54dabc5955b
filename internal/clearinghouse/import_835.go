package clearinghouse

import (
	"cmp"
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

// import835 posts a payer's decisions, claim by claim: all lines of a claim in one transaction, or none. Other claims, and provider-level adjustments,
// are items for a person, so that the items and what was posted are the payment. Source: docs/decisions/claims.md, "Posting an 835".
func (t *importRun) import835(p x12.Remittance) error {
	digest := digestOf(p)
	if t.seen[digest] { // the same payment again in one file
		return nil
	}
	t.seen[digest] = true
	t.isCorrection = false
	row, err := t.storedPayment(collections.RemittanceDraft{
		ResponseID: t.responseID, Digest: digest, Payer: p.Payer.Name, Trace: p.Trace, PaymentCents: int64(p.Total), Date: p.PaidOn, Method: p.Method,
	}, p.Claims)
	if err != nil {
		return err
	}
	if t.remittances = append(t.remittances, row.ID); row.Digest != digest { // a later file corrected this one
		return nil
	}
	if t.closed, err = row.Items(); err != nil {
		return err
	}
	t.closed = slices.DeleteFunc(t.closed, func(item collections.RemittanceItem) bool { return item.ClosedAt == "" })
	if slices.ContainsFunc(t.closed, func(item collections.RemittanceItem) bool { return item.Reason == collections.ImportInterrupted }) {
		return nil // a person resolved the rest of an interrupted import
	}
	t.remittance, t.items, t.keys = row.ID, nil, map[string]int{}
	if err := t.importClaims(p); err != nil {
		return err
	}
	for _, o := range p.ProviderAdjustments {
		if o.Amount != 0 {
			t.addItem(collections.RemittanceItem{Segment: SegmentProvider, ControlNumber: o.Reference, AmountCents: int64(o.Amount), Reason: "PLB " + o.Reason, Code: o.Reason})
		}
	}
	return t.finishRemittance(p, row)
}

// importClaims posts the claims of a payment. The items are in the order of the file.
func (t *importRun) importClaims(p x12.Remittance) error {
	var all, waiting []*claimDecision
	for _, c := range p.Claims {
		d, err := t.decide(p, c)
		if err != nil {
			return err
		}
		all = append(all, d)
	}
	if err := t.holdBack(all); err != nil {
		return err
	}
	for _, d := range all {
		if d.reason == "" {
			waiting = append(waiting, d)
		}
	}
	for len(waiting) > 0 {
		next, err := t.postNext(p, waiting)
		if err != nil {
			return err
		}
		waiting = slices.DeleteFunc(waiting, func(d *claimDecision) bool { return d == next })
	}
	for _, d := range all {
		t.applied += d.applied
		if d.reason != "" {
			t.addItem(d.item())
		}
		for _, entry := range d.superseded {
			t.addItem(collections.RemittanceItem{
				Segment: SegmentClaim, ControlNumber: d.ControlNumber, PayerControlNumber: d.PayerControlNumber, Code: d.Status, Reason: supersededClaim, EntryIDs: []string{entry},
			})
		}
	}
	return nil
}

// postNext posts the first decision that waits, or another on the same entries: a reversal comes first as soon as it applies, because a payer may state
// a correction before the reversal of what it corrects. Source: ASC X12N 005010X221A1 (835), 1.10.2.8, which has no order.
func (t *importRun) postNext(p x12.Remittance, waiting []*claimDecision) (next *claimDecision, err error) {
	if slices.ContainsFunc(waiting, (*claimDecision).Reversal) {
		for _, d := range waiting {
			if !d.sharesEntry(waiting[0]) {
				continue
			}
			if !d.Reversal() {
				next = cmp.Or(next, d)
				continue
			}
			d.reason = ""
			if err = t.postClaim(p, d); err != nil || d.reason == "" {
				return d, err
			}
		}
		if next == nil { // reversals without original
			return waiting[0], nil
		}
	}
	next = cmp.Or(next, waiting[0])
	return next, t.postClaim(p, next)
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
	if read := t.unposted[p.Payer.Name]; read != nil {
		read[row.ID] = collections.ItemsWithReason(t.items, billing.AlreadyDecided)
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

// claimDecision is a payer's decision about one claim as it is posted to our lines.
type claimDecision struct {
	x12.ClaimPayment
	lines      []collections.ClaimLine
	parts      []lineDecision
	reason     string // why a person must look at it
	applied    int
	superseded []string // entries of lines without payment that are on a newer claim
}

// item returns the item of a claim that was not posted.
func (d *claimDecision) item() collections.RemittanceItem {
	item := collections.RemittanceItem{
		Segment: SegmentClaim, ControlNumber: d.ControlNumber, PayerControlNumber: d.PayerControlNumber, Code: d.Status, AmountCents: int64(d.Paid), Reason: d.reason,
	}
	if d.Fault != nil {
		item.Detail = d.Fault.Place() + " " + d.Fault.Reason + "."
	}
	for _, l := range d.lines {
		item.EntryIDs = append(item.EntryIDs, l.EntryID)
	}
	return item
}

// sharesEntry reports whether two decisions are about the same line, on the same claim or on one that replaced it.
func (d *claimDecision) sharesEntry(other *claimDecision) bool {
	return slices.ContainsFunc(d.lines, func(l collections.ClaimLine) bool {
		return slices.ContainsFunc(other.lines, func(m collections.ClaimLine) bool { return l.EntryID == m.EntryID })
	})
}

// decide returns what a decision posts to the lines of a claim, or why a person must look at it.
func (t *importRun) decide(p x12.Remittance, c x12.ClaimPayment) (d *claimDecision, err error) {
	d = &claimDecision{ClaimPayment: c}
	if d.lines, err = collections.LinesOfClaim(t.app, c.ControlNumber); err != nil {
		return nil, err
	}
	if len(d.lines) == 0 {
		if d.lines, err = collections.LineOfEntry(t.app, c.ControlNumber); err != nil {
			return nil, err
		}
	}
	d.lines = slices.DeleteFunc(d.lines, func(l collections.ClaimLine) bool {
		return l.Frequency == claims.VoidOfClaim && len(d.lines) > 1 && !allVoided(d.lines)
	})
	switch {
	case c.Fault != nil:
		d.reason = unreadable
		return d, nil //nolint:nilerr // the fault is the claim's, which waits for a person
	case p.Prenotification():
		d.reason = prenotification
		return d, nil
	case !p.MovesMoney():
		d.reason = noMoneyMoved
		return d, nil
	case !t.isPayee(c):
		d.reason = "other_payee"
		return d, nil
	case undecidedStatuses[c.Status] != "":
		d.reason = undecidedStatuses[c.Status]
		return d, nil
	case len(d.lines) == 0:
		d.reason = "unknown_claim"
		return d, nil
	}
	if isTest, err := t.isTest(d.lines[0].BatchID); err != nil || isTest {
		d.reason = claims.TestUsage
		return d, err
	}
	d.parts, d.reason = apportion(c, d.lines)
	for i, part := range d.parts {
		key := billing.RemittanceKey(p.PayerNumber) + fmt.Sprintf("%s|%s|%s|%d", p.Trace, part.line.Line, c.Status, part.paid)
		t.keys[key]++
		d.parts[i].key = fmt.Sprintf("%s|%d", key, t.keys[key])
	}
	return d, nil
}

// postClaim posts the lines of a claim, all or none, and counts those that were changed. A line without payment that is on a newer claim does not hold
// up the others. What a person closed before stays closed, and is not posted.
func (t *importRun) postClaim(p x12.Remittance, d *claimDecision) error {
	if isClosed, err := t.isClosed(d); err != nil || isClosed {
		return err
	}
	reversesUnposted, err := t.reversesUnposted(p, d)
	if err != nil {
		return err
	}
	applied, superseded := 0, []string(nil)
	err = collections.RunUndoable(t.app, func(tx core.App) error {
		for _, part := range d.parts {
			part.reversesUnposted = reversesUnposted
			repeated, err := t.postLine(tx, p, d.ClaimPayment, part)
			if refused, ok := errors.AsType[*fault.Error](err); ok && refused.Code == supersededClaim && len(d.parts) > 1 {
				superseded = append(superseded, part.line.EntryID)
				continue
			}
			if err != nil {
				return err
			}
			if !repeated {
				applied++
			}
		}
		if len(superseded) == len(d.parts) {
			return fault.State(supersededClaim, "The claim was replaced.")
		}
		return nil
	})
	refused, isFault := errors.AsType[*fault.Error](err)
	switch {
	case isFault && refused.Kind != fault.Internal:
		d.reason = refused.Code
	case err != nil:
		return err
	default:
		d.applied, d.superseded = applied, superseded
	}
	return nil
}

// reversesUnposted reports whether a reversal has the number and amount of a decision on the claim that was not posted, because the payer had decided before.
func (t *importRun) reversesUnposted(p x12.Remittance, d *claimDecision) (bool, error) {
	if !d.Reversal() || d.PayerControlNumber == "" {
		return false, nil
	}
	payer := p.Payer.Name
	if t.unposted[payer] == nil {
		found, err := collections.ItemsOfPayer(t.app, payer, billing.AlreadyDecided)
		if err != nil {
			return false, err
		}
		t.unposted[payer] = found
	}
	for _, items := range t.unposted[payer] {
		if slices.ContainsFunc(items, d.reverses) {
			return true, nil
		}
	}
	return false, nil
}

// reverses reports whether a reversal has the payer's number and amount of an item, and one of its lines.
func (d *claimDecision) reverses(item collections.RemittanceItem) bool {
	return item.PayerControlNumber == d.PayerControlNumber && item.AmountCents == -int64(d.Paid) && item.Code != d.Status &&
		slices.ContainsFunc(d.lines, func(l collections.ClaimLine) bool { return slices.Contains(item.EntryIDs, l.EntryID) })
}

// isClosed reports whether a person closed the item of a claim that is not posted, and keeps the item's reason.
func (t *importRun) isClosed(d *claimDecision) (bool, error) {
	at := slices.IndexFunc(t.closed, d.item().IsSame)
	if at < 0 {
		return false, nil
	}
	for _, part := range d.parts {
		isPosted, err := collections.IsPosted(t.app, part.key)
		if err != nil || !isPosted {
			if err == nil {
				d.reason = t.closed[at].Reason
				t.closed = slices.Delete(t.closed, at, at+1)
			}
			return !isPosted, err
		}
	}
	return false, nil
}

// allVoided reports whether all lines of a claim were voids.
func allVoided(lines []collections.ClaimLine) bool {
	return !slices.ContainsFunc(lines, func(l collections.ClaimLine) bool { return l.Frequency != claims.VoidOfClaim })
}

// postLine applies a decision to its line, once.
func (t *importRun) postLine(tx core.App, p x12.Remittance, c x12.ClaimPayment, d lineDecision) (repeated bool, err error) {
	entry, err := collections.FindBillingEntry(tx, d.line.EntryID)
	if err != nil {
		return false, err
	}
	isSecondary, err := t.Billing.IsSecondaryAnswer(tx, entry, p.PayerNumber, c.Status, d.line.IsSecondary())
	if err != nil {
		return false, err
	}
	r := billing.Remittance{
		Key: d.key, Kind: d.kind(c, isSecondary), Status: c.Status, Secondary: isSecondary, Paid: billing.Cents(d.paid), Date: p.PaidOn,
		Reference: p.Trace, Payer: p.PayerNumber, PayerControlNumber: c.PayerControlNumber, Adjustments: d.adjustments, Remarks: d.remarks,
		RemittanceID: t.remittance, PaidCode: d.paidCode, ReversesUnposted: d.reversesUnposted,
	}
	if r.Kind == billing.RemittedDenial && entry.Status() == billing.Paid && billing.IsPaidBefore(d.adjustments) {
		r.Kind = billing.RemittedPayment // a replacement names a line that its payer paid with an earlier claim
	}
	if entry.ClaimControlNumber() != d.line.Claim && !d.line.IsSecondary() {
		r.Superseded = true
	}
	_, repeated, err = t.Billing.ApplyRemittance(tx, d.line.EntryID, r, t.by, t.now)
	return repeated, err
}

// kind returns what is decided about a line. A line with no payment and no patient share is a denial, for any result of the other lines, unless all
// of it is contractual.
func (d lineDecision) kind(c x12.ClaimPayment, isSecondary bool) string {
	switch {
	case c.Reversal():
		return billing.RemittedReversal
	case d.paid != 0 || billing.IsContractual(d.adjustments, isSecondary):
		return billing.RemittedPayment
	case c.Denied() || !d.patientOwes() && d.line.ChargeCents > 0:
		return billing.RemittedDenial
	}
	return billing.RemittedPayment
}

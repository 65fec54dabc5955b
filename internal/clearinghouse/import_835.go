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

// import835 posts a payer's decisions claim by claim: all lines of a claim in one transaction, or
// none. Other claims, and provider-level adjustments, become items for a person, so that items and
// posted amounts add up to the payment. Source: docs/decisions/claims.md, "Posting an 835".
func (ir *importRun) import835(p x12.Remittance) error {
	digest := digestOf(p)
	if ir.seen[digest] { // the same payment again in one file
		return nil
	}
	ir.seen[digest] = true
	ir.isCorrection = false
	row, err := ir.storedPayment(collections.RemittanceDraft{
		ResponseID: ir.responseID, Digest: digest, Payer: p.Payer.Name, Trace: p.Trace, PaymentCents: int64(p.Total), Date: p.PaidOn, Method: p.Method,
	}, p.Claims)
	if err != nil {
		return err
	}
	if ir.remittances = append(ir.remittances, row.ID); row.Digest != digest { // a later file corrected this one
		return nil
	}
	if ir.closed, err = row.Items(); err != nil {
		return err
	}
	ir.closed = slices.DeleteFunc(ir.closed, func(item collections.RemittanceItem) bool { return item.ClosedAt == "" })
	if slices.ContainsFunc(ir.closed, func(item collections.RemittanceItem) bool { return item.Reason == collections.ImportInterrupted }) {
		return nil // a person resolved the rest of an interrupted import
	}
	ir.remittance, ir.items, ir.keys = row.ID, nil, map[string]int{}
	if err := ir.importClaims(p); err != nil {
		return err
	}
	for _, o := range p.ProviderAdjustments {
		if o.Amount != 0 {
			ir.addItem(collections.RemittanceItem{Segment: SegmentProvider, ControlNumber: o.Reference, AmountCents: int64(o.Amount), Reason: "PLB " + o.Reason, Code: o.Reason})
		}
	}
	return ir.finishRemittance(p, row)
}

// importClaims posts the claims of a payment. The items are in the order of the file.
func (ir *importRun) importClaims(p x12.Remittance) error {
	var all, waiting []*claimDecision
	for _, c := range p.Claims {
		d, err := ir.decide(p, c)
		if err != nil {
			return err
		}
		all = append(all, d)
	}
	if err := ir.withholdContradictions(all); err != nil {
		return err
	}
	for _, d := range all {
		if d.reason == "" {
			waiting = append(waiting, d)
		}
	}
	for len(waiting) > 0 {
		next, err := ir.postNext(p, waiting)
		if err != nil {
			return err
		}
		waiting = slices.DeleteFunc(waiting, func(d *claimDecision) bool { return d == next })
	}
	for _, d := range all {
		ir.applied += d.applied
		if d.reason != "" {
			ir.addItem(d.item())
		}
		for _, entry := range d.superseded {
			ir.addItem(collections.RemittanceItem{
				Segment: SegmentClaim, ControlNumber: d.ControlNumber, PayerControlNumber: d.PayerControlNumber, Code: d.Status, Reason: supersededClaim, EntryIDs: []string{entry},
			})
		}
	}
	return nil
}

// postNext posts the first waiting decision. A reversal on the same entries goes first as soon as
// it applies, because a payer may state a correction before the reversal of the original. Source:
// ASC X12N 005010X221A1 (835), 1.10.2.8, which has no order.
func (ir *importRun) postNext(p x12.Remittance, waiting []*claimDecision) (next *claimDecision, err error) {
	if slices.ContainsFunc(waiting, (*claimDecision).IsReversal) {
		for _, d := range waiting {
			if !d.sharesEntry(waiting[0]) {
				continue
			}
			if !d.IsReversal() {
				next = cmp.Or(next, d)
				continue
			}
			d.reason = ""
			if err = ir.postClaim(p, d); err != nil || d.reason == "" {
				return d, err
			}
		}
		if next == nil { // reversals without original
			return waiting[0], nil
		}
	}
	next = cmp.Or(next, waiting[0])
	return next, ir.postClaim(p, next)
}

// Segments of items: a claim, a provider adjustment, or a difference of the sums.
const (
	SegmentClaim    = "CLP"
	SegmentProvider = "PLB"
	segmentTotal    = "BPR"
)

// finishRemittance stores the items. A difference between the payment and the items plus posted
// amounts is an item of its own: the payer's sums disagree.
func (ir *importRun) finishRemittance(p x12.Remittance, row collections.RemittanceRow) error {
	posted, err := collections.PostedOf(ir.app, []string{row.ID})
	if err != nil {
		return err
	}
	rest := int64(p.Total) - posted[row.ID]
	for _, item := range ir.items {
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
		ir.addItem(collections.RemittanceItem{Segment: segmentTotal, ControlNumber: p.Trace, AmountCents: rest, Reason: reason})
	}
	if read := ir.unposted[p.Payer.Name]; read != nil {
		read[row.ID] = collections.ItemsWithReason(ir.items, billing.AlreadyDecided)
	}
	return collections.FinishRemittance(ir.app, row.ID, ir.items, ir.now)
}

// addItem adds an item of a remittance for a person.
func (ir *importRun) addItem(item collections.RemittanceItem) {
	ir.items = append(ir.items, item)
	ir.addUnmatched(item.Segment, item.ControlNumber, x12.Cents(item.AmountCents), item.Reason)
}

// isPayee reports whether a claim's payment is to the practice: by NPI or tax id, as far as the payer states either and the practice has it.
func (ir *importRun) isPayee(c x12.ClaimPayment) bool {
	practice := ir.Billing.Claims.Practice
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
	if d.ParseError != nil {
		item.Detail = d.ParseError.Location() + " " + d.ParseError.Reason + "."
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
func (ir *importRun) decide(p x12.Remittance, c x12.ClaimPayment) (d *claimDecision, err error) {
	d = &claimDecision{ClaimPayment: c}
	if d.lines, err = collections.LinesOfClaim(ir.app, c.ControlNumber); err != nil {
		return nil, err
	}
	if len(d.lines) == 0 {
		if d.lines, err = collections.LineOfEntry(ir.app, c.ControlNumber); err != nil {
			return nil, err
		}
	}
	d.lines = slices.DeleteFunc(d.lines, func(l collections.ClaimLine) bool {
		return l.Frequency == claims.VoidOfClaim && len(d.lines) > 1 && !allVoided(d.lines)
	})
	switch {
	case c.ParseError != nil:
		d.reason = unreadable
		return d, nil //nolint:nilerr // the fault is the claim's, which waits for a person
	case p.Prenotification():
		d.reason = prenotification
		return d, nil
	case !p.MovesMoney():
		d.reason = noMoneyMoved
		return d, nil
	case !ir.isPayee(c):
		d.reason = "other_payee"
		return d, nil
	case undecidedStatuses[c.Status] != "":
		d.reason = undecidedStatuses[c.Status]
		return d, nil
	case len(d.lines) == 0:
		d.reason = "unknown_claim"
		return d, nil
	}
	if isTest, err := ir.isTest(d.lines[0].BatchID); err != nil || isTest {
		d.reason = claims.TestUsage
		return d, err
	}
	d.parts, d.reason = apportion(c, d.lines)
	for i, part := range d.parts {
		key := billing.RemittanceKey(p.PayerNumber) + fmt.Sprintf("%s|%s|%s|%d", p.Trace, part.line.Line, c.Status, part.paid)
		ir.keys[key]++
		d.parts[i].key = fmt.Sprintf("%s|%d", key, ir.keys[key])
	}
	return d, nil
}

// postClaim posts the lines of a claim, all or none, and counts those that were changed. A line without payment that is on a newer claim does not hold
// up the others. What a person closed before stays closed, and is not posted.
func (ir *importRun) postClaim(p x12.Remittance, d *claimDecision) error {
	if isClosed, err := ir.isClosed(d); err != nil || isClosed {
		return err
	}
	reversesUnposted, err := ir.reversesUnposted(p, d)
	if err != nil {
		return err
	}
	applied, superseded := 0, []string(nil)
	err = collections.RunInSavepoint(ir.app, func(tx core.App) error {
		for _, part := range d.parts {
			part.reversesUnposted = reversesUnposted
			repeated, err := ir.postLine(tx, p, d.ClaimPayment, part)
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
func (ir *importRun) reversesUnposted(p x12.Remittance, d *claimDecision) (bool, error) {
	if !d.IsReversal() || d.PayerControlNumber == "" {
		return false, nil
	}
	payer := p.Payer.Name
	if ir.unposted[payer] == nil {
		found, err := collections.ItemsOfPayer(ir.app, payer, billing.AlreadyDecided)
		if err != nil {
			return false, err
		}
		ir.unposted[payer] = found
	}
	for _, items := range ir.unposted[payer] {
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
func (ir *importRun) isClosed(d *claimDecision) (bool, error) {
	at := slices.IndexFunc(ir.closed, d.item().IsSame)
	if at < 0 {
		return false, nil
	}
	for _, part := range d.parts {
		isPosted, err := collections.IsPosted(ir.app, part.key)
		if err != nil || !isPosted {
			if err == nil {
				d.reason = ir.closed[at].Reason
				ir.closed = slices.Delete(ir.closed, at, at+1)
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
func (ir *importRun) postLine(tx core.App, p x12.Remittance, c x12.ClaimPayment, d lineDecision) (repeated bool, err error) {
	entry, err := collections.FindBillingEntry(tx, d.line.EntryID)
	if err != nil {
		return false, err
	}
	isSecondary, err := ir.Billing.IsSecondaryAnswer(tx, entry, p.PayerNumber, c.Status, d.line.IsSecondary())
	if err != nil {
		return false, err
	}
	r := billing.Remittance{
		Key: d.key, Kind: d.kind(c, isSecondary), Status: c.Status, Secondary: isSecondary, Paid: billing.Cents(d.paid), Date: p.PaidOn,
		Reference: p.Trace, Payer: p.PayerNumber, PayerControlNumber: c.PayerControlNumber, Adjustments: d.adjustments, Remarks: d.remarks,
		RemittanceID: ir.remittance, PaidCode: d.paidCode, ReversesUnposted: d.reversesUnposted,
	}
	if r.Kind == billing.RemittedDenial && entry.Status() == billing.Paid && billing.IsPaidBefore(d.adjustments) {
		r.Kind = billing.RemittedPayment // a replacement names a line that its payer paid with an earlier claim
	}
	if entry.ClaimControlNumber() != d.line.Claim && !d.line.IsSecondary() {
		r.Superseded = true
	}
	_, repeated, err = ir.Billing.ApplyRemittance(tx, d.line.EntryID, r, ir.by, ir.now)
	return repeated, err
}

// kind returns what is decided about a line. A line with no payment and no patient share is a denial, for any result of the other lines, unless all
// of it is contractual.
func (d lineDecision) kind(c x12.ClaimPayment, isSecondary bool) string {
	switch {
	case c.IsReversal():
		return billing.RemittedReversal
	case d.paid != 0 || billing.IsContractual(d.adjustments, isSecondary):
		return billing.RemittedPayment
	case c.Denied() || !d.patientOwes() && d.line.ChargeCents > 0:
		return billing.RemittedDenial
	}
	return billing.RemittedPayment
}

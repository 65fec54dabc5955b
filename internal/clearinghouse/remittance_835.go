package clearinghouse

import (
	"fmt"
	"slices"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/claims"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/x12"
)

// undecidedStatuses are the CLP02 codes that decide nothing about our claim: forwarded without adjudication, and predetermination. Source: ASC
// X12N 005010X221A1 (835), CLP02.
var undecidedStatuses = map[string]string{"23": "sent_on", "25": "forecast"}

// import835 applies a payer's decisions, claim by claim. Provider-level adjustments are stored for a person.
func (t *importRun) import835(p x12.Remittance) error {
	ours := t.isPayee(p)
	for _, c := range p.Claims {
		if !ours {
			t.addUnmatched("CLP", c.ControlNumber, c.Paid, "other_payee")
			continue
		}
		if reason := undecidedStatuses[c.Status]; reason != "" {
			t.addUnmatched("CLP", c.ControlNumber, c.Paid, reason)
			continue
		}
		if err := t.importClaimPayment(p, c); err != nil {
			return err
		}
	}
	for _, o := range p.ProviderAdjustments {
		t.addUnmatched("PLB", o.Reference, o.Amount, "PLB "+o.Reason)
	}
	return nil
}

// isPayee reports whether the payment is to the practice: by NPI or tax id, as far as the payer states either and the practice has it.
func (t *importRun) isPayee(p x12.Remittance) bool {
	practice := t.Billing.Claims.Practice
	stated := false
	for _, id := range []string{p.Payee.ID, p.PayeeTaxID} {
		if id = validate.Digits(id); id != "" {
			if id == validate.Digits(practice.NPI) || id == validate.Digits(practice.TaxID) {
				return true
			}
			stated = true
		}
	}
	return !stated || practice.NPI == "" && practice.TaxID == ""
}

// lineDecision is a payer's decision about one service line.
type lineDecision struct {
	line        collections.ClaimLine
	paid        x12.Cents
	adjustments []collections.Adjustment
}

// importClaimPayment applies a payer's decision about one claim.
func (t *importRun) importClaimPayment(p x12.Remittance, c x12.ClaimPayment) error {
	lines, err := collections.LinesOfClaim(t.app, c.ControlNumber)
	if err != nil {
		return err
	}
	lines = slices.DeleteFunc(lines, func(l collections.ClaimLine) bool { return l.Frequency == "8" && len(lines) > 1 && !allVoided(lines) })
	if len(lines) == 0 {
		t.addUnmatched("CLP", c.ControlNumber, c.Paid, "unknown_claim")
		return nil
	}
	batch, err := collections.FindBatchRow(t.app, lines[0].BatchID)
	if err != nil {
		return err
	}
	if t.isTestBatch(batch) {
		t.addUnmatched("CLP", c.ControlNumber, c.Paid, claims.TestUsage)
		return nil
	}
	parts, reason := apportion(c, lines)
	if reason != "" {
		t.addUnmatched("CLP", c.ControlNumber, c.Paid, reason)
		return nil
	}
	for _, d := range parts {
		if err := t.applyToLine(p, c, d); err != nil {
			return err
		}
	}
	return nil
}

// allVoided reports whether all lines of a claim were voids.
func allVoided(lines []collections.ClaimLine) bool {
	return !slices.ContainsFunc(lines, func(l collections.ClaimLine) bool { return l.Frequency != "8" })
}

// apportion assigns a claim's decisions to our lines: by our line control number, else to the only line. Claim-level adjustments go to the lines
// in order, as far as each has an open amount.
func apportion(c x12.ClaimPayment, lines []collections.ClaimLine) (parts []lineDecision, reason string) {
	sign := x12.Cents(1)
	if c.Reversal() {
		sign = -1
	}
	if len(c.Lines) == 0 {
		return apportionWholeClaim(c, lines, sign)
	}
	for _, service := range c.Lines {
		i := slices.IndexFunc(lines, func(l collections.ClaimLine) bool { return l.Line == service.ControlNumber })
		if i < 0 && service.ControlNumber == "" && len(lines) == 1 && len(c.Lines) == 1 {
			i = 0
		}
		if i < 0 {
			return nil, "unknown_line"
		}
		parts = append(parts, lineDecision{lines[i], sign * service.Paid, adjustments(service.Adjustments, service.RemarkCodes, sign)})
	}
	spreadAdjustments(parts, adjustments(c.Adjustments, c.RemarkCodes, sign))
	return parts, ""
}

// apportionWholeClaim applies a decision without service lines: it belongs to the only line of a claim; a denial applies to each line.
func apportionWholeClaim(c x12.ClaimPayment, lines []collections.ClaimLine, sign x12.Cents) ([]lineDecision, string) {
	list := adjustments(c.Adjustments, c.RemarkCodes, sign)
	if len(lines) == 1 {
		return []lineDecision{{lines[0], sign * c.Paid, list}}, ""
	}
	if !c.Denied() || c.Paid != 0 {
		return nil, "no_service_lines"
	}
	parts := make([]lineDecision, len(lines))
	for i, l := range lines {
		parts[i] = lineDecision{line: l}
	}
	spreadAdjustments(parts, list)
	return parts, ""
}

// adjustments converts a payer's adjustments, with its remark codes on the first. For a reversal they are the reversed amounts.
func adjustments(list []x12.Adjustment, remarks []string, sign x12.Cents) []collections.Adjustment {
	var out []collections.Adjustment
	for i, a := range list {
		adjusted := collections.Adjustment{Group: a.Group, CARC: a.Code, AmountCents: int64(sign * a.Amount), RARC: []string{}}
		if i == 0 {
			adjusted.RARC = append(adjusted.RARC, remarks...)
		}
		out = append(out, adjusted)
	}
	return out
}

// spreadAdjustments assigns claim-level adjustments to lines.
func spreadAdjustments(parts []lineDecision, list []collections.Adjustment) {
	for _, a := range list {
		left := a.AmountCents
		for i := range parts {
			part := min(left, max(0, parts[i].openCents()))
			if i == len(parts)-1 {
				part = left // an excess is shown on the last line
			}
			if part == 0 {
				continue
			}
			share := a
			share.AmountCents = part
			parts[i].adjustments = append(parts[i].adjustments, share)
			left -= part
		}
	}
}

// openCents returns the undecided amount.
func (d lineDecision) openCents() int64 {
	open := d.line.ChargeCents - int64(d.paid)
	for _, a := range d.adjustments {
		open -= a.AmountCents
	}
	return open
}

// patientOwes reports whether the patient owes a part.
func (d lineDecision) patientOwes() bool {
	return slices.ContainsFunc(d.adjustments, func(a collections.Adjustment) bool { return a.Group == billing.GroupPatient && a.AmountCents > 0 })
}

// applyToLine applies a decision to its line, once. A line with no payment and no patient share is a denial, for any result of the other lines.
func (t *importRun) applyToLine(p x12.Remittance, c x12.ClaimPayment, d lineDecision) error {
	r := billing.Remittance{
		Kind: billing.RemittedPayment, Secondary: slices.Contains([]string{"2", "3", "20", "21"}, c.Status), Paid: billing.Cents(d.paid), Date: p.PaidOn,
		Reference: p.Trace, Payer: p.PayerNumber, PayerControlNumber: c.PayerControlNumber, Adjustments: d.adjustments,
	}
	entry, err := collections.FindBillingEntry(t.app, d.line.EntryID)
	if err != nil {
		return err
	}
	superseded := entry.ClaimControlNumber() != d.line.Claim
	if superseded {
		r.PayerControlNumber = "" // of a replaced claim
	}
	switch {
	case c.Reversal():
		r.Kind = billing.RemittedReversal
	case c.Denied() || d.paid == 0 && !d.patientOwes() && d.line.ChargeCents > 0:
		r.Kind = billing.RemittedDenial
	}
	if superseded && r.Kind == billing.RemittedDenial {
		t.addUnmatched("CLP", c.ControlNumber, d.paid, "superseded_claim")
		return nil
	}
	key := billing.RemittanceKey(p.PayerNumber) + fmt.Sprintf("%s|%s|%s|%d", p.Trace, d.line.Line, c.Status, d.paid)
	t.keys[key]++
	r.Key = fmt.Sprintf("%s|%d", key, t.keys[key])
	_, repeated, err := t.Billing.ApplyRemittance(t.app, d.line.EntryID, r, t.by, t.now)
	if repeated {
		return nil
	}
	return t.countResult(err, "CLP", c.ControlNumber, d.paid)
}

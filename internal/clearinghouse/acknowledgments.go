package clearinghouse

import (
	"fmt"
	"slices"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/claims"
	"github.com/vigilhealth/vigil/internal/x12"
)

// importTA1 applies the acknowledgment of an envelope: a rejected envelope rejects all of its claims.
func (ir *importRun) importTA1(r x12.InterchangeAck) error {
	why := ofBatch("999", []string{r.Note}, collections.RejectionDetail{Segment: "TA1", Code: r.Note})
	return ir.setBatchResult("TA1", r.ControlNumber, r.Code == "R", false, why)
}

// import999 applies the acknowledgment of our functional group. It contains one transaction set.
func (ir *importRun) import999(s x12.ImplementationAck) error {
	ir.locateErrors(s)
	refused, codes := s.Rejected(), slices.Clone(s.Codes)
	for _, set := range s.Sets {
		refused = refused || set.Rejected()
		codes = append(codes, set.Codes...)
		for _, e := range set.Errors {
			codes = append(codes, e.Segment+" "+e.Code)
		}
	}
	return ir.setBatchResult("AK1", s.Group, refused, s.Code == "P", rejection999(s, codes))
}

// locateErrors looks up the claims of errors that name none in the file that was sent. Without the
// file such errors have no known claim.
func (ir *importRun) locateErrors(s x12.ImplementationAck) {
	var sent []x12.Interchange
	for _, set := range s.Sets {
		for i := range set.Errors {
			if set.Errors[i].Claim != "" {
				continue
			}
			if sent == nil {
				row, err := collections.FindBatchByNumber(ir.app, padded(s.Group))
				if err != nil {
					return
				}
				file, err := collections.BatchFile(ir.app, row.ID)
				if err != nil {
					return
				}
				if sent, err = x12.Read([]byte(file.Reveal())); err != nil {
					return
				}
			}
			set.Errors[i].Locate(sent, set.ControlNumber)
		}
	}
}

// setBatchResult sets the status of a batch by the number of its interchange or group, and rejects all of its lines if it was rejected.
func (ir *importRun) setBatchResult(segment, number string, refused, partly bool, why func(collections.ClaimLine) rejection) error {
	row, err := collections.FindBatchByNumber(ir.app, padded(number))
	if collections.IsNotFound(err) {
		ir.addUnmatched(segment, number, 0, "unknown_batch")
		return nil
	}
	if err != nil {
		return err
	}
	if ir.isTestBatch(row) {
		ir.addUnmatched(segment, number, 0, claims.TestUsage)
		return nil
	}
	status := collections.BatchAccepted
	if refused {
		status = collections.BatchRejected
	} else if partly {
		status = collections.BatchPartly
	}
	if row.Status != collections.BatchRejected && row.Status != collections.BatchPartly || status == collections.BatchRejected {
		if err := collections.SetBatchStatus(ir.app, row.ID, status, ir.now); err != nil {
			return err
		}
	}
	lines, err := collections.LinesOfBatch(ir.app, row.ID)
	if err != nil {
		return err
	}
	for _, l := range lines {
		if !refused {
			ir.applied++
		} else if err := ir.rejectLine(l, why(l)); err != nil {
			return err
		}
	}
	return nil
}

// padded returns a control number with its leading zeros, which a 999 may omit.
func padded(number string) string {
	for len(number) < 9 {
		number = "0" + number
	}
	return number
}

// rejectLine rejects a line, unless it was sent again since.
func (ir *importRun) rejectLine(l collections.ClaimLine, why rejection) error {
	entry, err := collections.FindBillingEntry(ir.app, l.EntryID)
	if err != nil {
		return fmt.Errorf("line %s: %w", l.Line, err)
	}
	if l.IsSecondary() {
		if newest, err := collections.NewestSecondaryClaim(ir.app, l.EntryID); err != nil || newest != l.Claim {
			return err
		}
		_, err = ir.Billing.ApplyTransition(ir.app, l.EntryID, ir.Billing.RejectSecondary(why.stored(ir.now)), ir.by, ir.now)
		return ir.countResult(err, "CLM", l.Claim, 0)
	}
	if l.Carried || entry.ClaimControlNumber() != l.Claim {
		return nil
	}
	if (entry.Status() == billing.VoidRequested || entry.Status() == billing.RefundDue) && l.Frequency != claims.VoidOfClaim {
		ir.addUnmatched("CLM", l.Claim, x12.Cents(l.ChargeCents), "void_requested") // the payer has no claim to void
		return nil
	}
	if entry.BatchID() == "" {
		return nil
	}
	_, err = ir.Billing.ApplyTransition(ir.app, l.EntryID, ir.Billing.Reject(why.stored(ir.now)), ir.by, ir.now)
	return ir.countResult(err, "CLM", l.Claim, 0)
}

func distinctCodes(codes []string) []string {
	codes = slices.DeleteFunc(slices.Clone(codes), func(c string) bool { return c == "" })
	slices.Sort(codes)
	return append([]string{}, slices.Compact(codes)...)
}

// import277CA applies which claims were accepted for adjudication.
func (ir *importRun) import277CA(s x12.ClaimAck) error {
	for _, source := range s.Sources {
		if source.Rejected() && len(source.Providers) == 0 {
			if err := ir.rejectBatch(source.Batch, source.Statuses); err != nil {
				return err
			}
			continue
		}
		for _, provider := range source.Providers {
			for _, claim := range provider.Claims {
				above := slices.Concat(provider.Statuses, source.Statuses)
				if err := ir.importClaimStatus(claim, above, source.Rejected() || provider.Rejected() || claim.Rejected()); err != nil {
					return err
				}
			}
			if !provider.Rejected() || len(provider.Claims) > 0 {
				continue
			}
			if len(source.Providers) > 1 { // the answer does not name the provider's claims
				ir.addUnmatched("HL", source.Batch, 0, "provider_refused")
			} else if err := ir.rejectBatch(source.Batch, slices.Concat(provider.Statuses, source.Statuses)); err != nil {
				return err
			}
		}
	}
	return nil
}

// rejectBatch applies the rejection of a whole batch, or of its only provider, with the statuses that reject it.
func (ir *importRun) rejectBatch(number string, statuses []x12.StatusInfo) error {
	statuses = slices.DeleteFunc(slices.Clone(statuses), func(s x12.StatusInfo) bool { return !s.Rejected() })
	return ir.setBatchResult("TRN", number, true, false, ofBatch("277CA", codesOf(statuses), statusDetails("", "", statuses)...))
}

// importClaimStatus applies the status of one claim; above are those of its provider and batch.
func (ir *importRun) importClaimStatus(c x12.ClaimStatus, above []x12.StatusInfo, refused bool) error {
	lines, err := collections.LinesOfClaim(ir.app, c.ControlNumber)
	if err != nil {
		return err
	}
	if len(lines) == 0 {
		ir.addUnmatched("TRN", c.ControlNumber, 0, "unknown_claim")
		return nil
	}
	batch, err := collections.FindBatchRow(ir.app, lines[0].BatchID)
	if err != nil {
		return err
	}
	if ir.isTestBatch(batch) {
		ir.addUnmatched("TRN", c.ControlNumber, 0, claims.TestUsage)
		return nil
	}
	why := rejection277CA(c, above)
	for _, l := range lines {
		switch {
		case refused:
			if err := ir.rejectLine(l, why(l)); err != nil {
				return err
			}
		case c.PayerControlNumber != "":
			if err := collections.SetPayerControlNumber(ir.app, l.EntryID, l.Claim, c.PayerControlNumber, ir.now); err != nil {
				return err
			}
			ir.applied++
		default:
			ir.applied++
		}
	}
	if refused {
		return ir.setPartlyAccepted(batch)
	}
	return nil
}

// setPartlyAccepted records that a part of a batch was rejected.
func (ir *importRun) setPartlyAccepted(batch collections.BatchRow) error {
	if batch.Status == collections.BatchRejected {
		return nil
	}
	return collections.SetBatchStatus(ir.app, batch.ID, collections.BatchPartly, ir.now)
}

// codesOf returns the categories and status codes, "A7:562".
func codesOf(words []x12.StatusInfo) (codes []string) {
	for _, w := range words {
		for _, r := range w.Codes {
			codes = append(codes, r.Category+":"+r.Code)
		}
	}
	return codes
}
